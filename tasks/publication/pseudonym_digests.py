"""What the written files of a release disclose under each pseudonym, in digests: what later releases with the same key are joined with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from core.composition.pseudonym_sets import disclosed_sql, pseudonym_owners_sql
from core.recount.linked import discloses_people
from schemas.job.job import Job
from schemas.pseudonyms.kinds import treatment_kind
from schemas.release.manifest import published_qids
from tasks.composition.pseudonym_families import Disclosed
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step, step_here
from tasks.publication.recount_calls import Written, WrittenMembers, written_at_hand
from tasks.release.files import file_error, relation_of
from tasks.store.database import connect, literal, quote
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("disclosed", __name__)
PHASE = "overlaps"


def disclosed_by(run: Run, written: Written, payload: Sequence[str], kept: WrittenMembers) -> list[Disclosed]:
    """Return, for each column whose pseudonyms show which records belong together, the digests of what is published beside them.

    Args:
        run: The run.
        written: The data files.
        payload: The columns that they publish besides quasi-identifiers.
        kept: Who is in which class, for jobs that name persons.
    """
    if not run.job.columns.links:
        return []
    key, salt = STEP.key(written.release), run.secret.keyed("disclosed", written.release)
    arguments = (run.job.with_task_memory() if written.staging is None else run.job, written, list(payload), kept, salt, key, run.store)
    if written.staging is None:
        made: Sequence[Artifact] = run_step(run, PHASE, keep_disclosed, Call.once(STEP, "disclosed", arguments))
    else:
        made = step_here(PHASE, "disclosed", lambda: keep_disclosed(*arguments))
    digests, owners = made[: len(run.job.columns.links)], list(made[len(run.job.columns.links) :])
    return [
        Disclosed(columns, one, owners.pop(0) if _has_owners(run.job, columns, kept) else None)
        for columns, one in zip(run.job.columns.links, digests, strict=True)
    ]


def _has_owners(job: Job, columns: Sequence[str], kept: WrittenMembers) -> bool:
    """Return whether pseudonyms name something else than the job's persons, and whose they are."""
    return bool(kept.people) and not discloses_people(job, columns)


def keep_disclosed(
    job: Job, written: Written, payload: Sequence[str], kept: WrittenMembers, salt: str, key: Key, store: Store
) -> list[Artifact]:
    """Keep the digests of each linking column, then whose the pseudonyms are of those that name something else than persons."""
    made, links = [], job.columns.links
    with (
        written_at_hand(job, written, store) as (spill, files),
        connect(job, spill, last=True) as connection,
        file_error(written.what),
    ):
        source = relation_of(connection, files, written.layout)
        for number, columns in enumerate(links):
            labels = [quote(name) for name in published_qids(job)]
            statement = disclosed_sql(source, _expressions(job, columns), labels, _others(job, payload, columns), literal(salt))
            made.append(_kept(connection, statement, STEP.key(key, number), store))
        for number, columns in enumerate(links):
            if _has_owners(job, columns, kept):
                made.append(_kept(connection, _owners(job, columns, kept, store), STEP.key(key, number, "owners"), store))
    return made


def _owners(job: Job, columns: Sequence[str], kept: WrittenMembers, store: Store) -> str:
    people = kept.files(store)
    assert people is not None
    listed = ", ".join(literal(str(path)) for path in people[0])
    places = [f"link_{job.columns.linking.index(name)}" for name in columns]
    return pseudonym_owners_sql(f"read_parquet([{listed}])", _expressions(job, columns, places))


def _expressions(job: Job, columns: Sequence[str], read_as: Sequence[str] | None = None) -> list[str]:
    """Return the expressions of pseudonyms, of each as much as does not depend on how long the job has them."""
    kinds = {one.name: treatment_kind(one.treatment) for one in job.columns.pseudonyms}
    names = read_as or [quote(name) for name in columns]
    return [
        f"left({name}::VARCHAR, {kinds[column].stable:d})" if kinds[column].stable else f"{name}"
        for column, name in zip(columns, names, strict=True)
    ]


def _others(job: Job, payload: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the other published columns: all but pseudonyms that are different for each value, which only say who is who."""
    naming = {one.name for one in job.columns.pseudonyms if treatment_kind(one.treatment).tells_apart}
    return [quote(name) for name in payload if name not in naming and name not in columns]


def _kept(connection: duckdb.DuckDBPyConnection, statement: str, key: Key, store: Store) -> Artifact:
    def write(path: Path) -> int:
        [(rows,)] = connection.execute(f"COPY ({statement}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION uncompressed)").fetchall()
        return int(rows)

    return store.make(STEP.name, key, ".parquet", write)
