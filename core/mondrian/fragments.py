"""Fragments: disjoint parts of the records, cut at thresholds of QIDs learnt from a sample.

Each fragment is a conjunction of conditions on QIDs (papers/distributed-mondrian.txt, section 4).

It is a leaf of a tree of cuts, or several leaves where one would be too thin by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords
from core.compiling.compiled import compiler
from core.mondrian.cuts import cut_of
from core.mondrian.partition import MODES, SCORES, Rules, persons_by_row, prices_for, room_for
from core.mondrian.ranks import axes_scale, scale_of_fragment
from core.mondrian.recoding import Cutting
from core.mondrian.rows import NO_CUT, CutBuffers, CutPrices, CutScale, Numbers, PersonsByRow, Rows, split, whole, with_doubled_rows
from core.privacy.kernels import MODULES, Demands, is_compiled
from core.privacy.promise import Promise
from core.units.digests import mixed_numbers
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit


def sample_mask(words: PackedWords, share: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask of the records in a sample, shape (n,), chosen by a hash of their cells.

    A record is in the sample if its hash is below the share. Equal records are in it together.

    Args:
        words: The cells, arrays of shape (n,).
        share: From 0 to 1; 1 takes all.
        seed: Another one draws another sample.
    """
    state: NDArray[np.uint64] = np.full(len(words[0]), mixed_numbers(np.array([seed], np.uint64))[0])
    for word in words:
        state = mixed_numbers(state ^ word.astype(np.uint64))
    # 53 bits, as many as a float has: the share becomes a whole number and the comparison exact.
    drawn: NDArray[np.bool_] = (state >> np.uint64(11)) < np.uint64(round(share * (1 << 53)))
    return drawn


LEAF = -1
kernel = compiler(*MODULES, "mondrian.fragments")


@kernel
def cut_tree(
    rows: Rows,
    scale: CutScale,
    score: int,
    mode: int,
    k: int,
    demands: Demands | None,
    stop_demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
    prices: CutPrices | None,
    depth: int,
    share: float,
    most_records: float,
) -> Numbers:
    """Cut nodes until no cut is allowed or a refusal ends it, reordering ``rows``; return the cut tree.

    The cuts are those of ``core.mondrian.cuts.cut_all``. A cut that breaks ``demands`` is followed by the next best; one that breaks
    ``stop_demands`` ends the node.

    Args:
        depth: How many cuts nest; deeper ones are made only of nodes that hold too much.
        share: Share of all records that those of the rows are.
        most_records: Of all records, how many a node so deep may hold.

    Returns:
        Shape (nodes, 3): the QID that a node is cut by or LEAF, the greatest rank that goes left, and the left child, after which comes the
        right one; of a leaf its number, from left to right. The root is node 0.
    """
    nodes = np.empty((1024, 3), np.int64)
    stack = np.empty((1024, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, rows.ranks.shape[0], 0, 0
    waiting, leaves, size = whole(1), whole(0), whole(1)
    while waiting:
        waiting -= 1
        first, end, at, level = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        weight = whole(0)
        for row in range(first, end):
            weight += rows.weights[row]
        cut = NO_CUT
        if level < depth or weight / share > most_records:
            cut = cut_of(rows, (first, end), scale, score, mode, k, demands, stop_demands, people, room, prices)
        if cut[0] < 0:
            nodes[at, 0], nodes[at, 1], nodes[at, 2] = LEAF, 0, leaves
            leaves += 1
            continue
        middle = split(rows, (first, end), cut, room)
        nodes[at, 0], nodes[at, 1], nodes[at, 2] = cut[0], cut[1], size
        if size + 2 > nodes.shape[0]:
            nodes = with_doubled_rows(nodes)
        if waiting + 2 > stack.shape[0]:
            stack = with_doubled_rows(stack)
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] = middle, end, size + 1, level + 1
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2], stack[waiting + 1, 3] = first, middle, size, level + 1
        waiting += 2
        size += 2
    return nodes[:size].copy()


@kernel
def leaves_of_ranks(ranks: NDArray[np.unsignedinteger[Any]], qids: Numbers, cuts: Numbers, lefts: Numbers) -> Numbers:
    """Return the leaf of a cut tree that each row of QID ranks falls into, shape (rows,).

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


Ranks = NDArray[np.unsignedinteger[Any]]
Group = tuple[int, ...]


@dataclass(frozen=True)
class CutTree:
    """Tree of Mondrian's cuts of a dataset, as arrays with one entry per node.

    The root is node 0; children come after their parent.

    Attributes:
        qids: The QID that a node is cut by, or LEAF.
        ranks: The greatest rank that goes left.
        lefts: The left child; the right one comes next. For a leaf its number, from left to right.
    """

    qids: tuple[int, ...]
    ranks: tuple[int, ...]
    lefts: tuple[int, ...]

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return self.qids.count(LEAF)

    def leaf_of(self, ranks: Ranks) -> NDArray[np.int64]:
        """Return the leaf that each record falls into, shape (n,); ``ranks`` has the shape (n, QIDs)."""
        found: NDArray[np.int64] = leaves_of_ranks(ranks, *(np.array(part, np.int64) for part in (self.qids, self.ranks, self.lefts)))
        return found


def tree_of(
    cutting: Cutting,
    codes: NDArray[Any],
    weights: NDArray[np.int64],
    unit: Unit = EVERY_RECORD,
    *,
    depth: int = 0,
    share: float = 1.0,
    most_records: float = 0.0,
) -> CutTree:
    """Return the tree of the cuts that ``Cutting.cut`` makes of rows; the inputs stay as they are.

    Args:
        cutting: How.
        codes: Shape (rows, QIDs and sensitive columns of the rules).
        weights: Shape (rows,), records per row.
        unit: Whose these are, for rules that are of persons.
        depth: As of ``cut_tree``, like ``share`` and ``most_records``; every cut is made if these are left out.
    """
    axes, rules, ranks = cutting.axes, cutting.rules, cutting.ranks(codes)
    sensitive = codes[:, len(axes) :].astype(np.int32) if rules.columns else np.empty((len(codes), 0), np.int32)
    rows = Rows(ranks, weights.copy(), sensitive, np.arange(len(codes), dtype=np.int32))
    scale = scale_of_fragment(axes, ranks) if cutting.of_fragment else axes_scale(axes)
    prices = prices_for(axes, len(codes), cutting.label_prices_of_cuts) if cutting.score == "ncp" else None
    demands, whose = rules.demands, persons_by_row(unit, sensitive)
    how = SCORES[cutting.score], MODES[cutting.mode], demands.k, *rules.kernel_demands
    nodes = cut_tree(rows, scale, *how, whose, room_for(axes, demands), prices, depth, float(share), float(most_records))
    qids, cuts, lefts = (tuple(column) for column in nodes.T.tolist())
    return CutTree(qids, cuts, lefts)


def cut_tree_by_mondrian(
    cutting: Cutting, codes: NDArray[Any], weights: NDArray[np.int64], count: int, share: float, most_records: float = inf
) -> CutTree:
    """Build the cut tree of fragments by Mondrian's cuts of a sample (Fig. 5).

    Cuts nest ⌈log2 count⌉ deep, and deeper where a fragment would be too large.

    Args:
        cutting: How Mondrian cuts. With the whole dataset as the sample and its spans, fragments are nodes of the centralised run.
        codes: Shape (rows, QIDs and sensitive columns of the rules), the sample.
        weights: Shape (rows,), records per row.
        count: How many fragments are wanted.
        share: Share of the records that the sample is; a half of a cut holds as much of k, and where all are in it, keeps the rules
            as far as kernels know them.
        most_records: Most records of a fragment, estimated from the sample.
    """
    whole = share >= 1 and is_compiled(cutting.rules.promise)
    rules = cutting.rules if whole else Rules(Promise(max(int(cutting.rules.promise.k * share), 1)))
    # Fragments keep equal values together, so that conditions tell a record's fragment.
    cutting = replace(cutting, rules=rules, mode="strict" if cutting.mode == "relaxed" else cutting.mode)
    return tree_of(cutting, codes, weights, depth=ceil(log2(count)), share=share, most_records=most_records)


def cut_tree_by_quantiles(cutting: Cutting, codes: NDArray[Any], weights: NDArray[np.int64], count: int) -> CutTree:
    """Build the cut tree of fragments by quantiles of the QID with most distinct values (Fig. 4).

    Ties go to the first QID in job order.

    Fewer fragments result where a value is more frequent than a fragment is large, or where there are fewer values.

    Args:
        cutting: Has the axes.
        codes: Shape (rows, QIDs, …), the sample.
        weights: Shape (rows,), records per row.
        count: How many fragments are wanted.
    """
    if not len(codes):
        return _balanced(0, [])
    qid = max(range(len(cutting.axes)), key=lambda position: (cutting.axes[position].size, -position))
    size = cutting.axes[qid].size
    sums = np.bincount(cutting.axes[qid].ranks[codes[:, qid]], weights=weights, minlength=size).cumsum()
    found = {int(np.searchsorted(sums, sums[-1] * part / count)) for part in range(1, count)}
    # A cut above the greatest rank would leave a fragment of nothing.
    return _balanced(qid, sorted(rank for rank in found if rank < size - 1))


def _balanced(qid: int, ranks: Sequence[int]) -> CutTree:
    """Build a balanced tree of cuts of one QID at given ranks, ascending."""
    spans, nodes = [(0, len(ranks))], list[tuple[int, int, int]]()
    for first, end in spans:
        middle = (first + end) // 2
        # A leaf has as many leaves on its left as there are cuts.
        nodes.append((qid, ranks[middle], len(spans)) if first < end else (LEAF, 0, first))
        spans += [(first, middle), (middle + 1, end)] if first < end else []
    qids, cuts, lefts = zip(*nodes, strict=True)
    return CutTree(qids, cuts, lefts)


def merge_thin(tree: CutTree, is_large: Callable[[Group], bool], keeps: Callable[[Group], bool] | None = None) -> list[Group]:
    """Merge leaves that are too thin with their siblings and return the leaves of each fragment.

    Fragments come from left to right.

    Which leaves are merged follows from quasi-identifiers: the sibling of a thin leaf next to a subtree is the nearest fragment of that
    subtree. Sensitive values decide one thing alone: a cut is not made if any fragment on one side of it breaks the model. All fragments on
    both sides are then one fragment, so that a reader learns no more than from a cut that was not made.

    Args:
        is_large: Returns whether some leaves together have k people; all leaves do.
        keeps: Returns whether they keep the model of sensitive values; all leaves do. None for no such model.
    """

    def walk(node: int) -> list[Group]:
        if tree.qids[node] == LEAF:
            return [(tree.lefts[node],)]
        left, right = walk(tree.lefts[node]), walk(tree.lefts[node] + 1)
        # Of several fragments none is thin: only a single one can be, which had nothing to be merged with yet.
        while right and not is_large(left[0]):
            left = [(*left[0], *right.pop(0))]
        while left and right and not is_large(right[0]):
            right = [(*left.pop(), *right[0])]
        found = [*left, *right]
        return found if keeps is None or all(map(keeps, found)) else [tuple(leaf for group in found for leaf in group)]

    return walk(0)
