"""Rows of a release and its source for a recount, in one database or in parts counted by tasks."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.recount.classes import column_faults
from core.recount.groups import Groups, with_replaced_values_sql
from core.recount.labels.value_scales import is_text_type
from schemas.job.job import Job
from schemas.release.manifest import published_payload, published_qids
from tasks.release.files import partition_of

Side = Literal["release", "source"]
JOINED_COLUMNS = 16
"""Columns at most that one statement joins: each join wants memory for every thread, and there may be hundreds of columns."""


class ReleaseRows(ABC):
    """Interface to count the rows of a release and of its source, as SQL relations of one database.

    Attributes:
        connection: A database for what was counted.
        release: What statements read the data files as.
        source: The same of the source; empty without one.
    """

    connection: duckdb.DuckDBPyConnection
    release: str
    source: str

    @abstractmethod
    def grouped(self, side: Side, groups: Groups) -> str:
        """Count grouped rows of release or source; return SQL of a relation, one row per group."""

    def expect(self, _side: Side, _groups: Sequence[Groups]) -> None:
        """Announce groups that will be counted, so that one scan can serve all; do nothing by default."""
        return

    @abstractmethod
    def relation_of_query(self, statement: str, *sides: Side) -> str:
        """Return the SQL relation of a query's result, for queries that need all rows of release or source."""

    @abstractmethod
    def replace_source_values(self, tables: Mapping[str, pa.Table], expressions: Sequence[str], join_clauses: Sequence[str]) -> None:
        """Make all later counts read published values, by SQL expressions and joins with these tables.

        Args:
            expressions: As for ``core.recount.groups.with_replaced_values_sql``.
        """

    @abstractmethod
    def types(self, side: Side) -> dict[str, str]:
        """Return DuckDB's types of the columns of release or source."""

    def records(self, side: Side) -> int:
        """Return the number of records of release or source."""
        [(records,)] = self.connection.execute(f"FROM {self.grouped(side, Groups(getattr(self, side)))}").fetchall()
        return int(records)


class RowsInOneDatabase(ReleaseRows):
    """Rows that one database reads itself, with all cores of the machine.

    Attributes:
        wide: Whether whole records are read by one thread, one side after the other: each holds a row group of all columns, and buffers.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, release: str, source: str = "", *, wide: bool = False) -> None:
        self.connection, self.release, self.source, self.wide = connection, release, source, wide
        self._tables = 0

    def grouped(self, _side: Side, groups: Groups) -> str:
        """Return a GROUP BY query as SQL: a subquery, or a table if it must run in one thread."""
        for statement in groups.before:
            self.connection.execute(statement)
        if not (groups.alone or (groups.wide and self.wide)):
            return f"({groups.sql})"
        # Afterwards there are as many threads as the job asked for.
        [(threads,)] = self.connection.execute("SELECT current_setting('threads')").fetchall()
        self._tables += 1
        self.connection.execute("SET threads = 1")
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE grouped_{self._tables} AS {groups.sql}")
        self.connection.execute(f"SET threads = {threads:d}")
        return f"grouped_{self._tables}"

    def relation_of_query(self, statement: str, *_: Side) -> str:
        """Return the query in parentheses, as a relation to select from."""
        return f"({statement})"

    def replace_source_values(self, tables: Mapping[str, pa.Table], expressions: Sequence[str], join_clauses: Sequence[str]) -> None:
        """Create tables of published values, and join them to the source in all later reads."""
        for name, table in tables.items():
            self.connection.register("made", table)
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM made")
            self.connection.unregister("made")
        self.source = relation_with_values(self.connection, self.source, expressions, join_clauses)

    def types(self, side: Side) -> dict[str, str]:
        """Return DuckDB's types of the columns of release or source."""
        return types_of(self.connection, getattr(self, side))


def relation_with_values(
    connection: duckdb.DuckDBPyConnection, source: str, expressions: Sequence[str], join_clauses: Sequence[str]
) -> str:
    """Return SQL of a source with replaced values; of more than 16 columns, as a temporary table.

    Every join holds buffers for each thread. So of many columns a few are replaced at a time, in tables that may spill.

    Args:
        source: As for ``core.recount.groups.with_replaced_values_sql``.
        expressions: As there.
    """
    if len(expressions) <= JOINED_COLUMNS:
        return with_replaced_values_sql(source, expressions, join_clauses)
    for first in range(0, len(expressions), JOINED_COLUMNS):
        some = slice(first, first + JOINED_COLUMNS)
        replaced = with_replaced_values_sql(source, expressions[some], join_clauses[some])
        name = f"replaced_{hashlib.sha256(replaced.encode()).hexdigest()[:16]}"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {replaced}")
        if first:
            connection.execute(f"DROP TABLE {source}")
        source = name
    return source


FLOATING = ("FLOAT", "DOUBLE")
"""DuckDB's types that hold NaN, which is no value."""


def types_of(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Return DuckDB's types of the columns of an SQL relation, by name."""
    return {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


WRONG_COLUMNS = "a data file's columns are not those of the job, in its order and types"

HELD, BUFFERS = 5, 1 << 18
"""Row groups that DuckDB may hold of a file for each thread, on its way from pages to hashes, and bytes of buffers for each column."""


def have_wide_records(job: Job, files: Sequence[Path]) -> bool:
    """Return whether all threads reading whole Parquet records would exceed half the job's memory.

    Args:
        files: The data files, of which one has row groups like another.
    """
    if files[0].suffix != ".parquet":
        return False
    footer = pq.read_metadata(files[0])
    largest = max((footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)), default=0)
    return exceeds_half_memory(job, largest, footer.num_columns)


def exceeds_half_memory(job: Job, largest: int, column_count: int) -> bool:
    """Return whether all threads reading row groups of ``largest`` bytes would exceed half the memory."""
    threads = job.threads or len(os.sched_getaffinity(0))
    return bool(threads * (HELD * largest + BUFFERS * column_count) > job.memory // 2)


def column_faults_of(job: Job, files: Sequence[Path]) -> list[str]:
    """Return faults of Parquet files' columns as sentences: names, order, types, partition folders."""
    faults: list[str] = []
    for path in files:
        folders = [name for name, *_ in partition_of(path)]
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowException):
            faults.append("a data file cannot be read as Parquet")
            continue
        names = schema.names
        faults += column_faults(job, [*names, *folders])
        if folders != job.output.partition_by or set(folders) & set(names):
            faults.append("a data file is not in the folders that output.partition_by asks for")
        if faults:
            continue
        # A masked column is text.
        text = [name for name in published_qids(job) if job.suppression.as_text and name in names]
        if names != [name for name in _expected(job, names) if name not in folders] or not all(
            is_text_type(schema.field(name).type) for name in text
        ):
            faults.append(WRONG_COLUMNS)
    # Once each, however many files have it.
    return list(dict.fromkeys(faults))


def read_column_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """Return faults of the columns of CSV and other files as sentences, by types that DuckDB reads."""
    types = types_of(connection, source)
    names = list(types)
    if faults := column_faults(job, names):
        return faults
    masked = job.suppression.as_text and any(types[name] != "VARCHAR" for name in published_qids(job))
    return [WRONG_COLUMNS] if masked or names != _expected(job, names) else []


def _expected(job: Job, names: Sequence[str]) -> list[str]:
    qids, payload = published_qids(job), published_payload(job)
    return [*qids, *([name for name in names if name not in qids] if payload is None else payload)]
