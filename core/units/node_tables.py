"""The cells of one node as they are published, as a table of classes: records or persons, and how sensitive values are spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import positions_of_finer_cells, roll_up
from core.histograms.histogram import Histogram
from core.units.class_table import ClassTable
from core.units.members import ClassMembers, SourceMembers
from core.units.sensitive_axes import classes_of, unchanged, without_sensitive


class NodeTable(NamedTuple):
    """The cells of a node, of the QIDs alone, and the same as classes."""

    cells: Histogram
    classes: ClassTable


def table_at(
    root: Histogram, node: Node, hierarchies: Sequence[Hierarchy], sensitive: Sequence[Domain], whose: SourceMembers | None
) -> NodeTable:
    """Counts the cells of a node.

    Args:
        root: Cells of a node that is nowhere coarser, with the sensitive columns as last axes.
        node: Level of each QID, or of each axis.
        hierarchies: One per QID.
        sensitive: Domains of the sensitive columns.
        whose: Whose the root's cells are; None where no person is named.
    """
    axes = (*hierarchies, *map(unchanged, sensitive))
    cells = roll_up(root, (*node[: len(hierarchies)], *(0,) * len(sensitive)), axes)
    plain = without_sensitive(cells, hierarchies)
    if whose is None:
        return NodeTable(plain, classes_of(cells, sensitive)[0])
    members = ClassMembers(whose, positions_of_finer_cells(plain, root.node, root.codes, hierarchies))
    return NodeTable(plain, ClassTable.of_members(plain.counts, members))
