"""Base classes and validators of all job models: strict, exact decimals, tagged choices, digests."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from schemas.errors.base import listed, nearest

MOST_DIGITS = 18
"""Digits that an exact decimal may have on either side of its point: what an int64 holds once it is scaled."""
MOST_TITLE = 200
TABLES_VERSION = 2
OF_TABLES = "must be 1 here; 2 is a job of several tables, which lattice does not take yet"
NO_TABLES = "2 is for jobs of several tables, and this one has no 'tables'; write 1, or list its tables under 'tables'"
VERSIONS = "must be 1 (one table) or 2 (several tables), without quotes"
_PERCENTAGE = re.compile(r"[0-9]{1,3}([.,][0-9]{1,9})?\s*%")


def fault(*sentences: str) -> PydanticCustomError:
    """Return the error that a validator raises, with one or more sentences.

    The sentences name columns and counts but never a value of the input.
    """
    # Sentences go in as context: in the template a brace of a column's name would be taken for a field.
    return PydanticCustomError("fault", "{text}", {"text": "; ".join(sentences), "sentences": sentences})


def alternatives(words: Iterable[str]) -> str:
    """Return the words as quoted alternatives, ``'a', 'b' or 'c'``."""
    *rest, last = [f"'{word}'" for word in words]
    return f"{', '.join(rest)} or {last}" if rest else last


@dataclass(frozen=True)
class LaterJsonSchema:
    """JSON Schema of a field with a validator, created only when a schema is requested.

    Most commands never request one.

    Attributes:
        make: Returns the schema.
    """

    make: Callable[[], JsonSchemaValue]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the deferred schema as the field's JSON Schema."""
        return self.make()


class FrozenModel(BaseModel):
    """Base class of immutable models, such as those of manifests, artefacts and jobs.

    Their validators are built on first use: most commands use few of the models that they import.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)


class StrictModel(FrozenModel):
    """Base class of a job's parts: strict types, no unknown keys, immutable, no input in errors."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    uncounted: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not determine what a release contains; they stay out of the digest."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset()
    """Fields that came later: they stay out of the digest at their default, so that older jobs keep theirs."""
    examples: ClassVar[Mapping[str, str]] = {}
    """By field, how it is written in a job, for the message on a value of another form."""
    keys_elsewhere: ClassVar[Sequence[str]] = ()
    """Keys of the model beneath that a job must not have here, so that no message proposes them."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the model's JSON Schema, with each field described by the docstring below it.

        Pydantic itself would read the source of every model at each import.
        """
        made = handler(schema)
        fields = handler.resolve_ref_schema(made).get("properties", {})
        for name, text in attribute_texts(cls).items():
            if (key := cls.model_fields[name].alias or name) in fields:
                fields[key]["description"] = text
        return made

    def canonical(self) -> dict[str, Any]:
        """Return the fields that determine a release's content as JSON data, equal for equal meanings."""
        defaults = _defaults_of_later_fields(type(self))
        names = [name for name in type(self).model_fields if name not in self.uncounted]
        return {name: plain(getattr(self, name)) for name in names if name not in defaults or getattr(self, name) != defaults[name]}


@cache
def _defaults_of_later_fields(model: type[StrictModel]) -> dict[str, Any]:
    """Return the default values of the fields in ``counted_if_set``, by name.

    These fields were added later, and are in the digest only if they are set. The result is cached because Pydantic needs a millisecond
    for it.
    """
    return {name: model.model_fields[name].get_default(call_default_factory=True) for name in model.counted_if_set}


def attribute_texts(model: type[StrictModel]) -> dict[str, str]:
    """Return the docstring below each field of a model, by name, inherited fields included."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, StrictModel) and owner is not StrictModel:
            [written] = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
            assert isinstance(written, ast.ClassDef)
            for field, text in pairwise(written.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                        texts |= {name: inspect.cleandoc(said)} if name in model.model_fields else {}
    return texts


class MethodSpec(StrictModel):
    """Base class for the settings of an algorithm."""

    name: str
    """Chooses the algorithm."""


def part_of(entry: Any, *keys: str) -> Any:
    """Return the value at a path of keys of a mapping, or attributes of a model; None if there is none."""
    for key in keys:
        entry = entry.get(key) if isinstance(entry, Mapping) else getattr(entry, key, None)
    return entry


def plain(value: object) -> Any:
    """Convert a value to JSON data: decimals as their shortest text, models in canonical form."""
    if isinstance(value, StrictModel):
        return value.canonical()
    if isinstance(value, Decimal):
        # 0.10 and 0.1 are one number, and so are 1E+1 and 10: one spelling for one digest.
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in {"-0", ""} else text
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def share_text(share: float, places: int = 1, *, narrow: bool = False) -> str:
    """Return a share in percent, never rounded to 0 or 100 %: ``less than 0.1%`` or ``more than 99.9%``.

    Args:
        places: Digits behind the point.
        narrow: Whether to write ``<0.1%`` and ``>99.9%``, as columns of a table need it.
    """
    least, less, more = 10.0 ** -(places + 2), *(("<", ">") if narrow else ("less than ", "more than "))
    if 0 < share < least:
        return f"{less}{least:.{places}%}"
    return f"{more}{1 - least:.{places}%}" if 1 - least < share < 1 else f"{share:.{places}%}"


@dataclass(frozen=True, eq=False)
class Choice:
    """Annotation of a field that holds one of several models, chosen by a tag.

    The tag is read first, so that faults are about the intended model. A tagged union of the core schema is used because Pydantic's own
    annotation refuses a union of one, and a choice may begin with one.
    """

    models: Mapping[str, type[StrictModel]]
    tag: str | Callable[[Any], str | None]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the tagged union of the models as a core schema."""
        choices = {tag: handler.generate_schema(model) for tag, model in self.models.items()}
        return core_schema.tagged_union_schema(choices, discriminator=self.tag)


@dataclass(frozen=True)
class EntriesOf:
    """Annotation of a list of names, some of which may be entries of a model, for messages on these.

    Attributes:
        model: What an entry is that has more than a name.
    """

    model: type[StrictModel]


def kind_named(value: object, models: Mapping[str, type[StrictModel]]) -> str | None:
    """Return a model's kind, or the first kind that is a key of a mapping; None without one."""
    if isinstance(value, StrictModel):
        return getattr(value, "kind", None)
    return next((kind for kind in models if isinstance(value, Mapping) and kind in value), None)


def one_named(value: Any, models: Mapping[str, type[StrictModel]], one: str, several: str, takes: str = "a mapping") -> Any:
    """Return a mapping or model unchanged if it names exactly one kind of model, else raise.

    Args:
        value: A model, or what is to become one.
        models: By kind.
        one: What a kind is called, and ``several`` of them.
        several: See ``one``.
        takes: What ``value`` may be.
    """
    if isinstance(value, StrictModel):
        return value
    kinds = alternatives(models)
    if not isinstance(value, Mapping):
        raise fault(f"must be {takes} with the key {kinds}")
    named = [kind for kind in models if kind in value]
    if not named:
        meant = next((hint for hint in (nearest(str(key), models) for key in value) if hint), "")
        raise fault(f"names no {one}{meant}; give it the key {kinds}")
    if len(named) > 1:
        raise fault(f"names {len(named)} {several} at once, {listed(named)}; keep one")
    return value


def exact_decimal(value: object) -> Decimal:
    """Return a number of a job as a Decimal, exactly as written; raise for text and infinity.

    ``0.1`` is one tenth, not the nearest binary fraction.
    """
    if isinstance(value, str) and _PERCENTAGE.fullmatch(value.strip()):
        raise fault("must be a number: write 2 % as 0.02, without quotes")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise fault("must be a number, without quotes" if isinstance(value, str) else "must be a number")
    # repr gives the shortest text that stands for the float; Decimal would spell out its binary fraction.
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise fault("must be a finite number")
    # By exponent alone: to write 1e999999 out would take the memory for all its digits.
    exponent = number.as_tuple().exponent
    if number and (number.adjusted() >= MOST_DIGITS or (isinstance(exponent, int) and exponent < -MOST_DIGITS)):
        raise fault(f"has more than {MOST_DIGITS} digits before or after the point")
    # A decimal keeps the sign of -0.
    return number if number else Decimal(0)


def as_path(value: object) -> Path:
    """Return text as a path; raise if it is empty or no text."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise fault("must be a path, written as text")
    return Path(value)


def one_character(value: object) -> str:
    """Return a single character; raise for other values and for line ends."""
    if not isinstance(value, str) or len(value) != 1 or value in "\r\n\0":
        raise fault("must be a single character")
    return value


def title(value: object) -> str:
    """Return a line of 1 to 200 characters, stripped; raise for other values."""
    if not isinstance(value, str) or not 0 < len(value.strip()) <= MOST_TITLE or not value.isprintable():
        raise fault(f"must be a line of 1 to {MOST_TITLE} characters")
    return value.strip()


def integer_one(value: object) -> object:
    """Return the version of a job of one table; raise unless it is the integer 1.

    ``true`` and ``1.0`` are refused, although they equal 1 in Python.
    """
    if type(value) is int and value == TABLES_VERSION:
        raise fault(NO_TABLES)
    if type(value) is not int or value != 1:
        raise fault(VERSIONS)
    return value


def integer_two(value: object) -> object:
    """Return the version of a job of several tables; raise unless it is the integer 2."""
    if type(value) is not int or value != TABLES_VERSION:
        raise fault(VERSIONS)
    return value


def policy_version(value: object) -> object:
    """Return the version of a policy; raise unless it is the integer 1."""
    if type(value) is not int or value != 1:
        raise fault("must be 1, the only version of the policy format so far")
    return value


ExactDecimal = Annotated[Decimal, BeforeValidator(exact_decimal), WithJsonSchema({"type": "number"})]
PathText = Annotated[Path, BeforeValidator(as_path), WithJsonSchema({"type": "string", "minLength": 1})]
Character = Annotated[str, BeforeValidator(one_character), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 1})]
Title = Annotated[str, BeforeValidator(title), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MOST_TITLE})]
FormatVersion = Annotated[Literal[1], BeforeValidator(integer_one)]
TablesFormatVersion = Annotated[Literal[2], BeforeValidator(integer_two)]
PolicyVersion = Annotated[Literal[1], BeforeValidator(policy_version)]


_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


def job_name(value: str) -> str:
    """Return a job's name; raise unless it is safe as a folder name."""
    if not _NAME.fullmatch(value):
        raise fault("must be 1 to 100 letters, digits, '_', '.' or '-', without a dot in front")
    return value


UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
"""Bytes of a unit, its name in capitals."""
LEAST_MEMORY = 64_000_000
"""Bytes below which no run is tried."""
PATTERN = r"^[0-9]+(\.[0-9]+)? ?([KMGTkmgt][Ii]?)?[Bb]$"
"""Amounts as text, for JSON schemas."""
MEMORY_SCHEMA = {"anyOf": [{"type": "integer", "minimum": LEAST_MEMORY}, {"type": "string", "pattern": PATTERN}]}
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-z]+)", re.IGNORECASE)
_MOST_MEMORY = 2**63


def memory_bytes(value: object) -> int:
    """Return a memory size, such as ``1GB``, in bytes; raise if it is unreadable or below 64 MB.

    Args:
        value: a number of bytes, or text such as ``1GB`` (10^9), ``2GiB`` (2 * 2^30), ``1.5 GB``; case does not matter.
    """
    size = _size(value)
    if size is None:
        raise fault("must be an amount of memory such as 1GB, 512MB or 2GiB, or a number of bytes")
    if not LEAST_MEMORY <= size < _MOST_MEMORY:
        raise fault("must be at least 64MB" if size < LEAST_MEMORY else "is more memory than a machine can have")
    return size


def _size(value: object) -> int | None:
    """Return a memory size in bytes, or None if it cannot be read."""
    # To Python true is an int.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = UNITS.get(found[2].upper()) if found else None
    # Exact: in floats 1.1GB is no whole number of bytes.
    return int(Fraction(found[1]) * unit) if found and unit else None
