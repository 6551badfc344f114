"""Suppression rule by which every set of classes that one person is in is shared by k persons.

An attacker who sees which records are one person's looks for the set of that person's classes. So each set has to be shared by k persons,
and some records have to be suppressed until it is. The rule: each person's classes are ordered, those with most persons first. Ordered
sets are paths of a tree from its root. From the leaves on, wherever fewer than k persons end, all of them lose the last class of their
path, and end one step nearer the root. A person who comes to the root has lost all.

**Why it suffices.** Where persons still end, k of them do, and these share their set. A class in which records stay is in some person's
set, and so in those of k persons: no class has to be looked at again. Which persons a class loses depends on the numbers of persons at
the nodes, not on who they are or on the order in which they come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import run_starts
from core.compiling.compiled import compiler
from core.units.digests import Digests, mix
from core.units.pairs import Pairs

kernel = compiler("units.set_tree", "units.digests")

Counts = NDArray[np.int64]
Nodes = NDArray[np.int32]
ROOT = 0
FIRST = 1 << 10


class Settled(NamedTuple):
    """Kept length of each path of a set tree, and the number of persons who stay in each class.

    Attributes:
        depths: Shape (nodes,): how many classes stay of a path that ends at each node.
        people: Shape (classes,): people who stay in each class.
    """

    depths: Nodes
    people: Counts


class SetTree:
    """Tree of the ordered class sets of persons, built share by share in any order."""

    def __init__(self) -> None:
        self._size = 1
        self._parents, self._classes = np.full(FIRST, -1, np.int32), np.full(FIRST, -1, np.int32)
        self._people = np.zeros(FIRST, np.int64)
        self._slots = np.full(4 * FIRST, -1, np.int32)

    def add(self, ranked_pairs: Pairs) -> Nodes:
        """Add persons with their classes, numbered by falling size; return the end node of each.

        Args:
            ranked_pairs: Their classes as cells, 0 being the one with most people.

        Returns:
            Where the path of each person ends, shape (people,).
        """
        starts = pair_starts(ranked_pairs.persons)
        self._make_room(self._size + len(ranked_pairs.cells))
        trunk = self._parents, self._classes
        ends, self._size = _follow(starts, ranked_pairs.cells, *trunk, self._slots, self._size)
        np.add.at(self._people, ends, 1)
        return ends

    def settle(self, k: int, class_count: int) -> Settled:
        """Return how much of each path is kept so that k persons share each end, and the persons per class."""
        trunk = self._parents[: self._size], self._classes[: self._size]
        depths, people = _settled(*trunk, self._people[: self._size].copy(), k, class_count)
        return Settled(depths, people)

    def _make_room(self, nodes: int) -> None:
        if nodes <= len(self._parents):
            return
        more = max(nodes, 2 * len(self._parents)) - len(self._parents)
        self._parents, self._classes = (np.append(held, np.full(more, -1, np.int32)) for held in (self._parents, self._classes))
        self._people = np.append(self._people, np.zeros(more, np.int64))
        self._slots = np.full(1 << (2 * len(self._parents)).bit_length(), -1, np.int32)
        _lay_out(self._parents, self._classes, self._size, self._slots)


def pair_starts(ascending_digests: Digests) -> Counts:
    """Return where each person's pairs start in ascending digests, and their number, (people + 1,)."""
    return np.append(run_starts(ascending_digests), len(ascending_digests)).astype(np.int64)


def pairs_withheld(pairs: Pairs, ends: Nodes, settled: Settled) -> Pairs:
    """Return the pairs of person and class whose records are suppressed.

    Args:
        pairs: As they were added to the tree.
        ends: Where the path of each person ends.
        settled: How far paths are kept.
    """
    starts = pair_starts(pairs.persons)
    places = np.arange(len(pairs.cells)) - np.repeat(starts[:-1], np.diff(starts))
    gone = places >= np.repeat(settled.depths[ends], np.diff(starts))
    return Pairs(pairs.persons[gone], pairs.cells[gone], pairs.counts[gone])


@kernel
def _slot_of(parent: np.int32, item: np.int32, parents: Nodes, classes: Nodes, slots: Nodes) -> Any:
    """Return the hash slot of a node, or the free slot for it."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = mix(np.uint64(parent) << np.uint64(32) | np.uint64(item)) & mask
    while slots[slot] >= 0 and (parents[slots[slot]] != parent or classes[slots[slot]] != item):
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@kernel
def _lay_out(parents: Nodes, classes: Nodes, size: int, slots: Nodes) -> None:
    """Put all nodes of a tree except its root into empty hash slots (all -1)."""
    for node in range(1, size):
        slots[_slot_of(parents[node], classes[node], parents, classes, slots)] = node


@kernel
def _follow(
    starts: Counts, items: NDArray[np.signedinteger[Any]], parents: Nodes, classes: Nodes, slots: Nodes, size: int
) -> tuple[Nodes, int]:
    """Follow each person's path from the root and add missing nodes; return the ends and the new size."""
    ends = np.empty(starts.shape[0] - 1, np.int32)
    for person in range(ends.shape[0]):
        node = np.int32(ROOT)
        for place in range(starts[person], starts[person + 1]):
            item = np.int32(items[place])
            slot = _slot_of(node, item, parents, classes, slots)
            if slots[slot] < 0:
                parents[size], classes[size], slots[slot] = node, item, size
                size += 1
            node = slots[slot]
        ends[person] = node
    return ends, size


@kernel
def _settled(parents: Nodes, classes: Nodes, people: Counts, k: int, size: int) -> tuple[Nodes, Counts]:
    """Move persons towards the root until k share each end.

    Returns:
        The kept path length of each node, shape (nodes,), and the persons of each class, shape (size,).
    """
    nodes = parents.shape[0]
    depths, found = np.zeros(nodes, np.int32), np.zeros(size, np.int64)
    for node in range(nodes - 1, 0, -1):
        if people[node] < k:
            people[parents[node]] += people[node]
            people[node] = 0
    for node in range(1, nodes):
        depths[node] = depths[parents[node]] + 1
    kept = depths.copy()
    for node in range(1, nodes):
        # A node has a greater number than its parent, whose path is decided already.
        if people[node] == 0:
            kept[node] = kept[parents[node]]
    for node in range(nodes - 1, 0, -1):
        found[classes[node]] += people[node]
        people[parents[node]] += people[node]
    return kept, found


@kernel
def withhold(assigned: Nodes, digests: Digests, persons: Digests, classes: Nodes, nowhere: int) -> None:
    """Set ``assigned`` to ``nowhere`` for the records of the given pairs of person and class.

    Args:
        assigned: Shape (n,), the class of each record; written to.
        digests: Shape (n,), the person of each.
        persons: Shape (pairs,), ascending.
        classes: Shape (pairs,), ascending for each person: whose records in which class go.
        nowhere: Becomes the class of such a record.
    """
    for row in range(assigned.shape[0]):
        low, high = 0, persons.shape[0]
        while low < high:
            middle = (low + high) // 2
            if persons[middle] < digests[row] or (persons[middle] == digests[row] and classes[middle] < assigned[row]):
                low = middle + 1
            else:
                high = middle
        if low < persons.shape[0] and persons[low] == digests[row] and classes[low] == assigned[row]:
            assigned[row] = nowhere
