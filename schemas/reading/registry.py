"""Registries: what there is of one kind of thing, each in one entry that holds its schema, its code and its words.

Everything else asks the registry: the job's models which keys there are, the flows which code to call, plan, report and comparison what to
call it, the documentation what to say of it. Entries name code by its import path, because schemas know nothing of the floors above and
because a job should import only what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from schemas.reading.model import StrictModel


class NamedEntry(Protocol):
    """What a registry holds."""

    @property
    def name(self) -> str:
        """How a job calls it."""


class Described(NamedEntry, Protocol):
    """An entry with a model of its own in the job."""

    @property
    def schema(self) -> type[StrictModel]:
        """What a job may say of it."""


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
        """Add an entry; models that were made before know it from here on."""
        self._add(entry)
        _tell()

    @contextmanager
    def having(self, entry: Entry) -> Iterator[None]:
        """Add an entry until the block ends."""
        self.add(entry)
        try:
            yield
        finally:
            del self._entries[entry.name]
            _tell()

    def _add(self, entry: Entry) -> None:
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
    """The models of a registry's entries by name, as they are at the moment."""

    def __init__(self, registry: Mapping[str, Described]) -> None:
        self._registry = registry

    def __getitem__(self, name: str) -> type[StrictModel]:
        return self._registry[name].schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)


class OneOf:
    """Annotation of a field that holds the name of an entry."""

    def __init__(self, registry: Mapping[str, NamedEntry]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of one of the names."""
        # As they are now: an entry that is added later has the models made anew.
        return core_schema.literal_schema(list(self._registry))


class Loadable(Protocol):
    """What gives code when it is asked for it."""

    def load(self) -> Any:
        """Return the code."""

    @property
    def module(self) -> str:
        """Where it is."""


@dataclass(frozen=True)
class CodeAtHand:
    """Code that is at hand."""

    code: Any

    def load(self) -> Any:
        """Return the code."""
        return self.code

    @property
    def module(self) -> str:
        """Where it is."""
        return str(self.code.__module__)


class Code:
    """A function or another object by its import path, imported when it is asked for.

    Args:
        path: Module and name, as in ``core.hierarchies.widths:widths_levels``.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def module(self) -> str:
        """Where it is."""
        return self.path.split(":")[0]

    def load(self) -> Any:
        """Return what the path leads to."""
        module, name = self.path.split(":")
        return getattr(import_module(module), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.load()(*arguments, **named)


def watch(rebuild: Callable[[], None]) -> None:
    """Let ``rebuild`` be called whenever an entry comes or goes."""
    _watching.append(rebuild)


def _tell() -> None:
    for rebuild in _watching:
        rebuild()
