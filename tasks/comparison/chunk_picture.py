"""The picture of a comparison of chunks: the paper's Fig. 3, and beside it the losses per record that it is made of."""

from __future__ import annotations

from pathlib import Path

from core.charts.bars import grouped_bars
from core.charts.chart import Chart, Look
from core.charts.lines import lines
from core.charts.picture import Picture, beside
from core.charts.scales import Scale, linear
from schemas.errors.base import counted
from tasks.comparison.chunk_results import Case, Comparison, write_figure

PALEST = 0.3
"""How strong the colour of the fewest chunks is; more chunks are stronger."""
SIDES = ("SKALD", "alone")


def draw(folder: Path, comparison: Comparison) -> Path:
    """Writes ``comparison.svg``, over that of an earlier comparison.

    Raises:
        StorageError: the folder cannot be written.
    """
    return write_figure(folder / "comparison.svg", lambda path: path.write_text(comparison_picture(comparison).alone(), "utf-8"))


def comparison_picture(comparison: Comparison) -> Picture:
    """Returns the picture; equal comparisons give equal ones."""
    title = f"One node for all chunks (SKALD) against a node for each chunk alone: {_data(comparison)}"
    losses = {case: (case.skald.dm_star / case.records, case.alone.dm_star / case.records) for case in comparison.cases}
    penalties = {case: (case.skald.gcp, case.alone.gcp) for case in comparison.cases}
    return beside(
        title,
        "Every figure stands in comparison.csv and comparison.json.",
        [
            _ratios(comparison),
            _sides(comparison, "Loss per record: DM* / N", "records in a record's class, on average", losses),
            _sides(comparison, "Coarsening: GCP", "0: values as they are; 1: all generalised to *", penalties, linear(1.0)),
        ],
    )


def _data(comparison: Comparison) -> str:
    most = max(comparison.cases, key=lambda case: case.chunks)
    if comparison.data == "cut":
        size = f"{comparison.records:,} records, cut into more and more chunks"
    else:
        size = f"chunks of {counted(most.records // most.chunks, 'record')}"
    return f"{comparison.name}, {size}, at most {float(comparison.limit):.1%} suppressed"


def _ratios(comparison: Comparison) -> Picture:
    """Draws the DM* ratio as the paper does: a group of bars per k, a bar per number of chunks; from 1, where both lose the same."""
    counts, ks = _counts(comparison), _ks(comparison)
    found = {(case.chunks, case.k): case.ratio for case in comparison.cases}
    names = [counted(chunks, "chunk") for chunks in counts]
    series = {name: [found[chunks, k] for k in ks] for name, chunks in zip(names, counts, strict=True)}
    steps = max(len(counts) - 1, 1)
    # Numbers of chunks are an order and not kinds: one colour that grows stronger says so, and leaves colours to mean k.
    looks = {name: Look(0, strength=1 - (1 - PALEST) * (1 - number / steps)) for number, name in enumerate(names)}
    chart = Chart("DM* ratio (the paper's Fig. 3)", "each chunk alone / SKALD; above 1 one node for all loses less", series, looks=looks)
    return grouped_bars(chart, [f"{k:,}" for k in ks], "k", base=1.0)


def _sides(comparison: Comparison, title: str, note: str, figures: dict[Case, tuple[float, float]], scale: Scale | None = None) -> Picture:
    """Draws a loss of both sides against the number of chunks: a colour per k, SKALD's line whole, the other one dashed."""
    counts, ks = _counts(comparison), _ks(comparison)
    found = {(case.chunks, case.k): pair for case, pair in figures.items()}
    series, looks = {}, {}
    for number, k in enumerate(ks):
        for side, name in enumerate(SIDES):
            line = f"{name}, k = {k:,}"
            series[line] = [found[chunks, k][side] for chunks in counts]
            looks[line] = Look(number, quiet=side > 0)
    return lines(Chart(title, note, series, looks=looks), [f"{chunks:,}" for chunks in counts], "chunks", scale)


def _counts(comparison: Comparison) -> list[int]:
    return sorted({case.chunks for case in comparison.cases})


def _ks(comparison: Comparison) -> list[int]:
    return sorted({case.k for case in comparison.cases})
