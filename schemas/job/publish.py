"""Forms of publication of columns that are not quasi-identifiers.

Such a column is published unchanged, or so that no value points at one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from schemas.reading.model import ExactDecimal, FrozenModel, LaterJsonSchema, StrictModel, fault, plain

Word = Literal["exact", "shared"]
EXACT: Word = "exact"
SHARED: Word = "shared"
OTHER = "other"
"""What rare texts become, unless k people have this text."""
SMALLEST_SHARE = 0.001
"""The smallest share that one decimal of a percentage shows."""


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
        changed: Share of the released records whose value stands for others too: a place of the grid, ``other``, an end, a mean.
        error: Mean absolute error where values lie evenly between those that are published, 0 in the outermost steps; null where there is
            none, or it would tell of the greatest or least values.
        null: Share of the released records whose value is null, in the source already or because too few people have it; null itself
            where an earlier version did not count it.
    """

    publish: Any
    changed: float
    error: float | None
    null: float | None = None

    @property
    def nulls_text(self) -> str:
        """Clause with the share of values that are null; empty where the share is not stated."""
        if self.null is None:
            return ""
        share = "less than 0.1%" if 0 < self.null < SMALLEST_SHARE else f"{self.null:.1%}"
        why = ": nulls of the source, and values of too few people" if self.null and counts_people(self.publish) else ""
        return f"{share} of its values are null{why}"


def publications_agree(stated: Mapping[Any, ColumnPublication], found: Mapping[Any, ColumnPublication]) -> bool:
    """Return whether stated figures of columns equal the found ones; null shares count only if stated.

    Earlier versions state of no column how many of its values are null. A manifest states it of all columns or of none.
    """
    if all(one.null is None for one in stated.values()):
        found = {name: one.model_copy(update={"null": None}) for name, one in found.items()}
    return dict(stated) == dict(found)


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
    """Return whether every published value must be shared by a minimum of people.

    Such values depend on other records, and others on the job alone. The form of publication is validated or raw.
    """
    if isinstance(way, Mapping):
        return way.get("microaggregate") is not None
    return way == SHARED or (isinstance(way, Publishing) and way.microaggregate is not None)
