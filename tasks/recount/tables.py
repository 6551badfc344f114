"""Recount of a release's written tables, which refuses a release that breaks the job's promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.recount.histories import (
    ReadTable,
    TablesRecount,
    choices_sql,
    histories_sql,
    items_sql,
    key_faults_sql,
    persons_of_histories_sql,
    persons_of_rows_sql,
    references_left_out_sql,
    row_person_faults_sql,
    row_texts_sql,
    same_keys_sql,
    unit_persons_sql,
)
from schemas.errors.base import VerificationError, counted, verb_of
from schemas.job.columns import REST
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from schemas.registry.treatment_kinds import treatment_kind
from schemas.relational.fitting import TableTree
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob
from schemas.release.manifest import ClaimedLevels, claimed_levels
from tasks.recount.original import Original
from tasks.recount.published_values import column_losses
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.table_values import few_persons_faults, published_table, source_owners, value_faults
from tasks.recount.truth import compare_with_source
from tasks.recount.untreated_tables import UntreatedTables, count_untreated
from tasks.recount.verdict import hidden_label_faults
from tasks.release.files import file_error
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, literal, parquet_sql, quote, write_parquet


@dataclass(frozen=True)
class WrittenTables:
    """The files of a release of several tables, with their job, sources and stated levels.

    Attributes:
        originals: The source of each table; None where it is not at hand.
        levels: The level of each quasi-identifier that the release says, by table; empty or None where it says nothing.
    """

    job: TablesJob
    files: Mapping[str, Sequence[Path]]
    originals: Mapping[str, Original | None]
    levels: Mapping[str, Mapping[str, int | None]]

    def read(self, table: str) -> ReadTable:
        """Return a table of the release as SQL names: relation, columns, key and references; reads no rows."""
        spec = self.job.tables[table]
        sensitive = dict.fromkeys([*table_job(self.job, table).privacy.columns, *spec.columns.ways])
        qids = [qid.name for qid in spec.columns.quasi_identifiers]
        return table_as_read(table, self.files[table], qids, spec.key, spec.referring, self.job.tree, tuple(sensitive))


def table_as_read(
    table: str,
    files: Sequence[Path],
    qids: Iterable[str],
    key: Iterable[str],
    referring: Mapping[str, Sequence[str]],
    tree: TableTree,
    sensitive: Iterable[str],
) -> ReadTable:
    """Return a table of a release as SQL names: relation, columns, key and references; reads no rows.

    Args:
        sensitive: Columns of which something is promised.
    """
    return ReadTable(
        table,
        parquet_sql(files),
        tuple(map(quote, qids)),
        tuple(map(quote, key)),
        {other: tuple(map(quote, referring[other])) for other in sorted(referring, key=tree.chains[table].index)},
        tuple(map(quote, sensitive)),
    )


def file_faults_of_table(table: str, files: Sequence[Path], fits: Callable[[Sequence[str]], bool], asked: str) -> list[str]:
    """Return one fault in a list if a table has no file, an unreadable one, or one of other columns.

    Args:
        fits: Whether the columns of a file, in order, are those that are asked for.
    """
    for path in files:
        try:
            names = pq.read_schema(path).names
        except (OSError, pa.ArrowException):
            return [f"a data file of '{table}' cannot be read as Parquet"]
        if not fits(names):
            return [f"the columns of a data file of '{table}' are not those {asked}"]
    return [] if files else [f"'{table}' has no data file"]


def count_source_rows(job: TablesJob, originals: Mapping[str, Original | None], spill: Path) -> dict[str, int]:
    """Return by table the number of rows of each source that is at hand."""
    found = {}
    with connect(table_job(job, job.tree.unit), spill, last=True) as connection:
        for table, original in originals.items():
            if original is not None:
                register_objects(connection, original.relation)
                [(rows,)] = connection.execute(f"SELECT count(*) FROM {original.relation}").fetchall()
                found[table] = int(rows)
    return found


def recount_tables(written: WrittenTables, spill: Path, release_name: str, histories: Path | None = None) -> TablesRecount:
    """Recount written tables and compare each with its source; return counts, raise on any fault.

    Args:
        histories: Gets the number of each person's history with the published key, where the unit has one.
    """
    job, tree = written.job, written.job.tree
    if faults := [fault for table in job.tables for fault in _column_faults(written, table)]:
        raise VerificationError(release_name, faults)
    penalties: dict[str, dict[str, float]] = {}
    figures: dict[str, dict[str, ColumnPublication]] = {}
    with connect(table_job(job, tree.unit), spill, last=True) as connection, file_error(release_name):
        promised = {table: written.read(table) for table in tree.tables}
        untreated = UntreatedTables.of_job(job, {table: pq.read_schema(written.files[table][0]).names for table in tree.tables})
        tables = {name: untreated.carried(read, is_unit=name == tree.unit) for name, read in promised.items()}
        for one in filter(None, written.originals.values()):
            register_objects(connection, one.relation)
        whole = source_owners(job, written.originals, connection, promised)
        for table in tree.tables:
            original = written.originals.get(table)
            if original is not None:
                unit = written.originals[tree.unit]
                key = [unit.type_of(name) for name in job.tables[tree.unit].key] if unit else []
                published = published_table(connection, table_job(job, table), original, tables[table], whole.get(table), key)
                original, figures[table] = (published.original, published.figures) if published else (None, {})
            penalties[table], wrong = _held_against_source(written, connection, tables[table], original)
            faults += wrong
        found, wrong = count_histories(_asked(job), connection, tables)
        if histories is not None:
            write_parquet(connection, persons_of_histories_sql(tables[tree.unit]), histories)
        wrong += value_faults(written.job, written.originals, connection, tables, whole)
        wrong += few_persons_faults(job, connection, tables)
        told = count_untreated(connection, tables, untreated, tree, job.privacy.k, job.privacy.known_rows)
    if faults := [*faults, *wrong]:
        raise VerificationError(release_name, faults)
    return replace(
        found,
        penalties=penalties,
        published={name: one for name, one in figures.items() if one},
        passed=told.columns,
        together=told.insensitive.tables,
        persons_together=told.insensitive.persons,
        sensitive_together=told.sensitive.tables,
        persons_sensitive_together=told.sensitive.persons,
    )


@dataclass(frozen=True)
class AskedHistories:
    """The promise on histories: table tree, k, rows an intruder knows, and bounds on rows.

    Attributes:
        k: Persons who share each history, at least.
        known_rows: Rows of each table that an intruder knows; None for all rows.
        most_rows: The most rows that a person may have, by table; tables without a bound are not in it.
    """

    tree: TableTree
    k: int
    known_rows: int | None
    most_rows: Mapping[str, int]


def _asked(job: TablesJob) -> AskedHistories:
    bounds = {name: spec.rows.most for name, spec in job.tables.items() if spec.rows}
    return AskedHistories(job.tree, job.privacy.k, job.privacy.known_rows, bounds)


def count_histories(
    asked: AskedHistories, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable]
) -> tuple[TablesRecount, list[str]]:
    """Join written tables to persons in the database; return counts of shared histories, and faults.

    Args:
        tables: The tables by name, each after those that it refers to.
    """
    most_rows, faults = _joined(asked, connection, tables)
    found = replace(_counted(asked, connection, tables), most_rows=most_rows)
    if asked.known_rows is not None:
        found, unexpected = _by_known_rows(asked, connection, tables, found, asked.known_rows)
        faults += unexpected
    elif found.failing or found.smallest < asked.k:
        few = f"{counted(found.failing, 'person')} {verb_of(found.failing, 'have')} a history that fewer than {asked.k:,} share"
        faults.append(f"{few}, the smallest {found.smallest:,}")
    return found, faults


def _counted(asked: AskedHistories, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable]) -> TablesRecount:
    """Count histories, from the tables at the bottom of the tree upwards."""
    tree = asked.tree
    for table in reversed(tree.tables):
        children = [tables[child] for child in tree.tables_below(table) if table in tables[child].references]
        connection.execute(row_texts_sql(tables[table], children))
    [(persons, histories, smallest, failing)] = connection.execute(histories_sql(tables[tree.unit], asked.k)).fetchall()
    records = {table: int(connection.execute(f"SELECT count(*) FROM {read.relation}").fetchall()[0][0]) for table, read in tables.items()}
    return TablesRecount(int(persons), int(histories), int(smallest), int(failing), records)


def _by_known_rows(
    asked: AskedHistories, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable], found: TablesRecount, most: int
) -> tuple[TablesRecount, list[str]]:
    """Count the persons of every choice of at most ``most`` rows.

    Returned are the recount with the persons of the choice that fewest share as its smallest count, and faults.
    """
    unit = tables[asked.tree.unit]
    children = [table for table in tables.values() if unit.name in table.references]
    if children:
        connection.execute(items_sql(unit, children))
    [(rare, choices, least)] = connection.execute(choices_sql(unit, len(children), most), {"k": asked.k}).fetchall()
    faults = (
        [f"{rare:,} of {choices:,} choices of at most {most} rows {verb_of(rare, 'are')} of fewer than {asked.k:,} persons"] if rare else []
    )
    return replace(found, smallest=int(least)), faults


def _joined(
    asked: AskedHistories, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable]
) -> tuple[dict[str, int], list[str]]:
    """Join every table to its persons; return the most rows of a person by table, and reference faults."""
    faults, most_rows = [], {}
    for table, read in tables.items():
        if read.key:
            [(lacking, repeated)] = connection.execute(key_faults_sql(read)).fetchall()
            faults += [f"{counted(lacking, 'row')} of '{table}' {verb_of(lacking, 'have')} no whole key"] if lacking else []
            faults += [f"{counted(repeated, 'key')} of '{table}' {verb_of(repeated, 'name')} several rows"] if repeated else []
        connection.execute(persons_of_rows_sql(read, tables) if read.references else unit_persons_sql(read))
        if read.references:
            [(nobody, differing, most, *lost)] = connection.execute(row_person_faults_sql(read)).fetchall()
            faults += [
                f"{counted(many, 'row')} of '{table}' {verb_of(many, 'refer')} to rows of '{other}' that are not there"
                for other, many in zip(read.references, lost, strict=True)
                if many
            ]
            faults += [f"{counted(nobody, 'row')} of '{table}' {verb_of(nobody, 'are')} nobody's"] if nobody else []
            faults += [f"{counted(differing, 'row')} of '{table}' {verb_of(differing, 'are')} of several persons"] if differing else []
            [(lacking,)] = connection.execute(references_left_out_sql(read)).fetchall()
            faults += (
                [f"{counted(lacking, 'row')} of '{table}' {verb_of(lacking, 'lack')} a reference beside a nearer one"] if lacking else []
            )
            bound, most_rows[table] = asked.most_rows.get(table), int(most)
            if bound is not None and most > bound:
                faults.append(f"a person has {counted(most, 'row')} of '{table}', and rows.most is {bound:,}")
    return most_rows, faults


def _column_faults(written: WrittenTables, table: str) -> list[str]:
    """Return a fault if a table's files do not have the job's published columns in order."""
    spec = written.job.tables[table]
    before = [*spec.linking, *(qid.name for qid in spec.columns.quasi_identifiers), *spec.columns.sensitive]

    def fits(names: Sequence[str]) -> bool:
        others = names[len(before) :]
        if spec.columns.insensitive == REST:
            return names[: len(before)] == before and not set(others) & set(spec.columns.columns_withheld)
        return names == [*before, *spec.columns.insensitive]

    return file_faults_of_table(table, written.files[table], fits, "of the job, in its order")


def _held_against_source(
    written: WrittenTables, connection: duckdb.DuckDBPyConnection, read: ReadTable, original: Original | None
) -> tuple[dict[str, float], list[str]]:
    """Compare the rows of a table with its source; return label losses and faults."""
    table, of_table, linking = read.name, table_job(written.job, read.name), read.linking
    without = f"(SELECT * EXCLUDE ({', '.join(linking)}) FROM {read.relation})" if linking else read.relation
    faults = hidden_label_faults(of_table, RowsInOneDatabase(connection, read.relation)) + _pseudonym_faults(written.job, connection, read)
    if original is None:
        return {}, faults
    if read.key:
        [(same,)] = connection.execute(same_keys_sql(read, original.relation)).fetchall()
        faults += [f"{counted(same, 'key')} of '{table}' {verb_of(same, 'stand')} in the source"] if same else []
    plain = [name for name in pq.read_schema(written.files[table][0]).names if quote(name) not in linking]
    if not plain:
        return {}, faults
    rows = RowsInOneDatabase(connection, without, original.relation)
    truth = compare_with_source(of_table, rows, original, _claim(written, of_table, table))
    faults += [f"'{table}': {fault}" for fault in truth.faults]
    return {name: loss.penalty for name, loss in column_losses(of_table, rows, original).items()}, faults


def _pseudonym_faults(job: TablesJob, connection: duckdb.DuckDBPyConnection, read: ReadTable) -> list[str]:
    """Return faults for published keys that lack the form of the job's pseudonyms."""
    faults = []
    for one in job.tables[read.name].columns.pseudonyms:
        form = treatment_kind(one.treatment).form(one.treatment)
        other = f"NOT regexp_full_match({quote(one.name)}::VARCHAR, {literal(form)})"
        [(found,)] = connection.execute(f"SELECT count(*) FROM {read.relation} WHERE {other}").fetchall()
        faults += (
            [f"{counted(found, 'key')} of '{read.name}' {verb_of(found, 'are')} not of the form that its treatment publishes"]
            if found
            else []
        )
    return faults


def _claim(written: WrittenTables, job: Job, table: str) -> ClaimedLevels | None:
    """Return the levels that a table's labels must have: those stated, or any if levels differ by row.

    None where the release does not state the level of every quasi-identifier.
    """
    names, levels = [qid.name for qid in job.columns.quasi_identifiers], written.levels.get(table, {})
    if written.job.is_local:
        return claimed_levels(names, [], has_suppressed_cells=False)
    said = [level for name in names if (level := levels.get(name)) is not None]
    return claimed_levels(names, [said], has_suppressed_cells=False) if len(said) == len(names) else None
