"""Fragments: every record is in one, thin ones are merged, and without sampling the classes are those of a centralised run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.fragments import LEAF, CutTree, Group, cut_tree_by_mondrian, cut_tree_by_quantiles, merge_thin, sample_mask
from core.mondrian.partition import Rules
from core.mondrian.ranks import axis_of
from core.mondrian.recoding import Cutting
from core.privacy.promise import Promise
from schemas.job.columns import QuasiIdentifier
from tests.oracles.tables import Example, examples


def cutting_of(example: Example, k: int) -> Cutting:
    qid = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"widths": [2]}})
    pairs = list(zip(example.domains, example.hierarchies, strict=True))
    axes = tuple(axis_of(qid, domain, hierarchy, folder=None) for domain, hierarchy in pairs)  # type: ignore[arg-type]
    return Cutting(axes, example.domains, example.hierarchies, Rules(Promise(k)), (None,) * len(pairs))


def records_of(example: Example) -> np.ndarray:
    columns = []
    for position, domain in enumerate(example.domains):
        codes = {value: code for code, value in enumerate([*domain.values.to_pylist(), None])}
        columns.append([codes[value] for value in example.column(position).to_pylist()])
    return np.array(columns, np.uint16).T.copy()


def classes(cutting: Cutting, codes: np.ndarray, rows: np.ndarray) -> list[tuple[int, ...]]:
    made = cutting.cut(codes[rows], np.ones(len(rows), np.int64))
    return [tuple(sorted(rows[part].tolist())) for part in np.split(made.order, made.starts[1:-1])]


def planted(cutting: Cutting, codes: np.ndarray, count: int, way: str) -> CutTree:
    weights = np.ones(len(codes), np.int64)
    return (
        cut_tree_by_quantiles(cutting, codes, weights, count)
        if way == "quantile"
        else cut_tree_by_mondrian(cutting, codes, weights, count, 1)
    )


@pytest.mark.ci
@given(examples(), st.integers(1, 6), st.integers(1, 9))
def test_fragments_of_a_complete_sample_have_the_classes_of_a_centralised_run(example: Example, k: int, count: int) -> None:
    cutting, codes = cutting_of(example, k), records_of(example)
    leaves = planted(cutting, codes, count, "multidimensional").leaf_of(cutting.ranks(codes))
    parts = [classes(cutting, codes, np.flatnonzero(leaves == leaf)) for leaf in np.unique(leaves)]
    assert [part for fragment in parts for part in fragment] == classes(cutting, codes, np.arange(len(codes)))


def conditions(tree: CutTree, leaf: int) -> Iterator[tuple[int, str, int]]:
    """Yield the conditions of a leaf from the leaf up: QID, side and rank (papers/distributed-mondrian.txt, 4.2)."""
    node = next(node for node, qid in enumerate(tree.qids) if qid == LEAF and tree.lefts[node] == leaf)
    while node:
        parent = next(up for up, qid in enumerate(tree.qids) if qid != LEAF and tree.lefts[up] in {node, node - 1})
        yield tree.qids[parent], "<=" if tree.lefts[parent] == node else ">", tree.ranks[parent]
        node = parent


@given(examples(), st.integers(1, 9), st.sampled_from(["quantile", "multidimensional"]))
def test_every_record_is_in_the_one_fragment_whose_conditions_it_meets(example: Example, count: int, way: str) -> None:
    cutting, codes = cutting_of(example, 1), records_of(example)
    tree, ranks = planted(cutting, codes[::2], count, way), cutting.ranks(codes)
    leaves = tree.leaf_of(ranks)
    for leaf in range(tree.leaves):
        met = np.ones(len(codes), np.bool_)
        for qid, sign, rank in conditions(tree, leaf):
            met &= ranks[:, qid] <= rank if sign == "<=" else ranks[:, qid] > rank
        assert np.array_equal(met, leaves == leaf)


@given(examples(), st.integers(1, 20), st.integers(1, 9), st.sampled_from(["quantile", "multidimensional"]))
def test_no_fragment_is_thin_once_thin_ones_are_merged(example: Example, k: int, count: int, way: str) -> None:
    cutting, codes = cutting_of(example, 1), records_of(example)
    tree = planted(cutting, codes[:3], count, way)
    sizes = np.bincount(tree.leaf_of(cutting.ranks(codes)), minlength=tree.leaves)
    groups = merge_thin(tree, lambda leaves: int(sizes[list(leaves)].sum()) >= k)
    assert [leaf for group in groups for leaf in group] == list(range(tree.leaves)), "neighbours, from left to right"
    if len(codes) >= k:
        assert all(sizes[list(group)].sum() >= k for group in groups)
        assert all(min(sizes[list(group)]) < k for group in groups if len(group) > 1), "what was not thin was merged"
    else:
        assert len(groups) == 1


Shape = tuple[Any, ...]
SHAPES = st.recursive(st.just(()), lambda half: st.tuples(half, half), max_leaves=9)


def tree_of(shape: Shape) -> CutTree:
    """Return a tree of cuts of the one QID: () is a leaf, a pair a cut."""
    order, lefts, leaves = [shape], list[int](), count()
    for node in order:
        lefts.append(len(order) if node else -1)
        order.extend(node)

    def numbered(node: int) -> None:
        if order[node]:
            numbered(lefts[node])
            numbered(lefts[node] + 1)
        else:
            lefts[node] = next(leaves)

    numbered(0)
    return CutTree(tuple(0 if node else LEAF for node in order), tuple(range(len(order))), tuple(lefts))


@given(SHAPES, st.integers(0, 1 << 30), st.floats(0, 1))
def test_fragments_keep_any_model_however_it_judges_unions_of_what_keeps_it(shape: Shape, seed: int, likely: float) -> None:
    tree = tree_of(shape)

    def keeps(group: Group) -> bool:
        return len(group) == tree.leaves or Random(f"{seed} {group}").random() < likely

    groups = merge_thin(tree, keeps)
    assert [leaf for group in groups for leaf in group] == list(range(tree.leaves)), "neighbours, from left to right"
    assert all(keeps(group) for group in groups)


def leaves_below(tree: CutTree) -> set[Group]:
    """Return the leaves below each node."""

    def below(node: int) -> Group:
        if tree.qids[node] == LEAF:
            return (tree.lefts[node],)
        return (*below(tree.lefts[node]), *below(tree.lefts[node] + 1))

    return {below(node) for node in range(len(tree.qids))}


@given(SHAPES, st.integers(0, 1 << 30), st.floats(0, 1), st.floats(0, 1))
def test_sensitive_values_decide_only_which_cuts_are_made_and_not_who_is_merged_with_whom(
    shape: Shape, seed: int, large: float, likely: float
) -> None:
    tree, drawn = tree_of(shape), Random(seed)
    people = [drawn.randrange(1, 20) for _ in range(tree.leaves)]

    def is_large(group: Group) -> bool:
        return sum(people[leaf] for leaf in group) >= large * sum(people)

    def keeps(group: Group) -> bool:
        return len(group) == tree.leaves or Random(f"{seed} {group}").random() < likely

    by_size, groups = merge_thin(tree, is_large), merge_thin(tree, is_large, keeps)
    assert [leaf for group in groups for leaf in group] == list(range(tree.leaves))
    assert all(map(is_large, groups))
    assert all(map(keeps, groups))
    # Whatever values there are: nobody is told apart whom sizes alone do not tell apart, and who are together besides are all below a cut.
    assert all(any(set(one) <= set(group) for group in groups) for one in by_size)
    cuts = [below for below in leaves_below(tree) if len(below) > 1]
    assert all(group in by_size or any(set(below) <= set(group) for below in cuts) for group in groups)
    assert merge_thin(tree, is_large, lambda _: True) == by_size


@pytest.mark.parametrize(
    ("shape", "thin", "groups"),
    [
        (((), ((), ())), 0, [(0, 1), (2,)]),
        ((((), ()), ()), 2, [(0,), (1, 2)]),
        (((((), ()), ()), ((), ())), 3, [(0,), (1,), (2,), (3, 4)]),
        (((), ((), ())), None, [(0,), (1,), (2,)]),
    ],
    ids=["before a subtree", "after a subtree", "beside a leaf", "none"],
)
def test_a_thin_leaf_is_merged_with_its_nearest_sibling_alone(shape: Shape, thin: int | None, groups: list[Group]) -> None:
    assert merge_thin(tree_of(shape), lambda group: group != (thin,)) == groups


@pytest.mark.parametrize(
    ("shape", "bad", "groups"),
    [
        (((), ((), ())), (0,), [(0, 1, 2)]),
        ((((), ()), ((), ())), (1,), [(0, 1), (2,), (3,)]),
        ((((), ()), ((), ())), (0, 1), [(0,), (1,), (2,), (3,)]),
    ],
    ids=["beside a subtree", "beside a leaf", "what is made of others is not asked"],
)
def test_a_cut_beside_what_breaks_the_model_is_not_made(shape: Shape, bad: Group, groups: list[Group]) -> None:
    assert merge_thin(tree_of(shape), lambda _: True, lambda group: group != bad) == groups


def test_quantiles_are_as_many_as_asked_where_values_suffice() -> None:
    domain_values = list(range(100))
    example = Example([(value,) for value in domain_values], *_uniform(domain_values))
    cutting, codes = cutting_of(example, 1), records_of(example)
    leaves = planted(cutting, codes, 8, "quantile").leaf_of(cutting.ranks(codes))
    assert sorted(Counter(leaves.tolist()).values()) == [12, 12, 12, 12, 13, 13, 13, 13]


def _uniform(values: list[int]) -> tuple[Any, Any]:
    from tests.oracles.hierarchies import built
    from tests.oracles.tables import observed

    domain = observed("x", values, pa.int64())
    return (domain,), (built({"widths": [2]}, domain),)


@given(st.lists(st.integers(0, 1 << 60), min_size=1), st.integers(0, 5), st.floats(0, 1), st.floats(0, 1))
def test_a_sample_depends_on_records_alone_and_grows_with_its_share(values: list[int], seed: int, one: float, other: float) -> None:
    cells = np.array(values)
    small, large = (sample_mask((cells,), share, seed) for share in sorted((one, other)))
    assert not (small & ~large).any()
    assert np.array_equal(sample_mask((cells[::-1],), one, seed)[::-1], sample_mask((cells,), one, seed))
    assert sample_mask((cells, cells), 1.0, seed).all()
    assert not sample_mask((cells, cells), 0.0, seed).any()


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_a_sample_has_about_its_share(share: float) -> None:
    drawn = sample_mask((np.arange(100_000), np.arange(100_000) % 7), share, 1)
    assert abs(drawn.mean() - share) < 5 * (share / 100_000) ** 0.5
    assert not np.array_equal(drawn, sample_mask((np.arange(100_000), np.arange(100_000) % 7), share, 2))


@given(examples(), st.lists(st.booleans(), min_size=1), st.integers(1, 6), st.sampled_from(["quantile", "multidimensional"]))
def test_a_merged_fragment_is_asked_again_whether_it_keeps_the_model(example: Example, rare: list[bool], count: int, way: str) -> None:
    """No more than half of a fragment may be of one kind: one that fails may make its neighbour fail too."""
    cutting, codes = cutting_of(example, 1), records_of(example)
    tree = planted(cutting, codes, count, way)
    kinds = np.resize(rare, len(codes))
    leaves = tree.leaf_of(cutting.ranks(codes))
    sizes, of_kind = (np.bincount(leaves[mine], minlength=tree.leaves) for mine in (slice(None), kinds))

    def keeps(group: tuple[int, ...]) -> bool:
        records = int(sizes[list(group)].sum())
        return records > 0 and 2 * int(of_kind[list(group)].sum()) <= records

    groups = merge_thin(tree, keeps)
    assert [leaf for group in groups for leaf in group] == list(range(tree.leaves))
    assert len(groups) == 1 or all(map(keeps, groups))


def test_a_fragment_is_cut_further_only_if_it_is_larger_than_it_may_be() -> None:
    values = list(range(8))
    example = Example([(value,) for value in values], *_uniform(values))
    cutting, codes = cutting_of(example, 1), records_of(example)
    leaves = {most: cut_tree_by_mondrian(cutting, codes, np.ones(8, np.int64), 1, 1, most).leaves for most in (8, 7, 4, 3)}
    assert leaves == {8: 1, 7: 2, 4: 2, 3: 4}


def test_no_quantile_lies_above_the_greatest_value() -> None:
    values = [0, *[1] * 9]
    example = Example([(value,) for value in values], *_uniform(values))
    cutting, codes = cutting_of(example, 1), records_of(example)
    assert planted(cutting, codes, 2, "quantile").leaves == 1
    assert planted(cutting, codes, 20, "quantile").leaves == 2
