"""Values beyond bottom and top, with sparse beginnings or not to be published exactly: built into hierarchies, and found in labels."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.hierarchies.hierarchy import build_hierarchy, count_disclosing_labels
from core.lattice.lattice import Lattice
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import OF_2020
from tests.oracles.hierarchies import bin_edges, built, domain_of, exact, published

AGES = st.lists(st.integers(-20, 130), min_size=1, max_size=60, unique=True).map(sorted)
ENDS = st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(40, 100))
WIDTHS = st.sampled_from([[1], [1, 5, 10], [4, 8, 32], [7], [100]])


def spec_of(widths: list[int], ends: tuple[int | None, int | None]) -> dict[str, Any]:
    return {"widths": widths} | {name: end for name, end in zip(("bottom", "top"), ends, strict=True) if end is not None}


def integer_label(value: int, width: int, bottom: int | None, top: int | None) -> str:
    if bottom is not None and value < bottom:
        return f"<= {bottom - 1}"
    if top is not None and value >= top:
        return f">= {top}"
    low, high = bin_edges(value, width)
    low, last = max(ceil(low), low if bottom is None else bottom), min(high, high if top is None else Fraction(top)) - 1
    return str(low) if low == last else f"[{low} - {last}]"


@given(AGES, WIDTHS, ENDS.filter(any))
def test_beyond_bottom_and_top_all_integers_share_a_group_at_every_level(
    ages: list[int], widths: list[int], ends: tuple[int | None, int | None]
) -> None:
    hierarchy = built(spec_of(widths, ends), domain_of(ages))
    assert (hierarchy.levels, hierarchy.least) == (len(widths) + 2, 1)
    for level, width in enumerate(widths, start=1):
        assert published(hierarchy, level) == [integer_label(age, width, *ends) for age in ages]
    for level in range(1, hierarchy.top):
        assert len(set(hierarchy.rolled(level, level + 1).tolist())) == len(hierarchy.labels[level + 1])


@given(st.lists(st.integers(-200, 1500), min_size=1, max_size=40, unique=True).map(sorted))
def test_decimals_are_cut_at_bottom_and_top(tenths: list[int]) -> None:
    values = [tenth / 10 for tenth in tenths]
    hierarchy = built({"widths": [0.5, 10], "bottom": 18, "top": 97.5}, domain_of(values))

    def label(value: float, width: float) -> str:
        if value < 18:
            return "< 18.0"
        if value >= 97.5:
            return ">= 97.5"
        low, high = bin_edges(value, width)
        low, high = max(low, Fraction(18)), min(high, exact(97.5))
        return f"[{float(low):.1f} - {float(high):.1f})"

    for level, width in ((1, 0.5), (2, 10)):
        assert published(hierarchy, level) == [label(value, width) for value in values]
        assert (
            count_disclosing_labels(qid({"widths": [0.5, 10], "bottom": 18, "top": 97.5}), pa.array(published(hierarchy, level)), Path())
            == 0
        )


def qid(hierarchy: dict[str, Any], **more: Any) -> QuasiIdentifier:
    return QuasiIdentifier.model_validate({"name": "x", "hierarchy": hierarchy, **more})


@given(AGES, WIDTHS, ENDS.filter(any))
def test_no_allowed_level_of_its_own_hierarchy_tells_what_is_hidden(
    ages: list[int], widths: list[int], ends: tuple[int | None, int | None]
) -> None:
    spec = spec_of(widths, ends)
    hierarchy = built(spec, domain_of(ages, nulls=2))
    for level in range(1, hierarchy.levels):
        assert count_disclosing_labels(qid(spec), hierarchy.labels[level], Path()) == 0
    assert count_disclosing_labels(qid(spec), hierarchy.labels[0], Path()) == len(ages)


HEADS = [*OF_2020, "000", "037", "606", "999"]
ZIPS = st.lists(st.builds("{}{:02}".format, st.sampled_from(HEADS), st.integers(0, 99)), min_size=1, max_size=40, unique=True).map(sorted)


@given(ZIPS)
def test_zip_codes_of_sparse_areas_become_000_and_the_others_keep_three_digits(zips: list[str]) -> None:
    spec = {"prefix": [3, 1], "sparse": "hipaa"}
    hierarchy = built(spec, domain_of(zips))
    sparse = {*OF_2020, "000"}
    assert published(hierarchy, 1) == ["000" if code[:3] in sparse else f"{code[:3]}**" for code in zips]
    assert published(hierarchy, 2) == ["000" if code[:3] in sparse else f"{code[:1]}****" for code in zips]
    for level in (1, 2, 3):
        assert count_disclosing_labels(qid(spec), hierarchy.labels[level], Path()) == 0


def test_zip_codes_as_numbers_are_refused_because_their_zeros_are_lost() -> None:
    with pytest.raises(HierarchyError, match="leading zeros"):
        built({"prefix": [3], "sparse": ["036"]}, domain_of([3601, 60614]))


@pytest.mark.parametrize(
    ("hierarchy", "words"),
    [
        ({"widths": [1], "top": 90, "encode": True}, "encode: true counts ranks"),
        ({"widths": [1], "top": 18, "bottom": 90}, "bottom must be less than top"),
        ({"prefix": [3], "sparse": ["036", "59"]}, "one length"),
        ({"prefix": [3], "sparse": "census"}, "the word 'hipaa'"),
        ({"date": ["year"], "bottom": 2020, "top": "2020-12-31"}, "bottom must be before top"),
        ({"date": ["year"], "bottom": "1936-02-30"}, "no day of the calendar"),
        ({"date": ["year"], "top": "2020-13"}, "a year, such as 1936, or a day"),
        ({"date": ["year"], "top": True}, "a year, such as 1936, or a day"),
        ({"prefix": [3], "sparse": []}, "the word 'hipaa'"),
    ],
)
def test_ends_and_beginnings_that_make_no_sense_are_refused(hierarchy: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        qid(hierarchy)


def test_the_lattice_of_what_is_allowed_begins_above_hidden_values() -> None:
    hidden = built({"widths": [5], "top": 90}, domain_of([1, 50, 93]))
    free = built({"widths": [5]}, domain_of([1, 50, 93]))
    allowed = Lattice.allowed([hidden, free])
    assert (allowed.levels, allowed.root) == ((3, 3), (1, 0))


@pytest.mark.parametrize(
    ("hierarchy", "values", "least"),
    [
        ({"prefix": [5, 3], "sparse": "hipaa"}, ["10001", "10002", "60601"], 2),
        ({"prefix": [3]}, ["10001", "99"], 2),
        ({"tree": {"f": ["f"], "m": ["m"]}}, ["f", "m"], 2),
        ({"widths": [1, 5, 10], "top": 90}, [1, 50, 93], 2),
        ({"widths": [5, 10]}, [1, 50, 93], 1),
        ({"widths": [0.5, 1, 5]}, [30, 31, 33], 2),
        ({"widths": [2, 4], "encode": True}, [1, 3, 9], 2),
    ],
)
def test_a_level_at_which_a_value_keeps_its_name_is_exact(hierarchy: dict[str, Any], values: list[Any], least: int) -> None:
    built_of = build_hierarchy(qid(hierarchy, exact=False), domain_of(values), Path())
    assert built_of.least == least
    assert count_disclosing_labels(qid(hierarchy, exact=False), built_of.labels[least], Path()) == 0
    assert count_disclosing_labels(qid(hierarchy, exact=False), built_of.labels[least - 1].cast(pa.string()), Path()) > 0
