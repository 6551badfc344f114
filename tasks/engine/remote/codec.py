"""Serialisation of calls of steps as JSON bytes, which cannot run code when read.

A pickle says which code to run when it is read; here a text says values. It knows the few kinds of value that steps get, and of classes
those of this project that hold data alone: models, dataclasses and named tuples, which are filled and not called. A function or a step is
one of a module of this project, by its name. Paths and stores of work in a bucket become those of the machine that reads them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pydantic import BaseModel

from schemas.errors.base import InternalError
from tasks.store.keys import OURS
from tasks.store.step import Step
from tasks.store.store import Store

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
