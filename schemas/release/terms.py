"""Settings of a job that its manifest keeps, so that the report can be rebuilt without the job.

They hold names, texts and counts, never a cell value.
"""

from __future__ import annotations

from typing import Literal

from schemas.job.privacy import AttackFigures
from schemas.reading.model import FrozenModel
from schemas.release.figures import PassedColumn, RepeatedColumn
from schemas.release.increments import Overlap

OWN_NODE = "node that the job names"
"""How ``optimal`` of a manifest begins where no node was looked for."""
NOT_FOR_NODES = "not a choice of levels: every class has labels of its own"
"""What it says where there are no levels to choose."""


class Band(FrozenModel):
    """Number of classes with sizes in one range, in the unit of k, and of their records or persons.

    Attributes:
        least: Records of such a class at least, or persons where the job names them.
        most: Records or persons at most; None in the last band.
        classes: How many classes there are.
        records: Their records, or their persons, who count once in each of their classes. The name is older than the counting of persons.
    """

    least: int
    most: int | None
    classes: int
    records: int


class QidTerms(FrozenModel):
    """Published columns, hierarchy and published level of one quasi-identifier in a manifest.

    Attributes:
        name: The column of the source.
        columns: The columns under which it is published: itself, or two of bounds.
        hierarchy: How its values can be grouped, in words.
        published: The level that is published, in words.
    """

    name: str
    columns: tuple[str, ...]
    hierarchy: str
    published: str


class Terms(FrozenModel):
    """Settings of a job that its manifest keeps for the report, without the privacy models.

    Attributes:
        limit: Greatest share of records that may be suppressed, as it is written.
        treatment: ``drop``, ``mask`` or ``cell``, and after how many ``rounds`` at most.
        objective: What the search of the lattice minimised; None for other methods.
        identifiers, sensitive, insensitive: Columns by role; ``insensitive`` may be the word ``rest``.
        withheld: Columns that are not published and name nobody.
        accept_untreated: Whether fewer than k may share what insensitive columns publish together.
        quasi_identifiers: In job order.
        memory: The budget in bytes.
        tries_next: Whether another cut is tried where l or t refuse the best one (``method.refused: next``).
        source: What the source is, as in ``CSV files``; empty in older releases.
    """

    limit: str
    treatment: str
    rounds: int = 0
    objective: str | None
    identifiers: tuple[str, ...]
    quasi_identifiers: tuple[QidTerms, ...]
    sensitive: tuple[str, ...]
    insensitive: tuple[str, ...] | Literal["rest"]
    memory: int
    tries_next: bool = False
    source: str = ""
    withheld: tuple[str, ...] = ()
    accept_untreated: bool = False


class LatticeFigures(FrozenModel):
    """Status of nodes, and counts of nodes by status and height, for a picture of the lattice.

    Attributes:
        levels: Number of levels of each quasi-identifier.
        heights: By status (``fails``, ``passes``, ``cut``, ``unexamined``), how many nodes of each height from 0 up have it.
        nodes: Status by node, its levels apart by blanks: all nodes, or the neighbourhood of the chosen one.
        whole: Whether these are all nodes.
    """

    levels: tuple[int, ...]
    heights: dict[str, tuple[int, ...]]
    nodes: dict[str, str]
    whole: bool


class Unreported(FrozenModel):
    """Results of a run that its release does not disclose.

    They are for the person who runs the job and has the source, and stay in the work folder.

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
