"""Kernels compiled by numba and kept for the next process, wherever they may be kept.

numba keeps a compiled function until the file that *defines* it changes; code of other files that went into it would stay as it was. So
what is kept lies in a folder named by the digest of all files of the kernels. That folder is in ``NUMBA_CACHE_DIR`` if it is set, else
in ``core/__pycache__``, else (an installation that is not ours to write to) in the user's cache; without any of them kernels
are compiled anew in every process. A folder of somebody else, or that all may write to, is none of them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from core.compiling.dispatchers import Kernel

_WAITING: list[Callable[[], None]] = []


@contextmanager
def notified_once_compiling(listener: Callable[[], None]) -> Iterator[None]:
    """Call ``listener`` as soon as a loop has to be compiled within the block. It is called once at most."""
    _WAITING.append(listener)
    try:
        yield
    finally:
        if listener in _WAITING:
            _WAITING.remove(listener)


def report_compiling() -> None:
    """Call all that wait for the first loop to be compiled, and forget them."""
    while _WAITING:
        _WAITING.pop()()


Function = TypeVar("Function", bound=Callable[..., Any])
CORE = Path(__file__).resolve().parent.parent
SETTINGS: Any = config


class _CompiledCache(FunctionCache):
    """numba's cache of a kernel, which takes compiled code as it lies there.

    numba itself first makes ready for compiling, which loads SciPy and hundreds of its own modules: half a second of a run that compiles
    nothing. The compiler does it too, where there is something to compile.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        load: Any = self._load_overload
        kept = load(sig, target_context)
        if kept is None:
            report_compiling()
        return kept


COMPILED_CACHE: Any = _CompiledCache


def compiler(*modules: str) -> Callable[[Function], Function]:
    """Return a decorator that compiles kernels which call each other across modules of this floor.

    Args:
        *modules: Their names, as in ``mondrian.rows``.
    """
    # All files that call each other: numba looks at the defining one alone and would go on running old code of the others.
    sources = b"".join((CORE / (module.replace(".", "/") + ".py")).read_bytes() for module in modules)
    home = compiled_folder()
    if home is None:
        return _kernel
    folder = home / hashlib.sha256(sources).hexdigest()[:16]

    def compiled(function: Function) -> Function:
        # numba reads the setting when it decorates; put back at once, so that kernels of other packages lie where they always do.
        elsewhere, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(folder)
        try:
            made: Any = _kernel(function)
            if made is not function:
                made._cache = COMPILED_CACHE(function)
        finally:
            SETTINGS.CACHE_DIR = elsewhere
        return cast("Function", made)

    return compiled


def _kernel(function: Function) -> Function:
    """Return a function that numba compiles when it is called, unless numba was told to compile nothing."""
    return function if SETTINGS.DISABLE_JIT else cast("Function", Kernel(function))


def compiled_folder() -> Path | None:
    """Return where what was compiled may be kept for the next process; None where it may be nowhere."""
    return next(filter(_writable, _homes()), None)


def compiled_kernels() -> frozenset[str]:
    """Return the names of the files of all compiled kernels that are kept, to notice that further ones were compiled."""
    home = compiled_folder()
    return frozenset(path.name for path in home.rglob("*.nbc")) if home else frozenset()


def _homes() -> list[Path]:
    """Return where compiled kernels may be kept, best first."""
    if SETTINGS.CACHE_DIR:
        return [Path(SETTINGS.CACHE_DIR)]
    homes = [CORE / "__pycache__"]
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return [*homes, Path(caches, "skald", "numba")]
    try:
        return [*homes, Path.home() / ".cache" / "skald" / "numba"]
    except RuntimeError:  # no home
        return homes


def _writable(folder: Path) -> bool:
    """Return whether a folder, or the nearest one above that is there, can be written to, and what lies in it was put there by nobody else.

    What is kept is run. Beside the code whoever may write may change the code itself.
    """
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        return False
    owned = there.stat()
    return there != folder or folder.is_relative_to(CORE) or (owned.st_uid == os.geteuid() and not owned.st_mode & stat.S_IWOTH)
