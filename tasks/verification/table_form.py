"""Whether a DuckDB file holds nothing but the table of a release: its catalogue and its blocks. What the table says, the recount sees."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tasks.release.files import TABLE

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
    """Returns what is wrong with the form of a DuckDB file that is attached as ``written``."""
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
