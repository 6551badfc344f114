"""Counts what several published columns tell together: the untreated ones, the sensitive ones, the pseudonyms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow.parquet as pq

from core.recount.together import TogetherCount, combined_groups, contents_sql, together_of_people_sql, together_sql
from schemas.job.job import Job
from schemas.release.figures import KINDS, Kind
from schemas.release.manifest import published_qids
from tasks.recount.people import COMBINATIONS, PeopleFiles, read_people
from tasks.recount.rows import ReleaseRows
from tasks.store.database import quote

CONTENTS = "contents"

Counts = dict[Kind, TogetherCount]


def columns_together(
    published: Sequence[str], qids: Sequence[str], sensitive: Sequence[str], pseudonyms: Sequence[str]
) -> dict[Kind, list[str]]:
    """Returns the columns that are counted together, by kind: what is nothing else is published untreated.

    Args:
        published: The columns of the files.
        qids: Those of quasi-identifiers.
        sensitive: The sensitive ones.
        pseudonyms: Those that are published in the place of identifiers.
    """
    known = {*qids, *sensitive, *pseudonyms}
    kinds: dict[Kind, list[str]] = {
        "insensitive": [name for name in published if name not in known],
        "sensitive": [name for name in published if name in set(sensitive)],
        "pseudonyms": [name for name in published if name in set(pseudonyms)],
    }
    return {kind: names for kind, names in kinds.items() if names}


def columns_of_job(job: Job, rows: ReleaseRows) -> dict[Kind, list[str]]:
    """Returns the same for the files of a job."""
    return columns_together(
        list(rows.types("release")), published_qids(job), job.columns.sensitive, [one.name for one in job.columns.pseudonyms]
    )


def count_together(rows: ReleaseRows, columns: Mapping[Kind, Sequence[str]], qids: Sequence[str], k: int) -> Counts:
    """Counts the records that share each combination.

    Args:
        rows: Of the release.
        columns: The columns that are counted together, by kind.
        qids: Names of the published quasi-identifiers.
        k: What a class must reach.
    """
    release, labels = rows.alike(rows.release), [quote(name) for name in qids]
    asked = {kind: combined_groups(release, [quote(name) for name in names], labels) for kind, names in columns.items()}
    rows.expect("release", list(asked.values()))
    found: Counts = {}
    for kind, groups in asked.items():
        [row] = rows.connection.execute(together_sql(rows.grouped("release", groups), k)).fetchall()
        found[kind] = TogetherCount(*row)
    return found


def count_together_of_people(job: Job, connection: duckdb.DuckDBPyConnection, files: PeopleFiles | None) -> Counts:
    """Counts the persons that share each combination; nothing where none are named, or were kept without what their records publish.

    Args:
        job: The job.
        connection: The database, in which the combinations of labels were put in a table.
        files: Where the persons are, if they are known.
    """
    if not files or not job.columns.person:
        return {}
    qids, (classes, people) = published_qids(job), read_people(files)
    kept = pq.read_schema(files[0][0]).names
    found: Counts = {}
    for kind in KINDS:
        if kind in kept:
            connection.execute(contents_sql(COMBINATIONS, classes, people, len(qids), kind, CONTENTS))
            [row] = connection.execute(together_of_people_sql(CONTENTS, job.privacy.k)).fetchall()
            found[kind] = TogetherCount(*row)
    connection.execute(f"DROP TABLE IF EXISTS {CONTENTS}")
    return found


def combined_pairs(
    records: Mapping[Kind, TogetherCount], people: Mapping[Kind, TogetherCount], *, by_people: bool
) -> tuple[Mapping[Kind, TogetherCount], list[str]]:
    """Returns the counts in the unit of k, and whether those of persons are not of what the files hold.

    Args:
        records: Counted in records.
        people: Counted in persons, of the same kinds.
        by_people: Whether k counts persons.
    """
    if not by_people:
        return records, []
    unexpected = [kind for kind, one in people.items() if kind not in records or records[kind].shape != one.shape]
    return people, [f"what records publish in {KINDS[kind]} is not what the run folder keeps of their persons" for kind in unexpected]
