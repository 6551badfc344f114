"""Picture of a hierarchy: a row for each level, finest at the bottom, a box for each group.

A box is as wide as its group has records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.charts.chart import Picture, paint, svg_words, text, width_of
from schemas.errors.base import counted

WIDE, LEFT, TOP, ROW, BOX = 980, 190, 64, 46, 30
MOST_BOXES = 400
"""Groups of a level that are drawn one by one."""
SEAM = 1.0


@dataclass(frozen=True)
class LevelRow:
    """One level of a hierarchy to draw: the group of each value and the labels of groups.

    Attributes:
        groups: Shape (m,): the group of each value, from 0.
        labels: What is published for each group; empty where nothing is to be written into the boxes.
    """

    groups: NDArray[np.uint32]
    labels: Sequence[str]


def hierarchy_picture(title: str, rows: Sequence[LevelRow], counts: NDArray[np.int64]) -> Picture:
    """Return a picture of a hierarchy: a row of boxes per level, as wide as their groups have records.

    Args:
        title: What it is of.
        rows: The levels, finest first, over the same m values.
        counts: Shape (m,): records of each value.
    """
    # A group stands under the one that it becomes: the coarsest decides the order, then the next.
    order = np.lexsort([row.groups for row in rows])
    parts = [text(16, 28, title, size=16, bold=True), text(16, 48, "As wide as a group has records; the coarsest level is on top.", "soft")]
    for number, row in enumerate(rows):
        y = TOP + (len(rows) - 1 - number) * ROW
        sizes = np.bincount(row.groups, counts).astype(np.int64)
        parts += [
            text(16, y + 13, f"level {number}", bold=True),
            text(16, y + 27, f"{len(sizes):,} groups, least {sizes.min():,}" if len(sizes) > 1 else "1 group", "soft", size=11),
        ]
        parts += _boxes(row, sizes, row.groups[order], y)
    says = "Labels are shown where they fit, and under the pointer. Values themselves are not written."
    return Picture(title, says, LEFT + WIDE + 16, TOP + len(rows) * ROW + 8, "".join(parts))


def _boxes(row: LevelRow, sizes: NDArray[np.int64], placed: NDArray[np.uint32], y: float) -> Iterator[str]:
    """Yield the boxes of one level's groups, or a single box where they are too many."""
    _, firsts = np.unique(placed, return_index=True)
    shown = placed[np.sort(firsts)]
    scale = WIDE / max(int(sizes.sum()), 1)
    if len(shown) > MOST_BOXES:
        yield f"<rect x='{LEFT}' y='{y}' width='{WIDE}' height='{BOX}' rx='3' {paint('cut')}/>"
        yield text(LEFT + WIDE / 2, y + BOX / 2 + 4, f"{len(shown):,} groups", "on-cut", "middle")
        return
    x = float(LEFT)
    for group in shown:
        width, label = float(sizes[group]) * scale, row.labels[group] if row.labels else ""
        told = f"{label}: {counted(sizes[group], 'record')}" if label else counted(sizes[group], "record")
        box = f"<rect x='{x:.2f}' y='{y}' width='{max(width - SEAM, 0.4):.2f}' height='{BOX}' rx='3' {paint('cut')}/>"
        fits = label and width_of(label, 11) + 8 <= width
        words = text(x + width / 2, y + BOX / 2 + 4, label, "on-cut", "middle", 11) if fits else ""
        yield f"<g><title>{svg_words(told)}</title>{box}{words}</g>"
        x += width
