"""The cells of one node as they are published: who is in each, in several together, and how sensitive values are spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import places_in, roll_up
from core.histograms.histogram import Histogram
from core.persons.spreads import spread_of_people
from core.persons.visits import Visits
from core.privacy.class_tables import classes_of, unchanged, without_sensitive
from core.privacy.models import Spreads

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeCells:
    """The cells of a node.

    Attributes:
        cells: Of the QIDs alone.
        persons: Shape (cells,), int64: what a privacy model counts; records where no person is named.
        spreads: By sensitive column.
    """

    cells: Histogram
    persons: Counts
    spreads: Spreads

    def union(self, cells: NDArray[np.bool_]) -> tuple[Counts, Spreads]:
        """Returns what a privacy model counts of the one class that the marked cells make together, shape (1,), and its spreads."""
        return self.persons[cells].sum(keepdims=True), {name: spread.union(cells) for name, spread in self.spreads.items()}


@dataclass(frozen=True, eq=False)
class PeopleCells(NodeCells):
    """The cells of a node where persons count, who may be in several of them.

    Attributes:
        visits: To the cells of the root.
        owners: Shape (root cells,): the cell of the node that each falls into.
        values: By sensitive column, shape (root cells,): its code, and shape (values,): persons of the whole source by value.
    """

    visits: Visits
    owners: NDArray[Any]
    values: dict[str, tuple[NDArray[np.int64], Counts]]

    def union(self, cells: NDArray[np.bool_]) -> tuple[Counts, Spreads]:
        """Returns the different persons of the marked cells, shape (1,), and how many of them have each value."""
        others = (~cells[self.owners]).astype(np.int64)
        return self.visits.count(others, 2)[:1], {
            name: spread_of_people(self.visits, others, *value).union(np.array([True, False])) for name, value in self.values.items()
        }


def cells_at(
    root: Histogram, node: Node, hierarchies: Sequence[Hierarchy], sensitive: Sequence[Domain], visits: Visits | None
) -> NodeCells:
    """Counts the cells of a node.

    Args:
        root: Cells of a node that is nowhere coarser, with the sensitive columns as last axes.
        node: Level of each QID, or of each axis.
        hierarchies: One per QID.
        sensitive: Domains of the sensitive columns.
        visits: To the root's cells; None where no person is named.
    """
    axes = (*hierarchies, *map(unchanged, sensitive))
    cells = roll_up(root, (*node[: len(hierarchies)], *(0,) * len(sensitive)), axes)
    plain = without_sensitive(cells, hierarchies)
    if visits is None:
        return NodeCells(plain, plain.counts, classes_of(cells, sensitive).spreads)
    owners = places_in(plain, root.node, root.codes, hierarchies)
    values = {}
    for axis, domain in enumerate(sensitive, start=len(hierarchies)):
        codes = root.codes[:, axis].astype(np.int64)
        values[domain.qid] = codes, visits.whole(domain.qid, codes, domain.size)
    spreads = {name: spread_of_people(visits, owners, *value) for name, value in values.items()}
    return PeopleCells(plain, visits.count(owners, plain.cells), spreads, visits, owners, values)
