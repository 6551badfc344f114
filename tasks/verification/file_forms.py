"""Checks that data files hold only their records: written again, the records give the same bytes.

So nothing can stand where no reader looks: in Parquet key-value metadata, statistics, entries of dictionaries without a record, bytes
between row groups or behind the pages of a column, fields of the footer that no version knows; in CSV another way to quote, to end lines
or to spell a number. It is no part of the recount, which asks what records say. It takes one row group into memory at a time, or one
column of a file.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text, to_working_type
from core.formats.spreadsheets import csv_header, escaped_csv_sql
from schemas.errors.base import counted
from tasks.release.files import BOM, TABLE, Csv, relation_of
from tasks.store.database import literal, quote
from tasks.writing.runs import pays_to_dictionary_encode

BLOCK = 1 << 20
GROUP = 1 << 20
"""Records of a row group, but for the last one of a file."""
CREATED_BY = f"parquet-cpp-arrow version {pa.cpp_version}"


def parquet_faults(files: Sequence[Path], spill: Path, *, same_library: bool) -> list[str]:
    """Return faults of Parquet files: bytes beyond their records, or unequal columns and types.

    Args:
        spill: Folder for a copy of one file at a time.
        same_library: Whether the library of this version wrote them; another one may write the same records in other bytes.
    """
    # Releases were written before with dictionaries of all columns that can have one; a file of that form among others is another form.
    before = same_library and all(map(_has_all_dictionaries, files))
    hidden = sum(not _is_plain(path, spill, same_library=same_library, before=before) for path in files)
    return more_than_records(hidden) + _schema_faults(files)


def _schema_faults(files: Sequence[Path]) -> list[str]:
    try:
        first, *others = (pq.read_schema(path).remove_metadata() for path in files)
    except (OSError, pa.ArrowException):
        return ["a data file cannot be read as Parquet"]
    return [] if all(schema.equals(first) for schema in others) else ["the data files differ in their columns or types"]


def more_than_records(file_count: int) -> list[str]:
    """Return one fault for a number of files that hold more than their records; none for 0."""
    what = "with more in it than records, or with these in another form than they are written in"
    return [f"{counted(file_count, 'data file')} {what}"] if file_count else []


def _is_plain(path: Path, spill: Path, *, same_library: bool, before: bool) -> bool:
    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if groups[:-1] != [GROUP] * len(groups[:-1]) or max(groups, default=0) > GROUP or not _has_plain_schema(schema):
            return False
        if not re.fullmatch(r"parquet-cpp-arrow version [0-9.]{1,20}", metadata.created_by):
            return False
        return not same_library or (metadata.created_by == CREATED_BY and _is_rewritten(path, schema, spill, before=before))
    except (OSError, pa.ArrowException):
        return False


def _has_plain_schema(schema: pa.Schema) -> bool:
    """Return whether all columns are plain, without metadata; the file's may be Arrow's schema alone."""
    if set(schema.metadata or ()) - {b"ARROW:schema"} or any(field.metadata or not field.nullable for field in schema):
        return False
    return not any(pt.is_nested(field.type) or pt.is_dictionary(field.type) for field in schema)


def _is_rewritten(path: Path, schema: pa.Schema, spill: Path, *, before: bool) -> bool:
    """Return whether the records of a Parquet file, written again, give the same bytes.

    They are written with dictionaries where the file has them, and text as it is read, or plain.
    """
    held, able = _dictionaries(path)
    if held != (able if before else _asked(path, able)):
        return False
    texts = [field.name for field in schema if field.name in held and is_text(field.type)]
    copy = spill / "again.parquet"
    try:
        used = _write_again(path, schema, held, texts, copy)
        if same_bytes(path, copy):
            return used
        # A column that is no dictionary in the file is another number of bytes as one.
        coded = _of_equal_size(path, copy, texts)
        if len(coded) == len(texts):
            return False
        used = _write_again(path, schema, held, coded, copy)
        return same_bytes(path, copy) and used
    finally:
        copy.unlink(missing_ok=True)


def _has_all_dictionaries(path: Path) -> bool:
    try:
        held, able = _dictionaries(path)
    except (OSError, pa.ArrowException):
        return False
    return held == able


def _dictionaries(path: Path) -> tuple[list[str], list[str]]:
    """Return the dictionary columns of a file's first row group, and those that can have a dictionary."""
    metadata = pq.read_metadata(path)
    if not metadata.num_row_groups:
        return [], []
    group = metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    held = [column.path_in_schema for column in columns if column.has_dictionary_page]
    return held, [column.path_in_schema for column in columns if column.physical_type != "BOOLEAN"]


def _asked(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns whose values are worth a dictionary."""
    with pq.ParquetFile(path) as file:
        return [name for name in names if pays_to_dictionary_encode(_worked_on(file.read([name], use_threads=False).column(name)))]


def _worked_on(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([to_working_type(part) for part in column.chunks] or [to_working_type(pa.array([], column.type))])


def _of_equal_size(path: Path, copy: Path, names: Sequence[str]) -> list[str]:
    one, other = pq.read_metadata(path), pq.read_metadata(copy)
    sizes = [
        [[group.column(place).total_compressed_size for group in map(of.row_group, range(of.num_row_groups))] for of in (one, other)]
        for place in range(one.num_columns)
    ]
    places = {one.schema.column(place).path: place for place in range(one.num_columns)}
    return [name for name in names if sizes[places[name]][0] == sizes[places[name]][1]]


def _write_again(path: Path, schema: pa.Schema, held: Sequence[str], coded: Sequence[str], copy: Path) -> bool:
    """Write the records of a Parquet file again; return whether its dictionaries are as they should be.

    They hold the values of the records and no others, in a known order.
    """
    entries = _Entries()
    declared = base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()
    with pq.ParquetFile(path, read_dictionary=list(coded)) as file:
        written = pa.schema([field.remove_metadata() for field in file.schema_arrow])
        kept = {"compression": "zstd", "write_statistics": False, "store_schema": False}
        with pq.ParquetWriter(copy, written, use_dictionary=list(held), **kept) as writer:
            writer.add_key_value_metadata({"ARROW:schema": declared})
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, use_threads=False)
                columns = [column.combine_chunks() for column in group.columns]
                entries.add(columns)
                writer.write_table(pa.table(columns, schema=written), row_group_size=max(len(group), 1))
    return entries.are_due()


class _Entries:
    """Dictionary entries of a file; row groups that share a dictionary are looked at together."""

    def __init__(self) -> None:
        self._seen: list[_Dictionary] = []

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add the columns of a row group."""
        for place, column in enumerate(columns):
            if isinstance(column, pa.DictionaryArray):
                self._of(place, column.dictionary).use(column.indices.drop_null().to_numpy())

    def _of(self, place: int, entries: pa.Array) -> _Dictionary:
        for known in self._seen:
            if known.place == place and known.entries.equals(entries):
                return known
        self._seen.append(_Dictionary(place, entries))
        return self._seen[-1]

    def are_due(self) -> bool:
        """Return whether each dictionary entry is used by a record, and all have a known order.

        Another order could hide a message.
        """
        return all(known.used == len(known.entries) and (known.appears or known.ascends) for known in self._seen)


@dataclass
class _Dictionary:
    """The dictionary of one column.

    Attributes:
        used: How many of them stand in the records so far.
        appears: Whether they came in the order in which they stand.
    """

    place: int
    entries: pa.Array
    used: int = 0
    appears: bool = True

    def __post_init__(self) -> None:
        self._known = np.zeros(len(self.entries), np.bool_)

    def use(self, positions: NDArray[np.integer[Any]]) -> None:
        """Add the dictionary positions of the next records."""
        found, first = np.unique(positions, return_index=True)
        new = found[np.argsort(first)]
        new = new[~self._known[new]]
        self.appears &= bool(np.array_equal(new, np.arange(self.used, self.used + len(new))))
        self._known[new] = True
        self.used += len(new)

    @property
    def ascends(self) -> bool:
        """Whether the entries are in the order of their bytes."""
        texts = self.entries.cast(pa.large_binary())
        return not pc.any(pc.less_equal(texts[1:], texts[:-1])).as_py()


def same_bytes(one: Path, other: Path) -> bool:
    """Return whether two files have the same bytes."""
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        blocks = zip_longest(iter(lambda: first.read(BLOCK), b""), iter(lambda: second.read(BLOCK), b""))
        return all(left == right for left, right in blocks)


def csv_faults(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], layout: Csv, spill: Path, bom: bool | None) -> list[str]:
    """Return a fault if CSV files are not, byte for byte, as their records would be written.

    Args:
        layout: Their delimiter, and the types of their columns.
        spill: Folder for a copy of one file at a time.
        bom: Whether they begin with the mark of UTF-8; None where no job says so.
    """
    copy = spill / "again.csv"
    hidden = 0
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET preserve_insertion_order = true")
    for path in files:
        try:
            marked = _begins_with_mark(path) if bom is None else bom
            _write_csv_again(connection, path, layout, copy, marked)
            hidden += not same_bytes(path, copy)
        except (OSError, ValueError, duckdb.InvalidInputException, duckdb.ConversionException):
            hidden += 1
        finally:
            copy.unlink(missing_ok=True)
    return more_than_records(hidden)


def _begins_with_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == BOM.encode()


def _write_csv_again(connection: duckdb.DuckDBPyConnection, path: Path, layout: Csv, copy: Path, marked: bool) -> None:
    texts = [name for name, dtype in layout.types.items() if dtype == "VARCHAR"]
    columns = ", ".join(f"{escaped_csv_sql(quote(name))} AS {quote(name)}" if name in texts else quote(name) for name in layout.types)
    forced = f", FORCE_QUOTE ({', '.join(map(quote, texts))})" if texts else ""
    body = copy.with_suffix(".body")
    try:
        connection.execute(
            f"COPY (SELECT {columns} FROM {relation_of(connection, [path], layout)}) TO {literal(str(body))} "
            f"(FORMAT csv, HEADER false, DELIMITER {literal(layout.delimiter)}, QUOTE '\"', ESCAPE '\"', NULLSTR ''{forced})"
        )
        with copy.open("wb") as whole, body.open("rb") as records:
            whole.write(((BOM if marked else "") + csv_header(list(layout.types), layout.delimiter)).encode())
            copyfileobj(records, whole, BLOCK)
    finally:
        body.unlink(missing_ok=True)


HEADERS = 3 * 4096
"""Bytes before the first block of a DuckDB file."""
MORE = {
    "tables": f"SELECT count(*) FROM duckdb_tables() WHERE database_name = 'written' AND (schema_name, table_name) <> ('main', '{TABLE}')",
    "views": "SELECT count(*) FROM duckdb_views() WHERE database_name = 'written' AND NOT internal",
    "schemas": "SELECT count(*) FROM duckdb_schemas() WHERE database_name = 'written' AND schema_name <> 'main' AND NOT internal",
    "sequences": "SELECT count(*) FROM duckdb_sequences() WHERE database_name = 'written'",
    "macros": "SELECT count(*) FROM duckdb_functions() WHERE database_name = 'written' AND NOT internal",
    "types": "SELECT count(*) FROM duckdb_types() WHERE database_name = 'written' AND NOT internal",
    "indexes": "SELECT count(*) FROM duckdb_indexes() WHERE database_name = 'written'",
    "constraints": "SELECT count(*) FROM duckdb_constraints() WHERE database_name = 'written'",
    "comments": """
        SELECT (SELECT count(*) FROM duckdb_tables() WHERE database_name = 'written' AND (comment IS NOT NULL OR len(map_keys(tags)) > 0))
        + (SELECT count(*) FROM duckdb_schemas() WHERE database_name = 'written' AND comment IS NOT NULL)
        + (SELECT count(*) FROM duckdb_databases() WHERE database_name = 'written' AND comment IS NOT NULL)
        + (SELECT count(*) FROM duckdb_columns() WHERE database_name = 'written' AND NOT internal AND comment IS NOT NULL)
    """,
    "defaults or generated columns": """
        SELECT count(*) FROM duckdb_columns()
        WHERE database_name = 'written' AND NOT internal AND (column_default IS NOT NULL OR is_generated OR NOT is_nullable)
    """,
}
"""What a file may hold beside the table, and how many there are of it."""


def faults_outside_table(connection: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    """Return faults for what the DuckDB file attached as ``written`` holds beside its table."""
    more = [words for words, statement in MORE.items() if connection.execute(statement).fetchall() != [(0,)]]
    faults = [f"the DuckDB file holds {', '.join(more)} beside the table '{TABLE}'"] if more else []
    sizes = "SELECT block_size, total_blocks, free_blocks FROM pragma_database_size() WHERE database_name = 'written'"
    [(size, blocks, free)] = connection.execute(sizes).fetchall()
    if free or path.stat().st_size != HEADERS + size * blocks:
        faults.append("the DuckDB file holds blocks or bytes that belong to no table")
    return faults
