"""The order in which values are cut: numbers ascending, other values as a walk through their hierarchy meets them, nulls last."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.mondrian.ranks import Order, axis_of, is_order_free
from tests.oracles.hierarchies import built, domain_of, quasi_identifier

LEAVES = ["Italy", "France", "Spain", "USA", "Canada", "China", "Japan"]
COUNTRIES = {"Europe": ["Italy", "France", "Spain"], "America": ["USA", "Canada"], "Asia": ["China", "Japan"]}


def in_order(spec: dict, domain: Domain, folder: Path = Path(), order: Order = "listed") -> list:
    axis = axis_of(quasi_identifier(spec), domain, built(spec, domain, folder), folder, order)
    values = [*domain.values.to_pylist(), *([None] if domain.nulls else [])]
    return [value for _, value in sorted(zip(axis.ranks.tolist(), values, strict=True), key=lambda pair: pair[0])]


def test_values_of_a_tree_are_cut_in_the_order_of_its_leaves() -> None:
    domain = domain_of(sorted(LEAVES), pa.string(), nulls=2)
    assert in_order({"tree": {"World": COUNTRIES}}, domain) == [*LEAVES, None]


def test_siblings_of_a_file_stay_together_however_its_lines_are_ordered(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("d;y;*\nb;x;*\na;y;*\nc;x;*\nunseen;z;*\n")
    assert in_order({"csv": "h.csv"}, domain_of(["a", "b", "c", "d"], pa.string()), tmp_path) == ["d", "a", "b", "c"]


@pytest.mark.parametrize("spec", [{"widths": [2, 4]}, {"tree": {"*": [30, -5, 7]}}])
def test_numbers_ascend_whatever_their_hierarchy(spec: dict) -> None:
    domain = domain_of([-5, 7, 30], pa.int64(), nulls=1)
    spec = {"tree": {"*": ["30", "-5", "7"]}} if "tree" in spec else spec
    assert in_order(spec, domain) == [-5, 7, 30, None]


def test_text_with_prefixes_stays_in_its_own_order() -> None:
    assert in_order({"prefix": [2, 1]}, domain_of(["10115", "10117", "20095"], pa.string())) == ["10115", "10117", "20095"]


def test_text_of_several_lengths_is_cut_where_its_coarsest_groups_end() -> None:
    """The last level parts texts by length and first letter, and those of a group stand together though others lie between them."""
    texts = ["1", "10", "100", "11", "110", "2"]
    assert in_order({"prefix": [2, 1]}, domain_of(texts, pa.string())) == ["1", "10", "11", "100", "110", "2"]


def counted(values: list[str], counts: list[int], nulls: int = 0) -> Domain:
    order = sorted(range(len(values)), key=values.__getitem__)
    return Domain("q", pa.array([values[at] for at in order]), np.array([counts[at] for at in order]), nulls)


def test_the_most_frequent_siblings_are_cut_off_at_the_ends() -> None:
    """Asia has 12 records, Europe 9, America 5; within each the most frequent first, the next last."""
    domain = counted(LEAVES, [2, 3, 4, 1, 4, 7, 5], nulls=1)
    found = in_order({"tree": {"World": COUNTRIES}}, domain, order="ends")
    assert found == ["China", "Japan", "Canada", "USA", "Spain", "Italy", "France", None]
    rising = in_order({"tree": {"World": COUNTRIES}}, domain, order="ascending")
    assert rising == ["USA", "Canada", "Italy", "France", "Spain", "Japan", "China", None]


@given(st.permutations(LEAVES), st.lists(st.integers(0, 3), min_size=7, max_size=7), st.sampled_from(["ends", "ascending"]))
def test_every_group_is_a_run_and_what_is_frequent_decides_before_what_is_listed(
    listed: list[str], counts: list[int], order: Order
) -> None:
    domain = counted(LEAVES, [count * 10 + number for number, count in enumerate(counts)])
    shuffled = {name: sorted(leaves, key=listed.index) for name, leaves in sorted(COUNTRIES.items(), key=lambda of: listed.index(of[1][0]))}
    found = in_order({"tree": {"World": shuffled}}, domain, order=order)
    assert found == in_order({"tree": {"World": COUNTRIES}}, domain, order=order)
    homes = [name for leaf in found for name, leaves in COUNTRIES.items() if leaf in leaves]
    assert len([name for name, _ in groupby(homes)]) == len(COUNTRIES)


def test_only_siblings_that_are_listed_are_free() -> None:
    words = domain_of(sorted(LEAVES), pa.string())
    assert is_order_free(quasi_identifier({"tree": {"World": COUNTRIES}}), words)
    assert not is_order_free(quasi_identifier({"prefix": [1]}), words)
    numbers = domain_of([-5, 7, 30], pa.int64())
    assert not is_order_free(quasi_identifier({"tree": {"*": ["30", "-5", "7"]}}), numbers)
    assert in_order({"prefix": [1]}, words, order="ends") == sorted(LEAVES)
