"""What every equivalence class of a release must keep, as the job says it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from schemas.job.method import METHODS
from schemas.privacy.kinds import Closeness, Diversity, PrivacyKind, models_in_job
from schemas.reading.model import StrictModel


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
        """Returns these and then the other sensitive columns: all whose values are kept beside the persons of a release, in their order."""
        return list(dict.fromkeys([*self.columns, *sensitive]))

    @property
    def models(self) -> Iterator[tuple[PrivacyKind, str, Any]]:
        """The entry of each model, the sensitive column, and what the job says of it."""
        return models_in_job(dict(self))

    def summary(self) -> dict[str, Any]:
        """Returns what is promised, fit to be published: hierarchies, which hold values, are left out."""
        promised: dict[str, Any] = {"k": self.k}
        for kind, column, spec in self.models:
            promised.setdefault(kind.section, {})[column] = spec.summary()
        return promised


def uncompiled_faults(privacy: Mapping[str, Any], method: object) -> list[str]:
    """Returns the privacy models, read or not yet read, that are not known to a method's compiled cuts, each with its place.

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
