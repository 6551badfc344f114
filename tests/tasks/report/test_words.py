"""A report names levels and promises as the job and the hierarchies mean them."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from tasks.report.page import percent
from tasks.report.report import bands
from tasks.report.sentences import TRIED_NEXT, limits, promises, proofs, round_to
from tasks.report.terms import level_text, terms_of
from tests.jobs import job_of

STAR = "withheld: one group * for all"
EXACT = "values as they are"


@pytest.mark.parametrize(
    ("hierarchy", "values", "words"),
    [
        ({"widths": [1, 5, 10]}, pa.array([1, 2, 30]), ["bins of width 5", "bins of width 10"]),
        ({"widths": [5, 10]}, pa.array([1, 2, 30]), ["bins of width 5", "bins of width 10"]),
        (
            {"widths": [0.5, 1], "origin": 3},
            pa.array([1.25, 2.5]),
            ["bins of width 0.5, counted from 3", "bins of width 1, counted from 3"],
        ),
        ({"widths": [1, 4], "encode": True}, pa.array([1, 2, 30]), ["bins of 4 neighbouring values"]),
        ({"prefix": [3, 1]}, pa.array(["abc", "abd"]), ["first 1 character"]),
        ({"prefix": [3, 1]}, pa.array(["abcd", "abd"]), ["first 3 characters", "first 1 character"]),
        ({"date": ["day", "month", "year"]}, pa.array([date(2020, 1, 1)]), ["month of the date", "year of the date"]),
        ({"date": ["month"]}, pa.array([date(2020, 1, 1)]), ["month of the date"]),
        ({"tree": {"x": ["a"], "y": ["b"]}}, pa.array(["a", "b"]), ["group one step above the value"]),
    ],
    ids=str,
)
def test_every_level_is_named_by_the_step_that_the_hierarchy_takes(hierarchy: dict[str, Any], values: pa.Array, words: list[str]) -> None:
    qid = QuasiIdentifier.model_validate({"name": "q", "hierarchy": hierarchy})
    built = build_hierarchy(qid, Domain("q", values, pa.array([1] * len(values)).to_numpy(), 0), Path())
    assert [level_text(qid.hierarchy, level, built.top) for level in range(built.levels)] == [EXACT, *words, STAR]


@given(st.dictionaries(st.integers(1, 40), st.integers(1, 9)), st.integers(1, 5))
def test_bands_hold_every_class_once(sizes: dict[int, int], k: int) -> None:
    found = bands(sizes, k)
    assert sum(band.classes for band in found) == sum(sizes.values())
    assert sum(band.records for band in found) == sum(size * number for size, number in sizes.items())
    for band in found:
        inside = {size: number for size, number in sizes.items() if band.least <= size <= (band.most or max(sizes))}
        assert (band.classes, band.records) == (sum(inside.values()), sum(size * number for size, number in inside.items()))


@given(st.floats(0, 1))
def test_no_share_is_rounded_to_nothing_or_to_all(share: float) -> None:
    assert (percent(share) == "0 %") == (share == 0)
    assert (percent(share) == "100 %") == (share == 1)


def test_promises_and_limits_follow_the_privacy_models() -> None:
    plain = Job.model_validate(job_of())
    assert len(promises(plain.privacy.summary())) == 1
    assert any("'disease'" in limit.text for limit in limits(plain.privacy.summary(), terms_of(plain)))
    models = {"k": 5, "l": {"disease": {"recursive": {"c": 2, "l": 2}}}, "t": {"disease": {"t": 0.3, "distance": "ordered"}}}
    guarded = Job.model_validate(job_of(privacy=models))
    told = promises(guarded.privacy.summary())
    assert len(told) == 3
    assert "2. most frequent" in told[1]
    assert "at most 0.3" in told[2]
    assert not any("'disease'" in limit.text for limit in limits(guarded.privacy.summary(), terms_of(guarded)))


def test_cuts_that_follow_from_sensitive_values_are_warned_of() -> None:
    models = {"k": 5, "l": {"disease": {"distinct": 2}}}
    next_cut = Job.model_validate(job_of(privacy=models, method={"name": "mondrian", "refused": "next"}))
    told = [limit.text for limit in limits(models, terms_of(next_cut))]
    assert TRIED_NEXT in told
    assert not any("follows from no sensitive value" in text for text in told)
    for quiet in ({"method": {"name": "mondrian"}}, {"method": {"name": "mondrian", "refused": "next"}, "privacy": {"k": 5}}, {}):
        job = Job.model_validate(job_of(**({"privacy": models} | quiet)))
        assert TRIED_NEXT not in [limit.text for limit in limits(job.privacy.summary(), terms_of(job))]


@pytest.mark.parametrize(
    ("diversity", "asked", "worst", "shown"),
    [
        ({"distinct": 3}, "≥ 3", 3.0, "3"),
        ({"entropy": 2.5}, "≥ 2.5", 2.63999, "2.6399"),
        ({"entropy": 2.5}, "≥ 2.5", 2.4999999999, "2.5"),
        ({"recursive": {"c": 2, "l": 2}}, "< 2", 1.23451, "1.2346"),
    ],
)
def test_what_was_measured_is_never_rounded_to_the_safe_side(diversity: dict[str, Any], asked: str, worst: float, shown: str) -> None:
    privacy = Job.model_validate(job_of(privacy={"k": 5, "l": {"disease": diversity}})).privacy.summary()
    k, found = proofs(privacy, {"l": {"disease": worst}}, 7)
    assert (k.asked, k.measured) == ("≥ 5", "7")
    assert (found.asked, found.measured) == (asked, shown)


@given(st.decimals(0, 10, places=9), st.sampled_from([ROUND_FLOOR, ROUND_CEILING]))
def test_rounding_moves_a_figure_by_less_than_a_ten_thousandth(value: Decimal, rounding: str) -> None:
    assert abs(round_to(value, rounding) - value) < Decimal("0.0001")
