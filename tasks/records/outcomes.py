"""Published figures of algorithms on single records, readable without loading the algorithms."""

from __future__ import annotations

from schemas.reading.model import FrozenModel
from tasks.counting.source_sizes import Sizes


class LocalOutcome(FrozenModel):
    """Losses, suppression and the algorithm's counts of a local recoding, source class sizes and persons.

    Attributes:
        suppressed: Records in no class.
        masked: How many of them are published with ``*``.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        search: Counts of the algorithm: partitions, outliers, records left, records recovered, partitions merged.
        before: Class sizes of the source as it is.
        people: Persons of the source, and records of the one who has most; None where the job has no person column.
    """

    suppressed: int
    masked: int
    loss: dict[str, int | float]
    ncp: dict[str, float]
    search: dict[str, int]
    before: Sizes = Sizes()
    people: tuple[int, int] | None = None
