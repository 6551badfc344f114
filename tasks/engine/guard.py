"""Sanitised errors of steps, so that no exception carries a cell value."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from schemas.errors.base import InternalError, SkaldError, StorageError
from schemas.errors.storage import MachineError, ThreadsError
from tasks.store.database import is_out_of_memory, is_short_of_files

RETRY_SECONDS = (10.0, 60.0)
"""Waits before the second and the third try: a lost packet, and a file server that starts anew."""
CHUNKS_SECONDS = 2 * 3600
"""For a task of chunks, at most a 32nd of the source: at a microsecond per record, 7,200 million records. Longer is a mount that hangs."""
RUN_TASK_SECONDS = 12 * 3600
"""For a task of the whole run (merge, search, recount), which may spill for hours. A nightly run is over before the next one begins."""

TRANSIENT = frozenset(
    {
        errno.EIO,  # a device or a network file system had a fault
        errno.ESTALE,  # the file server was started anew
        errno.ETIMEDOUT,
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENETRESET,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENOTCONN,  # a mount that is being made again
    }
)
_REASONS = tuple(os.strerror(code) for code in sorted(TRANSIENT))


def is_transient(error: BaseException) -> bool:
    """Return whether an error was caused by a system fault that a retry may not meet again.

    Constructors of ours are raised ``from None``, which hides what was being handled but keeps it.
    """
    beneath: BaseException | None = error
    while beneath is not None:
        if isinstance(beneath, SkaldError):
            if beneath.transient:
                return True
        elif isinstance(beneath, OSError):
            if beneath.errno in TRANSIENT:
                return True
        # DuckDB's has no number, only the system's words.
        elif type(beneath).__name__ == "IOException" and any(reason in str(beneath) for reason in _REASONS):
            return True
        beneath = beneath.__cause__ or beneath.__context__
    return False


_NO_THREAD = re.compile(r"can't start new thread|[Tt]hread constructor failed|^Resource temporarily unavailable$")
_NO_ROOM = re.compile(r"failed to map segment|cannot allocate memory", re.IGNORECASE)
"""What the loader of libraries says where there is no address space."""
Result = TypeVar("Result")


def guarded(function: Callable[..., Result]) -> Callable[..., Result]:
    """Wrap a function so that errors carry no cell values: ours pass, others become their type and place.

    Prefect stores the text of exceptions and of what they were raised from, so the new one is raised where no other is being handled.
    """

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Result:
        try:
            return function(*arguments, **named)
        except SkaldError as error:
            raised, transient = error, is_transient(error)
        except BaseException as error:
            # A panic in Polars is no Exception; what interrupts or cancels is none either and goes through.
            panic = type(error).__module__ == "pyo3_runtime"
            if os.environ.get("SKALD_DEBUG") or not (panic or isinstance(error, Exception)):
                raise
            raised, transient = sanitised_error(error), is_transient(error)
        raised.transient = transient
        raised.__cause__ = raised.__context__ = None
        raise raised

    return call


def is_short_of_threads(error: BaseException) -> bool:
    """Return whether an error means that the system refused another thread or process.

    Python, DuckDB, Arrow and Prefect each word it differently.
    """
    if isinstance(error, OSError):
        return isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN
    return isinstance(error, RuntimeError | duckdb.Error | pa.ArrowException) and bool(_NO_THREAD.search(str(error)))


def sanitised_error(error: BaseException) -> SkaldError:
    """Return an error of our classes for any other error: its kind and place without its text."""
    if is_short_of_threads(error):
        return ThreadsError.refused()
    if isinstance(error, MemoryError) or is_out_of_memory(error) or (isinstance(error, ImportError) and _NO_ROOM.search(str(error))):
        return MachineError.no_memory()
    if is_short_of_files(error):
        return MachineError.no_files()
    if isinstance(error, UnicodeEncodeError) and sys.getfilesystemencoding() != "utf-8":
        return MachineError.no_such_letters()
    if isinstance(error, OSError):
        return StorageError.not_writable(str(error.filename or "a file or standard output"), error.strerror or type(error).__name__)
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    # Where it happened helps whoever mends it; the text of the error may hold a cell.
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "an unknown place"
    return InternalError(type(error).__name__, place)
