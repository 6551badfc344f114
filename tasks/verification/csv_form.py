"""Whether CSV files hold nothing but their records: written again from what was read of them, they are the same bytes.

Another way to quote, to end lines or to spell a number says the same to most readers, and can say something else to one who looks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from core.formats.spreadsheets import csv_header, escaped_csv_sql
from tasks.release.files import BOM, TABLE, Csv, relation_of
from tasks.store.database import literal, quote
from tasks.verification.parquet_form import more_than_records, same_bytes


def csv_faults(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], layout: Csv, spill: Path, bom: bool | None) -> list[str]:
    """Return what is wrong with the form of the CSV files of a release.

    Args:
        connection: The database.
        files: The files.
        layout: Their delimiter, and the types of their columns.
        spill: Folder for a copy of one of them at a time.
        bom: Whether they begin with the mark of UTF-8; None where no job says so.
    """
    copy = spill / "again.csv"
    hidden = 0
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET preserve_insertion_order = true")
    for path in files:
        try:
            marked = _begins_with_mark(path) if bom is None else bom
            _write_again(connection, path, layout, copy, marked)
            hidden += not same_bytes(path, copy)
        except (OSError, ValueError, duckdb.InvalidInputException, duckdb.ConversionException):
            hidden += 1
        finally:
            copy.unlink(missing_ok=True)
    return more_than_records(hidden)


def _begins_with_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == BOM.encode()


def _write_again(connection: duckdb.DuckDBPyConnection, path: Path, layout: Csv, copy: Path, marked: bool) -> None:
    texts = [name for name, dtype in layout.types.items() if dtype == "VARCHAR" or dtype.startswith("ENUM")]
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
            while block := records.read(1 << 20):
                whole.write(block)
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


def table_faults(connection: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    """Return what is wrong with the form of a DuckDB file that is attached as ``written``."""
    more = [words for words, statement in MORE.items() if _count(connection, statement)]
    faults = [f"the DuckDB file holds {', '.join(more)} beside the table '{TABLE}'"] if more else []
    found = connection.execute(
        "SELECT block_size, total_blocks, free_blocks FROM pragma_database_size() WHERE database_name = 'written'"
    ).fetchall()
    [(size, blocks, free)] = found
    if free or path.stat().st_size != HEADERS + size * blocks:
        faults.append("the DuckDB file holds blocks or bytes that belong to no table")
    return faults


def _count(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    [(count,)] = connection.execute(statement).fetchall()
    return int(count)
