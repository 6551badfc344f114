"""The pictures of benchmarks/rayden.py: one per measure, with a line per method.

They are drawn as those of `skald compare --methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.charts.chart import Chart, short_figure
from core.charts.scatter import line_chart

Series = Mapping[str, Sequence[float | None]]


def picture(
    folder: Path | None,
    name: str,
    title: str,
    note: str,
    series: Series,
    places: Sequence[str],
    axis: str,
    spelt: Callable[[float], str] = short_figure,
) -> None:
    """Write one picture as SVG, if a folder is given."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(line_chart(Chart(title, note, series, spelt), places, axis).alone(), "utf-8")


def share(value: float) -> str:
    """Spell a share."""
    return f"{100 * value:.4g} %"


def seconds(value: float) -> str:
    """Spell seconds."""
    return f"{value:.3g} s"
