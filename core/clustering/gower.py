"""Distances between records over mixed QIDs, in whole numbers (Gower 1971).

See papers/rayden.txt, VP-Tree Partitioning Phase.

A record is a row of int32. Numerical QIDs come first, each as the position of its value in the range of the complete dataset in 2^-20ths;
then the categories of the others. Distances are sums of such units, so that equal distances are equal on every machine and in whatever
order they are summed. An algorithm that splits by rank of distance meets many ties on coarse data, and a rounding error must not decide
them. No matrix of distances is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import is_numerical, number_line
from core.compiling.compiled import compiler
from core.hierarchies.hierarchy import Hierarchy

kernel = compiler(
    "clustering.gower", "clustering.vptree", "clustering.nearest", "clustering.cof", "clustering.outlier_step",
    "clustering.semantic",
)  # fmt: skip
UNIT = 1 << 20
# Farther than UNIT from every place and 0 from itself, so that one comparison finds that one of two is missing.
ABSENT = 2 * UNIT + 1
ABSENT_CODE = -1

Missing = Literal["differs", "ignored"]
Rows = NDArray[np.int32]


class Metric(NamedTuple):
    """Settings of a distance between points, as kernels read them.

    Attributes:
        numerical: How many of the columns are numerical; they come first.
        missing: What counts where one of two numbers is missing: UNIT, or 0 if that is to be ignored, of categories too.
        squared: Whether the distance is Euclid's (CANON) and not Gower's; then its square is what is compared.
        weights: Shape (columns,), int64: what it counts if two categories differ.
    """

    numerical: int
    missing: int
    squared: bool
    weights: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a metric space: a row of integer coordinates per record, and how they are compared.

    Attributes:
        rows: Shape (n, columns), int32, C-contiguous: numerical columns first.
    """

    rows: Rows
    metric: Metric

    @classmethod
    def of(cls, rows: Rows, numerical_count: int, missing: int = UNIT) -> Self:
        """Make Gower points of equally weighted columns, the first ``numerical_count`` of them numerical."""
        return cls(rows, Metric(numerical_count, missing, False, np.full(rows.shape[1], UNIT)))

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.rows)

    @property
    def is_metric(self) -> bool:
        """Whether the distance keeps the triangle inequality.

        Squares do not, and a missing value at distance 0 from all does not.
        """
        return self.metric.missing == UNIT and not self.metric.squared

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the points of the given rows."""
        return type(self)(np.ascontiguousarray(self.rows[rows]), self.metric)


def positions_in_range(domain: Domain) -> Rows:
    """Return the position of each code in a numerical domain's range, from 0 to UNIT; a null at ABSENT.

    The result has the shape (domain.size,).
    """
    line = number_line(domain)
    assert line is not None
    numbers = line.of(domain.values)
    low, high = (float(numbers[0]), float(numbers[-1])) if len(numbers) else (0.0, 0.0)
    placed = np.rint((numbers - low) / (high - low) * UNIT) if high > low else np.zeros(len(numbers))
    return np.append(placed, ABSENT)[: domain.size].astype(np.int32)


def gower_points(
    records: NDArray[np.integer], domains: Sequence[Domain], missing: Missing = "differs", hierarchies: Sequence[Hierarchy] | None = None
) -> Points:
    """Convert records to points under Gower's distance; hierarchies, if given, grade category distances.

    If both values are missing, the distance is 0. If one is missing, it is 1, or 0 where missing values are ignored (the paper's δ; the sum
    is divided by the number of all QIDs either way).

    With hierarchies the distance of two categories is the relative height of their lowest common ancestor, 1 being the root: each level
    below the root at which their groups differ adds an equal part. Gower, and the paper, have 1 for all that differ, however near of kin.

    Args:
        records: Shape (n, QIDs), the code of each value.
        domains: One per QID.
        missing: What counts where one value is missing.
        hierarchies: One per QID, if categories are to be compared by them.
    """
    qids = range(len(domains))
    columns = [positions_in_range(domains[qid])[records[:, qid]] for qid in qids if is_numerical(domains[qid])]
    numerical, weights = len(columns), [UNIT] * len(columns)
    for qid in qids:
        if not is_numerical(domains[qid]):
            levels = category_levels(domains[qid], hierarchies[qid] if hierarchies else None)
            columns += [level[records[:, qid]] for level in levels]
            # The parts add up to UNIT exactly.
            weights += np.diff(np.arange(len(levels) + 1) * UNIT // len(levels)).tolist()
    # Another layout is another type to numba, for which every kernel would be compiled once more.
    rows = np.ascontiguousarray(np.column_stack(columns))
    return Points(rows, Metric(numerical, UNIT if missing == "differs" else 0, False, np.array(weights, np.int64)))


def category_levels(domain: Domain, hierarchy: Hierarchy | None) -> list[Rows]:
    """Return each code's group at each level below the root, or its number alone without a hierarchy.

    Nulls are negative.
    """
    finest = np.append(np.arange(len(domain.values)), ABSENT_CODE)[: domain.size].astype(np.int32)
    if hierarchy is None:
        return [finest]
    levels = [groups.astype(np.int32) for groups in hierarchy.groups[:-1]]
    return [np.where(finest < 0, ABSENT_CODE, level).astype(np.int32) for level in levels]


def euclidean_points(records: NDArray[np.integer], domains: Sequence[Domain]) -> Points:
    """Convert records to points under CANON's distance: Euclidean, of numerical QIDs over their range.

    Each QID is divided by its range.

    Args:
        records: Shape (n, QIDs), the code of each value.
        domains: One per QID; categorical ones play no part.
    """
    columns = [positions_in_range(domain)[records[:, qid]] for qid, domain in enumerate(domains) if is_numerical(domain)]
    rows = np.column_stack(columns) if columns else np.empty((len(records), 0), np.int32)
    return Points(np.ascontiguousarray(rows), Metric(len(columns), UNIT, True, np.empty(0, np.int64)))


@kernel
def distance(first: Rows, row: int, second: Rows, other: int, metric: Metric) -> int:
    """Return the distance of two points, in units of 2^-20 of one QID, or 2^-40 where squared.

    Args:
        first: Shape (n, QIDs).
        second: Shape (n', QIDs).
        other: Which row of that.
        metric: What the columns of the points are.
    """
    total = 0
    for qid in range(metric.numerical):
        gap = abs(np.int64(first[row, qid]) - np.int64(second[other, qid]))
        if gap > UNIT:
            gap = np.int64(metric.missing)
        # 2^40 a column at most: sums of squares stay far below 2^63.
        total += int(gap * gap if metric.squared else gap)
    for qid in range(metric.numerical, first.shape[1]):
        mine, other_code = first[row, qid], second[other, qid]
        if mine != other_code:
            total += metric.weights[qid] if metric.missing or (mine >= 0 and other_code >= 0) else 0
    return total


@kernel
def measure_to_vantages(
    rows: Rows,
    order: NDArray[np.int64],
    segments: NDArray[np.int64],
    vantages: NDArray[np.int64],
    metric: Metric,
    distances: NDArray[np.int64],
) -> None:
    """Write each record's distance to its segment's vantage point into ``distances``, at its place.

    Args:
        rows: Shape (n, QIDs).
        order: Shape (n,), the records segment by segment.
        segments: Shape (s, 2), where each begins and ends in ``order``.
        vantages: Shape (s,), a record per segment.
        metric: What the columns of the points are.
        distances: Shape (n,), written to at the places of the segments.
    """
    # Written out, with arrays by names of their own: a call of ``distance`` for each record costs twice as much.
    numerical, missing, squared, weights, columns = (
        metric.numerical,
        np.int64(metric.missing),
        metric.squared,
        metric.weights,
        rows.shape[1],
    )
    seen = np.empty(columns, np.int64)
    for segment in range(segments.shape[0]):
        for qid in range(columns):
            seen[qid] = rows[vantages[segment], qid]
        for place in range(segments[segment, 0], segments[segment, 1]):
            row, total = order[place], np.int64(0)
            for qid in range(numerical):
                gap = abs(seen[qid] - np.int64(rows[row, qid]))
                gap = missing if gap > UNIT else gap
                total += gap * gap if squared else gap
            for qid in range(numerical, columns):
                other = np.int64(rows[row, qid])
                told = missing != 0 or (seen[qid] >= 0 and other >= 0)
                total += weights[qid] if seen[qid] != other and told else 0
            distances[place] = total
