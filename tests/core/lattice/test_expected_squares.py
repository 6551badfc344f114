"""What a node's Σ|E|² is likely to be says what is worth counting; what is found and proved does not hang on it."""

from __future__ import annotations

from math import floor
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lattice.bounded_evaluations import Evaluations, ExpectedSquareSums
from core.lattice.branch_and_bound import BranchAndBound
from core.privacy.promise import Promise
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.lattice import best_node, losses
from tests.oracles.tables import Example, examples, observed


@given(st.data(), st.sampled_from(["dm_star", "dm_all"]), st.lists(st.floats(0, 10_000), min_size=1, max_size=5))
@tried(150)
def test_the_optimum_is_found_and_proved_whatever_is_guessed(data: st.DataObject, objective: str, guesses: list[float]) -> None:
    example, k, limit = data.draw(examples()), data.draw(st.integers(1, 5)), data.draw(st.fractions(0, 1, max_denominator=10))
    histogram, most = example.histogram((0,) * len(example.hierarchies)), floor(limit * len(example.rows))
    # Any number of times each, in turn: what hangs on a guess must not hang on all of them being alike.
    asked = iter(range(1 << 30))
    # Half of the guess makes room for what small cells add, which is taken off where it is asked for.
    with patch.object(ExpectedSquareSums, "between", lambda *_: guesses[next(asked) % len(guesses)] - 5_000):
        found = BranchAndBound(Evaluations(histogram, example.hierarchies, Promise(k), most, objective, effort=1 << 40)).run()
    best = best_node(example.rows, example.ladders, k, limit, objective)
    assert (found and found.node) == best
    assert found is None or (found.unexamined, found.gap) == (0, 0)


def likely(example: Example) -> ExpectedSquareSums:
    levels = [range(hierarchy.levels) for hierarchy in example.hierarchies]
    return ExpectedSquareSums(example.histogram((0,) * len(levels)), example.hierarchies, levels)


@given(examples(), st.data())
@tried(100)
def test_a_node_that_was_counted_is_guessed_right_to_a_fifth(example: Example, data: st.DataObject) -> None:
    bottom = (0,) * len(example.hierarchies)
    top = tuple(hierarchy.levels - 1 for hierarchy in example.hierarchies)
    fine, coarse = ((node, losses(example.rows, example.ladders, node, 1).dm_all) for node in (bottom, top))
    for node, squares in (fine, coarse):
        assert abs(likely(example).between(node, fine, coarse) - squares) <= squares / 5 + 1


@given(examples(), st.integers(0, 3))
@tried(100)
def test_the_guess_never_falls_where_a_qid_goes_up(example: Example, qid: int) -> None:
    qid %= len(example.hierarchies)
    levels = example.hierarchies[qid].levels
    assert all(likely(example).rise(qid, 0, level) <= likely(example).rise(qid, 0, level + 1) for level in range(levels - 1))


def test_of_independent_columns_the_guess_is_near() -> None:
    random = np.random.default_rng(5)
    rows = [tuple(int(value) for value in row) for row in random.integers(0, 8, (600, 3))]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(3))
    example = Example(list(rows), domains, tuple(built({"widths": [2, 4]}, domain) for domain in domains))
    bottom, top, between = (0, 0, 0), (2, 2, 2), (1, 2, 0)
    known = {node: losses(example.rows, example.ladders, node, 1).dm_all for node in (bottom, top, between)}
    guess = likely(example).between(between, (bottom, known[bottom]), (top, known[top]))
    assert known[between] / 1.3 < guess < known[between] * 1.3


def test_where_one_pair_is_to_be_expected_one_is_guessed() -> None:
    """Of 64 records, each alone, two QIDs of 64 values let 64² · 1/64 · 1/64 ordered pairs share a cell: all figures are powers of two."""
    rows = [(value,) * 6 for value in range(64)]
    domains = tuple(observed(f"qid {place}", list(range(64)), pa.int64()) for place in range(6))
    example = Example(list(rows), domains, tuple(built({"widths": [64]}, domain) for domain in domains))
    guess = likely(example).between((0, 0, 1, 1, 1, 1), ((0,) * 6, 64), ((1,) * 6, 64**2))
    assert abs(guess - (64 + 1)) < 1


@pytest.mark.parametrize("records", [40, 3_000])
def test_both_ends_are_guessed_as_they_were_counted_and_what_lies_between_is_guessed_between(records: int) -> None:
    """The finer of both is above the root, at which guesses do not begin."""
    drawn = np.random.default_rng(records)
    rows = [tuple(row) for row in drawn.integers(0, 64, (records, 2)).tolist()]
    domains = tuple(observed(name, [row[place] for row in rows], pa.int64()) for place, name in enumerate(("x", "y")))
    example = Example(rows, domains, tuple(built({"widths": [2, 4, 8, 16]}, domain) for domain in domains))
    guess, nodes = likely(example), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 4), (4, 4)]
    counted = [(node, losses(example.rows, example.ladders, node, 1).dm_all) for node in (nodes[0], nodes[-1])]
    found = [guess.between(node, *counted) for node in nodes]
    assert found[::5] == pytest.approx([squares for _, squares in counted], rel=0.2)
    assert found == sorted(found)
