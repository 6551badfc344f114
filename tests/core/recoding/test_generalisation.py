"""What classes publish covers every value in them, is the same in any order of records, and costs what eq. 3 says."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recoding.classes import Sets
from core.recoding.ends import shared_ends
from core.recoding.prices import generalise
from tests.oracles.hierarchies import built, domain_of, quasi_identifier


def labels(way: str, classes: list[list[Any]], dtype: pa.DataType, spec: dict | None = None) -> list[Any]:
    """The labels of classes of values, over the domain of all of them."""
    return found(way, classes, dtype, spec)[0]


def found(way: str, classes: list[list[Any]], dtype: pa.DataType, spec: dict | None = None) -> tuple[list[Any], list[float], list[float]]:
    distinct = sorted({value for values in classes for value in values if value is not None})
    nulls = sum(value is None for values in classes for value in values)
    domain = domain_of(distinct, dtype, nulls)
    codes = np.array([len(distinct) if value is None else distinct.index(value) for values in classes for value in values])
    numbers = np.repeat(np.arange(len(classes), dtype=np.int32), [len(values) for values in classes])
    hierarchy = built(spec or {"tree": {"*": [str(value) for value in distinct] or ["none"]}}, domain)
    made = generalise(way, codes, Sets.of(numbers), domain, hierarchy, "text")
    return made.columns["x"].to_pylist(), made.penalties.tolist(), made.covered.tolist()


def test_common_prefix_does_not_depend_on_the_order_of_records() -> None:
    classes = [[1, 10], [7]]
    assert labels("prefix", classes, pa.int64()) == labels("prefix", [[10, 1], [7]], pa.int64()) == ["1*", "7"]


@pytest.mark.parametrize(
    ("values", "label", "penalty"),
    [
        (["10010", "10020", "10030"], "100**", 4 / 6),
        (["10010"], "10010", 0),
        (["10010", "20010"], "*", 1),
        (["1001", "10010"], "1001*", 2 / 6),
        ([None, "10010"], "{10010, null}", 2 / 6),
        ([None, "10010", "10020"], "{100**, null}", 5 / 6),
        ([None, "10010", "20010"], "*", 1),
        ([None, None], None, 0),
    ],
)
def test_common_prefix_is_followed_by_a_star_per_further_character(values: list, label: str | None, penalty: float) -> None:
    rest = ["10010", "10020", "10030", "1001", "20010"]
    texts, penalties, _ = found("prefix", [values, rest, [None]], pa.string())
    assert (texts[0], penalties[0]) == (label, pytest.approx(penalty))


@given(st.lists(st.lists(st.none() | st.text("ab1", max_size=5), min_size=1, max_size=6), min_size=1, max_size=8))
def test_a_prefix_is_the_longest_that_all_values_share(classes: list[list[str | None]]) -> None:
    every = {value for values in classes for value in values}
    for values, label, penalty in zip(classes, *found("prefix", classes, pa.string())[:2], strict=True):
        if len(set(values)) == 1:
            assert (label, penalty) == (values[0], 0)
            continue
        texts = [value for value in values if value is not None]
        stem = "".join(letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))
        longest = max(map(len, texts))
        common = stem + "*" * (longest - len(stem)) if stem or len(set(texts)) == 1 else "*"
        alike = sum(value is not None and value.startswith(stem) for value in every) if len(set(texts)) > 1 else 1
        mixed = None in values and common != "*"
        assert label == (f"{{{common}, null}}" if mixed else common)
        assert penalty == pytest.approx((alike + mixed) / len(every) if common != "*" else 1)


def test_each_way_publishes_what_the_paper_says() -> None:
    countries = {"World": {"Europe": ["France", "Italy"], "America": ["Canada", "USA"]}}
    classes = [["Italy", "Italy", "France"], ["USA"], ["Canada", "Italy"]]
    assert labels("hierarchy", classes, pa.string(), {"tree": countries}) == ["Europe", "USA", "*"]
    assert labels("set", classes, pa.string(), {"tree": countries}) == ["{France, Italy}", "USA", "{Canada, Italy}"]
    assert labels("interval", [[42, 50, 43], [38]], pa.int64(), {"widths": [10]}) == ["[42 - 50]", "38"]
    assert labels("hierarchy", [[42, 49, 43], [38, 50]], pa.int64(), {"widths": [10, 20]}) == ["[40 - 49]", "*"]


@pytest.mark.parametrize("way", ["hierarchy", "prefix", "set", "interval"])
def test_constants_negative_numbers_and_nulls_are_published(way: str) -> None:
    spec = {"widths": [10]}
    assert labels(way, [[-7, -7]], pa.int64(), spec) == (["-7"])
    assert labels(way, [[None, None]], pa.int64(), spec) == [None]
    assert labels(way, [[-7, None], [-7]], pa.int64(), spec) == ["{[-10 - -1], null}" if way == "hierarchy" else "{-7, null}", "-7"]


@pytest.mark.parametrize("way", ["hierarchy", "prefix", "set"])
def test_a_value_that_is_written_as_null_is_told_from_one(way: str) -> None:
    classes = [["null", None], ['"null"', None], ["b, null", None], [None, None], ["null", "null"]]
    expected = ['{"null", null}', '{""null"", null}', '{"b, null", null}', None, "null"]
    assert labels(way, classes, pa.string()) == expected
    # A value that looks like such a set itself: nothing could tell the two apart.
    assert labels(way, [["a", None], ["{a, null}"]], pa.string()) == ["*", "{a, null}"]


def test_one_number_beside_nulls_is_told_as_an_end_of_a_range_may_be() -> None:
    """Fewer than k people may have it, so that only what k share is told."""
    domain = domain_of([1, 5, 30], pa.int64(), nulls=4)
    domain = replace(domain, counts=np.array([1, 1, 9]))
    hierarchy, sets = built({"widths": [10]}, domain), Sets.of(np.array([0, 0, 1, 1], np.int32))
    ends = shared_ends(domain, quasi_identifier({"widths": [10]}).hierarchy, 2)
    made = generalise("interval", np.array([0, 3, 2, 3]), sets, domain, hierarchy, "text", ends)
    assert made.columns["x"].to_pylist() == ["{<= 19, null}", "{30, null}"]


def test_intervals_of_words_are_refused() -> None:
    with pytest.raises(ValueError):
        labels("interval", [["a", "b"]], pa.string())


def test_penalties_are_those_of_eq_3() -> None:
    _, penalties, _ = found("interval", [[-10, 0], [5], [-10, 10]], pa.int64(), {"widths": [10]})
    assert penalties == [10 / 20, 0, 1]
    _, penalties, covered = found(
        "hierarchy", [["a", "b"], ["c"], ["a", "d"]], pa.string(), {"tree": {"*": {"x": ["a", "b"], "y": ["c", "d"]}}}
    )
    assert (penalties, covered) == ([2 / 4, 0, 1], [2 / 4, 0, 2 / 4])
