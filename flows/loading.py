"""What a process that is there for one command leaves out as it loads libraries, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

UNUSED = ("pandas", "hypothesis")
"""Packages that Arrow, DuckDB and Pandera load wherever they are installed, and that no command makes use of."""

FOR_LEARNERS = "scipy"
"""A package that numba loads with some compiled loops for its linear algebra. Only the learners of ``skald utility`` make use of it."""

USUAL = gc.get_threshold()
WHILE_LOADING = 1_000_000
"""Objects, most of them small, that may be made before the garbage collector looks through them."""


class _NotInstalled(MetaPathFinder):
    """Finds that a package is not installed, though it may be."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Return None, for others to look, or raise what an import of a missing package raises.

        Raises:
            ModuleNotFoundError: it is one of those.
        """
        if fullname in self._names:
            msg = f"No module named '{fullname}'"
            raise ModuleNotFoundError(msg, name=fullname)
        return None


def load_less() -> None:
    """Let this process do without packages that its libraries would load and nothing here uses, and without threads that only wait."""
    sys.meta_path.insert(0, _NotInstalled(*UNUSED, *(() if "utility" in sys.argv[1:] else (FOR_LEARNERS,))))
    # NumPy's linear algebra, of which only learners of `skald utility` make use, else starts a thread for every core, and these spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic asks every installed distribution for plugins, of which nothing here makes use.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What libraries make as they are loaded stays, and looking through it again and again is a tenth of a small run.
    gc.set_threshold(WHILE_LOADING, *gc.get_threshold()[1:])


def all_loaded() -> None:
    """Let the garbage collector look as often as it otherwise does: what is made from now on may be of records, and go again.

    In a process of its own what was loaded stays, and is not looked through again.
    """
    if gc.get_threshold()[0] == WHILE_LOADING:
        gc.freeze()
        # At the end all is taken apart that is not left at once, and libraries tell of what is not.
        atexit.register(gc.unfreeze)
    gc.set_threshold(*USUAL)


def ended_at_once(main: Callable[[], None]) -> None:
    """Run what ends a process, and ends it once all that is waited for and all that libraries do at their end is done.

    What Python would do then, taking modules apart, costs a quarter of a small run, and threads that serve until the end (Prefect and Dask
    have such) may meet modules that are half taken apart, and end a run that is over with a signal.
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
    # Python's own end tells of a pipe that nobody reads, or of a full disk, and how an error that was not expected ends a process.
    if codes and _flushed():
        os._exit(codes[0])


def _flushed() -> bool:
    """Return whether all that was printed is out; of a stream that was closed before the process began there is none."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
