"""Registries: one entry per kind, such as a hierarchy or method, with its schema, code and texts.

Everything else asks the registry: the job's models which keys exist, the flows which code to call, plan, report and comparison for the
names, the documentation for the texts. Entries name code by its import path, because schemas import nothing of the layers above and
because a job should import only the code that it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from schemas.reading.model import StrictModel


class NamedEntry(Protocol):
    """Protocol of a registry's entries."""

    @property
    def name(self) -> str:
        """Name of the entry in a job file."""


class Described(NamedEntry, Protocol):
    """Protocol of entries with a job model of their own."""

    @property
    def schema(self) -> type[StrictModel]:
        """Model of the entry's settings in a job file."""


Entry = TypeVar("Entry", bound=NamedEntry)
_watching: list[Callable[[], None]] = []


class Registry(Mapping[str, Entry], Generic[Entry]):
    """The entries of one kind by name, in the order in which they were added.

    Args:
        what: What one of them is called in a message.
        *entries: Those that the product comes with.
    """

    def __init__(self, what: str, *entries: Entry) -> None:
        self.what = what
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self._add(entry)

    def add(self, entry: Entry) -> None:
        """Add an entry, and rebuild the models that use the registry; raise ValueError for a taken name."""
        self._add(entry)
        _tell()

    @contextmanager
    def having(self, entry: Entry) -> Iterator[None]:
        """Add an entry during a ``with`` block, and remove the entry at its end."""
        self.add(entry)
        try:
            yield
        finally:
            del self._entries[entry.name]
            _tell()

    def _add(self, entry: Entry) -> None:
        """Add an entry, and raise ValueError if its name is taken."""
        if entry.name in self._entries:
            raise ValueError(f"there is a {self.what} '{entry.name}' already")
        self._entries[entry.name] = entry

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Schemas(Mapping[str, type[StrictModel]]):
    """Live mapping from the names of a registry's entries to their models."""

    def __init__(self, registry: Mapping[str, Described]) -> None:
        self._registry = registry

    def __getitem__(self, name: str) -> type[StrictModel]:
        return self._registry[name].schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)


class OneOf:
    """Annotation of a field that holds the name of a registry entry."""

    def __init__(self, registry: Mapping[str, NamedEntry]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the core schema that accepts one of the registered names."""
        # As they are now: an entry that is added later has the models made anew.
        return core_schema.literal_schema(list(self._registry))


class Code:
    """Reference to a function or another object by its import path, imported when needed.

    Args:
        path: Module and name, as in ``core.hierarchies.bins_and_dates:widths_levels``.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def module(self) -> str:
        """Import path of the module with the object."""
        return self.path.split(":")[0]

    def load(self) -> Any:
        """Import the module and return the object."""
        module, name = self.path.split(":")
        return getattr(import_module(module), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function and call it."""
        return self.load()(*arguments, **named)


def call_on_change(rebuild: Callable[[], None]) -> None:
    """Register a function to be called whenever an entry is added to or removed from a registry."""
    _watching.append(rebuild)


def _tell() -> None:
    """Call the registered functions after a change of entries."""
    for rebuild in _watching:
        rebuild()
