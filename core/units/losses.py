"""Information losses and re-identification risk of a set of classes.

Sums of squares are exact; they exceed 2^53 at 125 million records.

With J the classes, f_j the records of class j in the data, F_j those of the population that share its combination, n = Σ f_j and τ a
threshold (K. El Emam, Guide to the De-Identification of Personal Health Information, CRC Press 2013, chapter 16):

- the *prosecutor* knows that a person is in the data: 1/f_j;
- the *journalist* knows it of the population only: 1/F_j;
- the *marketer* wants as many matches as possible, right or wrong: f_j/F_j right ones in a class.

Where the population is the source itself and complete classes are published, F_j = f_j, so that all three use the same sizes. Where single
records left a class (outliers), F_j is larger, and f_j in its place only overstates the risk.

Suppressed records are in no class. They are counted separately and never averaged in, because that would make a release look safer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import NumberLine, number_line
from core.compiling.compiled import compiler, small_in
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text

THRESHOLD = Decimal("0.09")
PRESETS = {
    Decimal("0.09"): "public release of clinical data: EMA Policy 0070, Health Canada 2019",
    Decimal("0.2"): "the cell-size rule of five: El Emam 2013",
}
"""Maximum risks that a report may cite, strictest first, and where they are asked for."""

Figures = dict[str, int | float]


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """Numbers of classes by size, a class table in at most √(2N) rows for N records.

    Attributes:
        sizes: Shape (m,), int64: f, records of a class in the data.
        classes: Shape (m,), int64: how many classes are of this size.
        population: Shape (m,), int64: F ≥ f, records of these classes in the population; equal to ``sizes`` where that is the source.
    """

    sizes: NDArray[np.int64]
    classes: NDArray[np.int64]
    population: NDArray[np.int64]

    @classmethod
    def of(cls, classes: Mapping[int, int]) -> Self:
        """Build the table from the number of classes by size, the population being the data."""
        sizes = np.array(sorted(classes), np.int64)
        return cls(sizes, np.array([classes[size] for size in sizes.tolist()], np.int64), sizes)

    @property
    def records(self) -> int:
        """Number of records in classes, Σ f."""
        return int(np.dot(self.sizes, self.classes))

    @property
    def unique(self) -> int:
        """Number of records that are alone in their class: sample uniques.

        See Bethlehem, Keller and Pannekoek, JASA 85, 1990.
        """
        return int(self.classes[self.sizes == 1].sum())


def least_class(threshold: Decimal) -> int:
    """Return the smallest class size that keeps a maximum risk, exactly.

    It is 12 for 0.09, because 1/11 = 0.0909… is above it.
    """
    return ceil(1 / Fraction(threshold))


def records_above(table: ClassSizes, sizes: NDArray[np.int64], threshold: Decimal) -> int:
    """Return the number of records in classes with 1/size above a threshold, exactly.

    It is Σ f_j over these classes, the numerator of pRa and jRa (El Emam 2013).
    """
    exposed = sizes < least_class(threshold)
    return int(np.dot(table.sizes[exposed], table.classes[exposed]))


def prosecutor(table: ClassSizes, threshold: Decimal) -> Figures:
    """Return the prosecutor's maximum and mean risk, and number and share of records above a threshold.

    pRb = max 1/f_j, pRc = |J|/n, pRa = Σ f_j [1/f_j > τ] / n (El Emam 2013, chapter 16).
    """
    exposed = records_above(table, table.sizes, threshold)
    return {
        "prosecutor_max": 1 / int(table.sizes.min()),
        "prosecutor_mean": int(table.classes.sum()) / table.records,
        "records_above": exposed,
        "share_above": exposed / table.records,
    }


def journalist(table: ClassSizes, threshold: Decimal = THRESHOLD) -> Figures:
    """Return the journalist's maximum risk, the larger of two mean risks, and the share above a threshold.

    See El Emam and Dankar, JAMIA 15(5), 2008; El Emam 2013, chapter 16.

    jRb = max 1/F_j, jRc = max(|J| / Σ F_j, Σ (f_j/F_j) / n), jRa = Σ f_j [1/F_j > τ] / n.
    """
    drawn = int(table.classes.sum()) / int(np.dot(table.population, table.classes))
    return {
        "journalist_max": 1 / int(table.population.min()),
        "journalist_mean": max(drawn, marketer(table)),
        "journalist_share_above": records_above(table, table.population, threshold) / table.records,
    }


def marketer(table: ClassSizes) -> float:
    """Return the share of records that a marketer is expected to match correctly: Σ (f_j/F_j) / n.

    See Dankar and El Emam, PAIS 2010.
    """
    return float(np.dot(table.sizes / table.population, table.classes)) / table.records


def risk_of(table: ClassSizes, suppressed_records: int = 0, threshold: Decimal = THRESHOLD) -> Figures:
    """Return all risk figures of a class table; only counts if no record is in a class.

    Args:
        table: The classes, without those of suppressed records.
        suppressed_records: Records that are dropped or masked.
    """
    counts: Figures = {"records": table.records, "classes": int(table.classes.sum()), "suppressed": suppressed_records}
    if not table.records:
        return counts
    figures = prosecutor(table, threshold) | journalist(table, threshold) | {"marketer": marketer(table)}
    unique: Figures = {"min_class": int(table.sizes.min()), "unique": table.unique, "uniqueness": table.unique / table.records}
    return counts | {"threshold": float(threshold)} | figures | unique


def without_masked(classes: Mapping[int, int], fully_suppressed_records: int, masked_records: int) -> dict[int, int]:
    """Return how many classes have each size, less the class of masked records if it holds no others.

    A class that publishes ``*`` in every QID and holds other records besides the masked ones stays: no reader can distinguish them.

    Args:
        fully_suppressed_records: Records that publish ``*`` in every QID.
        masked_records: How many of them are suppressed.
    """
    left = dict(classes)
    if masked_records and masked_records == fully_suppressed_records:
        # All masked records publish the same, so they are one class, of just this size.
        left[fully_suppressed_records] -= 1
    return {size: number for size, number in left.items() if number}


def release_risk(classes: Mapping[int, int], fully_suppressed_records: int, suppressed_records: int, masked_records: int) -> Figures:
    """Return the re-identification risk figures of written files, from their classes by size.

    Args:
        fully_suppressed_records: Records that publish ``*`` in every QID.
        masked_records: How many of them are in the files, with ``*`` in every QID.
    """
    return risk_of(ClassSizes.of(without_masked(classes, fully_suppressed_records, masked_records)), suppressed_records)


def preset_met(least: int) -> tuple[Decimal, str] | None:
    """Return the strictest risk preset that a smallest class size meets, and its source; None if none."""
    return next(((threshold, source) for threshold, source in sorted(PRESETS.items()) if least >= least_class(threshold)), None)


kernel = compiler("units.losses")


def _add_classes(counts: NDArray[np.int64], failing: NDArray[np.bool_]) -> tuple[int, int, int]:
    gone = counts[failing]
    return int((counts * counts).sum()), int(gone.sum()), int((gone * gone).sum())


@small_in(_add_classes)
@kernel
def add_classes(counts: NDArray[np.int64], failing: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Return the sum of squared sizes of all classes, and of sizes and squared sizes of failing ones.

    The classes are read once.

    Args:
        counts: Shape (classes,), records of each; the square of their sum is below 2^63.
        failing: Shape (classes,).
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
        domain: Its observed values.
        groups: Shape (cells,), group of the QID in each published cell.
        counts: Shape (cells,), records per published cell.
        suppressed_records: Records that are dropped or masked.
    """
    lost = float(np.dot(group_penalties(hierarchy, domain, level)[groups], counts)) + suppressed_records
    return lost / (int(counts.sum()) + suppressed_records)
