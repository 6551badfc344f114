"""Steps: each declares once what it reads, its settings, how its result is made and where it is kept.

How its calls are handed out, over chunks and workers, is for ``tasks.engine.steps``.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store


class StepCall(Protocol):
    """Interface of what all calls of a step share: plain values for workers, and a store."""

    @property
    def store(self) -> Store:
        """The store that a step reads from and writes to."""


G_contra = TypeVar("G_contra", bound=StepCall, contravariant=True)
Item_contra = TypeVar("Item_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


def _nothing(_given: Any) -> None:
    """Return no settings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Step(ABC, Generic[G_contra, Item_contra, R_co]):
    """A step of a run: what it reads, its settings and key, and the function that makes its result.

    Attributes:
        name: Names the step in keys, and the folder of its artefacts.
        make: Makes the result of an item; a function of the module that the step stands in.
        reads: Returns what the result of an item is made of: anything that JSON can say.
        settings: Returns what else enters the key: settings of the job.
        phase: Names its calls to whoever watches; the step's name unless it is said.
        code: The module that makes the result, where that of ``make`` hands all the work to another; or what returns it, where the given is
            of several kinds.
        under: The step whose key it has, because the results of both are read together.
    """

    name: str = field(kw_only=False)
    make: Callable[..., Any]
    reads: Callable[[G_contra, Item_contra], object]
    settings: Callable[[G_contra], object] = _nothing
    phase: str = ""
    code: str | Callable[[G_contra], str] = ""
    under: Step[G_contra, Item_contra, Any] | None = None

    def __post_init__(self) -> None:
        # A worker finds it by its module, as it does a function.
        object.__setattr__(self, "__module__", self.make.__module__)

    @abstractmethod
    def __call__(self, given: G_contra, items: Sequence[Item_contra]) -> list[R_co]:
        """Return the results of some items from the store, or make them now."""

    def key(self, given: G_contra, item: Item_contra) -> Key:
        """Return the key of an item's result: a digest of what is read, the settings and the step's code."""
        return self.key_by(given, self.reads(given, item))

    def key_by(self, given: G_contra, read: object) -> Key:
        """Return the key of a result from what ``reads`` returned for the item."""
        return (
            self.under.key_by(given, read) if self.under else StepCode(self.name, self.module_name(given)).key(read, self.settings(given))
        )

    def module_name(self, given: G_contra) -> str:
        """Return the name of the module that makes the result."""
        return (self.code(given) if callable(self.code) else self.code) or self.make.__module__

    @cached_property
    def keys(self) -> StepCode:
        """Name and code of the step, which enter each of its keys."""
        return StepCode(self.name, self.make.__module__ if callable(self.code) else self.code or self.make.__module__)

    @property
    def watched(self) -> str:
        """The phase to which the step's calls are reported."""
        return self.phase or self.name

    @cached_property
    def variable(self) -> str:
        """The name of the module variable that holds this step."""
        return next(name for name, value in vars(sys.modules[self.make.__module__]).items() if value is self)


@dataclass(frozen=True, eq=False, kw_only=True)
class FilesStep(Step[G_contra, Item_contra, R_co]):
    """A step whose ``make(given, item)`` finds or writes several files of an item and returns them."""

    make: Callable[[G_contra, Item_contra], R_co]

    def __call__(self, given: G_contra, items: Sequence[Item_contra]) -> list[R_co]:
        """Return the results of some items from the store, or make them now."""
        return list(map(self.make, repeat(given), items))


@dataclass(frozen=True, eq=False, kw_only=True)
class FileStep(Step[G_contra, Item_contra, Artifact]):
    """A step whose ``make(given, item, path)`` writes one file of an item and returns its rows.

    Attributes:
        suffix: Of the file, with its dot.
    """

    make: Callable[[G_contra, Item_contra, Path], int]
    suffix: str = ".parquet"

    def __call__(self, given: G_contra, items: Sequence[Item_contra]) -> list[Artifact]:
        """Return the artefacts of some items from the store, or make them now."""
        return list(map(self.result, repeat(given), items))

    def result(self, given: G_contra, item: Item_contra) -> Artifact:
        """Return the artefact of an item from the store, or make it now."""
        return self.save_artifact(given, item, lambda path: self.make(given, item, path))

    def save_artifact(self, given: G_contra, item: Item_contra, write: Callable[[Path], int]) -> Artifact:
        """Return an item's artefact from the store; if missing, write it by the given function."""
        return given.store.make(self.name, self.key(given, item), self.suffix, write)

    def find(self, given: G_contra, item: Item_contra) -> Artifact | None:
        """Return the artefact of an item if it is stored and undamaged, else None; make nothing."""
        return given.store.find(self.name, self.key(given, item))

    def find_by(self, given: G_contra, read: object) -> Artifact | None:
        """Return the artefact for what ``reads`` returned if it is stored and undamaged, else None."""
        return given.store.find(self.name, self.key_by(given, read))
