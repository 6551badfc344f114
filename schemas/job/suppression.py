"""Suppression: how many records the privacy model may take out, and what becomes of them."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from schemas.reading.model import ExactDecimal, StrictModel, fault


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
    treatment: Literal["drop", "mask", "cell"] = "drop"
    """Whether suppressed records are left out, published with * in every quasi-identifier, or with as few * as bring them into a class."""
    rounds: Annotated[int, Field(ge=0, le=100)] = 0
    """How often suppressed records are anonymised again, at the best levels of their own, before the treatment takes what is left."""

    @property
    def is_local(self) -> bool:
        """Whether some records may be published otherwise than at the one node of all."""
        return self.treatment == "cell" or self.rounds > 0

    @property
    def masks(self) -> bool:
        """Whether records may be published with * in every quasi-identifier."""
        return self.treatment != "drop"

    @property
    def as_text(self) -> bool:
        """Whether every quasi-identifier is published as text, because its column may hold a * or groups of several levels."""
        return self.treatment != "drop" or self.rounds > 0

    def canonical(self) -> dict[str, Any]:
        """Returns the fields in canonical form; a job without rounds is the job that it was before there were any."""
        return {name: value for name, value in super().canonical().items() if name != "rounds" or value}
