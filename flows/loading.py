"""Start of a process that runs one command: limit of memory, packages left out, quick exit."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import resource
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from schemas.errors.storage import MachineError

LEAST = 3_000_000_000
"""Bytes of address space that libraries, their threads' stacks and a small run map, most of which they never touch."""


def check_address_space() -> None:
    """Raise ``MachineError`` if the address space limit is too small; under a limit, use one BLAS thread.

    With too small a limit some libraries end the process, or wait for ever.

    Raises:
        MachineError: there is such a limit.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    # What a program has loaded already has its room.
    if limit == resource.RLIM_INFINITY or "duckdb" in sys.modules:
        return
    if limit < LEAST:
        raise MachineError.no_room(limit, LEAST)
    # Each thread of OpenBLAS, of which nothing here makes use, maps tens of megabytes as NumPy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


UNUSED = ("pandas", "hypothesis")
"""Packages that Arrow, DuckDB and Pandera load wherever they are installed, and that no command makes use of."""

FOR_LEARNERS = "scipy"
"""A package that numba loads with some compiled loops for its linear algebra. Only the learners of ``skald utility`` make use of it."""

USUAL = gc.get_threshold()
WHILE_LOADING = 1_000_000
"""Objects, most of them small, that may be made before the garbage collector looks through them."""

M_ARENA_MAX = -8
"""The setting of the C library for how many heaps its threads share; each heap keeps what is freed at its end."""


class _NotInstalled(MetaPathFinder):
    """Import finder that treats installed packages as missing."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise for packages that should be treated as missing, and return None for others.

        Raises:
            ModuleNotFoundError: it is one of those.
        """
        if fullname in self._names:
            msg = f"No module named '{fullname}'"
            raise ModuleNotFoundError(msg, name=fullname)
        return None


def prepare_quick_start() -> None:
    """Prepare this process for a quick, small start: block unused packages, share heaps, collect rarely."""
    sys.meta_path.insert(0, _NotInstalled(*UNUSED, *(() if "utility" in sys.argv[1:] else (FOR_LEARNERS,))))
    # NumPy's linear algebra, of which only learners of `skald utility` make use, else starts a thread for every core, and these spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic asks every installed distribution for plugins, of which nothing here makes use.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What one heap has freed no other can use: Arrow shares the C library's, which has one for each core and not eight.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(M_ARENA_MAX, max(os.cpu_count() or 1, 2))
    # What libraries make as they are loaded stays, and looking through it again and again is a tenth of a small run.
    gc.set_threshold(WHILE_LOADING, *gc.get_threshold()[1:])


def restore_collector() -> None:
    """Restore the garbage collector's normal frequency after all imports.

    New objects may belong to records, and must be freed again. In a process of its own the loaded modules stay, and are not searched
    again.
    """
    if gc.get_threshold()[0] == WHILE_LOADING:
        gc.freeze()
        # At the end all is taken apart that is not left at once, and libraries tell of what is not.
        atexit.register(gc.unfreeze)
    gc.set_threshold(*USUAL)


def run_and_exit(main: Callable[[], None]) -> None:
    """Run a main function, and end the process right after it and the exit handlers.

    What Python would do then, taking modules apart, costs a quarter of a small run. Threads that serve until the end (Prefect and Dask
    have such) may meet modules that are half taken apart, and end a finished run with a signal.
    """
    codes: list[int] = []
    # What is registered first is called last.
    atexit.register(_end, codes)
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            codes.append(ended.code)
        raise


def _end(codes: list[int]) -> None:
    """Exit with the code of the run, if all output was written or an error was told."""
    # Python's own end tells of a pipe that nobody reads, or of a full disk, and how an error that was not expected ends a process.
    if codes and (_flushed() or codes[0]):
        os._exit(codes[0])


def _flushed() -> bool:
    """Return whether all printed output was written."""
    written = True
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except (OSError, ValueError):
            written = False
    return written
