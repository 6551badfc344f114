"""Identifier columns of a job: left out, or published as pseudonyms."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from schemas.errors.base import nearest
from schemas.reading.model import StrictModel, fault
from schemas.registry.treatment_kinds import TREATMENTS, Treatment, treatment_of

DROP = "drop"


class Identifier(StrictModel):
    """An identifier column that is published as pseudonyms."""

    name: str
    """The column."""
    treatment: Treatment
    """What is published instead: one treatment, by its key."""


def checked_identifiers(value: object) -> object:
    """Return a list of names, or of entries with a name, unchanged; raise for other values."""
    if not isinstance(value, list):
        raise fault("must be a list of column names")
    if wrong := [str(position) for position, entry in enumerate(value) if not _is_entry(entry)]:
        raise fault(
            "must be a list of column names or of {name: …, treatment: …}; empty or not text (put it in quotes): "
            f"entry {', '.join(wrong)}, counted from 0"
        )
    return value


def _is_entry(entry: object) -> bool:
    """Return whether an entry of identifiers has a name."""
    name = entry.get("name") if isinstance(entry, Mapping) else getattr(entry, "name", entry)
    return isinstance(name, str) and bool(name)


def _is_dropped(entry: object) -> bool:
    """Return whether an entry of identifiers leaves the column out."""
    # With these keys only: a misspelt one is a fault, and may have been meant to keep the column.
    return isinstance(entry, Mapping) and entry.keys() <= {"name", "treatment"} and entry.get("treatment", DROP) == DROP


class _Entry:
    """Annotation of an identifier: a name alone, which drops the column, or a model."""

    @staticmethod
    def __get_pydantic_core_schema__(source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the core schema of ``Identifier``, with a plain name for a dropped column."""

        def read(entry: Any, inner: core_schema.ValidatorFunctionWrapHandler) -> Any:
            if isinstance(entry, str):
                return entry
            return entry["name"] if _is_dropped(entry) else inner(entry)

        def write(entry: Any) -> Any:
            return entry if isinstance(entry, str) else entry.model_dump()

        how = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_wrap_validator_function(read, handler.generate_schema(Identifier), serialization=how)

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema of an identifier entry, for editors."""
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(schema)]}


# Pydantic would try a union's members in turn and tell the faults of each; mypy needs to know what comes out.
if TYPE_CHECKING:
    Entry: TypeAlias = str | Identifier
else:
    from typing import Annotated

    Entry = Annotated[Identifier, _Entry]


def pseudonym_kinds(identifiers: object) -> Iterator[tuple[str, str]]:
    """Yield the column and the treatment's name of each identifier with a known treatment.

    Entries may be validated or raw.
    """
    for entry in identifiers if isinstance(identifiers, list) else []:
        kind, name = treatment_of(_inside(entry, "treatment")), _inside(entry, "name")
        if kind is not None and isinstance(name, str):
            yield name, kind


def subject_faults(identifiers: object, known: Collection[str] | None) -> list[str]:
    """Return a message for each treatment whose subject column is not in the job.

    Treatments may be validated or raw; ``known`` is None if all columns are allowed.
    """
    faults = []
    for entry in identifiers if isinstance(identifiers, list) and known is not None else []:
        kind = treatment_of(_inside(entry, "treatment"))
        if kind is None or not TREATMENTS[kind].per_subject:
            continue
        subject = _inside(entry, "treatment", kind, "subject")
        if isinstance(subject, str) and subject not in (known or ()):
            place = f"columns.identifiers '{_inside(entry, 'name')}'"
            faults.append(f"{place}: {kind}.subject: column '{subject}' has no role in columns{nearest(subject, known or ())}")
    return faults


def _inside(entry: Any, *keys: str) -> Any:
    """Return the value at a path of keys or attributes, or None."""
    for key in keys:
        entry = entry.get(key) if isinstance(entry, Mapping) else getattr(entry, key, None)
    return entry
