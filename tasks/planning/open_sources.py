"""Opening of a source without a job, through DuckDB, as a run would read it.

The keys of ``source`` by which a job finds it are found too.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from core.formats.proposals import ColumnProfile
from schemas.errors.base import SkaldError, SourceError
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.formats import FORMATS, SourceFormat, format_of_connection, format_of_suffix
from schemas.job.job import Job, load_job
from schemas.job.source import is_address, suffix
from schemas.reading.regular_files import given_job
from tasks.planning.profiles import MOST_RECORDS, first_records, planning_connection, profile_columns, read_format, source_files
from tasks.planning.samples import Sample, parquet_sample, unfit_columns
from tasks.source.extracts import fixed_extract
from tasks.source.listing import is_hidden
from tasks.source.locations import locate_source_files
from tasks.source.pinned import FETCHED, local_source_file
from tasks.source.sources import as_parquet, check_column_names, check_same_columns
from tasks.store.database import database_kept_open
from tasks.store.files import private_folder, restrict_new_files
from tasks.store.work import hold_work

DATABASE = ("postgresql://", "postgres://")
SERVER = "the database"
"""What errors call a server, whose address may hold a password."""


class SourceOptions(NamedTuple):
    """What the user names as a source: files or addresses, a table or query, and column types.

    Attributes:
        names: Files, folders, patterns or addresses; nothing for PostgreSQL by its own variables.
        table, query: Of a database, the one or the other.
        types: Of columns of PostgreSQL, whose ``numeric`` has no fixed number of digits.
    """

    names: tuple[str, ...]
    table: str | None = None
    query: str | None = None
    types: Mapping[str, str] = {}


class OpenSource(NamedTuple):
    """A DuckDB connection with views ``everything`` and ``source`` of a source, and its job keys.

    Attributes:
        connection: Has it as two views: ``everything``, and of that the first records as ``source``.
        source: What a job says under ``source``, but for types.
        texts: Whether every column is read as text, so that the job gives the types.
        zoned: The columns of moments with an offset, which the views have in UTC.
        where: What an error calls it, and ``kind`` its format.
        files: Files of this machine that the user named, or that are in a folder of that name.
        schemas: The columns of each file, by what a user calls it; none where they are not known.
        has_more: Whether it has more than the first records.
    """

    connection: duckdb.DuckDBPyConnection
    source: Mapping[str, Any]
    texts: bool
    zoned: frozenset[str]
    where: str
    kind: str
    files: tuple[Path, ...]
    schemas: Mapping[str, pa.Schema]
    has_more: bool


def job_name(out: Path) -> str:
    """Return the name of a drafted job: its file's name without suffix and unusual characters."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", out.stem).strip("-") or "job"


@contextmanager
def open_for_draft(given: SourceOptions, out: Path) -> Iterator[OpenSource]:
    """Open a source for drafting, converted to Parquet if need be; yield its connection and its job keys.

    What is no Parquet or CSV file of this machine becomes Parquet as its run would make it, in the work folder of the job that is
    drafted, so that the run finds it there. Copies of objects, which a run reads where they are, are gone in the end, whatever happens.

    Args:
        out: The job file, to which paths will be relative, and after which the job is named.
    """
    connection, ending = planning_connection(), ExitStack()
    sample: Sample | None = None
    source, files, kind = _said(given, out.parent), [], "parquet"
    where = " ".join(one for one in given.names if not one.startswith(DATABASE)) or SERVER
    try:
        if _is_plain(given):
            files = source_files([Path(one) for one in given.names])
            source, where, kind = {"path": source_patterns(given.names, files, out.parent)}, str(files[0]), read_format(files[0]).name
        else:
            kind = _checked_format(given)
        if FORMATS[kind].asks and given.table is None and given.query is None:
            raise FileError.no_table_named("PostgreSQL" if where == SERVER else where)
        if files and FORMATS[kind].sample:
            sample = _read_as_is(FORMATS[kind], connection, files, ending)
        else:
            sample = read_like_a_run(connection, ending, source, job_name(out), out.parent)
        connection.execute(f"CREATE TEMP VIEW everything AS SELECT * FROM {sample.relation}")
        first = sample.first or first_records(connection, "everything")
        connection.execute(f"CREATE TEMP VIEW source AS SELECT * FROM {first.relation}")
        keys = {**source, **sample.keys}
        yield OpenSource(connection, keys, sample.texts, sample.zoned, where, kind, tuple(files), sample.schemas, first.has_more)
    except duckdb.OutOfMemoryException:
        raise FileError.too_large_for_draft(MOST_RECORDS) from None
    except duckdb.Error:
        # DuckDB's message would quote the value that it could not read.
        raise (sample and _explained(sample)) or SourceError.unreadable(where, kind) from None
    finally:
        connection.close()
        ending.close()


class SourceProfile(NamedTuple):
    """Profiles of a source's columns, and the number of records counted."""

    columns: tuple[ColumnProfile, ...]
    records: int


def profile_source(front: OpenSource) -> SourceProfile:
    """Return the profile of a source's first records, or of all; raise for files that a run would refuse."""
    unfit: dict[str, str] = {}
    for schema in front.schemas.values():
        check_column_names(schema.names)
        if nameless := schema.names.count(""):
            raise ValuesError.no_names(nameless)
        unfit |= unfit_columns(schema)
    check_same_columns(list(front.schemas), list(front.schemas.values()))
    columns, records = profile_columns(front.connection, all_are_texts=front.texts, unfit=unfit)
    if not records:
        raise SourceError.empty(len(front.files))
    return SourceProfile(tuple(replace(one, zoned=one.name in front.zoned) for one in columns), records)


def _explained(sample: Sample) -> SkaldError | None:
    with suppress(duckdb.Error):
        return sample.explain()
    return None


def _is_plain(given: SourceOptions) -> bool:
    """Return whether the user names only local files and folders that are read as they are."""
    if given.table or given.query or given.types or not given.names:
        return False
    return not any(is_address(one) or _of_folders(Path(one)) or (glob.has_magic(one) and not Path(one).exists()) for one in given.names)


def _checked_format(given: SourceOptions) -> str:
    """Return the format of a source that is no plain file; raise if table or query do not fit it."""
    database = any(one.startswith(DATABASE) for one in given.names)
    asked = (given.table is not None) + (given.query is not None)
    if database or not given.names:
        if asked > 1:
            raise FileError.no_table_named("PostgreSQL")
        return format_of_connection().name
    # Path.glob takes no absolute pattern.
    here = [one for one in given.names if not is_address(one) and not Path(one).exists()]
    if missing := [one for one in here if not glob.glob(one, recursive=True)]:  # noqa: PTH207
        raise FileError.missing(missing)
    entry = format_of_suffix(suffix(given.names[0]))
    if asked and not entry.asks:
        raise FileError.no_database(given.names[0])
    if asked > 1:
        raise FileError.no_table_named(given.names[0])
    return entry.name


def _of_folders(path: Path) -> bool:
    """Return whether folders of Parquet files in a folder name a column, as in ``region=North``."""
    return path.is_dir() and any("=" in one.name and one.is_dir() and any(one.rglob("*.parquet")) for one in path.iterdir())


def source_patterns(names: Sequence[str], files: Sequence[Path], folder: Path) -> list[str]:
    """Return paths relative to the job's folder, with glob patterns for folders, as a job names a source."""
    named = []
    for name in names:
        path = Path(name)
        # `source.path` is a pattern: a bracket in a file's name would stand for one of several characters.
        relative = glob.escape(os.path.relpath(path, folder))
        inside = [file.name for file in files if file.parent == path]
        # Endings as they are spelt: patterns heed capitals, formats do not.
        endings = sorted({file[file.lower().index(suffix(file)) :] for file in inside})
        matched = [file for ending in endings for file in path.glob(f"*{ending}") if not is_hidden(file.name, "*")]
        if path.is_dir() and len(matched) > len(inside):
            # A hierarchy beside the data is none of it.
            named += [f"{relative}/{glob.escape(file)}" for file in inside]
        else:
            named += [f"{relative}/*{ending}" for ending in endings] if path.is_dir() else [relative]
    return named


def _said(given: SourceOptions, folder: Path) -> dict[str, Any]:
    """Return the ``source`` section of a job for a source that is not a plain file."""
    rows: dict[str, Any] = {"table": given.table} if given.table else {"query": given.query} if given.query else {}
    rows |= {"types": dict(given.types)} if given.types else {}
    if not given.names:
        return {"format": format_of_connection().name, **rows}
    if len(given.names) == 1 and given.names[0].startswith(DATABASE):
        return {"format": format_of_connection().name, "connection": {"uri": given.names[0]}, **rows}
    named, hive = [], False
    for one in given.names:
        partitioned = not is_address(one) and _of_folders(Path(one))
        hive |= partitioned
        relative = one if is_address(one) else os.path.relpath(one, folder)
        named.append(f"{glob.escape(relative)}/**/*.parquet" if partitioned else relative)
    return {"path": named, **({"hive": True} if hive else {}), **rows}


def read_like_a_run(connection: duckdb.DuckDBPyConnection, ending: ExitStack, source: Mapping[str, Any], name: str, folder: Path) -> Sample:
    """Read a source into a job's work folder, as its run would, and return it as a DuckDB sample.

    Args:
        ending: Copies of objects are gone when it is closed.
        source: What the job says under ``source``.
        name: Of the job, for its work folder.
    """
    job = _stand_in(source, name, folder)
    restrict_new_files()
    entry = FORMATS[job.source.format]
    with hold_work(job) as work:
        store, spill = work.store, private_folder(work.folder / "spill")
        ending.callback(store.remove, FETCHED.name)
        with fixed_extract(job, store, goes_on=False):
            found = [local_source_file(one, store) for one in locate_source_files(job, store)]
            if entry.sample and not job.source.hive:
                files = [one.path for one in found if one.path]
                return _read_as_is(entry, connection, files, ending)
            with database_kept_open():
                read = {one.name: path for one in found if (path := as_parquet(job, one, store).path)}
        spill.rmdir()
    return parquet_sample(connection, list(read.values()), hive=job.source.hive, names=list(read))


def _read_as_is(entry: SourceFormat, connection: duckdb.DuckDBPyConnection, files: Sequence[Path], ending: ExitStack) -> Sample:
    assert entry.sample is not None
    sample: Sample = entry.sample(connection, files)
    ending.callback(sample.close)
    return sample


def _stand_in(source: Mapping[str, Any], name: str, folder: Path) -> Job:
    """Return a minimal job with the source and work folder of the job that is drafted."""
    # A column with a type has a role.
    columns = {"quasi_identifiers": [{"name": "any", "hierarchy": {"prefix": [1]}}], "identifiers": list(source.get("types", ()))}
    said = {
        "version": 1,
        "name": name,
        "source": dict(source),
        "columns": columns,
        "privacy": {"k": 1},
        "suppression": {"limit": 0},
        "method": {"name": "skald"},
        "memory": "1GB",
        "target": f"releases/{name}",
    }
    return load_job(replace(given_job(said, folder), called="The job that would be drafted"))
