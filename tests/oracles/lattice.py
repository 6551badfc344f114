"""The whole lattice by force: every node is published in full, its classes counted one record at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

Node = tuple[int, ...]
Rows = Sequence[tuple[Any, ...]]
DraftLevels = Sequence[Mapping[Any, Any]]
"""One mapping per level, finest first: what each value is published as; a null is the key None."""


@dataclass(frozen=True)
class Losses:
    """What a node costs, summed class by class."""

    suppressed: int
    dm_star: int
    dm_all: int
    classes: int
    c_avg: Fraction = Fraction(0)


def all_nodes(ladders: Sequence[DraftLevels], root: Node | None = None) -> Iterator[Node]:
    """Every node at or above the root."""
    return product(*(range(first, len(ladder)) for first, ladder in zip(root or (0,) * len(ladders), ladders, strict=True)))


def published(row: tuple[Any, ...], ladders: Sequence[DraftLevels], node: Node) -> tuple[Any, ...]:
    """What one record is published as."""
    return tuple(ladder[level][value] for value, ladder, level in zip(row, ladders, node, strict=True))


def class_sizes(rows: Rows, ladders: Sequence[DraftLevels], node: Node) -> Counter[tuple[Any, ...]]:
    """Records per published combination."""
    return Counter(published(row, ladders, node) for row in rows)


def losses(rows: Rows, ladders: Sequence[DraftLevels], node: Node, k: int) -> Losses:
    """Suppressed records, Σ|E|² over published classes + s² (eq. 4), and Σ|E|² over all."""
    sizes = class_sizes(rows, ladders, node)
    suppressed = squares = everything = 0
    for size in sizes.values():
        everything += size**2
        if size < k:
            suppressed += size
        else:
            squares += size**2
    return Losses(suppressed, squares + suppressed**2, everything, len(sizes))


def passing_nodes(rows: Rows, ladders: Sequence[DraftLevels], k: int, limit: Fraction, root: Node | None = None) -> set[Node]:
    """Nodes that suppress no more than the limit's share of all records."""
    nodes = all_nodes(ladders, root)
    return {node for node in nodes if losses(rows, ladders, node, k).suppressed <= limit * len(rows)}


def precision(ladders: Sequence[DraftLevels], node: Node) -> Fraction:
    """Sweeney's Prec = 1 - mean(level / highest level)."""
    steps = [Fraction(level, len(ladder) - 1) for level, ladder in zip(node, ladders, strict=True)]
    return 1 - sum(steps, Fraction(0)) / len(steps)


def best_node(rows: Rows, ladders: Sequence[DraftLevels], k: int, limit: Fraction, objective: str, root: Node | None = None) -> Node | None:
    """The passing node of lowest rank."""
    return min(passing_nodes(rows, ladders, k, limit, root), key=lambda node: rank(rows, ladders, k, objective, node), default=None)


def rank(rows: Rows, ladders: Sequence[DraftLevels], k: int, objective: str, node: Node) -> tuple[bool, int, int, Fraction, Node]:
    """What nodes are compared by: publishing something, lowest objective, fewest suppressed, most precise, finest in job order."""
    loss = losses(rows, ladders, node, k)
    nothing = loss.suppressed == len(rows)
    # Of nodes that publish nothing the objective means nothing.
    return nothing, 0 if nothing else getattr(loss, objective), loss.suppressed, -precision(ladders, node), node
