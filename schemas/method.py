"""The algorithms that a job can ask for, one model each, told apart by their name."""

from typing import Annotated, Literal, TypeAlias

from schemas.strict import Choice, StrictModel


class SkaldMethod(StrictModel):
    """The optimal full-domain node under a memory budget (papers/skald.txt)."""

    name: Literal["skald"] = "skald"
    root: Literal["occupied", "dense"] = "occupied"
    """What bounds the root histogram: its occupied cells, or the paper's product of the axes (eq. 3)."""
    objective: Literal["dm_star", "dm_all"] = "dm_star"
    """What is minimised: eq. 4 of the paper, or the sum over all cells as El Emam and ARX have it."""


# A further algorithm is one more model above, one more member of the union and one more entry of the table.
AnyMethod: TypeAlias = SkaldMethod
METHODS: dict[str, type[StrictModel]] = {"skald": SkaldMethod}
"""The known methods by name."""

Method = Annotated[AnyMethod, Choice(METHODS, "name")]
