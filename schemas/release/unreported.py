"""What a run found out that its release does not tell."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from schemas.attacks.figures import AttackFigures
from schemas.release.figures import PassedColumn, RepeatedColumn
from schemas.release.increments import Overlap
from schemas.release.terms import Band, LatticeFigures


class Unreported(BaseModel):
    """What a run found out that its release does not tell: for whoever runs a job, who has the source; it stays in the work folder.

    Attributes:
        release: The release that the run made.
        search: What the search or the algorithm counted on its way: nodes that pass, nodes that were evaluated, bounds, roots, partitions.
        optimal: How far the search came, with numbers.
        loss: Losses as the search measured them, by the values of the source.
        ncp: The same by QID.
        suppressed_for: Suppressed records by what they lacked.
        risk: Of the source as it is; empty where that was not counted.
        source_sizes: Classes of the source as it is.
        passthrough: Columns that are published untreated, of all records of the source.
        repeats: Identifiers that repeat, with figures.
        most_records: Records of the person who has most in the source; None where none is named.
        lattice: What the search found out about the lattice.
        overlaps: Other releases of some of the same records, with exact figures.
        attacks: What attacks on people of the source came to.
        least_stars: How many stars records cannot do without at the levels where they are starred; None if that is not known.
    """

    model_config = ConfigDict(frozen=True)

    release: str
    search: dict[str, int | float | list[int] | list[list[int]]]
    optimal: str
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int] = {}
    risk: dict[str, int | float] = {}
    source_sizes: tuple[Band, ...] = ()
    passthrough: dict[str, PassedColumn] = {}
    repeats: dict[str, RepeatedColumn] = {}
    most_records: int | None = None
    lattice: LatticeFigures | None = None
    overlaps: tuple[Overlap, ...] = ()
    attacks: tuple[AttackFigures, ...] = ()
    least_stars: int | None = None
