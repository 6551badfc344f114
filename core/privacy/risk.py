"""Re-identification risk computed from the sizes of equivalence classes alone.

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
from typing import Self

import numpy as np
from numpy.typing import NDArray

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


def prosecutor(table: ClassSizes, threshold: Decimal = THRESHOLD) -> Figures:
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
        threshold: τ.
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
        classes: Number of classes by size.
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
        classes: Number of classes by size.
        fully_suppressed_records: Records that publish ``*`` in every QID.
        suppressed_records: Records that were suppressed.
        masked_records: How many of them are in the files, with ``*`` in every QID.
    """
    return risk_of(ClassSizes.of(without_masked(classes, fully_suppressed_records, masked_records)), suppressed_records)


def preset_met(least: int) -> tuple[Decimal, str] | None:
    """Return the strictest risk preset that a smallest class size meets, and its source; None if none."""
    return next(((threshold, source) for threshold, source in sorted(PRESETS.items()) if least >= least_class(threshold)), None)
