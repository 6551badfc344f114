"""Code of kernels before it becomes machine code: of one that Python calls, and of the parts below it."""

from __future__ import annotations

from typing import Any, TypeVar

from numba.core.codegen import JITCodeLibrary


class PartLibrary(JITCodeLibrary):
    """Intermediate code of a kernel that kernels call. Nothing is linked to it or optimised: callers do both.

    Attributes:
        environment: The name and the object by which the code reaches Python, for its exceptions.
    """

    environment: tuple[str, Any]

    def finalize(self) -> None:
        """Ends the making of the code."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True


class CallerLibrary(JITCodeLibrary):
    """Code of a kernel that Python calls, with the code of all parts below it."""

    def finalize(self) -> None:
        """Links each part once, then optimises all code together and makes machine code of it."""
        self._linking_libraries = _all_below(self)
        super().finalize()

    def set_environments(self) -> None:
        """Lets the code of parts reach Python, which it does to raise exceptions."""
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary) and self.codegen._engine.is_symbol_defined(library.environment[0]):
                self.codegen.set_env(*library.environment)


Library = TypeVar("Library", PartLibrary, CallerLibrary)


def empty_library(kind: type[Library], context: Any, name: str) -> Library:
    """Returns a library without code, which can be kept in a file once it has some.

    Args:
        kind: Its class.
        context: numba's target.
        name: Of the function.
    """
    library = kind(context.codegen(), name)
    library.enable_object_caching()
    return library


def _all_below(library: Any) -> list[Any]:
    """Returns the libraries that a library calls, directly or by way of parts; each once, and after all that call it.

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
