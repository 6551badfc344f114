"""CSV files become Parquet once, with the types that the job gives; what does not fit is counted and refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from schemas.errors import SourceError, counted
from schemas.job import Job
from tasks.artifacts import Artifact, Store, key_of
from tasks.database import connect, literal, quote

VERSION = 1
TYPES = {"text": "VARCHAR", "integer": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}
FAULTS = {
    "CAST": "not of the type that source.types gives",
    "MISSING COLUMNS": "too few fields",
    "TOO MANY COLUMNS": "too many fields",
    "UNQUOTED VALUE": "a quote that does not close",
    "LINE SIZE OVER MAXIMUM": "a line that is too long",
    "INVALID ENCODING": "bytes that are not UTF-8",
}


def convert(job: Job, path: Path, digest: str, store: Store) -> Artifact:
    """Converts one CSV file to Parquet, in the order of its rows.

    Args:
        job: Gives delimiter, null values and types; a column without a type is text.
        path: The file, plain or compressed with gzip or zstd.
        digest: Its SHA-256.
        store: Gets the Parquet file.

    Raises:
        SourceError: rows with too few or too many fields, fields not of their type (with counts), or no header.
    """
    source = job.source
    types = {name: TYPES.get(dtype, dtype.upper()) for name, dtype in source.types.items()}
    key = key_of(VERSION, digest, source.delimiter, source.null_values, types)

    def write(part: Path) -> int:
        spill = store.folder.parent / "spill"
        with connect(job, spill) as connection:
            try:
                names = _header(connection, job, path)
                columns = {name: types.get(name, "VARCHAR") for name in names}
                connection.execute("SET preserve_insertion_order = true")
                connection.execute(f"CREATE TEMP VIEW source AS {read_sql(job, path, columns, header=True)}")
                connection.execute(f"COPY source TO {literal(str(part))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)")
                faults = connection.execute(REJECTS).fetchall()
                rows = connection.execute(f"SELECT count(*) FROM read_parquet({literal(str(part))})").fetchone()
            except duckdb.OutOfMemoryException:
                raise
            except duckdb.Error:
                raise SourceError.unreadable(str(path), "csv") from None
        if faults:
            raise SourceError.bad_rows(str(path), [_fault(kind, column, count) for kind, column, count in faults])
        assert rows is not None
        return int(rows[0])

    return store.make("converted", key, ".parquet", write)


REJECTS = (
    "SELECT error_type::VARCHAR, column_name, count(DISTINCT line) FROM reject_errors "
    "GROUP BY error_type, column_name ORDER BY error_type, column_name"
)


def read_sql(job: Job, path: Path, columns: Mapping[str, str], *, header: bool) -> str:
    """Returns the statement that reads a CSV file with given columns, setting aside the rows that do not fit."""
    struct = ", ".join(f"{literal(name)}: {literal(dtype)}" for name, dtype in columns.items())
    nulls = ", ".join(literal(text) for text in job.source.null_values)
    return (
        f"SELECT * FROM read_csv({literal(str(path))}, auto_detect = false, header = {str(header).lower()}, "
        f"delim = {literal(job.source.delimiter)}, quote = '\"', escape = '\"', columns = {{{struct}}}, nullstr = [{nulls}], "
        "store_rejects = true, rejects_limit = 0)"
    )


def _header(connection: duckdb.DuckDBPyConnection, job: Job, path: Path) -> list[str]:
    """Reads the names in the first line: one column of whole lines tells how many fields there are, whatever the delimiter."""
    found = connection.execute(
        f"SELECT * FROM read_csv({literal(str(path))}, header = false, all_varchar = true, delim = {literal(job.source.delimiter)}, "
        "quote = '\"', escape = '\"', sample_size = 1, null_padding = true, ignore_errors = true) LIMIT 1"
    ).fetchone()
    names = [] if found is None else [str(name) for name in found]
    if not names or any(name in {"", "None"} for name in names) or len(set(names)) < len(names):
        raise SourceError.bad_rows(str(path), ["the first line does not name every column, each once"])
    return names


def _fault(kind: str, column: str | None, count: int) -> str:
    what = FAULTS.get(kind, "not readable")
    return (
        f"{counted(count, 'row')} with {what}"
        if column is None or kind != "CAST"
        else f"{counted(count, 'row')} with a {quote(column)} {what}"
    )
