"""What an algorithm on single records found, as figures: read by whoever publishes it, whether or not the algorithms are loaded."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tasks.counting.source_sizes import Sizes
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.store.store import Store


class LocalOutcome(BaseModel):
    """What the algorithm found, in figures that may be published.

    Attributes:
        suppressed: Records in no class.
        masked: How many of them are published with ``*``.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        search: What the algorithm counted: partitions, outliers, how many left, were recovered, partitions merged.
        before: Class sizes of the source as it is.
        people: Persons of the source, and records of the one who has most; None where no person is named.
    """

    model_config = ConfigDict(frozen=True)

    suppressed: int
    masked: int
    loss: dict[str, int | float]
    ncp: dict[str, float]
    search: dict[str, int]
    before: Sizes = Sizes()
    people: tuple[int, int] | None = None


def read_local_outcome(artifacts: RecodingArtifacts, store: Store) -> LocalOutcome:
    """Read what the algorithm found."""
    return LocalOutcome.model_validate_json(store.path(artifacts.outcome).read_bytes())
