"""What every equivalence class of a release must keep, as the job says it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from schemas.job.method import METHODS
from schemas.privacy.kinds import Closeness, Diversity, PrivacyKind, models_in_job
from schemas.reading.model import ExactDecimal, StrictModel, fault
from schemas.reading.registry import OneOf, Registry


class Privacy(StrictModel):
    """What every equivalence class of the release must keep."""

    k: Annotated[int, Field(ge=1)]
    """Records that share each published combination of quasi-identifiers, at least."""
    l: dict[str, Diversity] = Field(default_factory=dict)  # noqa: E741 - the model's own name
    """l-diversity by sensitive column."""
    t: dict[str, Closeness] = Field(default_factory=dict)
    """t-closeness by sensitive column."""

    @property
    def columns(self) -> list[str]:
        """The sensitive columns that these models look at, each once."""
        return list(dict.fromkeys([*self.l, *self.t]))

    def with_others(self, sensitive: Sequence[str]) -> list[str]:
        """Return these and then the other sensitive columns: all whose values are kept beside the persons of a release, in their order."""
        return list(dict.fromkeys([*self.columns, *sensitive]))

    @property
    def models(self) -> Iterator[tuple[PrivacyKind, str, Any]]:
        """The entry of each model, the sensitive column, and what the job says of it."""
        return models_in_job(dict(self))

    def summary(self) -> dict[str, Any]:
        """Return what is promised, fit to be published: hierarchies, which hold values, are left out."""
        promised: dict[str, Any] = {"k": self.k}
        for kind, column, spec in self.models:
            promised.setdefault(kind.section, {})[column] = spec.summary()
        return promised


def uncompiled_faults(privacy: Mapping[str, Any], method: object) -> list[str]:
    """Return the privacy models, read or not yet read, that are not known to a method's compiled cuts, each with its place.

    Args:
        privacy: Models by section and column.
        method: The method's name.
    """
    entry = METHODS.get(method) if isinstance(method, str) else None
    if entry is None or not entry.compiled:
        return []
    return [
        f"privacy.{kind.section}.{column}: {kind.name} is not known to the compiled cuts of method {method}; choose another, such as skald"
        for kind, column, _ in models_in_job(privacy)
        if not kind.compiled
    ]


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
    """Return a share of the records."""
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
        """Return the fields in canonical form; a job without rounds is the job that it was before there were any."""
        return {name: value for name, value in super().canonical().items() if name != "rounds" or value}
