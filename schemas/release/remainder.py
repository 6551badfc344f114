"""What a release says of the records that fail at the levels of its columns."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Round(BaseModel):
    """A further choice of levels: its node, the records that it published, and their classes before equal labels are one."""

    model_config = ConfigDict(frozen=True)

    node: tuple[int, ...]
    records: int
    classes: int


class Remainder(BaseModel):
    """What became of the records that fail at the node of all, where they are not simply dropped or masked.

    Attributes:
        records: How many there are; what the limit of suppression is about.
        dm_star: DM* of the node, all of them counted as suppressed: what the search compared nodes by. The losses are of what is published.
        rounds: In their order.
        starred: Records of which some values are starred, but not all.
        stars: Starred values, those of masked records included.
        least: How many stars these records cannot do without at the levels where they are starred; None if that is not known.
        withheld: By QID, the values ``*`` in the release, whether a star or a level made them.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    dm_star: int
    rounds: tuple[Round, ...]
    starred: int
    stars: int
    least: int | None
    withheld: dict[str, int]
