"""Rule for which counts of people or records may be published, and the figures under this rule.

The rule holds for manifest, report, pictures, artifacts of Prefect, events and logs. No count below k is published, in the unit of k:
where people are counted, seven records of one person are one. A withheld count must not follow from others either. So the rest of a
published total must be none, or k at least, as well.

Counts that every reader can make in the data files are no secret, and the rule is not about them: classes, their sizes, the rows of each
file. Nor is it about the general figures of every release: how many records its source has, how many of them are released, and so how
many are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from schemas.errors.base import counted, listed, verb_of
from schemas.reading.model import FrozenModel, share_text


def may_publish_count(count: int, k: int, *totals: int) -> bool:
    """Return whether a count of units, and each published total less it, is 0 or at least k.

    Args:
        count: Of the unit of k: persons where they are named, else records.
        k: That was promised.
        *totals: Counts that are told as well and hold these units among theirs, so that the difference follows.
    """
    return all(not found or found >= k for found in (count, *(total - count for total in totals)))


def reported_count(count: int, k: int) -> int:
    """Return a count in its published form, which is k for counts from 1 to k - 1.

    A published k so reads "at most k".

    Args:
        count: Of the unit of k, 0 or more.
        k: That was promised.
    """
    return count if may_publish_count(count, k) else k


def reported_count_text(count: int, k: int) -> str:
    """Return a count as text: ``at most k`` for counts from 1 to k, else the number."""
    return stated_count_text(reported_count(count, k), k)


def stated_count_text(stated: int, k: int, noun: str = "") -> str:
    """Return a stated count as text, with "at most" before k, as it may stand for fewer, and its noun."""
    return "at most " * (stated == k) + (counted(stated, noun) if noun else f"{stated:,}")


class Round(FrozenModel):
    """A further pass of local transformation: its node, published records and classes.

    The classes are counted before equal labels are merged.
    """

    node: tuple[int, ...]
    records: int
    classes: int


class Remainder(FrozenModel):
    """Counts of the records that fail at the global node, if not simply dropped or masked.

    Attributes:
        records: How many there are; what the limit of suppression is about.
        dm_star: DM* of the node, all of them counted as suppressed: what the search compared nodes by. The losses are of what is published.
        rounds: In their order.
        starred: Records of which some values are starred, but not all.
        stars: Starred values, those of masked records included.
        least: How many stars these records cannot do without at the levels where they are starred; None if that is not known.
        withheld: By QID, the values ``*`` in the release, whether a star or a level made them.
    """

    records: int
    dm_star: int
    rounds: tuple[Round, ...]
    starred: int
    stars: int
    least: int | None
    withheld: dict[str, int]


class RepeatedColumn(FrozenModel):
    """Mean and maximum of records per value, for an identifier whose values repeat.

    Attributes:
        mean: Records of a value on average; None in a release, which tells only that they repeat.
        most: Records of the value that has most, at least; None in a release.
        share: Share of the values that were looked at: 1 if all, and both figures are exact; else the mean is right to a percent or so.
    """

    mean: float | None = None
    most: int | None = None
    share: float = 1.0

    @property
    def words(self) -> str:
        """Both figures as text; empty where they are withheld."""
        return "" if self.mean is None else f"{self.mean:,.2f} and {self.most:,}{' or more' if self.share < 1 else ''}"


def repeating_identifiers_sentence(repeats: Mapping[str, RepeatedColumn]) -> str:
    """Return the warning that identifiers repeat although classes count records; empty if none repeats."""
    if not repeats:
        return ""
    told = ", ".join(f"'{name}' {one.words}".rstrip() for name, one in repeats.items())
    figures = ", with so many records for each value on average and at most" if any(one.words for one in repeats.values()) else ""
    which = "it" if len(repeats) == 1 else "one of them"
    several = f"{counted(len(repeats), 'identifier')} {verb_of(len(repeats), 'repeat')}"
    return (
        f"{several}{figures}: {told}. If {which} says whose a record is, a class of k "
        "records may be that of fewer than k persons, even of one: name it as columns.person, or say person: none if every record is a "
        "person of its own. No maximum risk is claimed."
    )


class PopulationRisk(FrozenModel):
    """Re-identification risk measured in the population.

    The intruder knows that a person is in the population, and not whether the person is in the data.

    Attributes:
        records: Rows of the population.
        k_map: The fewest of them that the labels of a class fit (k-map: Sweeney, IJUFKS 2002), never fewer than the class has
            records, or persons where they are named.
        journalist_max: 1/k_map.
        journalist_mean: See `core.units.losses`, as are those below.
        journalist_share_above: Share of the records in classes whose risk is above 0.09.
        marketer: Share of the records that a marketer is expected to match rightly.
        lacking: Classes that are larger than the rows of the population that fit them: it does not hold everybody who is in the data.
    """

    records: int
    k_map: int
    journalist_max: float
    journalist_mean: float
    journalist_share_above: float
    marketer: float
    lacking: int


def population_sentences(found: PopulationRisk | None) -> tuple[str, ...]:
    """Return the risk in the population as sentences; empty without a population."""
    if found is None:
        return ()
    fits = f"In the population of {counted(found.records, 'row')} every class fits {counted(found.k_map, 'row')} or more (k-map)"
    worst, mean, marketer = (share_text(one, 2) for one in (found.journalist_max, found.journalist_mean, found.marketer))
    told = f"{fits}: a journalist's risk is {worst} at worst and {mean} on average, a marketer's {marketer}."
    if not found.lacking:
        return (told,)
    return told, f"Classes that are larger than the rows of the population that fit them: {found.lacking:,}. It does not hold everybody."


class PassedColumn(FrozenModel):
    """Counts of a column that is published unchanged, and the reasons why it looks identifying.

    A null is no value of it.

    Attributes:
        distinct: Different values.
        unique_records: Records whose value no other record has.
        values: Records that have a value.
        looked_at: Distinct values that were looked at for what they might be: all, or as many with the smallest digests.
        reasons: What they look like that tells who somebody is, as in ``e-mail addresses``; empty if nothing was found.
    """

    distinct: int
    unique_records: int
    values: int
    looked_at: int
    reasons: tuple[str, ...] = ()


class PassedColumnOfPersons(PassedColumn):
    """Counts of an unchanged column in a table where each person may have several records.

    Attributes:
        unique_persons: Persons who alone have one of their values; k for 1 to k - 1.
    """

    unique_persons: int


Passthrough = Mapping[str, PassedColumn]


def identifying_columns(columns: Passthrough) -> list[str]:
    """Return the columns whose values look as if they identify persons, in order."""
    return [name for name, one in columns.items() if one.reasons]


def passthrough_warnings(columns: Passthrough, treated: Collection[str] = ()) -> list[str]:
    """Return a warning for each published column that looks identifying.

    Args:
        columns: What was found of what is published of them.
        treated: Those that are not published as they are.
    """
    return [
        f"Column '{name}' is published{'' if name in treated else ' as it is'} and looks like: {', '.join(one.reasons)} "
        f"({counted(one.distinct, 'distinct value')}, "
        f"{counted(one.unique_records, 'record')} alone with theirs). If so, it tells who people are, whatever k is."
        for name, one in columns.items()
        if one.reasons
    ]


def reason_of_identifying_columns(columns: Passthrough) -> str:
    """Return why identifying untreated columns rule out a maximum risk; empty if no column is identifying."""
    found = identifying_columns(columns)
    if not found:
        return ""
    one = "a column" if len(found) == 1 else counted(len(found), "column")
    return f"No maximum risk is claimed: {one} published besides the quasi-identifiers may tell who people are ({listed(found)})."


Kind = Literal["insensitive", "sensitive", "pseudonyms"]
KINDS: Mapping[Kind, str] = {"insensitive": "untreated columns", "sensitive": "sensitive columns", "pseudonyms": "pseudonyms"}
"""The columns that are counted together, with their name in a sentence."""


class Together(FrozenModel):
    """Counts of records or persons that stand out by the combination of several published columns.

    They are counted in the written files and in the unit of k. A count from 1 to k - 1 is reported as k.

    Attributes:
        unique_records: Records whose combination no other record has; persons who are alone with one of theirs.
        below_k: Records or persons that share their combination, or one of theirs, with fewer than k.
        with_classes: The same where the labels of the quasi-identifiers are known too.
        unit: What is counted.
        all: How many of these the files have.
    """

    unique_records: int
    below_k: int
    with_classes: int
    unit: Literal["record", "person"] = "record"
    all: int = 0

    @classmethod
    def from_counts(cls, counts: tuple[int, int, int], k: int, unit: Literal["record", "person"], unit_count: int) -> Together:
        """Make the figures of counts (unique, below k, with classes); counts from 1 to k - 1 become k."""
        unique, below, classes = (reported_count(one, k) for one in counts)
        return cls(unique_records=unique, below_k=below, with_classes=classes, unit=unit, all=unit_count)

    def sentence(self, kind: Kind, k: int) -> str:
        """Return the joint risk of the columns as a sentence, without advice."""
        few, alone, labelled = (reported_count_text(one, k) for one in (self.below_k, self.unique_records, self.with_classes))
        return (
            f"By the {KINDS[kind]} together {few} of {self.all:,} {self.unit}s share their values with fewer than k = {k:,}, and {alone} "
            f"with nobody; where the quasi-identifiers are known too, {labelled} with fewer than k."
        )

    def accepted(self, k: int) -> str:
        """Return the sentence that the job accepts how many stand out by its untreated columns."""
        below = reported_count_text(self.below_k, k)
        return f"The job accepts that {below} of {counted(self.all, self.unit)} stand out by its untreated columns"


def reason_of_combinations(together: Together | None, k: int, *, is_accepted: bool, has_untreated_columns: bool) -> str:
    """Return why untreated columns together rule out a maximum risk; empty if accepted or nobody below k.

    Args:
        together: What they tell; None where that was not counted.
    """
    if together is None:
        return "No maximum risk is claimed: what the untreated columns tell together was not counted." if has_untreated_columns else ""
    if is_accepted or not together.below_k:
        return ""
    few = reported_count_text(together.below_k, k)
    return (
        f"No maximum risk is claimed: by the untreated columns together {few} of {together.all:,} {together.unit}s share their values "
        f"with fewer than k = {k:,}."
    )


def together_warning(together: Together | None, k: int, *, is_accepted: bool, may_accept: bool = True) -> str:
    """Return the warning that untreated columns single people out below k; empty if not, or not counted."""
    if together is None or not together.below_k:
        return ""
    said = together.sentence("insensitive", k)
    if is_accepted:
        return f"{said} The job accepts that (columns.accept_untreated)."
    accept = "; to accept it by name, say columns.accept_untreated: true" if may_accept else ""
    return (
        f"{said} Whoever knows these values knows whose the record is, whatever k is, and no maximum risk is claimed. Coarsen columns as "
        f"quasi-identifiers or list them under withheld{accept}."
    )
