"""The risk that a manifest states, worked out anew from the classes that were counted in the files.

What a run states is made by ``core.privacy.risk``; this is a second reading of the same definitions (K. El Emam, Guide to the
De-Identification of Personal Health Information, CRC Press 2013, chapter 16), so that a slip of one of the two is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

THRESHOLD = Fraction(9, 100)
"""The greatest risk of a record that is not counted as above it."""

Figures = dict[str, int | float]


def risk_of_files(classes: Mapping[int, int], starred: int, suppressed: int, masked: int) -> Figures:
    """Return the risk of written files; whole classes are published, so that prosecutor, journalist and marketer see the same sizes.

    Args:
        classes: Number of classes by size, the class of the masked records among them.
        starred: Records with ``*`` in every quasi-identifier.
        suppressed: Records that were dropped or masked.
        masked: How many of them are in the files. They are in no class; where others publish ``*`` as well nobody can tell them apart.
    """
    table = unmasked(classes, starred, masked)
    records, many = sum(size * number for size, number in table.items()), sum(table.values())
    counts: Figures = {"records": records, "classes": many, "suppressed": suppressed}
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


def unmasked(classes: Mapping[int, int], starred: int, masked: int) -> dict[int, int]:
    """Return classes by size without that of the masked records, the arguments as for ``risk_of_files``."""
    table = dict(classes)
    if masked and masked == starred:
        table[starred] -= 1
    return {size: number for size, number in table.items() if number}


def risk_in(rows: int, classes: Sequence[tuple[int, int, int]]) -> Figures:
    """Return the risk of classes in a population.

    Args:
        rows: Rows of the population.
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
        "records": rows,
        "k_map": least,
        "journalist_max": 1 / least,
        "journalist_mean": float(max(drawn, matched)),
        "journalist_share_above": above / records,
        "marketer": float(matched),
        "lacking": sum(number for held, fitting, number in classes if fitting < held),
    }
