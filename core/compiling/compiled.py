"""Loops that numba compiles, cached on disk for the next process; small arrays need none of that.

To load numba and its compiled code takes a third of a second, and to compile a method's loops takes several. So a loop is compiled or
loaded at its first call alone. Some loops also have a form in NumPy, which gives the same result: it serves while arrays are small and few.

numba keeps a compiled function until the file that *defines* it changes; code of other files that went into it would stay as it was. So
compiled code is kept in a folder named by the digest of all files of the kernels. That folder is in ``NUMBA_CACHE_DIR`` if it is set, else
in ``core/__pycache__``, else in the user's cache, where the installation is not writable. Without any of them kernels are compiled again in
every process. A folder of another user, or that all users may write to, is never used.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

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
_COMPILING = RLock()


class SmallArrays:
    """How much NumPy may yet do in the place of loops, in this process.

    Attributes:
        of_kept: Elements of all arrays for loops that were compiled before, until numba is loaded: that is most of what these cost.
        of_new: The same for loops that would have to be compiled first. What a run may spend on them each time is less than that costs.
    """

    def __init__(self, of_kept: int = 1 << 23, of_new: int = 1 << 25) -> None:
        self.of_kept, self.of_new = of_kept, of_new

    def admit(self, arguments: Sequence[Any], loop: Loop) -> bool:
        """Return whether the arguments of a loop are few enough; count them."""
        left, longest = (self.of_kept, 1 << 16) if loop.is_kept else (self.of_new, 1 << 20)
        if not left:
            return False
        arrays = [one for one in arguments if getattr(one, "ndim", 0)]
        # A call costs as much as some hundred elements.
        size = max((one.size for one in arrays), default=0) + 256
        if size > left or max((len(one) for one in arrays), default=0) > longest:
            return False
        if loop.is_kept:
            self.of_kept -= size
        else:
            self.of_new -= size
        return True

    def end(self) -> None:
        """Admit little from now on, as numba is loaded."""
        self.of_kept, self.of_new = 0, min(self.of_new, 1 << 23)


_SMALL = SmallArrays()


@contextmanager
def compiled_loops_only() -> Iterator[None]:
    """Let compiled loops do all that is called within the block, whatever its size."""
    before = _SMALL.of_kept, _SMALL.of_new
    _SMALL.of_kept = _SMALL.of_new = 0
    try:
        yield
    finally:
        _SMALL.of_kept, _SMALL.of_new = before


class Loop:
    """A loop that numba compiles at its first call, for Python or as a part of another loop.

    Attributes:
        in_arrays: The same in NumPy, for small arrays; it returns ``NotImplemented`` for arguments that it does not take.
    """

    __name__: str
    in_arrays: Callable[..., Any] | None = None

    def __init__(self, function: Callable[..., Any], digest: str) -> None:
        """Create a loop of a Python function; nothing of it is compiled or loaded yet.

        Args:
            function: Of what numba can compile.
            digest: Of all code that is compiled with it.
        """
        update_wrapper(self, function)
        self._function, self._digest = function, digest
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Do small work in arrays, and all other work by compiled code."""
        if self.in_arrays is not None and (_SMALL.of_kept or _SMALL.of_new) and _SMALL.admit(arguments, self):
            found = self.in_arrays(*arguments)
            if found is not NotImplemented:
                return found
        return (self._compiled or self.compiled)(*arguments)

    @property
    def compiled(self) -> Any:
        """The kernel that numba makes of it."""
        with _COMPILING:
            if self._compiled is None:
                from core.compiling.dispatchers import kernel_in  # noqa: PLC0415 - numba

                self._compiled = kernel_in(self._folder(), self._function, report_compiling)
                _SMALL.end()
            return self._compiled

    @cached_property
    def is_kept(self) -> bool:
        """Whether a process has compiled the loop before this one asks, for arguments of some types."""
        folder = self._folder()
        return folder is not None and any(folder.glob(f"*/*.{self.__name__}-*.nbi"))

    @property
    def _numba_type_(self) -> Any:
        # By this numba knows what other loops call.
        return self.compiled._numba_type_

    def _folder(self) -> Path | None:
        home = compiled_folder()
        return home and home / self._digest


def compiler(*modules: str) -> Callable[[Function], Function]:
    """Return a decorator that compiles and caches kernels which call each other across these modules.

    Args:
        *modules: Their names, as in ``mondrian.rows``.
    """
    # All files that call each other: numba looks at the defining one alone and would go on running old code of the others. They are read
    # now, when their code is loaded: who changes them later shall not find what was compiled of it.
    sources = b"".join((CORE / (module.replace(".", "/") + ".py")).read_bytes() for module in modules)
    digest = hashlib.sha256(sources).hexdigest()[:16]

    def compiled(function: Function) -> Function:
        return cast("Function", Loop(function, digest))

    return compiled


def small_in(in_arrays: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that gives a kernel its form in NumPy for small arrays."""

    def added(loop: Function) -> Function:
        cast("Any", loop).in_arrays = in_arrays
        return loop

    return added


def compiled_folder() -> Path | None:
    """Return the folder for compiled code, or None if no folder can be used."""
    return next(filter(_writable, _homes()), None)


def compiled_kernels() -> frozenset[str]:
    """Return the file names of all cached kernels, so that later compilations can be noticed."""
    home = compiled_folder()
    return frozenset(path.name for path in home.rglob("*.nbc")) if home else frozenset()


def _homes() -> list[Path]:
    """Return the folders where compiled code may be cached, best first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen)]
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
    # Not `Path.exists`: in a home that may not be entered it raises.
    there = next((path for path in (folder, *folder.parents) if os.path.exists(path)), folder)  # noqa: PTH110
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        return False
    owned = there.stat()
    return there != folder or folder.is_relative_to(CORE) or (owned.st_uid == os.geteuid() and not owned.st_mode & stat.S_IWOTH)
