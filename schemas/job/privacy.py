"""What every equivalence class of a release must keep, as the job says it."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.hierarchies.kinds import Hierarchy
from schemas.reading.model import ExactDecimal, StrictModel, fault


def from_0_to_1(value: Decimal) -> Decimal:
    """Returns a share.

    Raises:
        PydanticCustomError: outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise fault("must be a number from 0 to 1")
    return value


def at_least_one(value: Decimal) -> Decimal:
    """Returns a number of 1 or more.

    Raises:
        PydanticCustomError: below 1.
    """
    if value < 1:
        raise fault("must be 1 or more")
    return value


def positive(value: Decimal) -> Decimal:
    """Returns a positive number.

    Raises:
        PydanticCustomError: 0 or less.
    """
    if value <= 0:
        raise fault("must be more than 0")
    return value


class Recursive(StrictModel):
    """Recursive (c, l)-diversity: the most frequent value less than c times as frequent as all from the l-th on together."""

    c: Annotated[ExactDecimal, AfterValidator(positive)]
    """How many times as frequent as the rest the most frequent value may not yet be."""
    l: Annotated[int, Field(ge=1)]  # noqa: E741 - the model's own name
    """From which place on, by frequency, values are the rest."""


class Diversity(StrictModel):
    """l-diversity of one sensitive column (Machanavajjhala et al. 2007); exactly one of the three."""

    distinct: Annotated[int, Field(ge=1)] | None = None
    """Different values in every class, at least."""
    entropy: Annotated[ExactDecimal, AfterValidator(at_least_one)] | None = None
    """l, where the entropy of every class's values is at least ln(l)."""
    recursive: Recursive | None = None
    """Recursive (c, l)-diversity."""

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum(one is not None for one in (self.distinct, self.entropy, self.recursive)) != 1:
            raise fault("must say one of distinct, entropy and recursive")
        return self


class ClosenessSpec(StrictModel):
    """t-closeness of one sensitive column (Li et al. 2007): how far a class's distribution may be from the whole source's."""

    t: Annotated[ExactDecimal, AfterValidator(from_0_to_1)]
    """The greatest earth mover's distance, from 0 to 1."""
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    """How far two values are: all equally, by their places in ascending order, or by the lowest group that they share."""
    hierarchy: Hierarchy | None = None
    """For the hierarchical distance."""

    @model_validator(mode="after")
    def _hierarchy_where_needed(self) -> Self:
        if (self.distance == "hierarchical") != (self.hierarchy is not None):
            raise fault("distance: hierarchical needs a hierarchy, and only that one does")
        return self


class Privacy(StrictModel):
    """What every equivalence class of the release must keep."""

    k: Annotated[int, Field(ge=1)]
    """Records that share each published combination of quasi-identifiers, at least."""
    l: dict[str, Diversity] = Field(default_factory=dict)  # noqa: E741 - the model's own name
    """l-diversity by sensitive column."""
    t: dict[str, ClosenessSpec] = Field(default_factory=dict)
    """t-closeness by sensitive column."""

    @property
    def columns(self) -> list[str]:
        """The sensitive columns that these models look at, each once."""
        return list(dict.fromkeys([*self.l, *self.t]))

    def summary(self) -> dict[str, Any]:
        """Returns what is promised, fit to be published: hierarchies, which hold values, are left out."""
        promised: dict[str, Any] = {"k": self.k}
        if self.l:
            promised["l"] = {column: one.model_dump(mode="json", exclude_none=True) for column, one in self.l.items()}
        if self.t:
            promised["t"] = {column: {"t": float(one.t), "distance": one.distance} for column, one in self.t.items()}
        return promised
