"""Figures in the manifest of several tables: their computation, and checks by files, job and sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_jsonable_python

from core.recount.histories import TablesRecount
from schemas.job.identifiers import canonical_way
from schemas.relational.manifest import ReleasedTable, TablesLoss, TablesManifest
from schemas.relational.table_jobs import most_rows_of, table_job, tables_promise, unit_key_words
from schemas.relational.tables_job import TablesJob
from schemas.release.figures import KINDS, Kind, PassedColumn, PassedColumnOfPersons, Together, may_publish_count, reported_count
from schemas.release.terms import NOT_FOR_NODES
from tasks.relational.making.writing import ReleasedTables
from tasks.relational.person_rows import PersonRows
from tasks.relational.report import report_code_of_tables, report_texts
from tasks.verification.entries import OTHER_CODE, differing_documents

DIGITS = 12
"""Decimal places of a published loss."""
NO_REPORT = "The report was held against its digest alone: the manifest does not state enough to make it again."


def table_entries(given: ReleasedTables, recount: TablesRecount) -> dict[str, ReleasedTable]:
    """Return each table's manifest entry; a row count is None if it rests on too few persons to state.

    Too few is fewer than k. Released rows are those of the recounted files. Where fewer than k persons are left out, no table says how many
    rows it had: persons may all have equally many. Nor does one that withholds rows of fewer than k persons: whoever sees that one row more
    was there than the job allows knows that one person had so many. Nor does one of which fewer than k rows find nobody.
    """
    found, people, k = {}, PersonRows(given), given.job.privacy.k
    published, gone = people.published[:-1], dict[str, NDArray[np.bool_]]()
    few = not may_publish_count(int((~published).sum()), k)
    for table in given.job.tables:
        levels = given.published_levels(table)
        rows, released = given.tables[table].rows, recount.records[table]
        orphans, suppressed, lost = 0, rows - released, ~published
        if given.chain(table):
            orphans, suppressed, lost = 0, 0, np.zeros(given.persons, np.bool_)
            for batch in people.rows_of(table, []):
                whose = batch.whose[batch.released_rows(None)]
                orphans += len(batch.whose) - len(whose)
                suppressed += int((~published[whose]).sum())
                lost[whose] = True
        beyond = rows - released - orphans - suppressed
        if beyond and may_publish_count(beyond, k):
            gone = gone or people.withheld()
            losers = _persons_with(people, table, gone[table], published)
        else:
            losers = beyond
        told = may_publish_count(losers, k)
        stated = told and not few and may_publish_count(int((lost & ~published).sum()), k)
        many_nobodys = may_publish_count(orphans, k)
        found[table] = ReleasedTable(
            records=rows if stated and many_nobodys else None,
            released=released,
            withheld=beyond if told else None,
            suppressed=suppressed if stated else None,
            orphans=orphans if many_nobodys else None,
            levels=levels,
            passthrough=reported_columns(given.tables[table].table.run.passthrough, recount.passed[table], k),
            passthrough_together=recount.together.get(table),
            sensitive_together=recount.sensitive_together.get(table),
        )
    return found


def reported_columns(
    columns: Mapping[str, PassedColumn], untreated_counts: Mapping[str, tuple[int, int, int, int]], k: int
) -> dict[str, PassedColumnOfPersons]:
    """Return untreated columns' figures by a table's files; 1 to k - 1 unique persons are stated as k."""
    told = {}
    for name, (distinct, alone, values, persons) in untreated_counts.items():
        one = columns[name]
        told[name] = PassedColumnOfPersons(
            distinct=distinct,
            unique_records=alone,
            values=values,
            looked_at=min(one.looked_at, distinct),
            reasons=one.reasons,
            unique_persons=reported_count(persons, k),
        )
    return told


def rows_beyond_bounds(given: ReleasedTables) -> dict[str, int]:
    """Return by table how many rows of published persons its bound withholds, for tables that lose any.

    No release states them: they are for whoever runs the job.
    """
    people, found = PersonRows(given), {}
    for table in given.job.tables if any(most_rows_of(given.job).values()) else ():
        found[table] = people.count_beyond_bounds(table, people.published[people.persons_of_rows(table)])
    return {table: rows for table, rows in found.items() if rows}


def _persons_with(people: PersonRows, table: str, marked: NDArray[np.bool_], among: NDArray[np.bool_]) -> int:
    """Count the persons among some who have marked rows of a table; rows of nobody are nobody's."""
    having = np.zeros(len(among), np.bool_)
    for batch in people.rows_of(table, []):
        having[batch.whose[batch.released_rows(~marked)]] = True
    return int((having & among).sum())


def loss_of_tables(tables: Mapping[str, ReleasedTable], penalties: Mapping[str, Mapping[str, float]]) -> TablesLoss:
    """Return the mean certainty penalty per value, of all tables and of each table.

    A value that is not published costs 1. Orphans belong to no person and are no loss, and persons and rows whose number is not
    stated count as none. Penalties are of the published grid (`core.recount.labels.label_losses`), so that two sources whose labels
    are the same have the same losses.
    """
    lost, values = {}, {}
    for name, table in tables.items():
        values[name] = (table.stated_records - (table.orphans or 0)) * len(table.levels)
        gone = ((table.withheld or 0) + (table.suppressed or 0)) * len(table.levels)
        lost[name] = sum(penalties.get(name, {}).values()) + gone
    by_table = {name: round(lost[name] / many, DIGITS) for name, many in values.items() if many}
    return TablesLoss(gcp=round(sum(lost.values()) / max(sum(values.values()), 1), DIGITS), by_table=by_table)


def count_faults(manifest: TablesManifest, found: TablesRecount, k: int) -> list[str]:
    """Return faults for counts of a manifest that the files contradict or k forbids to state."""
    faults = []
    if (manifest.histories, manifest.min_class) != (found.histories, found.smallest):
        faults.append("the manifest's histories are not those of the files")
    if (manifest.persons.released, manifest.persons.smallest_class) != (found.persons, found.smallest):
        faults.append("the manifest's persons are not those of the files")
    for name, table in manifest.tables.items():
        if table.released != found.records[name]:
            faults.append(f"the manifest's rows of '{name}' are not those of the files")
        if table.stated_records != table.released + (table.withheld or 0) + (table.suppressed or 0) + (table.orphans or 0):
            faults.append(f"the manifest's counts of '{name}' do not add up")
    return faults + _untreated_faults(manifest, found, k) + _unstated_faults(manifest, k)


def _untreated_faults(manifest: TablesManifest, found: TablesRecount, k: int) -> list[str]:
    """Return the figures of untreated columns that the files contradict."""
    faults = []
    for name, table in manifest.tables.items():
        told = {column: (one.distinct, one.unique_records, one.values, one.unique_persons) for column, one in table.passthrough.items()}
        files = {column: (*counts, reported_count(persons, k)) for column, (*counts, persons) in found.passed.get(name, {}).items()}
        if told != files or any(one.looked_at > one.distinct for one in table.passthrough.values()):
            faults.append(f"the manifest's figures of untreated columns of '{name}' are not those of the files")
    return faults


def together_faults(manifest: TablesManifest, found: TablesRecount) -> list[str]:
    """Return faults if a manifest misstates who stands out by untreated or sensitive columns together."""
    counted_together: dict[Kind, tuple[str, Mapping[str, Together], Together | None]] = {
        "insensitive": ("passthrough_together", found.together, found.persons_together),
        "sensitive": ("sensitive_together", found.sensitive_together, found.persons_sensitive_together),
    }
    faults = []
    for kind, (name, by_table, of_persons) in counted_together.items():
        said = {table: together for table, one in manifest.tables.items() if (together := getattr(one, name))}
        if (said, getattr(manifest, name)) != (dict(by_table), of_persons):
            faults.append(f"the manifest does not say truly how many stand out by the {KINDS[kind]} together")
    return faults


def _unstated_faults(manifest: TablesManifest, k: int) -> list[str]:
    """Return the counts stated or lacking against the manifest's own rule for fewer than k left out."""
    faults, persons, unit = list[str](), manifest.persons, manifest.tables[manifest.unit]
    if persons.source != unit.records or unit.withheld != 0 or unit.orphans != 0:
        faults.append("the manifest's persons are not the rows of their table")
    tables = manifest.tables
    others = [table for name, table in tables.items() if name != manifest.unit]
    if unit.suppressed == 0 and any(table.suppressed for table in others):
        faults.append("the manifest says that rows of persons are left out, and that nobody is")
    if any(min(table.released, table.withheld or 0, table.suppressed or 0, table.orphans or 0) < 0 for table in tables.values()):
        faults.append("the manifest states fewer than no rows")
    if any((table.records is None) != (table.suppressed is None or table.orphans is None) for table in tables.values()):
        faults.append("the manifest lacks counts of rows")
    if not all(may_publish_count(table.orphans or 0, k) for table in tables.values()):
        faults.append("the manifest says how many rows find nobody, and these are fewer than k")
    if not all(may_publish_count(table.suppressed or 0, k) for table in tables.values()) or (
        unit.suppressed is None and any(table.suppressed is not None for table in others)
    ):
        faults.append("the manifest says how many are left out, and these are fewer than k")
    # So many persons as rows lost some at most.
    if any(
        not may_publish_count(max(table.withheld or 0, 0), k) or (table.withheld is None and table.suppressed is not None)
        for table in tables.values()
    ):
        faults.append("the manifest says how many rows are withheld, and these are of fewer than k persons")
    return faults


def tables_report_faults(release: Path, manifest: TablesManifest) -> tuple[list[str], list[str]]:
    """Return faults of a report that differs from its manifest, and a note if it cannot be rebuilt.

    A report that is missing or was altered since publication is reported with the entries of the folder.
    """
    if {one.code for one in manifest.documents} != {report_code_of_tables()}:
        return [], [OTHER_CODE]
    try:
        texts = report_texts(manifest)
    except (AttributeError, KeyError, TypeError, ValueError):
        # What was promised is no more than a mapping until it is held against a job.
        return [], [NO_REPORT]
    return [f"{name} does not say what the manifest does" for name in differing_documents(release, texts)], []


def tables_stated_faults(manifest: TablesManifest, found: TablesRecount, job: TablesJob, *, sources_were_read: bool) -> list[str]:
    """Return faults for statements of a manifest that its job or the recount contradicts.

    Args:
        sources_were_read: Whether the sources of all tables were at hand for the recount.
    """
    faults, persons = count_faults(manifest, found, job.privacy.k), manifest.persons
    if persons.source is not None and persons.source - persons.released > job.suppression.limit * persons.source:
        faults.append(MORE_LEFT_OUT)
    faults += _withheld_faults(manifest, {name: table.records for name, table in manifest.tables.items() if table.records is not None}, job)
    priced = all(found.penalties.get(name) for name, table in manifest.tables.items() if table.levels)
    if priced and manifest.loss != loss_of_tables(manifest.tables, found.penalties):
        faults.append("the manifest's loss is not that of the labels in the files")
    counted_there = sources_were_read or bool(found.published)
    if counted_there and manifest.published != found.published:
        faults.append("the manifest's figures of published columns are not those of the files")
    return faults + together_faults(manifest, found) + promise_faults(manifest, job)


def _withheld_faults(
    manifest: TablesManifest, rows: Mapping[str, int], job: TablesJob, unstated: Mapping[str, int] | None = None
) -> list[str]:
    """Return a fault for each table of which more rows are withheld than ``suppression.rows`` allows.

    Where rows are bounded for each person, the job says nothing of how many are withheld.

    Args:
        rows: Rows of the source of each table that is looked at.
        unstated: Rows that are withheld of a table though the manifest does not say how many, as far as that is known.
    """
    return [
        f"more rows of '{name}' are withheld than suppression.rows allows"
        for name, many in rows.items()
        if name != job.tree.unit
        and not any(job.tables[one].rows for one in (*job.tree.chains[name], name))
        and (manifest.tables[name].withheld or (unstated or {}).get(name, 0)) > job.suppression.rows * many
    ]


MORE_LEFT_OUT = "more persons are left out than suppression.limit allows"


def source_faults(manifest: TablesManifest, rows: Mapping[str, int], job: TablesJob) -> list[str]:
    """Return faults for row counts that the sources contradict, and limits exceeded by job.

    Args:
        rows: Rows of the source of each table; tables whose source is not at hand are not in it.
    """
    faults, k, unit = [], job.privacy.k, manifest.tables[manifest.unit]
    persons = rows.get(manifest.unit)
    few = unit.records is None if persons is None else not may_publish_count(persons - unit.released, k)
    for name, many in rows.items():
        table = manifest.tables[name]
        beyond = many - table.released - (table.withheld or 0) - (table.orphans or 0)
        stated = not few and table.withheld is not None and may_publish_count(beyond, k)
        # Many rows may be those of few persons.
        hidden = not stated or (beyond > 0 and name != manifest.unit)
        if table.records is None and table.suppressed is not None:
            # All is stated but how many find nobody, so that this is what is left.
            right = not few and not may_publish_count(beyond - table.suppressed, k)
        else:
            right = (table.records == many and stated) or (table.records is None and hidden)
        if not right or (None in (table.withheld, table.orphans) and not beyond):
            faults.append(f"the manifest's rows of '{name}' are not those of its source")
    # What the manifest states of it was held against the limit already.
    if manifest.persons.source is None and persons is not None and persons - unit.released > job.suppression.limit * persons:
        faults.append(MORE_LEFT_OUT)
    unstated = {name: many for name, many in rows.items() if manifest.tables[name].records is None}
    # Where nobody is left out, all rows that are not there are withheld; of those that find nobody k - 1 at most are not stated.
    nobodys = {name: k - 1 if table.orphans is None else table.orphans for name, table in manifest.tables.items()}
    missing = {name: many - manifest.tables[name].released - nobodys[name] for name, many in unstated.items()}
    return faults + _withheld_faults(manifest, unstated, job, missing if persons == unit.released else None)


def promise_faults(manifest: TablesManifest, job: TablesJob) -> list[str]:
    """Return faults for a manifest's statements on its job's settings that differ from the job."""
    faults = [f"the manifest's {name} not {said} of the job" for (name, said), same in _claims(manifest, job).items() if not same]
    if job.orphans == "refuse" and any(table.orphans != 0 for table in manifest.tables.values()):
        faults.append("the manifest says that rows find nobody, which the job refuses")
    return faults


def _claims(manifest: TablesManifest, job: TablesJob) -> dict[tuple[str, str], bool]:
    """Return whether each statement of a manifest on its job agrees with the job, by its words."""
    qids = {name: [qid.name for qid in table.columns.quasi_identifiers] for name, table in job.tables.items()}
    levels = {name: table.levels for name, table in manifest.tables.items()}
    ways = {name: {column: one.publish for column, one in columns.items()} for name, columns in manifest.published.items()}
    asked = {name: found for name in job.tables if (found := _ways(job, name))}
    references = {name: table.references for name, table in job.tables.items() if table.references}
    return {
        ("name is", "that"): manifest.name == job.name and manifest.release.startswith(f"{job.name}-"),
        ("method is", "that"): manifest.method == job.method.name,
        ("k is", "that"): manifest.privacy.get("k") == job.privacy.k,
        ("privacy is", "that"): manifest.privacy == to_jsonable_python(tables_promise(job)),
        ("pseudonyms are", "those"): manifest.pseudonyms == unit_key_words(job),
        ("keys are", "those"): manifest.key_columns == {name: table.key for name, table in job.tables.items() if table.key},
        ("references are", "those"): manifest.references == references,
        ("levels are", "those"): {name: list(of_table) for name, of_table in levels.items()} == qids
        and all((level is None) == job.is_local for of_table in levels.values() for level in of_table.values()),
        ("optimal is", "that"): manifest.optimal == (NOT_FOR_NODES if job.is_local else "certified"),
        ("search is", "that"): list(manifest.search) == ([] if job.is_local else ["nodes"]),
        ("published columns are", "those"): ways == asked,
    }


def _ways(job: TablesJob, table: str) -> dict[str, Any]:
    """Return how each column of a table is published that says so, as a manifest states it."""
    return {column: to_jsonable_python(canonical_way(way)) for column, way in table_job(job, table).columns.ways.items()}
