"""Which counts of people or records may be told: the one rule for manifest, report, pictures, artifacts of Prefect, events and logs.

Nothing is told of fewer than k, in the unit of k: where people are counted, seven records of one person are one. A count that is withheld
must not follow from others either, so that what is left of a total that is told must be none, or k at least, as well.

What anybody can count in the data files is no secret, and the rule is not about it: classes, their sizes, the rows of each file. Nor is it
about what every release says of itself: how many records its source has, how many of them are released, and so how many are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted, listed


def tellable(count: int, k: int, *totals: int) -> bool:
    """Return whether a count of units may be told.

    Args:
        count: Of the unit of k: persons where they are named, else records.
        k: That was promised.
        *totals: Counts that are told as well and hold these units among theirs, so that the difference follows.
    """
    return all(not found or found >= k for found in (count, *(total - count for total in totals)))


def reported_count(count: int, k: int) -> int:
    """Return a count as a release tells it: from 1 to k - 1 it is told as k, so that it says "at most k" and nobody how few there are.

    Args:
        count: Of the unit of k, 0 or more.
        k: That was promised.
    """
    return count if tellable(count, k) else k


def reported_sentence(count: int, k: int) -> str:
    """Return a count as a sentence tells it, whether it was made fit to be told or not."""
    told = reported_count(count, k)
    return f"at most {told:,}" if told == k else f"{told:,}"


class Round(BaseModel):
    """A further choice of levels: its node, the records that it published, and their classes before equal labels are one."""

    model_config = ConfigDict(frozen=True)

    node: tuple[int, ...]
    records: int
    classes: int


class Remainder(BaseModel):
    """What became of the records that fail at the node of all, where they are not simply dropped or masked.

    Attributes:
        records: How many there are; what the limit of suppression is about.
        dm_star: DM* of the node, all of them counted as suppressed: what the search compared nodes by. The losses are of what is published.
        rounds: In their order.
        starred: Records of which some values are starred, but not all.
        stars: Starred values, those of masked records included.
        least: How many stars these records cannot do without at the levels where they are starred; None if that is not known.
        withheld: By QID, the values ``*`` in the release, whether a star or a level made them.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    dm_star: int
    rounds: tuple[Round, ...]
    starred: int
    stars: int
    least: int | None
    withheld: dict[str, int]


class RepeatedColumn(BaseModel):
    """An identifier whose values repeat.

    Attributes:
        mean: Records of a value on average; None in a release, which tells only that they repeat.
        most: Records of the value that has most, at least; None in a release.
        share: Share of the values that were looked at: 1 if all, and both figures are exact; else the mean is right to a percent or so.
    """

    model_config = ConfigDict(frozen=True)

    mean: float | None = None
    most: int | None = None
    share: float = 1.0

    @property
    def words(self) -> str:
        """Both figures; empty where they are not told."""
        return "" if self.mean is None else f"{self.mean:,.2f} and {self.most:,}{' or more' if self.share < 1 else ''}"


def repeating_identifiers_sentence(repeats: Mapping[str, RepeatedColumn]) -> str:
    """Return the warning of a release whose classes are counted in records although its identifiers repeat; nothing where none does."""
    if not repeats:
        return ""
    told = ", ".join(f"'{name}' {one.words}".rstrip() for name, one in repeats.items())
    figures = ", with so many records for each value on average and at most" if any(one.words for one in repeats.values()) else ""
    which = "it" if len(repeats) == 1 else "one of them"
    several = f"{counted(len(repeats), 'identifier')} {'repeats' if len(repeats) == 1 else 'repeat'}"
    return (
        f"{several}{figures}: {told}. If {which} says whose a record is, a class of k "
        "records may be that of fewer than k persons, even of one: name it as columns.person, or say person: none if every record is a "
        "person of its own. No maximum risk is claimed."
    )


class PopulationRisk(BaseModel):
    """Risk against somebody who knows that a person is in the population, and not whether they are in the data.

    Attributes:
        records: Rows of the population.
        k_map: The fewest of them that the labels of a class fit (k-map: Sweeney, IJUFKS 2002), never fewer than the class has records.
        journalist_max: 1/k_map.
        journalist_mean: See `core.privacy.risk`, as are those below.
        journalist_share_above: Share of the records in classes whose risk is above 0.09.
        marketer: Share of the records that a marketer is expected to match rightly.
        lacking: Classes that have more records than the population has rows for them: it does not hold everybody who is in the data.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    k_map: int
    journalist_max: float
    journalist_mean: float
    journalist_share_above: float
    marketer: float
    lacking: int


def population_sentences(found: PopulationRisk | None) -> tuple[str, ...]:
    """Return what was measured, for summary and report; nothing where no population was given."""
    if found is None:
        return ()
    fits = f"In the population of {counted(found.records, 'row')} every class fits {counted(found.k_map, 'row')} or more (k-map)"
    risk = f"a journalist's risk is at most {found.journalist_max:.2%} and {found.journalist_mean:.2%} on average"
    told = f"{fits}: {risk}, a marketer's {found.marketer:.2%}."
    if not found.lacking:
        return (told,)
    return told, f"Classes with more records than the population has rows for them: {found.lacking:,}. It does not hold everybody."


class PassedColumn(BaseModel):
    """A column that is published as it is in the source; a null is no value of it.

    Attributes:
        distinct: Different values.
        unique_records: Records whose value no other record has.
        values: Records that have a value.
        looked_at: Distinct values that were looked at for what they might be: all, or as many with the smallest digests.
        reasons: What they look like that tells who somebody is, as in ``e-mail addresses``; empty if nothing was found.
    """

    model_config = ConfigDict(frozen=True)

    distinct: int
    unique_records: int
    values: int
    looked_at: int
    reasons: tuple[str, ...] = ()


Passthrough = Mapping[str, PassedColumn]


def identifying_columns(columns: Passthrough) -> list[str]:
    """Return the columns whose values look as if they told who somebody is, in order."""
    return [name for name, one in columns.items() if one.reasons]


def passthrough_warnings(columns: Passthrough) -> list[str]:
    """Return a sentence for each such column."""
    return [
        f"Column '{name}' is published as it is and looks like: {', '.join(one.reasons)} ({counted(one.distinct, 'distinct value')}, "
        f"{counted(one.unique_records, 'record')} alone with theirs). If so, it tells who people are, whatever k is."
        for name, one in columns.items()
        if one.reasons
    ]


def unclaimed_because(columns: Passthrough) -> str:
    """Return why no maximum risk is claimed of a release; empty where nothing stands against it."""
    found = identifying_columns(columns)
    if not found:
        return ""
    one = "a column" if len(found) == 1 else counted(len(found), "column")
    return f"No maximum risk is claimed: {one} published as in the source may tell who people are ({listed(found)})."


Kind = Literal["insensitive", "sensitive", "pseudonyms"]
KINDS: Mapping[Kind, str] = {"insensitive": "untreated columns", "sensitive": "sensitive columns", "pseudonyms": "pseudonyms"}
"""The columns that are counted together, with their name in a sentence."""


class Together(BaseModel):
    """Who stands out by the combination of several published columns, in the written files and in the unit of k.

    A count from 1 to k - 1 is told as k.

    Attributes:
        unique_records: Records whose combination no other record has; persons who are alone with one of theirs.
        below_k: Records or persons that share their combination, or one of theirs, with fewer than k.
        with_classes: The same where the labels of the quasi-identifiers are known too.
        unit: What is counted.
        all: How many of these the files have.
    """

    model_config = ConfigDict(frozen=True)

    unique_records: int
    below_k: int
    with_classes: int
    unit: Literal["record", "person"] = "record"
    all: int = 0

    @classmethod
    def from_counts(cls, counts: tuple[int, int, int], k: int, unit: Literal["record", "person"], whole: int) -> Together:
        """Return counts as a release tells them."""
        unique, below, classes = (reported_count(one, k) for one in counts)
        return cls(unique_records=unique, below_k=below, with_classes=classes, unit=unit, all=whole)

    def sentence(self, kind: Kind, k: int) -> str:
        """Return what the figures say, without advice."""
        few, alone, labelled = (reported_sentence(one, k) for one in (self.below_k, self.unique_records, self.with_classes))
        return (
            f"By the {KINDS[kind]} together {few} of {self.all:,} {self.unit}s share their values with fewer than k = {k:,}, and {alone} "
            f"with nobody; where the quasi-identifiers are known too, {labelled} with fewer than k."
        )

    def accepted(self, k: int) -> str:
        """Return what a job that accepts it has accepted."""
        below = reported_sentence(self.below_k, k)
        return f"The job accepts that {below} of {counted(self.all, self.unit)} stand out by its untreated columns"


def unclaimed_together(together: Together | None, k: int, *, accepted: bool, untreated: bool) -> str:
    """Return why untreated columns together leave no maximum risk to claim; empty where they do not.

    Args:
        together: What they tell; None where that was not counted.
        k: What every class has at least.
        accepted: Whether the job accepts it.
        untreated: Whether there are such columns.
    """
    if together is None:
        return "No maximum risk is claimed: what the untreated columns tell together was not counted." if untreated else ""
    if accepted or not together.below_k:
        return ""
    few = reported_sentence(together.below_k, k)
    return (
        f"No maximum risk is claimed: by the untreated columns together {few} of {together.all:,} {together.unit}s share their values "
        f"with fewer than k = {k:,}."
    )


def together_warning(together: Together | None, k: int, *, accepted: bool) -> str:
    """Return what is said first of a release whose untreated columns tell fewer than k people apart; empty for others."""
    if together is None or not together.below_k:
        return ""
    said = together.sentence("insensitive", k)
    if accepted:
        return f"{said} The job accepts that (columns.accept_untreated)."
    return (
        f"{said} Whoever knows these values knows whose the record is, whatever k is, and no maximum risk is claimed. Coarsen columns as "
        "quasi-identifiers or list them under withheld; to accept it by name, say columns.accept_untreated: true."
    )
