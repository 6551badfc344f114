"""Suppression: how many records the privacy model may take out, and what becomes of them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from schemas.reading.model import ExactDecimal, StrictModel, fault
from schemas.reading.registry import OneOf, Registry


@dataclass(frozen=True)
class SuppressionKind:
    """What becomes of suppressed records.

    Attributes:
        name: How a job calls it.
        words: What is done to such a record, for plan and report.
        withheld: What it publishes that looks like a null where there are bounds; empty if it publishes nothing of them.
        stars: Whether as few values as possible are withheld, at chosen levels, and not all.
    """

    name: str
    words: str
    withheld: str = ""
    stars: bool = False

    @property
    def masks(self) -> bool:
        """Whether records may be published with ``*`` in every quasi-identifier."""
        return bool(self.withheld)


SUPPRESSIONS = Registry(
    "treatment of suppressed records",
    SuppressionKind(name="drop", words="left out"),
    SuppressionKind(name="mask", words="masked, with * in every quasi-identifier", withheld="masked record"),
    SuppressionKind(
        name="cell",
        words="published with * in as few quasi-identifiers as make their combination safe",
        withheld="starred value",
        stars=True,
    ),
)
"""The known treatments of suppressed records by name."""


def share_of_records(value: Decimal) -> Decimal:
    """Returns a share of the records.

    Raises:
        PydanticCustomError: outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise fault("must be a share of the records, from 0 to 1")
    return value


class Suppression(StrictModel):
    """How many records may be taken out, and how."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(0)
    """The greatest share of all records that may be suppressed at the chosen levels, whatever becomes of them afterwards."""
    treatment: Annotated[str, OneOf(SUPPRESSIONS)] = "drop"
    """Whether suppressed records are left out, published with * in every quasi-identifier, or with as few * as bring them into a class."""
    rounds: Annotated[int, Field(ge=0, le=100)] = 0
    """How often suppressed records are anonymised again, at the best levels of their own, before the treatment takes what is left."""

    @property
    def is_local(self) -> bool:
        """Whether some records may be published otherwise than at the one node of all."""
        return SUPPRESSIONS[self.treatment].stars or self.rounds > 0

    @property
    def masks(self) -> bool:
        """Whether records may be published with * in every quasi-identifier."""
        return SUPPRESSIONS[self.treatment].masks

    @property
    def as_text(self) -> bool:
        """Whether every quasi-identifier is published as text, because its column may hold a * or groups of several levels."""
        return self.masks or self.rounds > 0

    def canonical(self) -> dict[str, Any]:
        """Returns the fields in canonical form; a job without rounds is the job that it was before there were any."""
        return {name: value for name, value in super().canonical().items() if name != "rounds" or value}
