"""What a worker of distributed Mondrian leaves of a fragment."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tasks.counting.source_sizes import Sizes
from tasks.store.store import Artifact, Store


class FragmentLosses(BaseModel):
    """Sums over the records of a fragment; they add up (papers/distributed-mondrian.txt, section 6).

    Attributes:
        losses: By name.
        penalties: NCP by QID.
        files: How many files the fragment fills; some may be without a record.
        figures: What the algorithm counted, by name.
        before: Class sizes of its records as they are.
    """

    model_config = ConfigDict(frozen=True)

    losses: dict[str, int | float]
    penalties: dict[str, float]
    files: int
    figures: dict[str, int] = {}
    before: Sizes = Sizes()


class FragmentArtifacts(BaseModel):
    """What a worker leaves: the losses (JSON), the files of the release, the classes of its records and, where persons are named, who is in
    which class."""

    model_config = ConfigDict(frozen=True)

    losses: Artifact
    files: list[Artifact]
    members: Artifact
    people: Artifact | None = None
    classes: Artifact | None = None


def read_losses(artifact: Artifact, store: Store) -> FragmentLosses:
    """Reads what a fragment cost."""
    return FragmentLosses.model_validate_json(store.path(artifact).read_bytes())
