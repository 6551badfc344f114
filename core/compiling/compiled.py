"""Kernels compiled by numba and cached on disk for the next process.

numba keeps a compiled function until the file that *defines* it changes; code of other files that went into it would stay as it was. So
compiled code is kept in a folder named by the digest of all files of the kernels. That folder is in ``NUMBA_CACHE_DIR`` if it is set, else
in ``core/__pycache__``, else in the user's cache, where the installation is not writable. Without any of them kernels are compiled again in
every process. A folder of another user, or that all users may write to, is never used.
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

_LISTENERS: list[Callable[[str], None]] = []


@contextmanager
def notified_of_compiling(listener: Callable[[str], None]) -> Iterator[None]:
    """Call ``listener`` with the module of each kernel that has to be compiled within the block."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def report_compiling(module: str) -> None:
    """Call each listener with the name of the module of a kernel that has to be compiled."""
    for listener in tuple(_LISTENERS):
        listener(module)


Function = TypeVar("Function", bound=Callable[..., Any])
CORE = Path(__file__).resolve().parent.parent
SETTINGS: Any = config


class _CompiledCache(FunctionCache):
    """Cache of a kernel's compiled code that does not start numba's compiler to read it.

    numba itself first prepares to compile, which loads SciPy and hundreds of its own modules. That is half a second of a run that compiles
    nothing. The compiler does the same, where there is code to compile.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel's compiled code from the cache; report that it has to be compiled where it is missing."""
        rtsys.initialize(target_context)
        load: Any = self._load_overload
        kept = load(sig, target_context)
        if kept is None:
            report_compiling(self._py_func.__module__)
        return kept


COMPILED_CACHE: Any = _CompiledCache


def compiler(*modules: str) -> Callable[[Function], Function]:
    """Return a decorator that compiles and caches kernels which call each other across these modules.

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
    """Return a function as a kernel that numba compiles at its first call.

    Where numba is set to compile nothing, the function itself is returned.
    """
    return function if SETTINGS.DISABLE_JIT else cast("Function", Kernel(function))


def compiled_folder() -> Path | None:
    """Return the folder for compiled code, or None if no folder can be used."""
    return next(filter(_writable, _homes()), None)


def compiled_kernels() -> frozenset[str]:
    """Return the file names of all cached kernels, so that later compilations can be noticed."""
    home = compiled_folder()
    return frozenset(path.name for path in home.rglob("*.nbc")) if home else frozenset()


def _homes() -> list[Path]:
    """Return the folders where compiled code may be cached, best first."""
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
    """Return whether compiled code may be cached in a folder: it is writable, and not by other users.

    A folder that does not exist is judged by the nearest one above it that does.

    Cached code is run. A user who may write next to the source code may change that code anyway.
    """
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        return False
    owned = there.stat()
    return there != folder or folder.is_relative_to(CORE) or (owned.st_uid == os.geteuid() and not owned.st_mode & stat.S_IWOTH)
