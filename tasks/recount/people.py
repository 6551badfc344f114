"""Counts of the persons in a release's classes, from the run folder's person files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from core.recount.groups import TogetherCount, combination_counts_sql, combined_groups, person_combination_counts_sql
from core.recount.joined_columns import (
    MOST_ROUNDS,
    Link,
    alike_at_once_sql,
    comparable_columns,
    connected_groups,
    crossing_sql,
    joined_counts_sql,
    joined_rows_sql,
    joining_round_sql,
    link_sql,
    meeting_sql,
)
from core.recount.linked import LinkCount, accepts_linking, linked_sql, person_pseudonyms_sql, pseudonyms_are_persons, published_rows_sql
from core.recount.people import (
    HELD,
    PersonCount,
    classed_persons_sql,
    combinations_sql,
    holders_sql,
    one_value_sql,
    people_sql,
    person_values_sql,
    persons_of_source_sql,
    source_counts_sql,
    source_pairs_sql,
    unexpected_values_sql,
)
from schemas.errors.base import listed
from schemas.job.job import Job
from schemas.release.figures import KINDS, Kind
from schemas.release.manifest import published_qids
from tasks.recount.original import Original
from tasks.recount.rows import ReleaseRows
from tasks.store.database import parquet_sql, quote

PeopleFiles = tuple[Sequence[Path], Sequence[Path]]
"""The files of a release's persons, and those of its classes.

Files of persons have the columns ``class``, ``person``, ``records``, the job's sensitive values as ``value_0`` …, and its linking
pseudonyms as ``link_0`` …. Files of classes have a row for each class with its labels, ``label_0`` …; several files name it in a column
``class``.
"""


def count_people(connection: duckdb.DuckDBPyConnection, job: Job, source: str, qids: Sequence[str], files: PeopleFiles) -> PersonCount:
    """Return person counts of classes; leave tables ``combinations`` and ``held`` in the database.

    Args:
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published quasi-identifiers.
    """
    connection.execute(combinations_sql(source, qids))
    values = [f"p.value_{number}" for number in range(len(person_values_known(job, files)))]
    connection.execute(holders_sql(_classed(files, qids), values, HELD))
    [row] = connection.execute(people_sql(len(values), job.privacy.k)).fetchall()
    return PersonCount(*row)


def person_values_known(job: Job, files: PeopleFiles) -> list[str]:
    """Return the sensitive columns whose values the person files hold.

    Earlier versions kept only the columns under a privacy promise.
    """
    kept = sum(name.startswith("value_") for name in pq.read_schema(files[0][0]).names) if files[0] else 0
    return job.privacy.with_others(job.columns.recounted_value_columns)[:kept]


def one_values(connection: duckdb.DuckDBPyConnection, job: Job, files: PeopleFiles) -> dict[str, tuple[int, int]]:
    """Return by sensitive column the classes, and their records, whose persons share one value."""
    counted = {}
    for column in person_values_known(job, files):
        if column in job.columns.sensitive:
            [(classes, records)] = connection.execute(one_value_sql(_value(job, column))).fetchall()
            counted[column] = int(classes), int(records)
    return counted


def count_linked(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], files: PeopleFiles | None
) -> tuple[LinkCount, ...]:
    """Return by linking columns how many people share each set of classes, and how many are below k.

    A set is that of all records of one person or pseudonym, for each group of pseudonyms that link records.

    Args:
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published quasi-identifiers.
    """
    columns, known = job.columns, files if job.columns.person and files and _has_links(files) else None
    if columns.links and not known:
        connection.execute(combinations_sql(source, qids))
    counted = []
    for one in columns.links:
        owners = person_pseudonyms_sql(_classed(known, qids), [columns.linking.index(name) for name in one]) if known else ""
        statement = linked_sql(source, qids, [quote(name) for name in one], job.privacy.k, owners, unlinked_are_persons=not columns.person)
        [row] = connection.execute(statement).fetchall()
        counted.append(LinkCount(one, known is not None or pseudonyms_are_persons(job, one), *row))
    return (*counted, *_joined_columns(job, connection, source, qids, known))


def _joined_columns(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], known: PeopleFiles | None
) -> Iterator[LinkCount]:
    """Yield counts of linking columns together, over all joins; see ``count_linked``."""
    linking = job.columns.linking
    kinds, groups = _joined_groups(job, connection, source)
    for group in groups:
        columns = list(dict.fromkeys(name for one in group for name in one))
        owners = person_pseudonyms_sql(_classed(known, qids), [linking.index(name) for name in columns]) if known else ""
        links = [link_sql(job, one, [f"link_{columns.index(name)}" for name in one], kinds[one]) for one in group]
        published = published_rows_sql(source, qids, [f"s.{quote(name)}::VARCHAR" for name in columns])
        connection.execute(joined_rows_sql(published, owners, links))
        for statement in alike_at_once_sql(len(links)):
            connection.execute(statement)
        before, different = -1, 0
        for _ in range(MOST_ROUNDS):
            *making, counting = joining_round_sql(len(links))
            for statement in making:
                connection.execute(statement)
            [(different,)] = connection.execute(counting).fetchall()
            if different == before:
                break
            before = different
        unlinked = not job.columns.person
        statement = joined_counts_sql(len(columns), len(links), job.privacy.k, published, owners, unlinked_are_persons=unlinked)
        [row] = connection.execute(statement).fetchall()
        yield LinkCount(tuple(columns), known is not None or unlinked, *row)


def _joined_groups(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> tuple[Mapping[Link, int], list[list[Link]]]:
    """Return which links' pseudonyms may be compared, and the groups of links that are counted together.

    Links of one number may be compared. A group holds columns that have pseudonyms in common, and all columns that the job does not accept.
    """
    links = job.columns.joining
    read = {one: link_sql(job, one, [quote(name) for name in one], 0) for one in links}

    def holds(statement: Callable[..., str], one: Link, other: Link, *more: object) -> bool:
        return connection.execute(statement(source, read[one], read[other], *more)).fetchall() == [(True,)]

    meeting = [((one,), (other,)) for one, other in comparable_columns(job) if holds(meeting_sql, (one,), (other,))]
    refused = [one for one in job.columns.links if not accepts_linking(job, one)]
    met = {one for pair in meeting for one in pair}
    pairs = [pair for pair in combinations(refused, 2) if pair not in meeting]
    crossing = [(one, other) for one, other in pairs if holds(crossing_sql, one, other, (one in met, other in met))]
    kinds = {one: kind for kind, alike in enumerate(connected_groups(links, meeting)) for one in alike}
    return kinds, [group for group in connected_groups(links, [*meeting, *crossing]) if len(group) > 1]


def _has_links(files: PeopleFiles) -> bool:
    """Return whether the person files hold the linking pseudonyms of each person."""
    return all("link_0" in pq.read_schema(path).names for path in files[0])


def read_people(files: PeopleFiles) -> tuple[str, str]:
    """Return two SQL relations: the classes' labels, and the persons with their classes."""
    kept, labels = files
    # Parts of a release number their classes each by itself, and say so; else a class is a row.
    named = all("class" in pq.read_schema(path).names for path in labels)
    numbered = "file_row_number AS class, * EXCLUDE (file_row_number)"
    classes = f"(SELECT {'*' if named else numbered} FROM {parquet_sql(labels, row_numbers=not named)})"
    return classes, parquet_sql(kept)


def _classed(files: PeopleFiles, qids: Sequence[str]) -> str:
    return classed_persons_sql(*read_people(files), len(qids))


def not_counted(columns: Sequence[str], because: str) -> list[str]:
    """Return one or two sentences on the counts that are missing without the person files.

    Args:
        columns: The sensitive columns whose values are counted by people.
        because: Why the persons of classes do not follow from job and source.
    """
    persons = f"The people in each class were not counted: what the run folder kept of them is not at hand, and {because}."
    values = f"Nor was how often the values of {listed(columns)} occur in each class, which is by people too."
    return [persons, values] if columns else [persons]


def unexpected_values(connection: duckdb.DuckDBPyConnection, job: Job, source: str, qids: Sequence[str], column: str) -> int:
    """Return how many classes have other values of a column than their persons, by ``count_people``.

    Args:
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published quasi-identifiers.
    """
    statement = unexpected_values_sql(source, qids, quote(column), _value(job, column))
    [(unexpected,)] = connection.execute(statement).fetchall()
    return int(unexpected)


def values_of_people(job: Job, column: str) -> tuple[str, list[str], str]:
    """Return SQL relation, class columns and value column of persons' values after ``count_people``.

    Each value of a person in a class occurs once.
    """
    return person_values_sql(_value(job, column)), ["combination"], _value(job, column)


def persons_by_value_sql(job: Job, column: str, original: Original | None) -> str:
    """Return SQL that counts persons by a column's value, in the source or, without, in table ``held``."""
    if original is None:
        return source_counts_sql(source_pairs_sql(_value(job, column)))
    return source_counts_sql(
        persons_of_source_sql(original.relation, original.persons(job), quote(column)), original.relation, quote(column)
    )


def _value(job: Job, column: str) -> str:
    return f"value_{job.privacy.with_others(job.columns.recounted_value_columns).index(column)}"


CONTENTS = "contents"

Counts = dict[Kind, TogetherCount]


def columns_to_combine(
    published: Sequence[str], qids: Sequence[str], sensitive: Sequence[str], pseudonyms: Sequence[str]
) -> dict[Kind, list[str]]:
    """Return by kind (insensitive, sensitive, pseudonyms) the published columns whose combinations count."""
    known = {*qids, *sensitive, *pseudonyms}
    kinds: dict[Kind, list[str]] = {
        "insensitive": [name for name in published if name not in known],
        "sensitive": [name for name in published if name in set(sensitive)],
        "pseudonyms": [name for name in published if name in set(pseudonyms)],
    }
    return {kind: names for kind, names in kinds.items() if names}


def columns_of_job(job: Job, rows: ReleaseRows) -> dict[Kind, list[str]]:
    """Return by kind the published columns of a job's release whose combinations count."""
    return columns_to_combine(
        list(rows.types("release")), published_qids(job), job.columns.sensitive, [one.name for one in job.columns.pseudonyms]
    )


def count_combinations(rows: ReleaseRows, columns: Mapping[Kind, Sequence[str]], qids: Sequence[str], k: int) -> Counts:
    """Return, by kind of columns, how many records have a combination that is unique or below k."""
    release, labels = rows.release, [quote(name) for name in qids]
    asked = {kind: combined_groups(release, [quote(name) for name in names], labels) for kind, names in columns.items()}
    rows.expect("release", list(asked.values()))
    found: Counts = {}
    for kind, groups in asked.items():
        [row] = rows.connection.execute(combination_counts_sql(rows.grouped("release", groups), k)).fetchall()
        found[kind] = TogetherCount(*row)
    return found


def count_person_combinations(job: Job, connection: duckdb.DuckDBPyConnection, files: PeopleFiles | None) -> Counts:
    """Count by kind of columns beside the QIDs the persons unique or below k by them; empty if unknown.

    Kinds are insensitive and sensitive columns and pseudonyms, each counted alone and with the labels of QIDs. The table ``combinations``
    must have those labels. Nothing is counted where the job names no persons, or the files lack what their records publish.
    """
    if not files or not job.columns.person:
        return {}
    classed = _classed(files, published_qids(job))
    kept = pq.read_schema(files[0][0]).names
    found: Counts = {}
    for kind in KINDS:
        if kind in kept:
            connection.execute(holders_sql(classed, [f"p.{kind} AS content"], CONTENTS))
            [row] = connection.execute(person_combination_counts_sql(CONTENTS, job.privacy.k)).fetchall()
            found[kind] = TogetherCount(*row)
    connection.execute(f"DROP TABLE IF EXISTS {CONTENTS}")
    return found


def combined_pairs(
    records: Mapping[Kind, TogetherCount], people: Mapping[Kind, TogetherCount], *, by_people: bool
) -> tuple[Mapping[Kind, TogetherCount], list[str]]:
    """Return records' or persons' combination counts, as k counts, and faults where the two disagree."""
    if not by_people:
        return records, []
    unexpected = [kind for kind, one in people.items() if kind not in records or records[kind].shape != one.shape]
    return people, [f"what records publish in {KINDS[kind]} is not what the run folder keeps of their persons" for kind in unexpected]
