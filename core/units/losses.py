"""Information losses of a set of classes.

Sums of squares are exact; they exceed 2^53 at 125 million records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import NumberLine, number_line
from core.compiling.compiled import compiler
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text

kernel = compiler("units.losses")


@kernel
def add_classes(counts: NDArray[np.int64], failing: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Return the sum of squared sizes of all classes, and of sizes and squared sizes of failing ones.

    The classes are read once.

    Args:
        counts: Shape (classes,), records of each; the square of their sum is below 2^63.
        failing: Shape (classes,).

    Returns:
        The sum of the squares of all, the records of those that fail, and the sum of the squares of these.
    """
    squares = lost = lost_squares = 0
    for place in range(counts.shape[0]):
        count = int(counts[place])
        # Without a branch: to guess which class fails costs more than to add nothing.
        gone = count * int(failing[place])
        squares += count * count
        lost += gone
        lost_squares += gone * gone
    return squares, lost, lost_squares


# Σ c² is at most (Σ c)², and the square of this is the last round one below 2^63.
INT64_SAFE_RECORDS = 3_000_000_000
WRITABLE: Final = ("C", "W")
"""What loops are compiled for."""


def sum_of_squares(counts: NDArray[np.int64]) -> int:
    """Return the exact sum of squared counts as a Python integer."""
    if int(counts.sum()) < INT64_SAFE_RECORDS:
        return int(np.dot(counts, counts))
    return sum(int(count) * int(count) for count in counts)


@dataclass(frozen=True)
class Loss:
    """Losses of one node: suppressed records and discernibility.

    Attributes:
        suppressed: s, records in classes that fail the privacy model.
        dm_star: Σ over published classes |E|² + s² (papers/skald.txt, eq. 4).
        dm_all: Σ over all cells |E|², published or not (El Emam et al. 2009; ARX). A lower bound of ``dm_star``, and monotone: merging
            cells never lowers it.
    """

    suppressed: int
    dm_star: int
    dm_all: int


def loss_of(counts: NDArray[np.int64], failing: NDArray[np.bool_]) -> Loss:
    """Return the losses of a node from its cell counts and a mask of failing cells.

    Both arrays have the shape (cells,).
    """
    if counts.shape != failing.shape:
        raise IndexError("as many cells as are told of")
    if int(counts.sum()) < INT64_SAFE_RECORDS:
        everything, suppressed, squares = map(
            int, add_classes(np.require(counts, np.int64, WRITABLE), np.require(failing, np.bool_, WRITABLE))
        )
    else:
        lost = counts[failing]
        everything, suppressed, squares = sum_of_squares(counts), int(lost.sum()), sum_of_squares(lost)
    return Loss(suppressed, everything - squares + suppressed * suppressed, everything)


def dm(published: NDArray[np.int64], suppressed_records: int, source_records: int) -> int:
    """Return the discernibility metric: DM = Σ over published classes |E|² + s·N.

    A suppressed record is confused with all records (Bayardo and Agrawal 2005).
    """
    return sum_of_squares(published) + suppressed_records * source_records


def c_avg(units_in_classes: int, class_count: int, k: int) -> float:
    """Return the mean class size in units of k, C_avg (LeFevre et al. 2006); 0 without classes."""
    # Rounded once, and not after each of two divisions.
    return float(Fraction(units_in_classes, class_count * k)) if class_count else 0.0


def united_losses(sizes: Mapping[int, int], by_unit: Mapping[int, int], k: int) -> dict[str, int | float]:
    """Return DM, DM* and C_avg from class sizes, where no record is suppressed.

    Fragments that publish the same labels are one class in the sizes.

    Args:
        sizes: Number of classes by records.
        by_unit: Number of classes by what k counts, which is persons where they are named.
        k: How many of these a class must have.
    """
    squares = sum(size * size * classes for size, classes in sizes.items())
    total = sum(size * classes for size, classes in by_unit.items())
    return {"dm": squares, "dm_star": squares, "c_avg": c_avg(total, sum(by_unit.values()), k)}


def group_penalties(hierarchy: Hierarchy, domain: Domain, level: int) -> NDArray[np.float64]:
    """Return the NCP of each group at a level, shape (groups,), from 0 to 1 (Xu et al. 2006).

    It is 0 for the value itself and 1 for the complete domain.

    A label counts for all it covers, whatever occurs in it. For numbers and dates it is the length of the interval, as far as it lies
    within the range of the domain, over that range. Groups that have names and no ends count by the range of their values. For other types
    it is the distinct values that a group stands for over those of the domain, one at least where it is not the value itself.
    """
    groups = hierarchy.groups[level]
    sizes = np.bincount(groups, minlength=len(hierarchy.labels[level]))
    line = number_line(domain)
    if line is None or len(domain.values) < 2:
        return np.where(sizes > 1, sizes, _named(hierarchy, domain, level, sizes)) / max(domain.size, 1)
    numbers = line.of(domain.values)
    low, high = _reach(hierarchy, level, numbers, len(sizes), line)
    reach = np.minimum(high, numbers[-1]) - np.maximum(low, numbers[0])
    # The group of the null has no numbers; the last level is that of all values.
    reach = np.where(np.isfinite(reach), np.maximum(reach, 0), 0) / (numbers[-1] - numbers[0])
    return np.where(hierarchy.is_suppressed_level(level), float(domain.size > 1), reach)


def _named(hierarchy: Hierarchy, domain: Domain, level: int, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 for each group of a single value with another label, else 0; shape (groups,)."""
    named = np.zeros(len(sizes))
    if level == 0 or domain.size < 2:
        return named
    alone = np.flatnonzero(sizes[hierarchy.groups[level][: len(domain.values)]] == 1)
    own = as_text(domain.values.take(pa.array(alone)))
    told = hierarchy.labels[level].take(pa.array(hierarchy.groups[level][alone]))
    named[hierarchy.groups[level][alone]] = np.asarray(pc.not_equal(own, told.cast(own.type)), np.float64)
    return named


def _reach(
    hierarchy: Hierarchy, level: int, numbers: NDArray[np.float64], groups: int, line: NumberLine
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high end of each group as published, shapes (groups,).

    Without published ends, they are those of the group's values.
    """
    # Extents are floats already: where these tell values apart no more, what the values themselves reach is exact.
    if line.origin is None and hierarchy.extents and (extent := hierarchy.extents[level]) is not None:
        return extent
    if level and (bounds := hierarchy.bounds[level]) is not None:
        ends = [_floats(bound, line) for bound in bounds]
        known = [np.isfinite(end) for end in ends]
        low, high = (np.where(there, end, far) for there, end, far in zip(known, ends, (-np.inf, np.inf), strict=True))
        # Neither end: the null, or all values.
        neither = ~known[0] & ~known[1]
        return np.where(neither, np.nan, low), np.where(neither, np.nan, high)
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    inside = hierarchy.groups[level][: len(numbers)]
    np.minimum.at(low, inside, numbers)
    np.maximum.at(high, inside, numbers)
    return low, high


def _floats(bounds: pa.Array, line: NumberLine) -> NDArray[np.float64]:
    """Convert bounds to floats on a number line; null bounds are NaN."""
    found = line.of(bounds.fill_null(bounds.drop_null()[0])) if bounds.null_count < len(bounds) else None
    if found is None:
        return np.full(len(bounds), np.nan)
    return np.where(np.asarray(bounds.is_valid()), found, np.nan)


def certainty_penalty(
    hierarchy: Hierarchy, domain: Domain, level: int, groups: NDArray[np.integer], counts: NDArray[np.int64], suppressed_records: int
) -> float:
    """Return the NCP of one QID over the dataset: the mean penalty of a record.

    A suppressed record has the penalty 1. GCP is the mean of NCP over the QIDs.

    Args:
        hierarchy: Of the QID.
        domain: Its observed values.
        level: Level that is published.
        groups: Shape (cells,), group of the QID in each published cell.
        counts: Shape (cells,), records per published cell.
        suppressed_records: Records that are dropped or masked.
    """
    lost = float(np.dot(group_penalties(hierarchy, domain, level)[groups], counts)) + suppressed_records
    return lost / (int(counts.sum()) + suppressed_records)
