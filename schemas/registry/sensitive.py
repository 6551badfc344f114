"""Job models of l-diversity and t-closeness for one sensitive column."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.reading.model import ExactDecimal, StrictModel, fault
from schemas.registry.hierarchy_kinds import Hierarchy

FIRST = ("distinct", "entropy", "recursive")
"""Models that were once three fields of one: every digest counts all three keys, null where they are not said."""


def from_0_to_1(value: Decimal) -> Decimal:
    """Return a number; raise unless it lies from 0 to 1."""
    if not 0 <= value <= 1:
        raise fault("must be a number from 0 to 1")
    return value


def at_least_one(value: Decimal) -> Decimal:
    """Return a number; raise if it is less than 1."""
    if value < 1:
        raise fault("must be 1 or more")
    return value


def positive(value: Decimal) -> Decimal:
    """Return a number; raise unless it is positive."""
    if value <= 0:
        raise fault("must be more than 0")
    return value


class DiversitySpec(StrictModel):
    """Base class for the settings of one l-diversity model (Machanavajjhala et al. 2007).

    A model has a field of its own name, by which it is recognised.
    """

    kind: ClassVar[str]
    """The name of the model in `schemas.registry.privacy_kinds.DIVERSITIES`."""
    nulls: Literal["none", "value"] = "none"
    """Whether a null counts: as no value, so that it adds nothing to l, or as a value like any other."""

    def canonical(self) -> dict[str, Any]:
        """Return the settings that determine a release's content as JSON data, with keys of first models."""
        return dict.fromkeys(FIRST) | super().canonical()

    def summary(self) -> dict[str, Any]:
        """Return the settings as JSON data for the manifest; ``nulls`` only if it is not the default."""
        promised = self.model_dump(mode="json", exclude_none=True)
        return promised if promised.pop("nulls") == "none" else promised | {"nulls": "value"}


class DistinctSpec(DiversitySpec):
    """Settings of distinct l-diversity."""

    kind: ClassVar[str] = "distinct"
    distinct: Annotated[int, Field(ge=1)]
    """Different values in every class, at least."""


class EntropySpec(DiversitySpec):
    """Settings of entropy l-diversity."""

    kind: ClassVar[str] = "entropy"
    entropy: Annotated[ExactDecimal, AfterValidator(at_least_one)]
    """l, where the entropy of every class's values is at least ln(l)."""


class Recursive(StrictModel):
    """Numbers c and l: the top value is under c times as frequent as all from the l-th on together."""

    c: Annotated[ExactDecimal, AfterValidator(positive)]
    """How many times as frequent as the rest the most frequent value may not yet be."""
    l: Annotated[int, Field(ge=1)]  # noqa: E741 - the model's own name
    """From which place on, by frequency, values are the rest."""


class RecursiveSpec(DiversitySpec):
    """Settings of recursive (c, l)-diversity."""

    kind: ClassVar[str] = "recursive"
    examples: ClassVar[Mapping[str, str]] = {"recursive": "recursive: {c: 3, l: 2}"}
    recursive: Recursive
    """Its two numbers."""


class ClosenessSpec(StrictModel):
    """Base class for the settings of t-closeness with one kind of distance (Li et al. 2007).

    t bounds the distance of a class from the complete source.
    """

    kind: ClassVar[str]
    """The name of the distance in `schemas.registry.privacy_kinds.DISTANCES`."""
    grouped: ClassVar[bool] = False
    """Whether the distance is along a hierarchy."""
    t: Annotated[ExactDecimal, AfterValidator(from_0_to_1)]
    """The greatest earth mover's distance, from 0 to 1."""
    distance: str
    """How far two values are."""
    hierarchy: Hierarchy | None = None
    """For the hierarchical distance."""

    @model_validator(mode="after")
    def _hierarchy_where_needed(self) -> Self:
        """Check that the hierarchical distance, and no other, has a hierarchy."""
        if self.grouped != (self.hierarchy is not None):
            raise fault("distance: hierarchical needs a hierarchy, and only that one does")
        return self

    def summary(self) -> dict[str, Any]:
        """Return t and the distance as JSON data for the manifest, without the hierarchy and its values."""
        return {"t": float(self.t), "distance": self.distance}


class EqualSpec(ClosenessSpec):
    """Settings of t-closeness with the same distance between all values."""

    kind: ClassVar[str] = "equal"
    distance: Literal["equal"] = "equal"
    """Any two values are equally far apart; so it is unless another distance is said."""


class OrderedSpec(ClosenessSpec):
    """Settings of t-closeness with distances by position in the order of values."""

    kind: ClassVar[str] = "ordered"
    distance: Literal["ordered"]
    """Two values are as far apart as their places in ascending order."""


class HierarchicalSpec(ClosenessSpec):
    """Settings of t-closeness with distances by common groups in a hierarchy."""

    kind: ClassVar[str] = "hierarchical"
    grouped: ClassVar[bool] = True
    distance: Literal["hierarchical"]
    """Two values are as far apart as the lowest group that they share is high."""
