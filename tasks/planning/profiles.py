"""Profiles of a source's columns, counted by DuckDB over its first records without returning values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from core.formats.concept_names import words
from core.formats.proposals import ColumnProfile, Kind
from schemas.errors.base import SourceError
from schemas.errors.tables import FileError
from schemas.job.formats import SourceFormat, format_of_suffix, formats_sentence, unsupported_format_sentence
from schemas.job.source import suffix
from tasks.source.listing import is_hidden
from tasks.store.database import quote

NOT_FINITE = "others may know it, and it holds NaN or infinity, which no bin does; it can be published, by {publish: shared}"
MOST_RECORDS = 1_000_000
"""Records that are looked at."""
MOST_CELLS = 25_000_000
"""Values that are looked at of a table that has more records: of 500 columns the first fifty thousand records."""
AT_A_TIME = 20
"""Columns that are counted at a time: exact quantiles hold all their numbers in memory."""
MOST_AGGREGATES = 200
"""Aggregates of one statement."""
FIRST = 2_000
"""Records that rule out most readings of a text cheaply."""
KINDS: Mapping[str, Kind] = {
    "BOOLEAN": "boolean", "DATE": "date", "VARCHAR": "text", "FLOAT": "double", "DOUBLE": "double",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "integer"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"), "timestamp"),
}  # fmt: skip
# A text that begins with 0 is a code: as a number it would lose that digit.
READINGS: Mapping[Kind, str] = {
    "boolean": "lower({0}) IN ('true', 'false')",
    # 18 digits always fit a BIGINT; 19 may not.
    "integer": "regexp_full_match({0}, '-?(0|[1-9][0-9]{{0,17}})')",
    "double": "regexp_full_match({0}, '-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?')",
    "date": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') AND try_cast({0} AS DATE) IS NOT NULL",
    # Without an offset and with six digits behind the point, as a run takes it.
    "timestamp": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9:]+([.][0-9]{{0,6}}0*)?') "
    "AND try_cast({0} AS TIMESTAMP) IS NOT NULL",
}


def source_files(paths: Sequence[Path]) -> list[Path]:
    """Return the source files among paths and in folders, sorted; raise if missing or of mixed formats."""
    folders = [path for path in paths if path.is_dir()]
    files = sorted(
        {path for path in paths if path.is_file()}
        | {path for folder in folders for path in folder.iterdir() if path.is_file() and _is_source(path)}
    )
    if missing := [str(path) for path in paths if not path.is_dir() and not path.is_file()]:
        raise FileError.missing(missing)
    if not files:
        raise FileError.no_data_files(list(map(str, paths)), formats_sentence())
    if foreign := next((path for path in files if unsupported_format_sentence(suffix(path.name))), None):
        raise FileError.unsupported_format(str(foreign), unsupported_format_sentence(suffix(foreign.name)))
    kinds = {suffix(path.name) if suffix(path.name) in read_format(path).suffixes else format_of_suffix("").suffixes[0] for path in files}
    if len(kinds) > 1:
        raise SourceError(
            f"The files are of different formats ({', '.join(sorted(kinds))}). Name those of one format, and make a job for each."
        )
    return files


def read_format(path: Path) -> SourceFormat:
    """Return the format of a source file by its suffix; Parquet if the suffix is unknown."""
    return format_of_suffix(suffix(path.name))


def _is_source(path: Path) -> bool:
    # A hierarchy that lies beside the data it is for is no data, nor is what a run leaves out.
    return suffix(path.name) in read_format(path).suffixes and not is_hierarchy(path.name) and not is_hidden(path.name, "*")


def is_hierarchy(name: str) -> bool:
    """Return whether a file name says that it is a hierarchy, as ``adult_hierarchy_age.csv``."""
    return bool({"hierarchy", "hierarchies"} & set(words(name)))


class FirstRecords(NamedTuple):
    """What DuckDB reads a source's first records as, and whether the source has more."""

    relation: str
    has_more: bool


def most_first_records(column_count: int) -> int:
    """Return how many records are looked at of a table of more than ``MOST_RECORDS``, by its columns."""
    return max(min(MOST_RECORDS, MOST_CELLS // max(column_count, 1)), 1)


def first_records(connection: duckdb.DuckDBPyConnection, relation: str) -> FirstRecords:
    """Return the first records of a relation, all of them if there are at most ``MOST_RECORDS``."""
    [(many,)] = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {relation} LIMIT {MOST_RECORDS + 1})").fetchall()
    # DuckDB holds all records below a LIMIT in memory, so that there is none where it takes nothing away.
    if many <= MOST_RECORDS:
        return FirstRecords(relation, has_more=False)
    width = len(connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall())
    return FirstRecords(f"(SELECT * FROM {relation} LIMIT {most_first_records(width)})", has_more=True)


def planning_connection() -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB database with a memory limit of 1 GB and no spilling to disk."""
    # Nothing is spilt, because there is no private folder yet; and no extension is fetched on account of a file's content.
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "1GB", "temp_directory": "", "autoinstall_known_extensions": False, "autoload_known_extensions": False,
    }  # fmt: skip
    connection = duckdb.connect(config=settings)
    # It would take whole columns of a row group into memory.
    connection.execute("SET disable_parquet_prefetching = true")
    return connection


def profile_columns(
    connection: duckdb.DuckDBPyConnection, *, all_are_texts: bool, unfit: Mapping[str, str] = {}
) -> tuple[tuple[ColumnProfile, ...], int]:
    """Return the profile of each column of the view ``source``, and the number of records.

    Args:
        all_are_texts: Whether every column of it is text, whatever it holds.
        unfit: Columns of types that a run neither coarsens nor shares, whatever DuckDB reads them as, with the reason.
    """
    types = {str(name): str(dtype) for name, dtype, *_ in connection.execute("DESCRIBE source").fetchall()}
    kinds = strictest_kinds(connection, list(types)) if all_are_texts else {name: _kind(dtype) for name, dtype in types.items()}
    # A duration is a whole number to DuckDB.
    kinds |= dict.fromkeys(unfit, "other")
    not_finite = _not_finite(connection, kinds)
    obstacles = {**dict.fromkeys(not_finite, NOT_FINITE), **unfit}
    names, records, profiles = list(kinds), 0, []
    for start in range(0, len(names), AT_A_TIME):
        some = {name: kinds[name] for name in names[start : start + AT_A_TIME]}
        [(records, *figures)] = connection.execute(profile_sql(some, not_finite)).fetchall()
        if not records:
            return (), 0
        profiles += [ColumnProfile(name, some[name], *figures[FIGURES * at : FIGURES * (at + 1)]) for at, name in enumerate(some)]
    return tuple(replace(one, obstacle=obstacles.get(one.name, one.obstacle)) for one in profiles), int(records)


def _not_finite(connection: duckdb.DuckDBPyConnection, kinds: Mapping[str, Kind]) -> list[str]:
    """Return the columns with NaN or infinity among their numbers, which cannot be put into bins."""
    names = [name for name, kind in kinds.items() if kind == "double"]
    tests = [f"coalesce(bool_or(NOT isfinite({quote(name)}::DOUBLE)), false)" for name in names]
    found = aggregates_of(connection, "source", tests)
    return [name for name, unexpected in zip(names, found, strict=True) if unexpected]


def _kind(dtype: str) -> Kind:
    return "double" if dtype.startswith("DECIMAL") else KINDS.get(dtype, "other")


def strictest_kinds(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[str, Kind]:
    """Return by text column of table ``source`` the strictest kind that all texts fit; text if empty."""
    fits = _fitting(connection, {name: list(READINGS) for name in names}, f"(FROM source LIMIT {FIRST})", "true")
    fits = _fitting(connection, fits, "source", "false")
    return {name: next(iter(fits[name]), "text") for name in names}


def _fitting(connection: duckdb.DuckDBPyConnection, kinds: Mapping[str, list[Kind]], relation: str, empty: str) -> dict[str, list[Kind]]:
    """Return by column those of its kinds that all texts of a relation fit.

    Args:
        empty: Whether any kind fits a column without texts, in SQL.
    """
    # A null is of every kind, while a reading may say that it is none.
    tests = [
        f"coalesce(bool_and({READINGS[kind].format(quote(name))}) FILTER ({quote(name)} IS NOT NULL), {empty})"
        for name, some in kinds.items()
        for kind in some
    ]
    found = iter(aggregates_of(connection, relation, tests))
    return {name: [kind for kind in some if next(found)] for name, some in kinds.items()}


def aggregates_of(connection: duckdb.DuckDBPyConnection, relation: str, aggregates: Sequence[str]) -> list[Any]:
    """Return aggregates of a relation, few for each statement."""
    # DuckDB takes minutes to plan ten thousand.
    found = list[Any]()
    for start in range(0, len(aggregates), MOST_AGGREGATES):
        [some] = connection.execute(f"SELECT {', '.join(aggregates[start : start + MOST_AGGREGATES])} FROM {relation}").fetchall()
        found += some
    return found


FIGURES = 9
CODE = "[A-Za-z0-9]{1,8}([.-][A-Za-z0-9]{1,8}){0,2}"


def profile_sql(kinds: Mapping[str, Kind], not_finite: Collection[str]) -> str:
    """Return the SQL that counts the records and nine figures per column in one scan.

    Figures are in the order of ``ColumnProfile``. In the columns ``not_finite`` NaN and infinity count as no value, as when a run shares
    them.
    """
    read = {name: f"CASE WHEN isfinite({quote(name)}) THEN {quote(name)} END" if name in not_finite else quote(name) for name in kinds}
    return f"SELECT count(*), {', '.join(_figures(read[name], kind) for name, kind in kinds.items())} FROM source"


def _figures(column: str, kind: Kind) -> str:
    numeric = kind in {"integer", "double"}
    # Exact counts would hold every distinct value of every column in memory, and a proposal needs none.
    distinct = f"approx_count_distinct({column})" if kind != "other" else "0"
    # As doubles, because the difference of two BIGINTs may overflow; and without the ends, where one outlier would decide over all bins.
    ends = f"quantile_disc({column}::DOUBLE, [0.01, 0.25, 0.75, 0.99])"
    span = f"coalesce(nullif({ends}[4] - {ends}[1], 0), max({column}::DOUBLE) - min({column}::DOUBLE), 0)" if numeric else "0"
    even = f"coalesce(({ends}[3] - {ends}[2]) / nullif({ends}[4] - {ends}[1], 0), 0)" if numeric else "0"
    negative = f"coalesce(min({column}::DOUBLE) < 0, false)" if numeric else "false"
    if kind != "text":
        return f"count({column}), {distinct}, 0, 0, {span}, false, false, {even}, {negative}"
    length = f"length({column})"
    return (
        f"count({column}), {distinct}, coalesce(max({length}), 0), coalesce(avg({length}), 0), 0, "
        f"coalesce(bool_and(regexp_full_match({column}, '[0-9]+')), false), "
        f"coalesce(bool_and(regexp_full_match({column}, '{CODE}')) AND avg(regexp_matches({column}, '[0-9]')::INT) >= 0.8, false), 0, false"
    )
