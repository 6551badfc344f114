"""DuckDB connections with bounded memory and spill inside the run folder; nothing is fetched."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb

from schemas.errors.base import SkaldError, StorageError
from schemas.errors.storage import MachineError
from schemas.errors.tables import FileError
from schemas.job.job import Job
from schemas.job.source import is_address

SHARE_OF_MEMORY = 2
ENOUGH = 256_000_000
MEMORY_PART = 16
"""Which part of a job's memory may be held beside a database that goes on as if it were not."""
THREADS_PER_CORE = 4
"""DuckDB starts as many threads as it is told to; more than this only wait for one another."""
SOON, PATIENCE = 0.2, 5
"""Seconds until a signal is heeded, and those that a server has to end a query that is cancelled."""
Settings = dict[str, str | bool | int | float | list[str]]
"""What a database is opened with, by DuckDB's names."""
_WRITE_FAULT = re.compile(r"Could not (?:write|create|open|sync)[^:]*: (?P<reason>[A-Z][a-z ]+)")


FILE_FAULTS = deque[SkaldError](maxlen=1)
"""The last error of a file that is Python's: of it DuckDB's own error keeps the text alone."""


def is_file_fault(error: Exception) -> bool:
    """Return whether DuckDB raised an error because a file that is Python's could not be read."""
    return type(error) is duckdb.Error and bool(FILE_FAULTS)


def is_short_of_files(error: BaseException) -> bool:
    """Return whether an error of Python or DuckDB says that too many files are open."""
    if isinstance(error, OSError):
        return error.errno in {errno.EMFILE, errno.ENFILE}
    return isinstance(error, duckdb.Error) and "Too many open files" in str(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of DuckDB or Arrow says that DuckDB exceeded its memory limit."""
    if isinstance(error, OSError):
        return error.errno is None and "Out of Memory Error" in str(error)
    return isinstance(error, duckdb.OutOfMemoryException)


def quote(name: str) -> str:
    """Return a name quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text quoted as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def file_pattern(path: Path | str) -> str:
    """Return the pattern by which DuckDB finds one file and no other; an address stays as it is.

    Left as they are, ``[``, ``*`` and ``?`` in a name would stand for other characters. Raise if no pattern finds the file: in one DuckDB
    takes a backslash for the end of a folder's name.
    """
    name = str(path)
    if is_address(name):
        return name
    if "\\" in name and glob.has_magic(name):
        raise FileError.unnamable(name)
    return glob.escape(name)


def attached_sql(path: Path | str) -> str:
    """Return an SQL literal of a DuckDB file for ``ATTACH``; raise if another would be opened.

    DuckDB takes a backslash for a slash there, and puts the ending of its log before a question mark.
    """
    if {"\\", "?"} & set(str(path)):
        raise FileError.unattachable(str(path))
    return literal(str(path))


def files_sql(paths: Iterable[Path | str]) -> str:
    """Return an SQL list of files for DuckDB's readers."""
    return f"[{', '.join(literal(file_pattern(path)) for path in paths)}]"


def parquet_sql(paths: Sequence[Path], *, row_numbers: bool = False) -> str:
    """Return the SQL relation of Parquet files, with ``file_row_number``, from 0, if it is asked for."""
    # Left to itself DuckDB takes folders such as a=b above a file for columns of it.
    return f"read_parquet({files_sql(paths)}, hive_partitioning = false{', file_row_number = true' * row_numbers})"


def write_parquet(connection: duckdb.DuckDBPyConnection, statement: str, path: Path, *options: str) -> int:
    """Write the rows of an SQL query to a Parquet file; return their number.

    Args:
        options: Of DuckDB's COPY, such as ``COMPRESSION uncompressed``.
    """
    how = ", ".join(["FORMAT parquet", *options])
    [(rows,)] = connection.execute(f"COPY ({statement}) TO {literal(str(path))} ({how})").fetchall()
    return int(rows)


def syntax_of(statement: str) -> dict[str, Any] | None:
    """Return the syntax tree of a SELECT statement; None where DuckDB cannot read it as one."""
    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as connection:
        try:
            [(text,)] = connection.execute("SELECT json_serialize_sql($statement)", {"statement": statement}).fetchall()
        except duckdb.Error:
            return None
    found: dict[str, Any] = json.loads(text)
    return None if found.get("error") else found


def connect(job: Job, spill: Path, *, last: bool = False, shared: bool = False) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Open an in-memory database with half the job's memory, more if ``last``, that spills to ``spill``.

    Args:
        job: Gives memory and threads.
        spill: Folder for what does not fit.
        last: For a step at the end of a run, which works alone: it takes three fifths of a large memory; what the phases before it still
            hold takes the rest.
        shared: The database is that of ``database_kept_open``, if there is one. What a statement sets may hold for those after it.
    """
    left = _left_at_the_end(job) if last else job.memory
    return database(left, spill, job.threads, 1 if last and job.memory >= ENOUGH else SHARE_OF_MEMORY, shared=shared)


def lower_memory_limit(connection: duckdb.DuckDBPyConnection, job: Job, bytes_held: int) -> None:
    """Lower a connection's memory limit by the bytes held beside it, to no less than half."""
    if job.memory < ENOUGH or bytes_held * MEMORY_PART < job.memory:
        return
    # Refused where more is in use than could be written to the disk: then it goes on as before.
    with suppress(duckdb.OutOfMemoryException):
        connection.execute(f"SET memory_limit = '{max(_left_at_the_end(job) - bytes_held, _left_at_the_end(job) // 2)}B'")


def _left_at_the_end(job: Job) -> int:
    return min(job.memory, max(job.memory * 3 // 5, ENOUGH))


@contextmanager
def database(
    memory: int, spill: Path, threads: int | None = None, share: int = SHARE_OF_MEMORY, *, shared: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an in-memory DuckDB with 1/``share`` of ``memory`` that spills; sanitise its disk errors.

    It takes at most one in ``share`` parts of ``memory`` bytes.
    """
    settings: Settings = {
        "memory_limit": f"{memory // share}B",
        # Spill is plain text and outlives SIGKILL; by default it would lie in the working directory, here the next run removes it.
        "temp_directory": str(spill),
        # To keep the order of rows costs memory; a step that relies on it asks for it.
        "preserve_insertion_order": False,
        # Else a statement could fetch code from the network.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if threads:
        settings["threads"] = min(threads, THREADS_PER_CORE * len(os.sched_getaffinity(0)))
    connection = _connected(settings, shared)
    try:
        connection.execute("SET enable_progress_bar = false")
        # A source may have thousands of files, of which each statement would read the footers anew; a file that changes is read anew.
        connection.execute("SET parquet_metadata_cache = true")
        # It takes whole columns of a row group into memory, which gains nothing on files of this machine; texts of 10 KB are many bytes.
        connection.execute("SET disable_parquet_prefetching = true")
        yield connection
    except (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.TransactionException, duckdb.FatalException, OSError) as error:
        if is_out_of_memory(error):
            raise StorageError.out_of_memory(memory) from None
        # A commit that cannot be written is told of as one.
        if is_short_of_files(error):
            raise MachineError.no_files() from None
        fault = None if isinstance(error, OSError) and error.errno is not None else _WRITE_FAULT.search(str(error))
        if fault is None:
            raise
        raise StorageError.not_writable(str(spill.parent), fault["reason"].strip()) from None
    except duckdb.Error as error:
        if is_file_fault(error):
            known = FILE_FAULTS.pop()
            # What it came of says whether it may pass.
            raise known from known.__context__
        raise
    finally:
        connection.close()


_KEPT: ContextVar[list[duckdb.DuckDBPyConnection] | None] = ContextVar("_KEPT", default=None)
"""The database that is kept open, once somebody asked for it; None where none is kept."""


@contextmanager
def database_kept_open() -> Iterator[None]:
    """Keep one database open for all calls within that ask for a ``shared`` one.

    To open a database takes longer than to read a small file.
    """
    kept: list[duckdb.DuckDBPyConnection] = []
    before = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(before)
        for one in kept:
            one.close()


def _connected(settings: Settings, shared: bool) -> duckdb.DuckDBPyConnection:
    kept = _KEPT.get() if shared else None
    if kept is None:
        return duckdb.connect(config=settings)
    kept.extend([] if kept else [duckdb.connect(config=settings)])
    return kept[0].cursor()


def interruptible(call: Callable[[], Any], cancel: Callable[[], None], *closing: ExitStack) -> Any:
    """Return what a call of a database's driver returns; if a signal comes first, cancel it.

    A driver heeds no signal, so it works on a thread of its own.

    Args:
        cancel: Ends what the database works on.
        *closing: What closes what the call uses. If a server does not react, it is left open.
    """
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    def stop() -> None:
        while not answer.done():
            cancel()
            wait([answer], SOON)

    try:
        Thread(target=work, daemon=True).start()
        # Polars has Ctrl-C go on with a wait that has no end.
        while wait([answer], SOON).not_done:
            pass
        return answer.result()
    except KeyboardInterrupt:
        Thread(target=stop, daemon=True).start()
        if wait([answer], PATIENCE).not_done:
            for one in closing:
                one.pop_all()
        raise
