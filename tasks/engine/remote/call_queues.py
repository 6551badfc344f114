"""Queues of calls for workers, in the run folder or in a bucket, and calls as JSON bytes.

A pickle says which code to run when it is read; here a text says values. It knows the few kinds of value that steps get, and of classes
those of this project that hold data alone: models, dataclasses and named tuples, which are filled and not called. A function or a step is
one of a module of this project, by its name. Paths and stores of work in a bucket become those of the machine that reads them.
"""

from __future__ import annotations

import atexit
import base64
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pydantic import BaseModel

from schemas.errors.base import InternalError
from schemas.errors.runners import RunnerError, WithdrawnError
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import OURS
from tasks.store.place import Bucket
from tasks.store.step import Step
from tasks.store.store import Store
from tasks.store.work import BELOW, CALLS, BucketWork, HeldWork, scratch_folder

FLOORS = OURS
"""What the modules begin with whose functions and classes a call may name."""
STATE = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
"""What a model holds, as Pydantic itself names it where one is copied."""


class PathName(NamedTuple):
    """Name of a path that each machine of a run understands.

    Attributes:
        kind: ``everywhere`` for a path that is the same on all machines, ``work`` for one in the work of a bucket.
        text: The whole path, or that from the folder of the work.
    """

    kind: str
    text: str


class WorkNames(Protocol):
    """Interface that converts paths and stores to machine-independent names and back."""

    def path_name(self, path: Path) -> PathName:
        """Return the machine-independent name of a path."""

    def path_of(self, name: PathName) -> Path:
        """Return this machine's path for a name from ``path_name``."""

    def store_name(self, store: Store) -> str:
        """Return the machine-independent name of a store."""

    def store(self, name: str) -> Store:
        """Return this machine's store for a machine-independent name."""


def encoded(function: Callable[..., Any], arguments: tuple[Any, ...], work_names: WorkNames) -> bytes:
    """Return a call's function and arguments as JSON bytes; raise ``InternalError`` for other types.

    Args:
        function: A function of a module of ours, or a step.
        arguments: What it gets.
        work_names: Calls the work by a name that the other side knows.
    """
    return json.dumps([_name_of(function), _said(arguments, work_names)]).encode()


def decoded(content: bytes, work_names: WorkNames) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return function and arguments of an encoded call; raise ``InternalError`` for a function not ours."""
    name, said = json.loads(content)
    function = _named(name)
    if not isinstance(function, FunctionType | Step) or function.__module__ != name[0]:
        raise InternalError("no function", "a call")
    arguments: tuple[Any, ...] = _meant(said, work_names)
    return function, arguments


def _name_of(thing: Any) -> list[str]:
    return _ours([str(thing.__module__), thing.variable if isinstance(thing, Step) else str(thing.__qualname__)])


def _named(name: list[str]) -> Any:
    module, inside = _ours(name)
    return getattr(import_module(module), inside)


def _ours(name: list[str]) -> list[str]:
    if not (name[0].startswith(FLOORS) and name[1].isidentifier()):
        raise InternalError("a function or class that is not ours", "a call")
    return name


def _said(value: Any, places: WorkNames) -> Any:
    """Convert a value to JSON content: plain values as they are, others as a list of kind and content."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    kind = next((kind for kind, takes in _TAKES.items() if takes(value)), None)
    if kind is None:
        raise InternalError(f"a {type(value).__name__}", "a call")
    return [kind, _SAID[kind](value, lambda one: _said(one, places), places)]


def _meant(said: Any, places: WorkNames) -> Any:
    if not isinstance(said, list):
        return said
    kind, content = said
    return _MEANT[kind](content, lambda one: _meant(one, places), places)


Each = Callable[[Any], Any]


def _model(value: BaseModel, each: Each) -> list[Any]:
    state = value.__getstate__()
    # Sets have no order, and names of fields are texts.
    return [_name_of(type(value)), *(each(sorted(held) if isinstance(held, set) else held) for held in map(state.get, STATE))]


def _as_model(content: list[Any], each: Each) -> BaseModel:
    name, *held = content
    model: type[BaseModel] = _class(name, BaseModel)
    made = model.__new__(model)
    state = dict(zip(STATE, map(each, held), strict=True))
    made.__setstate__(state | {STATE[1]: set(state[STATE[1]])})
    return made


def _as_data(content: list[Any], each: Each) -> Any:
    made = object.__new__(_class(content[0], object))
    for name, value in each(content[1]).items():
        # As it was, frozen or not; what a constructor would check was checked where it was made.
        object.__setattr__(made, name, value)
    return made


def _class(name: list[str], kind: type) -> Any:
    found = _named(name)
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise InternalError("no class of data", "a call")
    return found


def _schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _as_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


_TAKES: dict[str, Callable[[Any], bool]] = {
    "list": lambda value: type(value) is list,
    "tuple": lambda value: type(value) is tuple,
    "dict": lambda value: type(value) is dict,
    "range": lambda value: type(value) is range,
    "decimal": lambda value: type(value) is Decimal,
    "path": lambda value: isinstance(value, Path),
    "store": lambda value: isinstance(value, Store),
    "schema": lambda value: isinstance(value, pa.Schema),
    "type": lambda value: isinstance(value, pa.DataType),
    "model": lambda value: isinstance(value, BaseModel),
    "named": lambda value: isinstance(value, tuple) and hasattr(value, "_fields"),
    "data": lambda value: is_dataclass(value) and not isinstance(value, type),
}
_SAID: dict[str, Callable[[Any, Each, WorkNames], Any]] = {
    "list": lambda value, each, _: list(map(each, value)),
    "tuple": lambda value, each, _: list(map(each, value)),
    "dict": lambda value, each, _: [[each(key), each(one)] for key, one in value.items()],
    "range": lambda value, _each, _: [value.start, value.stop, value.step],
    "decimal": lambda value, _each, _: str(value),
    "path": lambda value, _each, places: places.path_name(value),
    "store": lambda value, _each, places: places.store_name(value),
    "schema": lambda value, _each, _: _schema(value),
    "type": lambda value, _each, _: _schema(pa.schema({"": value})),
    "model": lambda value, each, _: _model(value, each),
    "named": lambda value, each, _: [_name_of(type(value)), *map(each, value)],
    "data": lambda value, each, _: [_name_of(type(value)), each({field.name: getattr(value, field.name) for field in fields(value)})],
}
_MEANT: dict[str, Callable[[Any, Each, WorkNames], Any]] = {
    "list": lambda content, each, _: list(map(each, content)),
    "tuple": lambda content, each, _: tuple(map(each, content)),
    "dict": lambda content, each, _: {each(key): each(one) for key, one in content},
    "range": lambda content, _each, _: range(*content),
    "decimal": lambda content, _each, _: Decimal(content),
    "path": lambda content, _each, places: places.path_of(PathName(*content)),
    "store": lambda content, _each, places: places.store(content),
    "schema": lambda content, _each, _: _as_schema(content),
    "type": lambda content, _each, _: _as_schema(content).field(0).type,
    "model": lambda content, each, _: _as_model(content, each),
    "named": lambda content, each, _: _class(content[0], tuple)._make(map(each, content[1:])),
    "data": lambda content, each, _: _as_data(content, each),
}


@dataclass(frozen=True)
class FolderQueue:
    """Queue of a phase's encrypted calls, as files of a folder that all workers reach by the same path.

    Attributes:
        folder: In the run's folder.
    """

    folder: Path

    def add_call(self, name: str, content: bytes) -> None:
        """Write a call's encrypted content as a file of the queue, readable by its owner alone."""
        write_atomically(self.folder / name, lambda part: part.write_bytes(content))

    def take(self, name: str) -> bytes:
        """Return a call's encrypted content, leaving it queued; raise if it is withdrawn or not reachable."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            # A folder without the file means that it was withdrawn; no folder, that this machine does not have it.
            raise (WithdrawnError() if self.folder.is_dir() else RunnerError.not_shared(str(self.folder))) from None
        except OSError:
            raise RunnerError.not_shared(str(self.folder)) from None

    def remove(self, name: str) -> None:
        """Remove a call from the queue, if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def path_name(self, path: Path) -> PathName:
        """Return the machine-independent name of a path: the path itself."""
        return PathName("everywhere", str(path))

    def path_of(self, name: PathName) -> Path:
        """Return the path in a name from ``path_name``, the same on every machine."""
        return Path(name.text)

    def store_name(self, store: Store) -> str:
        """Return the name by which workers find a store: its folder, which all of them share."""
        return str(store.folder)

    def store(self, name: str) -> Store:
        """Return the store of a named folder, the same object for each call of this process."""
        return _store_in(Path(name))


@cache
def _store_in(folder: Path) -> Store:
    """Return the store of a folder; the calls of a worker share one."""
    return Store(folder)


@dataclass(frozen=True)
class BucketQueue:
    """Queue of a run's encrypted calls, as objects in its work's bucket, with paths relative to the work.

    Attributes:
        bucket: That holds the work.
        folder: Where it is at hand on the machine of the flow; another on that of each worker.
    """

    bucket: Bucket
    folder: Path

    def add_call(self, name: str, content: bytes) -> None:
        """Write a call's encrypted content as an object of the bucket."""
        self.bucket.write(f"{CALLS}/{name}", content)

    def take(self, name: str) -> bytes:
        """Return a call's encrypted content, leaving it queued; raise ``WithdrawnError`` if it is gone."""
        content = self.bucket.read(f"{CALLS}/{name}")
        if content is None:
            raise WithdrawnError
        return content

    def remove(self, name: str) -> None:
        """Remove a call from the queue, if it is there."""
        self.bucket.remove([f"{CALLS}/{name}"])

    def path_name(self, path: Path) -> PathName:
        """Return the machine-independent name of a path, relative to the work if it lies there."""
        within = path.is_relative_to(self.folder)
        return PathName("work", path.relative_to(self.folder).as_posix()) if within else PathName("everywhere", str(path))

    def path_of(self, name: PathName) -> Path:
        """Return this machine's path for a name from ``path_name``; fetch an artefact from the bucket."""
        kind, path = name
        if kind == "everywhere":
            return Path(path)
        store, folder = _at_hand(self)
        return store.path_named(path.removeprefix(f"{BELOW}/")) if path.startswith(f"{BELOW}/") else folder / path

    def store_name(self, store: Store) -> str:
        """Return the machine-independent name of the store: the bucket's address."""
        return self.bucket.location

    def store(self, name: str) -> Store:
        """Return this machine's local store for the bucket, the same object for each call."""
        return _at_hand(self)[0]


CallQueue = FolderQueue | BucketQueue


def queue_of(work: HeldWork, spill: Path, phase: str) -> CallQueue:
    """Return the queue for the calls of a phase, in the work's bucket or a private folder in ``spill``."""
    if isinstance(work, BucketWork):
        return BucketQueue(work.bucket, work.folder)
    return FolderQueue(private_folder(spill / "calls" / phase))


class _AtHand(NamedTuple):
    """A worker's local copy of a run's work."""

    store: Store
    folder: Path
    left: ExitStack


_TURN = threading.Lock()
_HERE: dict[BucketQueue, _AtHand] = {}
"""By run: workers of a cluster may work for several at a time."""


def _at_hand(queue: BucketQueue) -> tuple[Store, Path]:
    with _TURN:
        if queue not in _HERE:
            # One run at a time holds the lease of a bucket: what an earlier one left here, because its head died, is nobody's.
            _forget([other for other in _HERE if other.bucket == queue.bucket])
            left = ExitStack()
            folder = left.enter_context(scratch_folder())
            _HERE[queue] = _AtHand(Store(folder / BELOW, queue.bucket.below(BELOW)), folder, left)
        return _HERE[queue][:2]


def remove_local_copies(queue: BucketQueue | None = None) -> None:
    """Remove this process's local copies of a run's work, or of all runs' work.

    Args:
        queue: Where the calls of the run lie; of all runs if it is left out.
    """
    with _TURN:
        _forget([queue] if queue else list(_HERE))


def _forget(queues: Sequence[BucketQueue]) -> None:
    for queue in queues:
        if here := _HERE.pop(queue, None):
            here.left.close()


atexit.register(remove_local_copies)
