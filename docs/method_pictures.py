"""Draws what one node, Mondrian and k-member clustering make of the same records, by the code that makes releases.

``python -m docs.method_pictures`` writes docs/images/methods.svg.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.charts.chart import SLOTS, Picture, paint, text, width_of
from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from core.kmember.partition import Effort, RecordsToGroup
from core.mondrian.partition import Rules, partition
from core.mondrian.ranks import CutAxis
from core.privacy.promise import Promise
from core.recoding.prices import LabelPrices
from schemas.job.columns import QuasiIdentifier

PICTURE = Path(__file__).resolve().parent / "images" / "methods.svg"
K, RECORDS, END = 4, 60, 60
SIDE, LEFT, TOP, GUTTER = 270, 34, 34, 28
Points = NDArray[np.int64]


def side_by_side(title: str, alt_text: str, pictures: Sequence[Picture]) -> Picture:
    """Return one picture that shows several pictures side by side, under one heading."""
    top, x, parts = 40, 0.0, [text(8, 24, title, size=16, bold=True)]
    for one in pictures:
        # Each is a group with its own title, so that the parts are told one by one.
        parts.append(f"<g transform='translate({x:g} {top})'><title>{escape(one.title)}</title>{one.body}</g>")
        x += one.width + GUTTER
    width = max(x - GUTTER, 16 + width_of(title, 16))
    return Picture(title, alt_text, width, top + max(one.height for one in pictures), "".join(parts))


def records() -> Points:
    """Return age above 18 and income in thousands of some people, shape (RECORDS, 2): two groups, and few rich old ones."""
    random = np.random.default_rng(4)
    young = random.normal((14, 18), (5, 5), (RECORDS // 2, 2))
    older = random.normal((34, 36), (8, 7), (RECORDS - RECORDS // 2, 2))
    found: Points = np.clip(np.rint(np.concatenate([young, older])), 0, END - 1).astype(np.int64)
    return found


def one_node(points: Points) -> NDArray[np.int64]:
    """Return the class of each record at the finest bins, of one width for a whole column, that leave few records out; -1 for these."""
    found = []
    for wide in (5, 10, 15, 20, 30, 60):
        for high in (5, 10, 15, 20, 30, 60):
            cells = points[:, 0] // wide * 100 + points[:, 1] // high
            kept = np.unique(cells, return_counts=True)[1]
            # Up to a tenth of the records may be left out.
            if kept[kept < K].sum() <= RECORDS / 10:
                found.append((wide + high, wide, high))
    _, wide, high = min(found)
    cells = points[:, 0] // wide * 100 + points[:, 1] // high
    numbers, inverse, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return np.where(counts[inverse] >= K, numbers[inverse] * 10_000 + wide * 100 + high, -1)


def by_cuts(points: Points) -> NDArray[np.int64]:
    """Return the class of each record by Mondrian's cuts."""
    codes = coded(points)[0]
    return partition(codes.astype(np.uint16), np.ones(len(points), np.int64), axes(points), Rules(Promise(K))).of_rows().astype(np.int64)


def by_clusters(points: Points) -> NDArray[np.int64]:
    """Return the class of each record by k-member clustering."""
    codes, labels = coded(points)
    return RecordsToGroup(codes, axes(points), labels, K).clustered(Effort.of(len(points), K, 1))[0].astype(np.int64)


def coded(points: Points) -> tuple[NDArray[np.int64], list[LabelPrices]]:
    """Return the codes of the records, and how their classes are published: as ranges."""
    codes, labels = [], []
    for name, column in zip(("age", "income"), points.T, strict=True):
        values, places, counts = np.unique(column, return_inverse=True, return_counts=True)
        domain = Domain(name, pa.array(values), counts, 0)
        qid = QuasiIdentifier.model_validate({"name": name, "hierarchy": {"widths": [5]}})
        labels.append(LabelPrices("interval", domain, build_hierarchy(qid, domain, Path())))
        codes.append(places)
    return np.stack(codes, axis=1), labels


def axes(points: Points) -> list[CutAxis]:
    """Return how each column is cut: by its numbers."""
    return [
        CutAxis(label.domain.qid, np.arange(label.domain.size), label.domain.values.to_numpy().astype(float), False)
        for label in coded(points)[1]
    ]


def panel(title: str, says: str, points: Points, boxes: Sequence[tuple[float, float, float, float]], lost: int = 0) -> Picture:
    """Draw the records and the boxes that they are published as: left, lower, right and upper end of each."""
    scale = SIDE / END
    parts = [text(LEFT, 20, title, bold=True, size=14)]
    parts.append(f"<rect x='{LEFT}' y='{TOP}' width='{SIDE}' height='{SIDE}' {paint(stroke='grid')}/>")
    for number, (left, low, right, high) in enumerate(boxes):
        x, y = LEFT + left * scale, TOP + SIDE - high * scale
        colour = paint(f"series-{number % SLOTS}", f"series-{number % SLOTS}")
        shape = f"x='{x:.1f}' y='{y:.1f}' width='{(right - left) * scale:.1f}' height='{(high - low) * scale:.1f}'"
        parts.append(f"<rect {shape} rx='2' {colour} fill-opacity='0.16' stroke-width='1.5'/>")
    for x, y in points.tolist():
        parts.append(f"<circle cx='{LEFT + (x + 0.5) * scale:.1f}' cy='{TOP + SIDE - (y + 0.5) * scale:.1f}' r='2.6' {paint('ink')}/>")
    parts += [text(LEFT + SIDE / 2, TOP + SIDE + 18, "age", "soft", "middle"), text(LEFT + 6, TOP + 15, "income", "soft", size=11)]
    area = sum((right - left) * (high - low) for left, low, right, high in boxes) / len(boxes) / END**2
    note = f"{len(boxes)} classes, {area:.1%} of the plane each" + (f", {lost} left out" if lost else "")
    parts.append(text(LEFT, TOP + SIDE + 38, note, "soft"))
    return Picture(title, says, LEFT + SIDE + 8, TOP + SIDE + 48, "".join(parts))


def set_labels(points: Points, classes: NDArray[np.int64]) -> list[tuple[float, float, float, float]]:
    """Return the box of the values that each class holds."""
    held = [points[classes == number] for number in np.unique(classes[classes >= 0])]
    return [(*mine.min(axis=0).tolist(), *(mine.max(axis=0) + 1).tolist()) for mine in held]


def bins(classes: NDArray[np.int64]) -> list[tuple[float, float, float, float]]:
    """Return the box of bins that each class of `one_node` publishes."""
    found = []
    for number in np.unique(classes[classes >= 0]).tolist():
        cell, widths = divmod(number, 10_000)
        (column, row), (wide, high) = divmod(cell, 100), divmod(widths, 100)
        found.append((column * wide, row * high, (column + 1) * wide, (row + 1) * high))
    return found


def methods() -> Picture:
    """Return the three side by side."""
    points = records()
    node = one_node(points)
    drawn = [
        panel("One node: skald", "The same bins for everybody", points, bins(node), int((node < 0).sum())),
        panel("Cuts: mondrian", "A range of its own for each class", points, set_labels(points, by_cuts(points))),
        panel("Clusters: kmember", "Tight ranges that may overlap", points, set_labels(points, by_clusters(points))),
    ]
    says = "Boxes are what is published of the records within; a small box says more."
    return side_by_side(f"{RECORDS} people at k = {K}, as three methods publish them", says, drawn)


if __name__ == "__main__":
    PICTURE.write_text(methods().alone(), "utf-8")
