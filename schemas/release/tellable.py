"""Which counts of people or records may be told: the one rule for manifest, report, pictures, artifacts of Prefect, events and logs.

Nothing is told of fewer than k, in the unit of k: where people are counted, seven records of one person are one. A count that is withheld
must not follow from others either, so that what is left of a total that is told must be none, or k at least, as well.

What anybody can count in the data files is no secret, and the rule is not about it: classes, their sizes, the rows of each file. Nor is it
about what every release says of itself: how many records its source has, how many of them are released, and so how many are not.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from schemas.release.passthrough import PassedColumn
from schemas.release.repeats import RepeatedColumn
from schemas.release.terms import Band, LatticeFigures


def tellable(count: int, k: int, *totals: int) -> bool:
    """Tells whether a count of units may be told.

    Args:
        count: Of the unit of k: persons where they are named, else records.
        k: That was promised.
        *totals: Counts that are told as well and hold these units among theirs, so that the difference follows.
    """
    return all(not found or found >= k for found in (count, *(total - count for total in totals)))


def told_count(count: int, k: int) -> int:
    """Returns a count as a release tells it: from 1 to k - 1 it is told as k, so that it says "at most k" and nobody how few there are.

    Args:
        count: Of the unit of k, 0 or more.
        k: That was promised.
    """
    return count if tellable(count, k) else k


def told_in_words(count: int, k: int) -> str:
    """Returns a count as a sentence tells it, whether it was made fit to be told or not."""
    told = told_count(count, k)
    return f"at most {told:,}" if told == k else f"{told:,}"


class Untold(BaseModel):
    """What a run found out that its release does not tell: for whoever runs a job, who has the source; it stays in the work folder.

    Attributes:
        release: The release that the run made.
        search: What the search or the algorithm counted on its way: nodes that pass, nodes that were evaluated, bounds, roots, partitions.
        optimal: How far the search came, with numbers.
        loss: Losses as the search measured them, by the values of the source.
        ncp: The same by QID.
        suppressed_for: Suppressed records by what they lacked.
        risk: Of the source as it is; empty where that was not counted.
        source_sizes: Classes of the source as it is.
        passthrough: Columns that are published untreated, of all records of the source.
        repeats: Identifiers that repeat, with figures.
        most_records: Records of the person who has most in the source; None where none is named.
        lattice: What the search found out about the lattice.
        least_stars: How many stars records cannot do without at the levels where they are starred; None if that is not known.
    """

    model_config = ConfigDict(frozen=True)

    release: str
    search: dict[str, int | float | list[int] | list[list[int]]]
    optimal: str
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int] = {}
    risk: dict[str, int | float] = {}
    source_sizes: tuple[Band, ...] = ()
    passthrough: dict[str, PassedColumn] = {}
    repeats: dict[str, RepeatedColumn] = {}
    most_records: int | None = None
    lattice: LatticeFigures | None = None
    least_stars: int | None = None
