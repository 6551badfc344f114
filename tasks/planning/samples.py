"""Readers of a source's first records, by format, and how its numbers and dates seem to be spelled."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import is_coarsenable, is_unpublishable, plain_type
from schemas.errors.base import SkaldError, SourceError
from schemas.job.source import UTF8
from schemas.reading.typed_texts import DECIMAL, ISO, Spelling, number_sql, typed_sql
from tasks.planning.profiles import READINGS, FirstRecords, aggregates_of, first_records
from tasks.source.csv_files import (
    BLOCK,
    DELIMITERS,
    bad_rows_error,
    compression_of,
    header_names,
    texts_sql,
    unpacked_stream,
    write_in_utf8,
)
from tasks.store.database import file_pattern, files_sql, literal, quote
from tasks.store.files import random_temporary_folder

USUAL_DELIMITER = ","
_QUOTED = re.compile('"[^"]*"')
WESTERN = "windows-1252"
UNPUBLISHABLE = "of a type that cannot be published"
AS_IT_IS = "of a type that is published as it is or not at all, by {publish: exact}"
MOST_TOGETHER = 2_500_000
"""Values that are in memory together when records are copied."""
MOST_CHARACTERS = 1 << 26
"""Characters that are looked at to tell the encoding of a file."""


@dataclass(frozen=True)
class Sample:
    """A source's files as DuckDB reads them, and the keys of ``source`` that describe them.

    Attributes:
        relation: What DuckDB reads them as.
        keys: What ``source`` says of them besides their path.
        texts: Whether every column is read as text, so that the job gives the types.
        zoned: The columns of moments with an offset, which the relation has in UTC.
        schemas: The columns of each file, by what a user calls it; none where they are not known.
        first: The first records, where several questions are cheaper asked of a copy of them.
        close: Removes what was made for reading, such as private copies in UTF-8.
        explain: Returns what is wrong with files that DuckDB cannot read, in a sentence without values, where that is known.
    """

    relation: str
    keys: Mapping[str, str] = field(default_factory=dict)
    texts: bool = False
    zoned: frozenset[str] = frozenset()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    first: FirstRecords | None = None
    close: Callable[[], None] = ExitStack().close
    explain: Callable[[], SkaldError | None] = lambda: None


def parquet_sample(
    _connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, hive: bool = False, names: Sequence[str] = ()
) -> Sample:
    """Return the sample of Parquet files; with ``hive``, also the columns their folders name.

    Args:
        names: What a user calls the files, if not by their paths.
    """
    relation = f"read_parquet({files_sql(files)}, hive_partitioning = {str(hive).lower()})"
    try:
        schemas = map(pq.read_schema, files)
        return Sample(relation, schemas=dict(zip(names or map(str, files), schemas, strict=True)))
    except (OSError, pa.ArrowException):
        # DuckDB says that it cannot be read.
        return Sample(relation)


def unfit_columns(schema: pa.Schema) -> dict[str, str]:
    """Return by name, with a reason, columns whose type allows only ``publish: exact`` or no publication."""
    types = {one.name: plain_type(one.type) for one in schema}
    return {name: AS_IT_IS for name, one in types.items() if not is_coarsenable(one)} | {
        name: UNPUBLISHABLE for name, one in types.items() if is_unpublishable(one)
    }


def csv_sample(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> Sample:
    """Return the sample of CSV files, with encoding and delimiter of the first and the detected spelling."""
    encoding = encoding_of(files[0])
    with ExitStack() as opened:
        read = opened.enter_context(files_in_utf8(files, encoding))
        delimiter = delimiter_of(connection, read[0])
        names = [header_names(path, str(file), delimiter) for path, file in zip(read, files, strict=True)]

        def explain() -> SkaldError | None:
            errors = (
                bad_rows_error(connection, path, str(file), header, delimiter)
                for path, file, header in zip(read, files, names, strict=True)
            )
            return next((one for one in errors if one), None)

        headers: dict[tuple[str, ...], list[Path]] = {}
        for path, header in zip(read, names, strict=True):
            headers.setdefault(tuple(header), []).append(path)
        # All as text: a type guessed from the front may not fit what follows, and as a number a code loses its leading zeros.
        parts = [f"SELECT * FROM {texts_sql(paths, header, delimiter)}" for header, paths in headers.items()]
        relation = f"({' UNION ALL BY NAME '.join(parts)})"
        try:
            first = _copied(connection, first_records(connection, relation), opened)
            spelling, spelled = detect_spelling(connection, first.relation)
            zoned = moments_in_utc(connection, respelled(first.relation, spelled), spelling)
        except duckdb.InvalidInputException:
            # DuckDB's message would quote the line.
            raise explain() or SourceError.unreadable(str(files[0]), "csv") from None
        keys = {"format": "csv", "delimiter": delimiter, **({"encoding": encoding} if encoding != UTF8 else {})}
        schemas = {str(file): pa.schema([(name, pa.string()) for name in header]) for file, header in zip(files, names, strict=True)}
        said = {**keys, **spelling_keys(spelling)}
        every, few = (respelled(respelled(one, spelled), zoned) for one in (relation, first.relation))
        return Sample(
            every, said, texts=True, zoned=frozenset(zoned), schemas=schemas, first=first._replace(relation=few),
            close=opened.pop_all().close, explain=explain,
        )  # fmt: skip


def _copied(connection: duckdb.DuckDBPyConnection, first: FirstRecords, opened: ExitStack) -> FirstRecords:
    """Copy the first records of CSV files into a private Parquet file, where there is room for it.

    Hundreds of questions are asked of a wide table, and each would read the whole text.
    """
    copy = opened.enter_context(random_temporary_folder("first")) / "records.parquet"
    width = len(connection.execute(f"DESCRIBE SELECT * FROM {first.relation}").fetchall())
    # DuckDB holds the texts of a row group in memory, and takes no fewer records than these.
    together = f"ROW_GROUP_SIZE {min(max(MOST_TOGETHER // width, 2048), 122_880)}"
    try:
        connection.execute(f"COPY (SELECT * FROM {first.relation}) TO {literal(str(copy))} (FORMAT parquet, {together})")
    except (duckdb.IOException, duckdb.OutOfMemoryException):
        copy.unlink(missing_ok=True)
        return first
    return first._replace(relation=f"read_parquet({files_sql([copy])}, hive_partitioning = false)")


def delimiter_of(connection: duckdb.DuckDBPyConnection, file: Path) -> str:
    """Return the delimiter of a CSV file in UTF-8: what DuckDB detects, or else that of the header.

    What DuckDB detects counts only if the header has it.

    One ragged line is enough for DuckDB to take each line for one field.
    """
    try:
        said = f"compression = {literal(compression_of(file) or 'none')}, all_varchar = true"
        [(found,)] = connection.execute(f"SELECT Delimiter FROM sniff_csv({literal(file_pattern(file))}, {said})").fetchall()
    except duckdb.Error:
        found = None
    with suppress(OSError, ValueError), unpacked_stream(file) as stream:
        with io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            front = _QUOTED.sub("", text.read(BLOCK))
        header = front.splitlines()[0] if front else ""
        there = [one for one in reversed(DELIMITERS) if one in header]
        # A line without any may be a title; what is below it then tells, and the title is refused.
        if found in there or (found in DELIMITERS and not there):
            return str(found)
        return max(there, key=header.count, default=USUAL_DELIMITER)
    return USUAL_DELIMITER


@contextmanager
def files_in_utf8(files: Sequence[Path], encoding: str) -> Iterator[Sequence[Path]]:
    """Yield text files in UTF-8: the given ones if they are, else private copies, removed after."""
    if encoding == UTF8:
        yield files
        return
    with random_temporary_folder("csv") as folder:
        copies = [folder / f"{number}.csv" for number, _ in enumerate(files)]
        for file, copy in zip(files, copies, strict=True):
            write_in_utf8(file, str(file), encoding, copy)
        yield copies


def encoding_of(file: Path) -> str:
    """Return a text file's encoding by its content: UTF-16, UTF-8, or else Windows-1252."""
    try:
        with unpacked_stream(file) as stream:
            if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16"
        with unpacked_stream(file) as stream, io.TextIOWrapper(stream, UTF8) as text:
            left = MOST_CHARACTERS
            while left > 0 and (characters := text.read(BLOCK)):
                left -= len(characters)
    except UnicodeDecodeError:
        return WESTERN
    except OSError:
        # Who reads it says what is wrong with it.
        return UTF8
    return UTF8


Key = TypeVar("Key")
MOST_LOOKED_AT = 10_000
"""Records by which a spelling is proposed, the first ones; columns of which a later value has another one are then left as they are."""
FRONT = "first_records"
COMMA = Spelling(",", ".")
NUMBERS = {
    # Three digits behind a comma may be thousands: another number of digits decides, or both separators in one number.
    COMMA: r"-?[0-9]+,([0-9]{1,2}|[0-9]{4,})|-?[0-9]{1,3}([.][0-9]{3})+,[0-9]*",
    Spelling(",", " "): "-?[0-9]{1,3}([ \\x{00A0}\\x{2009}\\x{202F}][0-9]{3})+,[0-9]*",
    Spelling(DECIMAL, ","): r"-?[0-9]{1,3}(,[0-9]{3})+[.][0-9]*|-?[0-9]{1,3}(,[0-9]{3}){2,}",
    Spelling(DECIMAL, "'"): "-?[0-9]{1,3}(['\u2019][0-9]{3})+([.][0-9]*)?",
}
"""Spellings of numbers, and the values that are spelled so and in no other way."""
DAY_SHAPE = " *[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}([ T].*)?"
"""What a day looks like in any order."""
DATES = ("dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "dd-mm-yyyy", "mm-dd-yyyy", "yyyy.mm.dd")


def respelled(relation: str, columns: Mapping[str, str]) -> str:
    """Return a relation with some columns replaced; ``columns`` is the SQL of each."""
    replaced = ", ".join(f"{one} AS {quote(name)}" for name, one in columns.items())
    return f"(SELECT * REPLACE ({replaced}) FROM {relation})" if columns else relation


def detect_spelling(connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[Spelling, dict[str, str]]:
    """Return the spelling of numbers and dates in text columns, and SQL of columns in standard spelling.

    Columns that have the standard spelling already have no SQL.

    A column speaks for a spelling if all its values are spelled so, and at least one of them in no other way. What columns leave open,
    such as dates of which no day is beyond the twelfth or 1,234 alone, stays text.

    Args:
        relation: The records that are looked at, all columns as text.
    """
    names = [str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    # Read once: several questions are asked of it.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {FRONT} AS SELECT * FROM {relation} LIMIT {MOST_LOOKED_AT}")
    days = _true(connection, FRONT, {name: f"bool_and(regexp_full_match({quote(name)}, {literal(DAY_SHAPE)}))" for name in names})
    spelling = _numbers(connection, names)._replace(dates=_dates(connection, days))
    numbers, dates = _number_columns(connection, names, spelling), _date_columns(connection, days, spelling, relation)
    held = _true(connection, relation, {name: f"bool_and({_all_numbers(name, spelling)})" for name in numbers})
    kept = {name: numbers[name] for name in held} | dates
    connection.execute(f"DROP TABLE {FRONT}")
    # What no column of the file is spelled like need not be said.
    spelling = spelling if held else Spelling(dates=spelling.dates)
    if len(_true(connection, relation, {name: _all_dates(name, ISO) for name in dates})) == len(dates):
        spelling = spelling._replace(dates=ISO)
    return spelling, kept


def moments_in_utc(connection: duckdb.DuckDBPyConnection, relation: str, spelling: Spelling) -> dict[str, str]:
    """Return the text columns of moments with an offset, and the SQL that has each in UTC without.

    Args:
        relation: The records that are looked at, all columns as text.
    """
    names = [str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    moments = {name: typed_sql(quote(name), "timestamptz", spelling) for name in names}
    found = names
    for read in (f"(SELECT * FROM {relation} LIMIT 1)", f"(SELECT * FROM {relation} LIMIT {MOST_LOOKED_AT})", relation):
        found = _true(connection, read, {name: f"bool_and({quote(name)} IS NULL OR {moments[name]} IS NOT NULL)" for name in found})
    found = _true(connection, relation, {name: f"count({quote(name)}) > 0" for name in found})
    return {name: f"({moments[name]} AT TIME ZONE 'UTC')::VARCHAR" for name in found}


def spelling_keys(spelling: Spelling) -> Mapping[str, str]:
    """Return the job's ``source`` keys that state how numbers and dates are spelt; none if standard."""
    return {key: value for key, value in spelling._asdict().items() if value != Spelling._field_defaults[key]}


def _numbers(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> Spelling:
    """Return the spelling of numbers that the columns have in common, or else the standard one.

    The standard one is used where columns speak for none, or for several.
    """
    tests = {
        (name, one): f"bool_and({_all_numbers(name, one)}) AND bool_or(regexp_full_match({quote(name)}, {literal(sure)}))"
        for name in names
        for one, sure in NUMBERS.items()
    }
    said = {one: name for name, one in _true(connection, FRONT, tests)}
    if len(said) != 1:
        return Spelling()
    [spelling] = said
    standard = {name: f"bool_and({_all_numbers(name, Spelling())}) AND NOT bool_and({_all_numbers(name, spelling)})" for name in names}
    if _true(connection, FRONT, standard):
        # A draft would take these for numbers, and a run would not: the file has no one spelling.
        return Spelling()
    # Where a comma is the decimal separator, three digits behind a point are thousands.
    sure = literal("[0-9][.][0-9]{3}")
    parted = {name: f"bool_or(regexp_matches({quote(name)}, {sure})) AND bool_and({_all_numbers(name, spelling)})" for name in names}
    return spelling if spelling != COMMA or _true(connection, FRONT, parted) else spelling._replace(thousands="")


def _all_numbers(name: str, spelling: Spelling) -> str:
    """Return the condition that a value is null or, in a spelling, a number of a draft."""
    return f"{quote(name)} IS NULL OR coalesce({READINGS['double'].format(number_sql(quote(name), spelling))}, false)"


def _dates(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> str:
    """Return the order of days, months and years that most columns of dates speak for."""
    tests = {(name, dates): _all_dates(name, dates) for name in names for dates in DATES}
    found = _true(connection, FRONT, tests)
    orders = {name: [dates for other, dates in found if other == name] for name, _ in found}
    said = Counter(dates for one in orders.values() if len(one) == 1 for dates in one)
    return max(said, key=lambda dates: (said[dates], -DATES.index(dates))) if said else ISO


def _all_dates(name: str, dates: str) -> str:
    """Return the aggregate that is true if a column has values and a run reads all of them as moments."""
    return f"bool_and({quote(name)} IS NULL OR {_moment(name, 'timestamp', dates)} IS NOT NULL) AND count({quote(name)}) > 0"


def _moment(name: str, dtype: str, dates: str) -> str:
    return typed_sql(quote(name), dtype, Spelling(dates=dates))


def _number_columns(connection: duckdb.DuckDBPyConnection, names: Sequence[str], spelling: Spelling) -> dict[str, str]:
    """Return the SQL of the standard spelling for each column of numbers that are not all spelled so."""
    if spelling[:2] == Spelling()[:2]:
        return {}
    other = f"[{spelling.decimal if spelling.decimal != DECIMAL else ''}{spelling.thousands}\u2019\\x{{00A0}}\\x{{2009}}\\x{{202F}}]"
    tests = {
        name: f"bool_and({_all_numbers(name, spelling)}) AND bool_or(regexp_matches({quote(name)}, {literal(other)}))" for name in names
    }
    return {name: number_sql(quote(name), spelling) for name in _true(connection, FRONT, tests)}


def _date_columns(connection: duckdb.DuckDBPyConnection, names: Sequence[str], spelling: Spelling, every: str) -> dict[str, str]:
    """Return the SQL of the standard spelling for each column of dates that are not all spelled so.

    A column that has a time in any value is read with times.
    """
    found = _true(connection, FRONT, {name: _all_dates(name, spelling.dates) for name in names})
    read = _true(connection, every, {name: _all_dates(name, spelling.dates) for name in found})
    standard = " OR ".join(READINGS[kind] for kind in ("date", "timestamp"))
    plain = _true(connection, every, {name: f"bool_and({standard.format(quote(name))} OR {quote(name)} IS NULL)" for name in read})
    left = [name for name in read if name not in plain]
    timed = _true(connection, every, {name: f"bool_or(contains({quote(name)}, ':'))" for name in left})
    return {name: f"{_moment(name, 'timestamp' if name in timed else 'date', spelling.dates)}::VARCHAR" for name in left}


def _true(connection: duckdb.DuckDBPyConnection, relation: str, tests: Mapping[Key, str]) -> list[Key]:
    """Return the keys of aggregates that are true of a relation."""
    found = aggregates_of(connection, relation, list(tests.values()))
    return [key for key, true in zip(tests, found, strict=True) if true]
