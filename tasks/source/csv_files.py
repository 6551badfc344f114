"""CSV files, converted to Parquet once with the types of the job; values that do not fit are refused."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.formats.record_counts import RecordCount, count_records
from schemas.errors.base import SkaldError, SourceError, StorageError, counted
from schemas.errors.tables import FileError
from schemas.job.columns import REST
from schemas.job.job import Job
from schemas.job.source import COMPRESSION, UTF8, Source
from schemas.reading.regular_files import MOST_HEADER, header_lines
from schemas.reading.typed_texts import accepted_words, typed_sql
from tasks.source.batches import GROUP_ROWS, check_row_count, equal_groups
from tasks.source.locations import Located, Readable
from tasks.source.unpacked import MOST_VALUE
from tasks.store.database import connect, files_sql, literal, quote, write_parquet
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("csv", __name__)
BUFFER, LARGE_BUFFER = 8_000_000, MOST_VALUE + 500_000
"""Bytes that DuckDB reads at a time, and as many where a record needs more: one longer than two buffers it loses without a word."""
MARGIN = 1_000
"""By how much a buffer is longer than a record, at least."""
BLOCK = 1 << 20
"""Bytes that are counted at a time."""
DELIMITERS = (";", "\t", "|", ",")
"""Those that a header is looked through for where the job's own parts nothing, the unlikely ones in names first."""
FAULTS = {
    "MISSING COLUMNS": "too few fields",
    "TOO MANY COLUMNS": "too many fields",
    "UNQUOTED VALUE": "a quote that does not close",
    "LINE SIZE OVER MAXIMUM": "a line that is too long",
    "INVALID ENCODING": "bytes that are not UTF-8 (source.encoding says what else they are)",
}
UNSOUND = "a quote in the wrong place, or lines that do not all end alike"
"""What is wrong with a file in which DuckDB finds no rows."""


def csv_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Return a CSV source file as Parquet, converted unless the store has it by content and settings."""
    assert file.path is not None
    made = convert_csv(job, file.path, file.name, file.digest, store)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256, converted_file=made)


def convert_csv(job: Job, path: Path, name: str, digest: str, store: Store) -> Artifact:
    """Return the artefact of a CSV file as Parquet in row order, converted if missing; raise if unfit.

    Args:
        job: Gives delimiter, null values, encoding, spelling and types; a column without a type is text.
        path: The file, plain or compressed with gzip or zstd.
        name: What the user calls it.
    """
    return store.make("converted", converted_key(job, digest), ".parquet", lambda part: _convert(job, path, name, part, store))


def _convert(job: Job, path: Path, name: str, part: Path, store: Store) -> int:
    with _in_utf8(job.source.encoding, path, name, store) as readable:
        return convert_rows(job, readable, name, part, store)


@contextmanager
def _in_utf8(encoding: str, path: Path, name: str, store: Store) -> Iterator[Path]:
    """Yield a file in UTF-8: the given one if it is, else a private copy that is gone in the end."""
    if encoding == UTF8:
        yield path
        return
    copy = private_folder(store.folder.parent / "spill" / "csv") / f"{secrets.token_hex(8)}.csv"
    try:
        write_in_utf8(path, name, encoding, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def write_in_utf8(path: Path, name: str, encoding: str, copy: Path) -> None:
    """Write a text file's characters to ``copy`` in UTF-8; raise ``FileError`` if not in its encoding.

    Args:
        path: The file, plain or compressed with gzip or zstd.
        name: What the user calls it.
        copy: Is written, plain.
    """
    try:
        with copy.open("wb") as made:
            for characters in _characters(path, name, encoding):
                made.write(characters.encode())
    except OSError as error:
        raise StorageError.not_writable(str(copy.parent), error.strerror or "unknown reason") from None


def _characters(path: Path, name: str, encoding: str) -> Iterator[str]:
    try:
        with unpacked_stream(path) as stream, io.TextIOWrapper(stream, encoding, newline="") as text:
            while characters := text.read(BLOCK):
                yield characters
    except UnicodeError:
        raise FileError.wrong_encoding(name, encoding) from None
    except OSError:
        raise SourceError.unreadable(name, "csv") from None


def converted_key(job: Job, digest: str) -> Key:
    """Return the key of the Parquet file that a CSV file becomes."""
    source = job.source
    return STEP.key(digest, source.delimiter, source.null_values, source.types, source.encoding, source.spelling)


def join_csv(job: Job, converted_ranges: Sequence[Artifact], key: Key, store: Store) -> Artifact:
    """Join converted ranges of a CSV file into one Parquet artefact, equal to one converted whole.

    Args:
        job: Gives delimiter, null values and types.
        converted_ranges: In the order of the records.
    """

    def write(part: Path) -> int:
        paths = [store.path(one) for one in converted_ranges]
        # In batches of a row group each: DuckDB ends row groups where the pieces that it is given end.
        joined = pa.RecordBatchReader.from_batches(pq.read_schema(paths[0]), _row_groups(paths))
        with connect(job, store.folder.parent / "spill") as connection, joined as reader:
            connection.execute("SET preserve_insertion_order = true")
            connection.register("joined", reader)
            _copy(connection, "FROM joined", part)
        return check_row_count(part, sum(one.rows for one in converted_ranges))

    return store.make("converted", key, ".parquet", write)


def _row_groups(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Yield the records of Parquet files in order, a row group at a time."""
    batches = (batch for path in paths for batch in pq.ParquetFile(path).iter_batches(GROUP_ROWS))
    for group in equal_groups(batches, GROUP_ROWS):
        yield from group.combine_chunks().to_batches()


def _copy(connection: duckdb.DuckDBPyConnection, statement: str, part: Path) -> int:
    return write_parquet(connection, statement, part, "COMPRESSION zstd", f"ROW_GROUP_SIZE {GROUP_ROWS}")


def convert_rows(job: Job, path: Path, name: str, part: Path, store: Store) -> int:
    """Write a CSV file's rows as Parquet, in their order; return their number, raise if some do not fit.

    Args:
        job: Gives delimiter, null values and types.
        name: What the user calls it.
        store: Beside it there is room to spill.
    """
    names = _header(job, path, name)
    there = _count(job, path, name, len(names))
    read = read_csv_sql(job, path, names, BUFFER if there.longest < BUFFER - MARGIN else LARGE_BUFFER)
    try:
        with connect(job, store.folder.parent / "spill", shared=True) as connection:
            # A chunk is a range of rows: threads must not mix them, else the same file had other chunks each time.
            connection.execute("SET preserve_insertion_order = true")
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE TEMP VIEW texts AS {read}")
            try:
                rows = _copy(connection, _typed(names, job.source), part)
            except duckdb.InvalidInputException as error:
                if MISFIT not in str(error):
                    raise
                raise SourceError.bad_rows(name, _all_faults(connection, names, job.source)) from None
            faults = connection.execute(REJECTS).fetchall()
    except duckdb.InvalidInputException:
        raise SourceError.bad_rows(name, [UNSOUND]) from None
    except duckdb.Error:
        raise SourceError.unreadable(name, "csv") from None
    if refused := _error_of(faults, name, len(names), there.records - 1):
        raise refused
    if rows != there.records - 1:
        raise FileError.records_lost(name, there.records - 1, rows)
    return rows


def _typed(names: Sequence[str], source: Source) -> str:
    """Return the SQL that converts texts to types, and fails at the first text that does not fit."""
    types = source.types
    typed = {name: typed_sql(quote(name), dtype, source.spelling) for name, dtype in types.items() if dtype != "text"}
    columns = [
        f"CASE WHEN {quote(name)} IS NOT NULL THEN coalesce({typed[name]}, error('{MISFIT}')) END AS {quote(name)}"
        if name in typed
        else quote(name)
        for name in names
    ]
    return f"SELECT {', '.join(columns)} FROM texts"


def _all_faults(connection: duckdb.DuckDBPyConnection, names: Sequence[str], source: Source) -> list[str]:
    """Count the texts that do not fit their types, and the rows with too few or too many fields."""
    types, spelling = source.types, source.spelling
    typed = [name for name in names if types.get(name, "text") != "text"]
    bad = [f"{quote(name)} IS NOT NULL AND {typed_sql(quote(name), types[name], spelling)} IS NULL" for name in typed]
    counts = ", ".join(f"count(*) FILTER ({one}), min(number, {SHOWN}) FILTER ({one})" for one in bad)
    [found] = connection.execute(f"SELECT {counts} FROM (SELECT row_number() OVER () AS number, * FROM texts)").fetchall()
    ragged = connection.execute(REJECTS).fetchall()
    faults = [_fault(*one) for one in ragged]
    for name, count, first in zip(typed, found[::2], found[1::2], strict=True):
        if count:
            what = f"a {quote(name)} not of the type that source.types gives, which takes {accepted_words(types[name], spelling)}"
            # Rows that are left out are not numbered, so that others would be numbered wrongly.
            faults.append(_row_fault(what, count, [] if ragged else first))
    return faults


def _error_of(faults: Sequence[tuple[str, int, Sequence[int]]], name: str, columns: int, records: int) -> SkaldError | None:
    """Return the error of the rows that DuckDB rejected; None if there are none.

    The file has so many records under a header of so many columns.
    """
    if many := _before_the_header(faults, records):
        return FileError.before_header(name, columns, many)
    return SourceError.bad_rows(name, [_fault(*one) for one in faults]) if faults else None


def _before_the_header(faults: Sequence[tuple[str, int, Sequence[int]]], records: int) -> int:
    """Return how many rows have more fields than the first line; 0 unless nearly all have."""
    [(kind, more, _)] = faults if len(faults) == 1 else [("", 0, ())]
    return more if kind == "TOO MANY COLUMNS" and more > 1 and more * 2 > records else 0


def _count(job: Job, path: Path, name: str, columns: int) -> RecordCount:
    """Count the records of a CSV file in its bytes, the header included."""
    try:
        with unpacked_stream(path) as stream:
            there = count_records(iter(lambda: stream.read(BLOCK), b""), job.source.delimiter, columns)
    except OSError:
        raise SourceError.unreadable(name, "csv") from None
    if there.longest > MOST_VALUE:
        raise FileError.long_records(name, there.longest, MOST_VALUE)
    return there


MISFIT = "no value of its type"
"""What DuckDB is told to say at a text that is none; in its own words there would be the text."""
SHOWN = 3
"""Rows that a message numbers."""
SET_ASIDE = "store_rejects = true, rejects_limit = 0"
"""How DuckDB is told to set bad rows aside. A limit of 0 is none: all faults are counted."""
# What DuckDB calls a line is a record, whatever line ends stand in its fields, and the header is the first.
REJECTS = (
    f"SELECT error_type::VARCHAR AS kind, count(DISTINCT line), list_sort(list(DISTINCT line - 1))[:{SHOWN}] FROM reject_errors "
    "GROUP BY kind ORDER BY kind"
)


def read_csv_sql(job: Job, path: Path, names: Sequence[str], buffer: int) -> str:
    """Return SQL that reads a CSV file's columns as text and lists bad rows in DuckDB's rejects table."""
    nulls = ", ".join(literal(text) for text in job.source.null_values)
    aside = f"nullstr = [{nulls}], buffer_size = {buffer}, {SET_ASIDE}"
    return f"SELECT * FROM {texts_sql([path], names, job.source.delimiter, aside)}"


def texts_sql(paths: Sequence[Path], names: Sequence[str], delimiter: str, options: str = "nullstr = ['']") -> str:
    """Return SQL of DuckDB's ``read_csv`` that reads all columns of CSV files in UTF-8 as text.

    Nothing is guessed from a sample, or types would depend on where a value stands. Nor from folders: below one called age=5 the column
    ``age`` would be 5 in every record.
    """
    struct = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    how = f"delim = {literal(delimiter)}, quote = '\"', escape = '\"', columns = {{{struct}}}, {options}"
    return csv_sql(paths, f"auto_detect = false, header = true, {how}")


def csv_sql(paths: Sequence[Path], options: str) -> str:
    """Return an SQL relation of CSV files, each unpacked as its ending says.

    DuckDB would take what stands before a question mark for the name of a file, and unpack by the ending of that.
    """
    packed: dict[str, list[Path]] = {}
    for path in paths:
        packed.setdefault(compression_of(path) or "none", []).append(path)
    reads = [
        f"read_csv({files_sql(together)}, hive_partitioning = false, compression = {literal(how)}, {options})"
        for how, together in packed.items()
    ]
    # By name, as DuckDB takes the columns of several files together.
    return reads[0] if len(reads) == 1 else f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {read}' for read in reads)})"


def compression_of(path: Path) -> str | None:
    """Return how a text file is packed, by the ending of its name in any case; None if it is plain."""
    return COMPRESSION.get(path.suffix.lower())


def unpacked_stream(path: Path) -> pa.NativeFile:
    """Open a text file to read its bytes, unpacked as its ending says."""
    return pa.input_stream(str(path), compression=compression_of(path))


def bad_rows_error(connection: duckdb.DuckDBPyConnection, path: Path, name: str, names: Sequence[str], delimiter: str) -> SkaldError | None:
    """Return (not raise) the error of a CSV file's bad rows or line ends; None if it has none.

    Args:
        path: The file in UTF-8.
        name: What the user calls it.
    """
    # All columns are asked for: of a file whose columns nobody asks for, DuckDB looks at no field.
    counts = ", ".join(f"count({quote(one)})" for one in names)
    table = texts_sql([path], names, delimiter, f"nullstr = [''], buffer_size = {LARGE_BUFFER}, {SET_ASIDE}")
    try:
        [(rows, *_)] = connection.execute(f"SELECT count(*), {counts} FROM {table}").fetchall()
    except duckdb.InvalidInputException:
        return SourceError.bad_rows(name, [UNSOUND])
    faults = connection.execute(REJECTS).fetchall()
    return _error_of(faults, name, len(names), rows + sum(count for _, count, _ in faults))


def _header(job: Job, path: Path, name: str) -> list[str]:
    """Read the column names in the first line of a job's file, plain or compressed."""
    names = header_names(path, name, job.source.delimiter, job.columns.roles())
    known = {*job.columns.roles(), *job.columns.person} - {REST}
    if len(known) > 1 and known.isdisjoint(names) and job.source.drift == "freeze":
        raise FileError.no_header(name)
    return names


def header_names(path: Path, name: str, delimiter: str, known: Collection[str] = ()) -> list[str]:
    """Return the column names in the first line of a CSV file in UTF-8; raise if they are no header.

    Args:
        name: What the user calls it.
        known: Names that the job gives a role: such a name alone in the line may hold another delimiter.
    """
    try:
        # utf-8-sig takes away the mark that spreadsheets begin a file with: it would be part of the first name.
        with unpacked_stream(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            names = next(csv.reader(header_lines(text), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise FileError.wrong_encoding(name, UTF8) from None
    except (OSError, ValueError, csv.Error):
        raise SourceError.unreadable(name, "csv") from None
    if not names and not _holds_anything(path):
        raise FileError.holds_nothing(name)
    if names and names[0].lower().startswith("sep=") and len(names) <= len(delimiter) + 1:
        raise FileError.separator_line(name)
    # A column may have such a name where the job knows it.
    unknown = len(names) == 1 and names[0] not in known
    if unknown and (other := next((one for one in DELIMITERS if one in names[0]), None)):
        raise FileError.one_column(name, _spelt(delimiter), names[0].count(other) + 1, _spelt(other))
    if not names or not all(names) or len(set(names)) < len(names):
        raise SourceError.bad_rows(name, ["the first line does not name every column, each once"])
    # DuckDB's names know no case. Not shown: without a header these are values.
    if len({column.lower() for column in names}) < len(names):
        raise SourceError.bad_rows(name, ["the first line has names that differ in case only, and databases take these for one"])
    return names


def _holds_anything(path: Path) -> bool:
    """Return whether a file, unpacked, has a character besides blanks and line ends in its first bytes."""
    with unpacked_stream(path) as stream:
        return bool(stream.read(MOST_HEADER).removeprefix(b"\xef\xbb\xbf").strip())


def _spelt(delimiter: str) -> str:
    """Return a delimiter as a job writes it."""
    return '"\\t"' if delimiter == "\t" else f'"{delimiter}"'


def _fault(kind: str, count: int, first: Sequence[int]) -> str:
    return _row_fault(FAULTS.get(kind, "not readable"), count, first)


def _row_fault(what: str, count: int, first: Sequence[int]) -> str:
    if not first:
        return f"{counted(count, 'row')} with {what}"
    more = f" and {count - len(first):,} more" if count > len(first) else ""
    rows = ", ".join(f"{row:,}" for row in first)
    return f"{counted(count, 'row')} with {what} ({'row' if count == 1 else 'rows'} {rows}{more}, the header being row 0)"
