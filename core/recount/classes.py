"""The independent recount: what written files must keep, knowing only the job.

Nothing of the search, the hierarchies or the recoding is used here: the equivalence classes are whatever combinations of published
QID values the files hold (nulls included), counted by DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from schemas.errors.base import counted, listed
from schemas.job.job import Job
from schemas.job.privacy import ClosenessSpec, Diversity
from schemas.release.manifest import Manifest, pseudonym_words, published_payload, published_qids

SLACK = 1e-9


@dataclass(frozen=True)
class Recount:
    """What was counted in the files.

    Attributes:
        records: Number of records.
        classes: Number of equivalence classes.
        min_class: Records in the smallest class; 0 if there is none.
        failing: Classes with fewer than k records.
        exposed: Records in these.
        masked: Records with ``*`` in every QID.
        sizes: Number of classes by size.
        measured: By promise (``l``, ``t``) and sensitive column, the worst of all classes, in the unit of the promise.
        withheld: Records with ``*`` by QID; empty where that was not counted.
        source: Records of the source; None where it was not at hand.
        unproved: What could not be checked, in sentences.
    """

    records: int
    classes: int
    min_class: int
    failing: int
    exposed: int
    masked: int
    sizes: Mapping[int, int] = field(default_factory=dict)
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    withheld: Mapping[str, int] = field(default_factory=dict)
    source: int | None = None
    unproved: tuple[str, ...] = ()


def recount_sql(source: str, qids: Sequence[str], k: int, *, by_qid: bool = False) -> str:
    """Returns the statement that counts the equivalence classes of the files.

    It is right because GROUP BY takes nulls as equal, so a class is exactly the records that share one published combination.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
        k: What a class must reach.
        by_qid: Whether the records with ``*`` are counted for each QID too, in a list in their order.
    """
    columns = ", ".join(qids)
    stars = [f"{qid}::VARCHAR IS NOT DISTINCT FROM '*'" for qid in qids]
    starred = " AND ".join(stars)
    each = "".join(f", {star} AS star_{number}" for number, star in enumerate(stars)) if by_qid else ""
    sums = ", ".join(f"coalesce(sum(records) FILTER (star_{number}), 0)::BIGINT" for number in range(len(qids)))
    listed_sums = f", [{sums}]" if by_qid else ""
    return f"""
        WITH classes AS (
            SELECT count(*) AS records, bool_and({starred}) AS masked{each}
            FROM {source} GROUP BY {columns}
        )
        SELECT coalesce(sum(records), 0)::BIGINT, count(*), coalesce(min(records), 0), count(*) FILTER (records < {k:d}),
            coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT, coalesce(sum(records) FILTER (masked), 0)::BIGINT,
            coalesce(histogram(records), MAP {{}}){listed_sums}
        FROM classes
    """


def diversity_sql(source: str, qids: Sequence[str], column: str, diversity: Diversity) -> str:
    """Returns the statement that counts the classes without the promised l-diversity, all classes, and measures the worst.

    The worst is the fewest distinct values, the least exp(entropy), or how many times as frequent as its tail a most frequent value is.

    It is right because GROUP BY counts each sensitive value once per class, nulls as a value of their own, and the three definitions need
    nothing but these counts.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
        column: Quoted name of the sensitive column.
        diversity: What was promised.
    """
    keyed, classes = _keyed(qids)
    if diversity.distinct is not None:
        fails, worst = f"len(falling) < {diversity.distinct:d}", "min(len(falling))"
    elif diversity.entropy is not None:
        entropy = "ln(records) - list_sum(list_transform(falling, lambda r: r * ln(r))) / records"
        fails, worst = f"{entropy} < ln({float(diversity.entropy)!r}) - {SLACK!r}", f"min(exp({entropy}))"
    else:
        assert diversity.recursive is not None
        c, least = Fraction(diversity.recursive.c), diversity.recursive.l
        tail = f"coalesce(list_sum(falling[{least:d}:]), 0)"
        fails = f"falling[1]::HUGEINT * {c.denominator:d} >= {tail}::HUGEINT * {c.numerator:d}"
        worst = f"max(falling[1] / {tail})"
    return f"""
        WITH pairs AS (SELECT {keyed}, {column} AS s, count(*) AS r FROM {source} GROUP BY ALL),
        classes AS (SELECT sum(r)::BIGINT AS records, list(r ORDER BY r DESC) AS falling FROM pairs GROUP BY {classes})
        SELECT count(*) FILTER ({fails}), count(*), {worst}::DOUBLE FROM classes
    """


def _keyed(qids: Sequence[str]) -> tuple[str, str]:
    """Returns the published QIDs under names of our own, which no column of a job can be mistaken for, and these names."""
    names = [f"qid_{number}" for number in range(len(qids))]
    return ", ".join(f"{qid} AS {name}" for qid, name in zip(qids, names, strict=True)), ", ".join(names)


def closeness_sql(source: str, qids: Sequence[str], column: str, closeness: ClosenessSpec, levels: int) -> str:
    """Returns the statement that counts the classes farther than t from the whole, all classes, and measures the greatest distance.

    Every class is written out over all values of the table ``whole`` (``value``, ``share``, ``place`` in ascending order and ``level_1`` …
    ``level_<levels>``, the value's group at each level); the three distances are sums over that.

    Args:
        source: What is read.
        qids: Quoted names of the published QID columns.
        column: Quoted name of the sensitive column.
        closeness: What was promised.
        levels: Levels of the hierarchy above the values, for the hierarchical distance.
    """
    keyed, classes = _keyed(qids)
    groups = "".join(f", level_{level}" for level in range(1, levels + 1))
    extras = f"""
        WITH pairs AS (SELECT {keyed}, {column} AS value, count(*) AS r FROM {source} GROUP BY ALL),
        numbered AS (SELECT *, dense_rank() OVER (ORDER BY {classes}) AS class FROM pairs),
        sizes AS (SELECT class, sum(r) AS records FROM numbered GROUP BY class),
        extras AS (
            SELECT sizes.class, whole.place{groups}, coalesce(numbered.r, 0) / sizes.records - whole.share AS extra
            FROM sizes CROSS JOIN whole
            LEFT JOIN numbered ON numbered.class = sizes.class AND numbered.value IS NOT DISTINCT FROM whole.value
        )"""
    if closeness.distance == "equal":
        moved = "SELECT class, sum(abs(extra)) / 2 AS distance FROM extras GROUP BY class"
    elif closeness.distance == "ordered":
        moved = """
            SELECT class, sum(abs(carried)) / greatest(count(*) - 1, 1) AS distance
            FROM (SELECT class, sum(extra) OVER (PARTITION BY class ORDER BY place) AS carried FROM extras) GROUP BY class"""
    else:
        steps = []
        for level in range(1, levels + 1):
            below = "place" if level == 1 else f"level_{level - 1}"
            steps.append(f"""
                SELECT class, least(sum(greatest(net, 0)), sum(greatest(-net, 0))) * {level} / {levels} AS cost
                FROM (SELECT class, level_{level}, {below}, sum(extra) AS net FROM extras GROUP BY ALL) GROUP BY class, level_{level}""")
        moved = f"SELECT class, sum(cost) AS distance FROM ({' UNION ALL '.join(steps)}) GROUP BY class"
    fails = f"distance > {float(closeness.t)!r} + {SLACK!r}"
    return f"{extras} SELECT count(*) FILTER ({fails}), count(*), max(distance)::DOUBLE FROM ({moved})"


def column_faults(job: Job, columns: Sequence[str]) -> list[str]:
    """Returns what is wrong with the columns of a data file."""
    qids, payload = published_qids(job), published_payload(job)
    faults = []
    # DuckDB's names know no case: of two such columns it would count the first one twice.
    if len({name.lower() for name in columns}) < len(columns):
        return ["columns of the data files differ in nothing but upper and lower case"]
    if raw := [name for name in columns if name in job.columns.dropped]:
        faults.append(f"{listed(raw)} is an identifier and must not be published")
    pseudonyms = [one.name for one in job.columns.pseudonyms]
    if lacking := [name for name in [*qids, *(payload or [*job.columns.sensitive, *pseudonyms])] if name not in columns]:
        faults.append(f"{listed(lacking)} is missing from the data files")
    if payload is not None and (more := [name for name in columns if name not in {*qids, *payload, *job.columns.dropped}]):
        faults.append(f"{listed(more)} is published, but the job does not say so")
    # Bounds take the place of the column itself, so that the raw column beside them would be a leak.
    if raw := [qid.name for qid in job.columns.quasi_identifiers if qid.name not in qids and qid.name in columns]:
        faults.append(f"{listed(raw)} is published beside its bounds")
    return faults


def promise_faults(job: Job, recount: Recount) -> list[str]:
    """Returns which promises of the job the counted files break."""
    if not recount.records:
        return ["the data files hold no record"]
    if recount.failing:
        return [
            f"{recount.failing:,} of {recount.classes:,} classes have fewer than k = {job.privacy.k:,} records: "
            f"{counted(recount.exposed, 'record')} exposed, {recount.min_class:,} in the smallest class"
        ]
    return []


def suppression_faults(job: Job, suppressed: int, records: int) -> list[str]:
    """Returns whether more records were suppressed than the limit allows."""
    if suppressed > job.suppression.limit * records:
        return [f"{counted(suppressed, 'record')} of {records:,} are suppressed, more than the limit of {job.suppression.limit}"]
    return []


def manifest_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Returns where a manifest and the counted files disagree, and whether the suppression limit was kept."""
    faults = count_faults(manifest, recount) + suppression_faults(job, manifest.failed, manifest.records)
    if job.suppression.is_local:
        faults += remainder_faults(manifest, recount)
    if manifest.pseudonyms != pseudonym_words(job):
        faults.append("the manifest does not say truly which columns are pseudonyms")
    return faults


def remainder_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Returns where a manifest is wrong about what became of the records that fail at the node of all."""
    remainder = manifest.remainder
    if remainder is None:
        return ["the manifest does not say what became of the records that fail at its levels"]
    faults = [
        f"the manifest says that {counted(said, 'record')} publish * in '{qid}', the files hold {recount.withheld.get(qid, 0):,}"
        for qid, said in remainder.withheld.items()
        if said != recount.withheld.get(qid, 0)
    ]
    if sum(one.records for one in remainder.rounds) + remainder.starred + manifest.suppressed > remainder.records:
        faults.append("the manifest's records of rounds, starred and suppressed are more than fail at its levels")
    return faults


def count_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Returns where a manifest and the counted files disagree."""
    claims = {
        "released": (manifest.released, recount.records),
        "classes": (manifest.classes, recount.classes),
        "min_class": (manifest.min_class, recount.min_class),
        "masked": (manifest.masked, min(manifest.masked, recount.masked)),
    }
    faults = [f"the manifest says {name} = {said:,}, the files hold {found:,}" for name, (said, found) in claims.items() if said != found]
    if recount.source is not None and manifest.records != recount.source:
        faults.append(f"the manifest says records = {manifest.records:,}, the source holds {recount.source:,}")
    if manifest.records - recount.records != manifest.suppressed - manifest.masked:
        faults.append("the manifest's records, released, suppressed and masked do not add up")
    return faults
