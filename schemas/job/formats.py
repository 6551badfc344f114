"""Registry of source formats, with the keys of ``source`` that each accepts, its code and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from schemas.reading.registry import Code, Registry


@dataclass(frozen=True)
class Keys:
    """Keys of ``source`` that only some formats accept, and the message for other formats."""

    names: tuple[str, ...]
    only: str


CSV = Keys(
    ("delimiter", "null_values", "types", "encoding", "decimal", "thousands", "dates"),
    "only fit CSV files, but the format is {}; remove them or say format: csv",
)
HIVE = Keys(("hive",), "only fits Parquet files, but the format is {}; remove it")
SERVER = Keys(("connection", "extract"), "only fit PostgreSQL, but the format is {}; remove them or say format: postgresql")
ROWS = Keys(("table", "query"), "only fit databases, but the format is {}; remove them")


@dataclass(frozen=True)
class SourceFormat:
    """A registry entry for one source format.

    Attributes:
        name: How a job calls it.
        words: What the source is called then, for plan and report.
        suffixes: Of files that are of this format where the job does not say so, in lower case, with their dots.
        takes: The keys of ``source``, among those that only some formats take, that it has a use for.
        of_folders: Those that it takes where folders name columns too.
        asks: Whether its rows are those of a ``table`` or a ``query``.
        pathless: What to give instead of a path; empty if its rows are in files.
        convert: Makes a file of it, or what it was asked, Parquet: ``(job, located, store)`` to a `tasks.source.locations.Readable`; None
            for files that are read as they are.
        sample: Reads the front of files, to draft a job from: ``(connection, files)`` to `tasks.planning.samples.Sample`. None for
            formats that no job is drafted from.
    """

    name: str
    words: str
    suffixes: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    of_folders: tuple[str, ...] = ()
    asks: bool = False
    pathless: str = ""
    convert: Callable[..., Any] | None = None
    sample: Callable[..., Any] | None = None


FORMATS = Registry(
    "format",
    SourceFormat(
        name="parquet",
        words="Parquet files",
        suffixes=(".parquet",),
        takes=HIVE.names,
        of_folders=("types",),
        sample=Code("tasks.planning.samples:parquet_sample"),
    ),
    SourceFormat(
        name="csv",
        words="CSV files",
        suffixes=(".csv", ".tsv"),
        takes=CSV.names,
        convert=Code("tasks.source.csv_files:csv_as_parquet"),
        sample=Code("tasks.planning.samples:csv_sample"),
    ),
    SourceFormat(
        name="arrow",
        words="Arrow files",
        suffixes=(".arrow", ".ipc", ".feather", ".arrows"),
        convert=Code("tasks.source.arrow_files:arrow_as_parquet"),
    ),
    SourceFormat(
        name="duckdb",
        words="DuckDB files",
        suffixes=(".duckdb", ".ddb"),
        takes=ROWS.names,
        asks=True,
        convert=Code("tasks.source.extracts:duckdb_as_parquet"),
    ),
    SourceFormat(
        name="postgresql",
        words="PostgreSQL",
        takes=(*SERVER.names, *ROWS.names, "types"),
        asks=True,
        pathless="give connection instead, or leave both out and set PGHOST, PGDATABASE and so on",
        convert=Code("tasks.source.extracts:postgresql_as_parquet"),
    ),
)
"""The known formats by name; the first is that of a source whose name tells none. A further one is one more entry."""


_UNSUPPORTED = {
    (".xlsx", ".xls", ".xlsm", ".ods"): "a spreadsheet, which is not read; save its sheet as CSV in UTF-8 and give that file",
    (".json", ".jsonl", ".ndjson"): "JSON, which is not read; make it Parquet, as DuckDB does: COPY (FROM 'x.json') TO 'x.parquet'",
    (".sas7bdat", ".sav", ".dta", ".rds"): "a file of a statistics program, which is not read; write it as Parquet or CSV there",
    (".avro", ".orc", ".xml"): "of a format that is not read; write it as Parquet or CSV",
}


def unsupported_format_sentence(ending: str) -> str:
    """Return a message for files whose suffix is of a known but unsupported format.

    The suffix is in lower case. The message is empty for supported and unknown formats.
    """
    if any(ending in one.suffixes for one in FORMATS.values()):
        return ""
    return next((words for endings, words in _UNSUPPORTED.items() if ending in endings), "")


def formats_sentence() -> str:
    """Return a text that lists the formats of files that are read, each with its suffixes."""
    *most, last = (f"{one.words} ({', '.join(one.suffixes)})" for one in FORMATS.values() if one.suffixes)
    return f"{', '.join(most)} and {last}"


def format_of_suffix(ending: str) -> SourceFormat:
    """Return the format of files with a suffix, in lower case; the first format if none matches."""
    return next((one for one in FORMATS.values() if ending in one.suffixes), next(iter(FORMATS.values())))


def format_of_connection() -> SourceFormat:
    """Return the format of a source that has a connection and no path."""
    return next(one for one in FORMATS.values() if one.pathless and "connection" in one.takes)


def unused_format_keys(entry: SourceFormat, given: set[str], *, folders: bool) -> Iterator[tuple[list[str], str]]:
    """Yield the given keys that a format does not accept, in groups, with a message for each group.

    Args:
        given: The keys of ``source`` that the job gives.
        folders: Whether folders name columns.
    """
    takes = {*entry.takes, *(entry.of_folders if folders else ())}
    for keys in (CSV, HIVE, SERVER, ROWS):
        if foreign := [name for name in keys.names if name in given and name not in takes]:
            yield foreign, keys.only.format(entry.name)
