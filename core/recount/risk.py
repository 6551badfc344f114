"""The risk figures of a manifest, computed a second time from the classes counted in the files.

A run computes them by ``core.units.losses``. This is a second reading of the same definitions (K. El Emam, Guide to the
De-Identification of Personal Health Information, CRC Press 2013, chapter 16), so that an error in one of the two is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

THRESHOLD = Fraction(9, 100)
"""The greatest risk of a record that is not counted as above it."""

Figures = dict[str, int | float]


def risk_of_files(classes: Mapping[int, int], fully_suppressed_records: int, suppressed_records: int, masked_records: int) -> Figures:
    """Return the re-identification risk of written files by figure (prosecutor, journalist, marketer).

    Whole classes are published, so that the three attackers see the same sizes.

    Args:
        classes: Number of classes by size, the class of the masked records among them.
        fully_suppressed_records: Records with ``*`` in every quasi-identifier.
        suppressed_records: Records that were dropped or masked.
        masked_records: How many of them are in the files. They are in no class; where other records publish ``*`` everywhere as well,
            the two cannot be distinguished.
    """
    table = unmasked_class_sizes(classes, fully_suppressed_records, masked_records)
    records, many = sum(size * number for size, number in table.items()), sum(table.values())
    counts: Figures = {"records": records, "classes": many, "suppressed": suppressed_records}
    if not records:
        return counts
    least, unique = min(table), table.get(1, 0)
    # As fractions, because a float may fall to either side of the limit.
    above = sum(size * number for size, number in table.items() if Fraction(1, size) > THRESHOLD)
    greatest, mean, share = 1 / least, many / records, above / records
    return counts | {
        "threshold": float(THRESHOLD),
        "prosecutor_max": greatest,
        "prosecutor_mean": mean,
        "records_above": above,
        "share_above": share,
        "journalist_max": greatest,
        "journalist_mean": mean,
        "journalist_share_above": share,
        "marketer": mean,
        "min_class": least,
        "unique": unique,
        "uniqueness": unique / records,
    }


def unmasked_class_sizes(classes: Mapping[int, int], fully_suppressed_records: int, masked_records: int) -> dict[int, int]:
    """Return how many classes have each size, less the class of masked records if it holds no others.

    Arguments as for ``risk_of_files``.
    """
    table = dict(classes)
    if masked_records and masked_records == fully_suppressed_records:
        table[fully_suppressed_records] -= 1
    return {size: number for size, number in table.items() if number}


def population_risk_of_files(population_rows: int, classes: Sequence[tuple[int, int, int]]) -> Figures:
    """Return the re-identification risk of the published classes in a population, by figure.

    Args:
        population_rows: Rows of the population.
        classes: Records of a class in the files, rows of the population that its labels fit, and how many classes have both numbers.
    """
    # Who is in the data is in the population, whether or not its table has them.
    sizes = [(held, max(held, fitting), number) for held, fitting, number in classes]
    records = sum(held * number for held, _, number in sizes)
    least = min(fitting for _, fitting, _ in sizes)
    drawn = Fraction(sum(number for *_, number in sizes), sum(fitting * number for _, fitting, number in sizes))
    matched = sum(Fraction(held, fitting) * number for held, fitting, number in sizes) / records
    above = sum(held * number for held, fitting, number in sizes if Fraction(1, fitting) > THRESHOLD)
    return {
        "records": population_rows,
        "k_map": least,
        "journalist_max": 1 / least,
        "journalist_mean": float(max(drawn, matched)),
        "journalist_share_above": above / records,
        "marketer": float(matched),
        "lacking": sum(number for held, fitting, number in classes if fitting < held),
    }
