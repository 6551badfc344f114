"""The order in which values are cut: numbers ascending, other values as a walk through their hierarchy meets them, nulls last."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.mondrian.axes import axis_of
from tests.oracles.hierarchies import built, domain_of, quasi_identifier

LEAVES = ["Italy", "France", "Spain", "USA", "Canada", "China", "Japan"]
COUNTRIES = {"Europe": ["Italy", "France", "Spain"], "America": ["USA", "Canada"], "Asia": ["China", "Japan"]}


def in_order(spec: dict, domain: Domain, folder: Path = Path()) -> list:
    axis = axis_of(quasi_identifier(spec), domain, built(spec, domain, folder), folder)
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
