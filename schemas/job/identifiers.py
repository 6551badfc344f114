"""Forms of publication of columns other than QIDs: treated identifiers, and values published.

Such a column is published unchanged, or so that no value points at one person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from schemas.errors.base import nearest
from schemas.reading.model import ExactDecimal, FrozenModel, LaterJsonSchema, StrictModel, fault, part_of, plain, share_text
from schemas.registry.treatment_kinds import TREATMENTS, Treatment, treatment_of

Word = Literal["exact", "shared"]
EXACT: Word = "exact"
SHARED: Word = "shared"
OTHER = "other"
"""What rare texts become, unless k people have this text."""


class Publishing(StrictModel):
    """Change of a published numerical column: rounding, top and bottom coding, or group means."""

    examples: ClassVar[Mapping[str, str]] = {"round": "publish: {round: 5}", "microaggregate": "publish: {microaggregate: 10}"}
    round: Annotated[ExactDecimal, Field(gt=0)] | None = None
    """Every number is the nearest multiple of this one; of two that are as near the even one."""
    top: ExactDecimal | None = None
    """Greater numbers are published as this one."""
    bottom: ExactDecimal | None = None
    """Smaller numbers are published as this one."""
    microaggregate: Annotated[int, Field(ge=2)] | None = None
    """Numbers are put into groups of at least so many people, and never fewer than k, and each is published as the mean of its group."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Check that exactly one form of publication is set."""
        named = [
            *(["round"] if self.round is not None else []),
            *(["top and bottom"] if self.top is not None or self.bottom is not None else []),
            *(["microaggregate"] if self.microaggregate is not None else []),
        ]
        if len(named) != 1:
            raise fault("must say one of round, top or bottom (or both), and microaggregate, as in publish: {round: 5}")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise fault("top must be greater than bottom")
        return self

    def canonical(self) -> dict[str, Any]:
        """Return the given settings as JSON data, without empty ones."""
        return {name: value for name, value in super().canonical().items() if value is not None}


Way: TypeAlias = Word | Publishing


class ColumnPublication(FrozenModel):
    """Form of publication of a column, and its loss.

    The figures are of published values, never of a single original value.

    Attributes:
        publish: How, as the job says it.
        changed: Share of the released records whose value stands for others too: a place of the grid, ``other``, an end, a mean;
            estimated for ``round``.
        error: Mean absolute error where values lie evenly between those that are published, 0 in the outermost steps; null where there is
            none, or it would tell of the greatest or least values.
        null: Share of the released records whose value is null, in the source already or because too few people have it.
    """

    publish: Any
    changed: float
    error: float | None
    null: float

    @property
    def nulls_text(self) -> str:
        """Clause with the share of values that are null."""
        why = ": nulls of the source, and values of too few people" if self.null and counts_people(self.publish) else ""
        return f"{share_text(self.null)} of its values are null{why}"


def publish_entry(value: object) -> object:
    """Return a form of publication, exact, shared or a ``Publishing``; raise for other values."""
    if isinstance(value, Publishing) or (isinstance(value, str) and value in {EXACT, SHARED}):
        return value
    if not isinstance(value, Mapping):
        raise fault("must be exact, shared, or one of {round: 5}, {top: 90, bottom: 10} and {microaggregate: 10}")
    return Publishing.model_validate({key: Decimal(str(one)) if isinstance(one, float) else one for key, one in value.items()})


Publish = Annotated[
    Word | Publishing,
    BeforeValidator(publish_entry),
    LaterJsonSchema(lambda: {"anyOf": [{"enum": [EXACT, SHARED]}, Publishing.model_json_schema()]}),
]


def canonical_way(way: Way) -> Any:
    """Return a form of publication as JSON data, equal for equal meanings."""
    return way if isinstance(way, str) else plain(way)


def treatment_sentence(way: Any, k: int) -> str:
    """Return a column's form of publication in words, from a job or a manifest."""
    said = canonical_way(way) if not isinstance(way, Mapping) else way
    if said == SHARED:
        return f"shared: every value is that of at least {k:,}, others on a grid, '{OTHER}' or withheld"
    if not isinstance(said, Mapping):
        return "as in the source"
    if "round" in said:
        return f"rounded to multiples of {said['round']}"
    if "microaggregate" in said:
        return f"means of groups of at least {max(int(said['microaggregate']), k):,}"
    ends = [f"{'at most' if end == 'top' else 'at least'} {said[end]}" for end in ("top", "bottom") if end in said]
    return f"cut: {', '.join(ends)}"


def counts_people(way: object) -> bool:
    """Return whether a way of ``publish`` needs enough people for each value: shared, microaggregate.

    Such values depend on other records, and others on the job alone. The form of publication is validated or raw.
    """
    if isinstance(way, Mapping):
        return way.get("microaggregate") is not None
    return way == SHARED or (isinstance(way, Publishing) and way.microaggregate is not None)


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
        kind, name = treatment_of(part_of(entry, "treatment")), part_of(entry, "name")
        if kind is not None and isinstance(name, str):
            yield name, kind


def subject_faults(identifiers: object, known: Collection[str] | None) -> list[str]:
    """Return a message for each treatment whose subject column is not in the job.

    Treatments may be validated or raw; ``known`` is None if all columns are allowed.
    """
    faults = []
    for entry in identifiers if isinstance(identifiers, list) and known is not None else []:
        kind = treatment_of(part_of(entry, "treatment"))
        if kind is None or not TREATMENTS[kind].per_subject:
            continue
        subject = part_of(entry, "treatment", kind, "subject")
        if isinstance(subject, str) and subject not in (known or ()):
            place = f"columns.identifiers '{part_of(entry, 'name')}'"
            faults.append(f"{place}: {kind}.subject: column '{subject}' has no role in columns{nearest(subject, known or ())}")
    return faults
