"""How many records may be suppressed, and which levels a job may name, is reckoned exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import JobError, PrivacyError, SourceError
from schemas.errors.hierarchies import HierarchyError
from schemas.errors.methods import HoldersError
from tasks.counting.coding import Coding
from tasks.lattice.promises import check_intervals, check_promise, most_suppressed, named_node, no_class_error, searched_axes
from tasks.lattice.recodings import check_hierarchies
from tests.core.recount.test_classes import job
from tests.oracles.hierarchies import built
from tests.oracles.tables import observed


@pytest.mark.parametrize(
    ("limit", "records", "most"), [(0.29, 100, 29), (0.07, 10_000, 700), (0, 50, 0), (1, 50, 50), (0.05, 39, 1), (0.1, 9, 0)]
)
def test_the_limit_allows_its_share_of_the_records_and_no_part_of_one(limit: float, records: int, most: int) -> None:
    assert most_suppressed(job(suppression={"limit": limit}), records) == most


def coding_of(least: int, sensitive: int = 0) -> Coding:
    """Two columns of three levels above their values, of which the first publishes none below ``least``."""
    domains = [observed(name, [1, 2, 3, 4], pa.int64()) for name in ("q0", "q1", *"st"[:sensitive])]
    first, second = (built({"widths": [2, 4]}, domain) for domain in domains[:2])
    return Coding(tuple(domains[:2]), (replace(first, least=least), second), ("", ""), tuple(domains[2:]))


def job_with(**method: Any) -> Any:
    qids = [{"name": name, "hierarchy": {"widths": [2, 4]}} for name in ("q0", "q1")]
    return job(columns={"quasi_identifiers": qids, "sensitive": ["s", "t"]}, method={"name": "skald"} | method)


@pytest.mark.parametrize(
    ("node", "fault"),
    [([3, 3], ""), ([1, 0], ""), ([4, 0], "q0"), ([1, 4], "q1"), ([0, 0], "q0"), (None, "")],
    ids=str,
)
@pytest.mark.parametrize("sensitive", [0, 1, 2])
def test_a_node_has_a_level_of_each_hierarchy_that_may_be_published(node: list[int] | None, fault: str, sensitive: int) -> None:
    named = job_with(**({"node": node} if node else {}))
    if fault:
        with pytest.raises(HierarchyError, match=f"'{fault}'"):
            named_node(named, coding_of(1, sensitive))
    else:
        assert named_node(named, coding_of(1, sensitive)) == ((*node, *[0] * sensitive) if node else None)


@pytest.mark.parametrize(("levels", "fault"), [([1, 3], False), ([0, 1], False), ([0, 0], True), ([1, 4], True), ([3, 3], False)], ids=str)
def test_levels_are_searched_within_those_that_may_be_published(levels: list[int], fault: bool) -> None:
    coding = coding_of(1, 2)
    if fault:
        with pytest.raises(HierarchyError, match="'q0'"):
            searched_axes(job_with(levels={"q0": levels}), coding)
        return
    first, *others = searched_axes(job_with(levels={"q0": levels}), coding)
    assert (first.least, first.top) == (max(levels[0], 1), levels[1])
    assert others == list(coding.axes[1:])
    assert searched_axes(job_with(), coding) == coding.axes


def counted_coding(*counts: int) -> Coding:
    """Records with so many of each value of the sensitive column, whatever else they hold."""
    records = sum(counts)
    values = [value for value, many in enumerate(counts) for _ in range(many)]
    domain = observed("q0", list(range(records)), pa.int64())
    return Coding((domain,), (built({"widths": [2]}, domain),), ("", ""), (observed("s", values, pa.int64()),))


def diverse(persons: bool = False, limit: float = 0.1, **said: Any) -> Any:
    columns = {
        "quasi_identifiers": [{"name": "q0", "hierarchy": {"widths": [2]}}],
        "sensitive": ["s"],
        "person": ["who"] if persons else "none",
    }
    return job(columns=columns, privacy={"k": 2, "l": {"s": said}}, suppression={"limit": limit})


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("may_suppress", [False, True])
@pytest.mark.parametrize(
    ("counts", "kept", "kept_by_some"),
    [((9, 1), False, True), ((5, 5), True, True), ((10,), False, False), ((5, 3, 2), True, True)],
    ids=str,
)
def test_what_all_records_together_cannot_keep_is_refused_unless_some_of_them_may(
    counts: tuple[int, ...], kept: bool, kept_by_some: bool, persons: bool, may_suppress: bool
) -> None:
    asked = diverse(persons, entropy=1.9)
    if kept_by_some if persons or may_suppress else kept:
        check_promise(asked, counted_coding(*counts), may_suppress=may_suppress)
    else:
        with pytest.raises(PrivacyError, match="All records in one class"):
            check_promise(asked, counted_coding(*counts), may_suppress=may_suppress)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6), st.integers(1, 4), st.integers(1, 4))
def test_only_columns_whose_promise_breaks_are_named(records: list[tuple[int, int]], first: int, second: int) -> None:
    qid = observed("q0", list(range(len(records))), pa.int64())
    held = dict(zip("st", zip(*records, strict=True), strict=True))
    sensitive = tuple(observed(name, list(values), pa.int64()) for name, values in held.items())
    columns = {"quasi_identifiers": [{"name": "q0", "hierarchy": {"widths": [2]}}], "sensitive": ["s", "t"]}
    asked = job(columns=columns, privacy={"k": 2, "l": {"s": {"distinct": first}, "t": {"distinct": second}}})
    broken = [f"'privacy.l.{name}'" for name, least in zip("st", (first, second), strict=True) if len(set(held[name])) < least]
    if not broken:
        return check_promise(asked, Coding((qid,), (built({"widths": [2]}, qid),), ("", ""), sensitive))
    with pytest.raises(PrivacyError, match=rf"would not keep {' and '.join(broken)}\. Ask"):
        check_promise(asked, Coding((qid,), (built({"widths": [2]}, qid),), ("", ""), sensitive))


@pytest.mark.parametrize(("records", "fails"), [(1, True), (2, False), (3, False)])
def test_fewer_records_than_k_are_refused(records: int, fails: bool) -> None:
    if fails:
        with pytest.raises(PrivacyError, match="cannot be met by 1 record"):
            check_promise(diverse(distinct=1), counted_coding(records))
    else:
        check_promise(diverse(distinct=1), counted_coding(records))


@pytest.mark.parametrize(
    ("asked", "counts", "held", "why"),
    [
        (diverse(entropy=1.9), (9, 1), None, "All records in one class"),
        (diverse(limit=1, distinct=2), (5, 5), None, "would suppress all 10"),
        (diverse(limit=0.9, distinct=2), (5, 5), None, "All records in one class"),
        (diverse(limit=0.9, distinct=2), (5, 5), "s", "values of 's'"),
        (job_with(levels={"q0": [0, 1]}), (5, 5), None, "within method.levels"), (job_with(), (5, 5), None, "would suppress all 10"),
    ],
)  # fmt: skip
def test_why_no_class_can_be_published_is_said_by_what_was_asked_for(
    asked: Any, counts: tuple[int, ...], held: str | None, why: str
) -> None:
    coding = counted_coding(*counts)
    error = no_class_error(asked, coding, held)
    assert why in str(error)
    assert isinstance(error, HoldersError) == (held is not None)


@pytest.mark.parametrize(
    ("ways", "fault"), [([], ""), ([None, None], ""), (["interval"], ""), ([None, "interval"], "word"), (["set", "prefix"], "")]
)
def test_only_numbers_and_dates_are_published_as_intervals(ways: list[str | None], fault: str) -> None:
    domains = observed("q0", [1, 2], pa.int64()), observed("word", ["a", "b"], pa.string())
    coding = Coding(domains, (), ("", ""))
    if fault:
        with pytest.raises(SourceError, match=f"'{fault}'"):
            check_intervals(coding, ways)
    else:
        check_intervals(coding, ways)


@pytest.mark.parametrize("of", [{"q0"}, {"s"}, {"q0", "s"}], ids=["of a column", "of closeness", "both"])
def test_hierarchies_that_are_gone_are_refused_before_any_data_is_read_those_of_closeness_too(of: set[str]) -> None:
    gone, listed = {"csv": "gone.csv"}, {"tree": {"A": ["a", "b"], "C": ["c"]}}
    qids = [{"name": "q0", "hierarchy": gone if "q0" in of else listed}]
    closeness = {"t": 0.2, "distance": "hierarchical", "hierarchy": gone if "s" in of else listed}
    one = job(columns={"quasi_identifiers": qids, "sensitive": ["s"]}, privacy={"k": 2, "t": {"s": closeness}})
    with pytest.raises(JobError if len(of) > 1 else HierarchyError) as caught:
        check_hierarchies(one)
    assert {name for name in ("q0", "s") if f"'{name}'" in str(caught.value)} == of
