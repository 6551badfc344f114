"""Local transformation: suppressed records are anonymised again at levels of their own (as in ARX).

Records whose combinations are too rare at the node of all are few and unlike the others, so that other levels suit them. Each further pass
searches the lattice over the residual records, by k alone. It publishes the cells of its node that are safe *among the residual records*: a
class needs no other records. A pass must publish at least half of them (``LIMIT``). Without a limit, objectives that do not weigh
suppressed records would take nearly none at the finest levels, pass after pass. Passes end when no record is left, when nothing is gained,
or when the best node is the top, which is a mask and no pass.

Neither the records that take part nor the levels follow from sensitive values. A cell that is large enough and breaks l or t is left out,
here as at the node of all, and is never tried again among others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.lattice.search import SearchResult
from core.local_suppression.recoding import RecodedPart, labels_of
from core.local_suppression.residual import Residual, ResidualLevel
from core.privacy.promise import Promise
from core.recoding.recoding import SUPPRESSED, Assigner, Stage
from core.units.class_table import ClassMembers, ClassTable, exact_hierarchy, joined_members, table_at

Bools = NDArray[np.bool_]


def fail_unsafe_unions(
    levels: Sequence[ResidualLevel], new: ResidualLevel, promise: Promise, hierarchies: Sequence[Hierarchy]
) -> ResidualLevel:
    """Return a new level whose cells fail, too, if they make unsafe classes with earlier levels.

    Args:
        levels: What is published before.
        promise: What a class must satisfy.
        hierarchies: One per QID.
    """
    if not _matters(new.members, promise):
        return new
    parts = [RecodedPart.of(level, ~level.failing) for level in (*levels, new)]
    failing = new.failing.copy()
    failing[~new.failing] = unsafe_cells(parts, promise, hierarchies)[-1]
    return replace(new, failing=failing)


def unsafe_cells(parts: Sequence[RecodedPart], promise: Promise, hierarchies: Sequence[Hierarchy]) -> list[Bools]:
    """Return for each part a mask of the cells in classes that fail as unions of parts.

    No cell is marked where a union of safe classes is always safe.

    Args:
        parts: Parts of which every class is safe by itself.
        promise: What a class must satisfy.
        hierarchies: One per QID.
    """
    ends = np.cumsum([part.cells.cells for part in parts])
    if not parts or not _matters(parts[0].members, promise):
        return [np.zeros(part.cells.cells, np.bool_) for part in parts]
    _, numbers, firsts = labels_of(parts, hierarchies)
    # A class of one cell is safe by itself, and most are.
    several = np.bincount(numbers, minlength=len(firsts)) > 1
    members = members_of(parts).relabelled_without_outside(np.where(several[numbers], numbers, -1)).merged()
    counts = np.bincount(numbers, weights=np.concatenate([part.cells.counts for part in parts])).astype(np.int64)
    failing = ClassTable.of_members(counts, members).failing(promise) & several
    return np.split(failing[numbers], ends[:-1])


def members_of(parts: Sequence[RecodedPart]) -> ClassMembers:
    """Return the members of the cells of all parts, numbered one part after the other."""
    starts = np.cumsum([0, *(part.cells.cells for part in parts)])
    found = [replace(part.members, owners=part.members.owners + start) for part, start in zip(parts, starts, strict=False) if part.members]
    return joined_members(found)


def _matters(members: ClassMembers | None, promise: Promise) -> bool:
    """Return whether unions of safe classes can fail: persons are counted and the promise is not closed."""
    return members is not None and not promise.is_closed_under_union


LIMIT = Fraction(1, 2)
# Cells that are packed at a time, so that the keys of a large root are never held at once.
SLICE = 1 << 22

Find = Callable[[Residual], SearchResult | None]
"""Searches the lattice over what is left."""


@dataclass(frozen=True, eq=False)
class NodeEvaluator:
    """Counter and evaluator of the cells of a node, by hierarchies and promise.

    Attributes:
        hierarchies: One per QID in job order.
        sensitive: Domains of the sensitive columns that the promise looks at.
        promise: What a class must satisfy.
    """

    hierarchies: Sequence[Hierarchy]
    sensitive: Sequence[Domain]
    promise: Promise

    @property
    def axes(self) -> tuple[Hierarchy, ...]:
        """Axes of cells: the QIDs' hierarchies, then the unchanged sensitive columns."""
        return (*self.hierarchies, *map(exact_hierarchy, self.sensitive))

    def at(self, residual: Residual, node: Node) -> ResidualLevel:
        """Return the cells of residual records at a node, with masks of those that fail or are too few.

        Args:
            residual: Records, by the cells of a node that is nowhere coarser.
            node: Level of each QID.
        """
        cells, classes = table_at(residual.cells, node, self.hierarchies, self.sensitive, residual.selected_persons)
        return ResidualLevel(cells, classes, classes.failing(self.promise), self.promise.too_few(classes.units))

    def records_failing(self, residual: Residual, level: ResidualLevel) -> Residual:
        """Return the residual records whose cell at a coarser node has too few records or persons."""
        lost, codes = RareCellLookup(level, residual.cells.node, self.hierarchies), residual.cells.codes
        found = [first + lost.positions_in(codes[first : first + SLICE]) for first in range(0, residual.cells.cells, SLICE)]
        return residual.selected_records(np.concatenate([np.empty(0, np.intp), *found]))


class RareCellLookup:
    """Lookup of cells that belong to cells of too few at a coarser node.

    Args:
        node: Of the cells; nowhere coarser.
        hierarchies: One per QID.
    """

    def __init__(self, level: ResidualLevel, node: Node, hierarchies: Sequence[Hierarchy]) -> None:
        """Build the lookup from the cells of too few at the coarser node."""
        rows = np.flatnonzero(level.few)
        self._packing = level.cells.packing
        words = tuple(word[rows] for word in level.cells.words)
        # All that is left is one class, so that cells are looked up as records of a release are.
        self._assigner = Assigner(Stage(level.node, self._packing, words, np.zeros(len(rows), np.int32)))
        self._maps = [hierarchy.rolled(fine, coarse) for hierarchy, fine, coarse in zip(hierarchies, node, level.node, strict=False)]

    def positions_in(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.intp]:
        """Return the positions of cells whose coarser cell has too few records or persons, ascending.

        ``codes`` has the shape (cells, QIDs or more), the group of each QID.
        """
        words = self._packing.pack_mapped(tuple(codes[:, : len(self._maps)].T), self._maps)
        return np.flatnonzero(self._assigner.assign(words) != SUPPRESSED)


def transform_locally(
    first: ResidualLevel, residual: Residual, rounds: int, evaluator: NodeEvaluator, find: Find
) -> tuple[list[ResidualLevel], Residual]:
    """Anonymise residual records again, pass by pass; return the levels and what is still too rare.

    Args:
        first: The node of all.
        residual: What is too rare there, at a node as fine as its memory allows.
        rounds: Greatest number of passes.
        evaluator: Looks at nodes.
        find: Searches by k alone.

    Returns:
        The nodes, the first one included, and what is too rare at the last.
    """
    levels = [first]
    top = tuple(hierarchy.top for hierarchy in evaluator.hierarchies)
    for _ in range(rounds):
        found = find(residual) if residual.records else None
        if found is None or found.loss.suppressed == residual.records or found.node[: len(top)] == top:
            break
        level = fail_unsafe_unions(levels, evaluator.at(residual, found.node), evaluator.promise, evaluator.hierarchies)
        levels.append(level)
        residual = evaluator.records_failing(residual, level)
    return levels, residual
