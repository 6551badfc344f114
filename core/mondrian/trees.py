"""All cuts of Mondrian as a tree that other records can be led through; compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.mondrian.cuts import cut_of
from core.mondrian.rows import Numbers, PersonsByRow, Prices, Room, Rows, Scale, split, whole
from core.privacy.kernels import Demands

LEAF = -1
kernel = compiler(
    "recoding.price_kernels",
    "privacy.holder_kernels",
    "privacy.kernels",
    "privacy.refusals",
    "mondrian.rows",
    "mondrian.halves",
    "mondrian.scores",
    "mondrian.cuts",
    "mondrian.trees",
)  # fmt: skip


@kernel
def cut_tree(
    rows: Rows,
    scale: Scale,
    score: int,
    mode: int,
    k: int,
    demands: Demands | None,
    tried: Demands | None,
    people: PersonsByRow | None,
    room: Room,
    prices: Prices | None,
) -> Numbers:
    """Cuts until no cut is allowed, as ``mondrian_cuts.cut_all`` does, and remembers the cuts.

    Returns:
        Shape (nodes, 3): the QID that a node is cut by or LEAF, the greatest rank that goes left, and the left child, after which comes the
        right one; of a leaf its number, from left to right. The root is node 0.
    """
    nodes = np.empty((1024, 3), np.int64)
    stack = np.empty((1024, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, rows.ranks.shape[0], 0
    depth, leaves, size = whole(1), whole(0), whole(1)
    while depth:
        depth -= 1
        first, end, at = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        cut = cut_of(rows, (first, end), scale, score, mode, k, demands, tried, people, room, prices)
        if cut[0] < 0:
            nodes[at, 0], nodes[at, 1], nodes[at, 2] = LEAF, 0, leaves
            leaves += 1
            continue
        middle = split(rows, (first, end), cut, room)
        nodes[at, 0], nodes[at, 1], nodes[at, 2] = cut[0], cut[1], size
        if size + 2 > nodes.shape[0]:
            nodes = np.concatenate((nodes, np.empty_like(nodes)))
        if depth + 2 > stack.shape[0]:
            stack = np.concatenate((stack, np.empty_like(stack)))
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = middle, end, size + 1
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = first, middle, size
        depth += 2
        size += 2
    return nodes[:size].copy()


@kernel
def led(ranks: NDArray[np.unsignedinteger[Any]], qids: Numbers, cuts: Numbers, lefts: Numbers) -> Numbers:
    """Returns the leaf of each row, shape (rows,).

    Args:
        ranks: Shape (rows, QIDs).
        qids: Shape (nodes,): the QID that a node is cut by or LEAF.
        cuts: Shape (nodes,): the greatest rank that goes left.
        lefts: Shape (nodes,): the left child, after which comes the right one; of a leaf its number. The root is node 0.
    """
    leaves = np.empty(ranks.shape[0], np.int64)
    for row in range(ranks.shape[0]):
        node = whole(0)
        while qids[node] != LEAF:
            # Added up, not branched upon: which way the next record goes is anybody's guess.
            node = lefts[node] + np.int64(np.int64(ranks[row, qids[node]]) > cuts[node])
        leaves[row] = lefts[node]
    return leaves
