"""Privacy models and suppression settings of a job."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from schemas.job.method import METHODS
from schemas.reading.model import ExactDecimal, StrictModel, fault
from schemas.reading.registry import OneOf, Registry
from schemas.registry.privacy_kinds import Closeness, Diversity, PrivacyKind, models_in_job


class Privacy(StrictModel):
    """Privacy models that every equivalence class of the release must satisfy."""

    examples: ClassVar[Mapping[str, str]] = {"l": "l: {diagnosis: {distinct: 3}}", "t": "t: {diagnosis: {t: 0.2}}"}
    k: Annotated[int, Field(ge=1)]
    """Records that share each published combination of quasi-identifiers, at least."""
    l: dict[str, Diversity] = Field(default_factory=dict)  # noqa: E741 - the model's own name
    """l-diversity by sensitive column."""
    t: dict[str, Closeness] = Field(default_factory=dict)
    """t-closeness by sensitive column."""

    @property
    def columns(self) -> list[str]:
        """Sensitive columns of the models l and t, each once."""
        return list(dict.fromkeys([*self.l, *self.t]))

    def with_others(self, sensitive: Sequence[str]) -> list[str]:
        """Return the columns of the models, then the other sensitive columns, in order.

        The values of all these are kept with the persons of a release.
        """
        return list(dict.fromkeys([*self.columns, *sensitive]))

    @property
    def models(self) -> Iterator[tuple[PrivacyKind, str, Any]]:
        """Registry entry, sensitive column and settings of each model."""
        return models_in_job(dict(self))

    def summary(self) -> dict[str, Any]:
        """Return k and the parameters of each model as JSON data for the manifest.

        Hierarchies are left out, because they hold values.
        """
        promised: dict[str, Any] = {"k": self.k}
        for kind, column, spec in self.models:
            promised.setdefault(kind.section, {})[column] = spec.summary()
        return promised


def uncompiled_faults(privacy: Mapping[str, Any], method: object) -> list[str]:
    """Return a message for each privacy model that a method's compiled cuts do not support.

    The models may be validated or raw; each message has its location.

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
    """A registry entry for one treatment of suppressed records.

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
    """Return a share of the records; raise unless it is from 0 to 1."""
    if not 0 <= value <= 1:
        raise fault("must be a share of the records, from 0 to 1")
    return value


class Suppression(StrictModel):
    """Limit and treatment of suppressed records."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(0)
    """The greatest share of all records that may be suppressed at the chosen levels, whatever becomes of them afterwards."""
    treatment: Annotated[str, OneOf(SUPPRESSIONS)] = "drop"
    """Whether suppressed records are left out, published with * in every quasi-identifier, or with as few * as bring them into a class."""
    rounds: Annotated[int, Field(ge=0, le=100)] = 0
    """How often suppressed records are anonymised again, at the best levels of their own, before the treatment takes what is left."""

    @property
    def is_local(self) -> bool:
        """Whether some records may be published at other levels than the one chosen node."""
        return SUPPRESSIONS[self.treatment].stars or self.rounds > 0

    @property
    def masks(self) -> bool:
        """Whether records may be published with * in every quasi-identifier."""
        return SUPPRESSIONS[self.treatment].masks

    @property
    def as_text(self) -> bool:
        """Whether every quasi-identifier is published as text.

        Its column may hold a * or groups of several levels.
        """
        return self.masks or self.rounds > 0

    def canonical(self) -> dict[str, Any]:
        """Return the settings as JSON data, without ``rounds`` if it is 0.

        Jobs from before this setting existed keep their digest.
        """
        return {name: value for name, value in super().canonical().items() if name != "rounds" or value}
