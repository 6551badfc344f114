"""Compilation of a kernel that other kernels call into their machine code only.

numba makes machine code of every function it meets: with wrappers for Python, optimised and linked with all that it calls. A kernel that
ten others call one inside the other is optimised ten times. Here a kernel is compiled in one of two ways:

- Python calls it: its code and the code of all kernels below it are linked once, optimised once, and kept for the next process.
- A kernel calls it: only its intermediate code is made, for the kernels above it to link.

numba, too, optimises all that Python calls as a whole. It only does so for every kernel below as well.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar

from numba.core import config, sigutils, typing
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys


class PartLibrary(JITCodeLibrary):
    """Intermediate code of a kernel that other kernels call.

    Nothing is linked to it or optimised: callers do both.

    Attributes:
        environment: The name and the object by which the code reaches Python, for its exceptions.
    """

    environment: tuple[str, Any]

    def finalize(self) -> None:
        """Finish the code without linking or optimising it."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True


class CallerLibrary(JITCodeLibrary):
    """Code of a kernel that Python calls, with the code of all parts below it."""

    def finalize(self) -> None:
        """Link each part once, then optimise all code together and compile it to machine code."""
        self._linking_libraries = _all_below(self)
        super().finalize()

    def set_environments(self) -> None:
        """Give each linked kernel numba's environment, without which it cannot raise Python exceptions."""
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary) and self.codegen._engine.is_symbol_defined(library.environment[0]):
                self.codegen.set_env(*library.environment)


Library = TypeVar("Library", PartLibrary, CallerLibrary)


def empty_library(kind: type[Library], context: Any, name: str) -> Library:
    """Return a library without code that can be cached in a file once it has some.

    Args:
        kind: Its class.
        context: numba's target.
        name: Of the function.
    """
    library = kind(context.codegen(), name)
    library.enable_object_caching()
    return library


def _all_below(library: Any) -> list[Any]:
    """Return all libraries that a library calls, directly or through parts, callers first.

    Each is listed once.

    LLVM leaves out a function that nothing has called when its library is linked.
    """
    found: dict[Any, None] = {}

    def append_below(one: Any) -> None:
        if one not in found:
            if isinstance(one, PartLibrary):
                for below in one._linking_libraries:
                    append_below(below)
            found[one] = None

    for below in library._linking_libraries:
        append_below(below)
    return list(reversed(found))


Types = tuple[Any, ...]


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Pause Python's garbage collector during a compilation.

    A compilation holds hundreds of thousands of objects until it ends, which the collector would look at in vain.
    """
    with global_compiler_lock:
        was = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was:
                gc.enable()


class _CallerCompiler(Compiler):
    """Compiler of kernels that Python calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function for Python; its library holds the code of all kernels below it."""
        library = empty_library(CallerLibrary, self.state.targetctx, func.__qualname__)
        self.state.library = library
        self.state.flags.no_cfunc_wrapper = True
        with _collecting_nothing():
            made = super().compile_extra(func)
        library.set_environments()
        return made


class _PartCompiler(Compiler):
    """Compiler of kernels that other kernels call."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function as a part of other kernels, with nothing that Python could call."""
        context = self.state.targetctx
        library = empty_library(PartLibrary, context, func.__qualname__)
        self.state.library = library
        flags = self.state.flags
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        made = super().compile_extra(func)
        library.environment = context.get_env_name(made.fndesc), made.environment
        # Callers find a function by its entry point, which can be anything; a part has none.
        context.insert_user_function(made.fndesc, made.fndesc, [library])
        return made._replace(entry_point=made.fndesc)


class Kernel(CPUDispatcher):
    """Kernel whose code is compiled once for Python, or as a part of the kernels that call it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Create a kernel of a Python function; nothing is compiled yet."""
        # Chunks are worked on by threads: with the GIL held they would wait for each other.
        super().__init__(function, targetoptions={"nopython": True, "nogil": True}, pipeline_class=_CallerCompiler)
        self._parts: dict[Types, Any] = {}

    def get_call_template(self, args: Types, kws: dict[str, Any]) -> Any:
        """Return the call template with which a calling kernel is compiled, for arguments of some types."""
        signature, folded = self._compiler.fold_argument_types(args, kws)
        made = self._as_part(tuple(folded))
        name = self.py_func.__name__
        return typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=[made.signature]), signature, folded, {}

    def get_overload(self, sig: Any) -> Any:
        """Return the entry point by which callers find the code for a signature."""
        args, _ = sigutils.normalize_signature(sig)
        return self._as_part(tuple(args)).entry_point

    def _as_part(self, args: Types) -> Any:
        """Return the compiled kernel for argument types: as Python calls it if that exists, else a part."""
        if made := self.overloads.get(args) or self._parts.get(args):
            return made
        with self._compiling_counter:
            self._compiler.pipeline_class = _PartCompiler
            try:
                self._parts[args] = self._compiler.compile(args, None)
            finally:
                self._compiler.pipeline_class = _CallerCompiler
        return self._parts[args]


DAMAGES = (UnpicklingError, EOFError, ValueError, LookupError, AttributeError, ImportError, OSError)
"""Errors of reading a damaged file of compiled code, or one that cannot be read."""


class CompiledCache(FunctionCache):
    """Cache of a kernel's compiled code that does not start numba's compiler to read it.

    numba itself first prepares to compile, which loads SciPy and hundreds of its own modules. That is half a second of a run that compiles
    nothing. The compiler does the same, where there is code to compile.

    Attributes:
        on_missing: Called with the kernel's module where it has to be compiled.
    """

    on_missing: Callable[[str], None]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel's compiled code; report that it has to be compiled where it is missing or damaged."""
        rtsys.initialize(target_context)
        try:
            kept = self._load_overload(sig, target_context)
        except DAMAGES:
            with suppress(OSError):
                self.flush()
            kept = None
        if kept is not None and kept.signature.args != tuple(sig):
            # Two processes that began at once named the code of different types alike.
            kept = None
        if kept is None:
            self.on_missing(self._py_func.__module__)
        return kept

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel's compiled code for the next process, where the disk lets it be written."""
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel_in(folder: Path | None, function: Callable[..., Any], on_missing: Callable[[str], None]) -> Any:
    """Return a function as a kernel whose compiled code is kept in a folder.

    Where numba is set to compile nothing, the function itself is returned.

    Args:
        folder: None keeps nothing.
        function: Of what numba can compile.
        on_missing: As for ``CompiledCache``.
    """
    settings: Any = config
    if settings.DISABLE_JIT:
        return function
    made: Any = Kernel(function)
    if folder is not None:
        # numba reads the setting when it makes a cache; put back at once, so that kernels of other packages lie where they always do.
        elsewhere, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            made._cache = CompiledCache(function)
        finally:
            settings.CACHE_DIR = elsewhere
        made._cache.on_missing = on_missing
    return made
