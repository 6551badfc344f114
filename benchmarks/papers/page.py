"""The page of the papers' figures: it includes measured parts, and its text is written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from core.charts.chart import Chart, scale_of, short_figure
from core.charts.scatter import line_chart

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"
PARTS = ROOT / "docs" / "papers"
IMAGES = ROOT / "docs" / "images" / "papers"


class Block(NamedTuple):
    """A measured part of the page: the name of its file, and its text."""

    name: str
    text: str


def write(block: Block) -> None:
    """Write a measured part into the file that the page includes.

    Raises:
        ValueError: the page includes no such part.
    """
    if f"```{{include}} papers/{block.name}.txt" not in PAGE.read_text("utf-8"):
        raise ValueError(block.name)
    (PARTS / f"{block.name}.txt").write_text(f"{block.text}\n", "utf-8")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; its first column is text, the others are figures."""
    marks = ["---", *("---:" for _ in heads[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, marks, *rows])


def picture(
    name: str, title: str, note: str, series: Mapping[str, Sequence[float | None]], places: Sequence[str], axis: str, *, zero: bool = False
) -> str:
    """Write a picture of lines and return what shows it in the page."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    chart = Chart(title, note, series, short_figure)
    drawn = line_chart(chart, places, axis, scale_of([0.0, *chart.known_figures]) if zero else None)
    (IMAGES / f"{name}.svg").write_text(drawn.alone(), "utf-8")
    return f"```{{image}} images/papers/{name}.svg\n:alt: {title}. {note}\n:width: 100%\n```"
