"""Reading of a release's data files (Parquet, CSV or DuckDB) by DuckDB."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from core.formats.spreadsheets import unescape_csv_text, unescaped_csv_sql
from schemas.errors.base import StorageError, VerificationError
from schemas.reading.regular_files import header_lines
from tasks.release.manifest import check_no_links
from tasks.source.locations import Partition, columns_named_by_folders, relation_of_files
from tasks.store.database import attached_sql, files_sql, is_file_fault, is_short_of_files, literal, quote
from tasks.store.files import MOST_LISTED, file_digest

SUFFIXES = (".parquet", ".csv", ".duckdb")
TABLE = "release"
BOM = "\ufeff"
DATA = "data"


class Csv(NamedTuple):
    """Delimiter and column types by which a release's CSV files are read.

    Attributes:
        delimiter: The character between fields.
        types: DuckDB's type of each column; text where nothing is known.
    """

    delimiter: str = ","
    types: Mapping[str, str] = {}


TEXT = Csv()


def data_files(release: Path) -> list[Path]:
    """Return the data files of a release folder, sorted; raise for links, mixed formats or no files."""
    check_no_links(release)
    found = sorted(path for path in (release / DATA).rglob("*") if path.suffix in SUFFIXES and path.is_file()) if release.is_dir() else []
    if not found and (release / "manifest.json").is_file():
        raise VerificationError(f"'{release}'", ["all data files of the manifest missing"])
    if not found:
        raise StorageError.not_a_release(str(release), "it has no data/*.parquet")
    if len({path.suffix for path in found}) > 1:
        raise StorageError.not_a_release(str(release), "its data files are of several formats")
    return found


def is_listed(path: Path, digest: str, size: int | None, most_bytes: int = MOST_LISTED) -> bool:
    """Return whether a file of a release has the digest and size that its manifest lists.

    A file of another size is not read.

    Args:
        path: The file.
        digest: Its SHA-256, as the manifest has it.
        size: Its bytes, as the manifest has them; None where an earlier version made it.
        most_bytes: Bytes that are read where the manifest does not say how many there are.
    """
    try:
        there = path.lstat().st_size
        return (there <= most_bytes if size is None else there == size) and file_digest(path) == digest
    except OSError:
        return False


def partition_of(path: Path) -> Partition:
    """Return (name, value, ``text``) of each column that folders between ``data`` and a file name."""
    folders = path.parts[:-1]
    # The last one of that name: the release itself may lie below a folder called data.
    below = len(folders) - folders[::-1].index(DATA) if DATA in folders else len(folders)
    return tuple((name, value, "text") for name, value in columns_named_by_folders(folders[below:]).items())


def relation_of(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], layout: Csv = TEXT) -> str:
    """Return the SQL relation of data files; a DuckDB file is checked and attached to the connection."""
    match files[0].suffix:
        case ".csv":
            return _csv_relation(files, layout)
        case ".duckdb":
            connection.execute(f"ATTACH OR REPLACE {attached_sql(files[0])} AS written (READ_ONLY)")
            _check_table(connection, files[0])
            return f"written.{TABLE}"
        case _:
            return relation_of_files([(str(path), partition_of(path)) for path in files])


def _check_table(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise ``VerificationError`` unless a DuckDB file holds a plain table, of typed columns only.

    A view's rows depend on when it is read. A case-insensitive column would merge classes that others, who copy the file, see as two.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {TABLE} (nothing INTEGER)")
    own = "SELECT sql FROM duckdb_tables() WHERE database_name = '{}' AND schema_name = 'main' AND table_name = '{}'"
    held = connection.execute(own.format("written", TABLE)).fetchall()
    if held:
        columns = connection.execute(f"DESCRIBE written.{TABLE}").fetchall()
        # Said again as the plain table of the same columns: DuckDB spells both statements in one way.
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {TABLE} ({', '.join(f'{quote(name)} {dtype}' for name, dtype, *_ in columns)})")
    [(plain,)] = connection.execute(own.format("temp", TABLE)).fetchall()
    connection.execute(f"DROP TABLE temp.{TABLE}")
    if held != [(plain.replace("CREATE TEMP TABLE", "CREATE TABLE", 1),)]:
        raise VerificationError(f"'{path.parent.parent}'", [f"the DuckDB file holds no plain table '{TABLE}', of columns and nothing else"])


def layout_of(files: Sequence[Path], types: Mapping[str, str], delimiter: str = ",") -> Csv:
    """Return delimiter, found in the first line, and given types of a release's CSV files.

    Args:
        files: Of any format.
        types: By column, as the manifest has them; empty without one.
        delimiter: Used where no delimiter makes the first line match the manifest's columns.
    """
    if files[0].suffix != ".csv" or not types:
        return Csv(delimiter, types)
    try:
        with files[0].open(encoding="utf-8-sig", newline="") as file:
            line = next(header_lines(file), "")
        marks = [mark for mark in dict.fromkeys(line) if not mark.isalnum() and mark not in '"\r\n']
        return Csv(next((mark for mark in marks if csv_names(files[0], mark) == list(types)), delimiter), types)
    except (ValueError, csv.Error):
        # Bytes that are no text: whoever counts the file says so.
        return Csv(delimiter, types)


def csv_names(path: Path, delimiter: str) -> list[str]:
    """Return the column names in the first line of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [unescape_csv_text(name) for name in next(csv.reader(header_lines(file), delimiter=delimiter), [])]


def _csv_relation(files: Sequence[Path], layout: Csv) -> str:
    try:
        headers = [csv_names(path, layout.delimiter) for path in files]
    except (OSError, ValueError, csv.Error):
        # A decoding error carries the bytes of the file. Callers expect errors of DuckDB, of which they tell the kind alone.
        raise duckdb.InvalidInputException from None
    # Given its columns, DuckDB goes by position: in a file with another order it would read one column as another.
    if any(names != headers[0] or not names for names in headers):
        raise duckdb.InvalidInputException
    types = {name: layout.types.get(name, "VARCHAR") for name in headers[0]}
    struct = ", ".join(f"{literal(name)}: {literal(dtype)}" for name, dtype in types.items())
    columns = ", ".join(
        f"{unescaped_csv_sql(quote(name))} AS {quote(name)}" if dtype == "VARCHAR" else quote(name) for name, dtype in types.items()
    )
    # Null and empty text are told apart by quotes alone, and nothing is sniffed: what content suggests must not decide over types.
    return (
        f"(SELECT {columns} FROM read_csv({files_sql(files)}, auto_detect = false, header = true, delim = {literal(layout.delimiter)}, "
        f"quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, columns = {{{struct}}}, hive_partitioning = false, "
        # Else DuckDB would take a release below a folder a.gz?b for packed.
        "compression = 'none'))"
    )


@contextmanager
def file_error(release_name: str) -> Iterator[None]:
    """Raise ``VerificationError`` without values for DuckDB's and Arrow's errors, except lack of memory."""
    try:
        yield
    # Says nothing of the files; where the database was opened it becomes an error of storage.
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, pa.ArrowInvalid) as error:
        if is_short_of_files(error) or is_file_fault(error):
            raise
        # The kind alone, because their words hold values.
        raise VerificationError(release_name, [f"the files cannot be counted ({type(error).__name__})"]) from None
