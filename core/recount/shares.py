"""Counts of classes from disjoint shares of the records: each class lies completely in one share.

Records are assigned to shares by a digest of what they publish. Each share is counted as a release of its own would be. The counts of the
release are the sums, least and greatest of the counts of all shares. A share that is missing, or that comes twice, shows in the number of
records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.recount.classes import Recount
from core.recount.people import PersonCount
from schemas.errors.base import counted


@dataclass(frozen=True)
class ShareSpread:
    """Counts of one privacy promise on a sensitive column, in all classes or in one share of them.

    Attributes:
        failing: Classes that break it.
        classes: All classes.
        worst: Of the worst class, in the unit of the promise; None where there is none.
        broken_by_holders: Classes in which too many persons hold one value.
    """

    failing: int
    classes: int
    worst: float | None
    broken_by_holders: int = 0


@dataclass(frozen=True)
class ShareClasses:
    """Counts of all classes, or of the classes in one share.

    Attributes:
        counts: Records, classes and their sizes, and persons if these were counted.
        spreads: What was promised of sensitive columns, in the order of the job.
        unexpected: By sensitive column, classes whose values are not those of the people whom the run folder keeps.
        share: Number of the share; 0 of the whole.
    """

    counts: Recount
    spreads: tuple[ShareSpread, ...] = ()
    unexpected: Mapping[str, int] = field(default_factory=dict)
    share: int = 0


_NUMBER = "CASE WHEN isnan({name}) THEN 'nan' ELSE ({name} + 0)::VARCHAR END"
_TEXTS = {"FLOAT": _NUMBER, "DOUBLE": _NUMBER, "TIMESTAMP WITH TIME ZONE": "epoch_us({name})::VARCHAR"}


def share_sql(columns: Mapping[str, str], share_count: int) -> str:
    """Return the SQL expression for the share number of a record, by its published quasi-identifiers.

    It is right because values that SQL takes as equal have the same text, once the signs of zero and NaN are removed and moments are
    written independently of the session's time zone.

    Args:
        columns: Quoted names of published quasi-identifiers, each with DuckDB's type.
    """
    texts = (_TEXTS.get(dtype, "{name}::VARCHAR").format(name=name) for name, dtype in columns.items())
    return f"(hash({', '.join(texts)}) % {share_count:d})::INTEGER"


def merge_share_counts(shares: Sequence[ShareClasses], least: Sequence[bool]) -> ShareClasses:
    """Merge the counts of all shares of the classes into the counts of the release.

    Args:
        least: Of each promise in the order of the job, whether the worst class has the least of what is measured.
    """
    # A share without a record has no smallest class.
    some = [one for one in shares if one.counts.classes] or list(shares[:1])
    counts = [one.counts for one in some]
    whole = Recount(
        records=sum(one.records for one in counts),
        classes=sum(one.classes for one in counts),
        min_class=min(one.min_class for one in counts),
        failing=sum(one.failing for one in counts),
        exposed=sum(one.exposed for one in counts),
        masked=sum(one.masked for one in counts),
        sizes=_summed([one.sizes for one in counts]),
        withheld={name: sum(one.withheld[name] for one in counts) for name in counts[0].withheld},
        one_value={name: _pairs([one.one_value[name] for one in counts]) for name in counts[0].one_value},
    )
    if all(one.counts.persons for one in shares):
        whole = whole.in_persons(_people(shares))
    spreads = tuple(_worst([one.spreads[place] for one in some], low=low) for place, low in enumerate(least))
    return ShareClasses(whole, spreads, {name: sum(one.unexpected[name] for one in shares) for name in shares[0].unexpected})


def _summed(sizes: Sequence[Mapping[int, int]]) -> dict[int, int]:
    # In ascending order, as DuckDB has them.
    return dict(sorted(sum((Counter(one) for one in sizes), Counter[int]()).items()))


def _pairs(counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(one for one, _ in counts), sum(other for _, other in counts)


def _people(shares: Sequence[ShareClasses]) -> PersonCount:
    """Merge the person counts of the shares.

    The number of all persons, and how many records the persons with most have, cannot be found from shares; these are 0.
    """
    # A share without a class of the files may have some of the private file's, which are unexpected.
    some = [(one.counts.classes, one.counts.persons) for one in shares if one.counts.persons]
    persons = [one for _, one in some]
    return replace(
        persons[0],
        released=0,
        most_records=0,
        records_of_one=0,
        masked=sum(one.masked for one in persons),
        smallest=min((one.smallest for classes, one in some if classes), default=0),
        failing=sum(one.failing for one in persons),
        exposed=sum(one.exposed for one in persons),
        unexpected=sum(one.unexpected for one in persons),
        sizes=_summed([one.sizes for one in persons]),
        largest_share=max((one.largest_share for one in persons), default=0.0),
    )


def _worst(spreads: Sequence[ShareSpread], *, low: bool) -> ShareSpread:
    worst = [one.worst for one in spreads if one.worst is not None]
    most = (min if low else max)(worst, default=None)
    failing, classes = sum(one.failing for one in spreads), sum(one.classes for one in spreads)
    return ShareSpread(failing, classes, most, sum(one.broken_by_holders for one in spreads))


def control_faults(shares: Sequence[tuple[int, int]], expected: Mapping[int, int]) -> list[str]:
    """Return a message if shares of the classes are missing, come twice, or have other record counts.

    Args:
        shares: Number and counted records of each share.
        expected: By number of a share, the records that were set apart for it.
    """
    found: dict[int, list[int]] = {}
    for number, records in shares:
        found.setdefault(number, []).append(records)
    wrong = [number for number in {*found, *expected} if found.get(number) != [expected.get(number)]]
    return [f"{counted(len(wrong), 'share')} of the classes with other records than were set apart for them"] if wrong else []
