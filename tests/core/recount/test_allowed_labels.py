"""Labels that tell hidden values are found, the writer's judgement of its own labels is the same, and allowed levels are not refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import count_disclosing_labels
from core.recount.labels.allowed_labels import count_disallowed_bounds, count_disallowed_labels
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import OF_2020
from tests.oracles.hierarchies import built, domain_of

TREE = {"*": {"Clinical": ["nurse", "Clinical"], "Office": ["clerk"]}}
ENDS = st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(40, 100)).filter(lambda ends: any(end is not None for end in ends))
WIDTHS = st.sampled_from([[1], [1, 5, 10], [4, 8, 32], [7], [100]])
AGES = st.lists(st.integers(-20, 130), min_size=1, max_size=60, unique=True).map(sorted)


def qid(hierarchy: dict[str, Any], **more: Any) -> QuasiIdentifier:
    return QuasiIdentifier.model_validate({"name": "x", "hierarchy": hierarchy, **more})


def told_by(one: QuasiIdentifier, labels: list[Any]) -> int:
    """The recount's count, which is the writer's too."""
    count = count_disallowed_labels(one, labels, Path())
    assert count_disclosing_labels(one, pa.array(labels, pa.string()), Path()) == count
    return count


@pytest.mark.parametrize(
    ("hierarchy", "exact", "labels", "told"),
    [
        ({"date": ["month", "year"]}, False, ["9090-90", "2020-13", "2020-00", "2020-12"], 3),
        ({"widths": [5, 10], "top": 90}, True, ["[85 - 89]", ">= 90", "89", "*", None], 0),
        ({"widths": [5, 10], "top": 90}, True, ["[90 - 94]", "[85 - 94]", "93", "90", ">= 94", "x", "<= 5", "[85 - 90]", ">= 91"], 9),
        ({"widths": [5, 10], "top": 90}, False, ["[85 - 89]", "89"], 1),
        ({"widths": [5, 10], "top": 90}, True, ["[85.0 - 90.0)", "[85.0 - 90.1)", "[90.0 - 90.0)"], 2),
        ({"widths": [5], "top": 89.5}, True, [">= 89.5", ">= 90", ">= 91", "[85 - 89]"], 1),
        ({"widths": [5], "bottom": 18}, True, ["<= 17", "[18 - 22]", "[15 - 19]", "12", "<= 12", "< 18", "< 18.0", "< 17", "<= 18"], 5),
        ({"widths": [1, 5], "bottom": 18, "top": 89.5}, True, ["18", "17", "89.5", "89.4", "90", "[89.4 - 89.5]", "[18 - 18]"], 4),
        ({"widths": [5], "bottom": 17.5}, True, ["<= 17", "< 17.5", "<= 16"], 1),
        ({"widths": [5]}, False, ["[5 - 9]", "7", "-3.5", "*", "[7 - 7]", "1.2.3", "[9 - 5]", "{5, 6}"], 6),
        ({"widths": [1, 5]}, True, ["[5 - 5]", "[-3.5 - -3.5]", "[5 - 5)", "[6 - 5]", "[5 - 4)", "[5.0 - 5]"], 3),
        ({"prefix": [3, 2], "sparse": "hipaa"}, True, ["606**", "60***", "000", "036**", "60614", "000**"], 2),
        ({"prefix": [3, 2], "sparse": "hipaa"}, True, ["03***", "63***"], 0),
        ({"prefix": [2, 1], "sparse": ["036", "059"]}, True, ["000", "00", "0000", "03**", "036", "0*"], 2),
        ({"prefix": [2, 1], "sparse": ["036", "059"]}, False, ["000", "00", "0000", "03*", "05**", "0*"], 2),
        ({"date": ["year", "decade"], "bottom": 1936}, True, ["<= 1936", "1937", "1930s", "2020", "*", None], 0),
        ({"date": ["year", "decade"], "bottom": 1936}, True, ["<= 1935", "< 1936", "1936", "1900", "1920s", "1937-01", ">= 1936"], 7),
        ({"date": ["day", "year"], "bottom": "1936-05-01"}, True, ["<= 1936-05-01", "1936-05-02", "1936", "1937"], 0),
        ({"date": ["day", "year"], "bottom": "1936-05-01"}, True, ["<= 1936", "1936-05-01", "1936-04-30", "1935", "1936-02-30"], 5),
        ({"date": ["quarter"], "top": 2020}, True, [">= 2020", "2019-Q4", "2020-Q1", "2021-Q3"], 2),
        ({"prefix": [3]}, False, ["606**", "60614", "60", ""], 3),
        ({"prefix": [3], "mask": "#"}, False, ["606##", "606**", "606#*"], 2),
        ({"date": ["year", "decade"]}, False, ["1980", "1980s", "1980-05-17", "-0004", "1980-05", "1985s", "x"], 4),
        ({"date": ["day", "year"]}, False, ["1980-05-17", "1980", "1980-05-17T10:00:00", "1980-Q1"], 2),
        ({"date": ["month", "quarter"]}, False, ["1980-05", "1980-Q4", "1980-Q5"], 1),
        ({"tree": TREE}, False, ["Clinical", "Office", "nurse", "*", "{nurse, clerk}", "no group"], 4),
    ],
)  # fmt: skip
def test_a_label_that_tells_a_hidden_value_is_counted(hierarchy: dict[str, Any], exact: bool, labels: list[str | None], told: int) -> None:
    assert told_by(qid(hierarchy, exact=exact), labels) == told


@pytest.mark.parametrize(
    ("hierarchy", "labels", "told"),
    [
        ({"widths": [5]}, ["{[5 - 9], null}", "{7, null}", "{[5 - 9], 7}", "{[5 - 9], [10 - 14], null}", "[5 - 9], null"], 4),
        ({"prefix": [3]}, ["{606**, null}", "{60614, null}", "{606**}", "{null, 606**}", "{606**, null} "], 4),
        ({"tree": TREE}, ["{Office, null}", "{clerk, null}", "{, null}"], 2),
    ],
)
def test_a_label_beside_the_null_tells_what_it_tells_alone(hierarchy: dict[str, Any], labels: list[str], told: int) -> None:
    assert count_disallowed_labels(qid(hierarchy, exact=False), labels, Path()) == told


def test_groups_of_a_file_may_be_told_and_its_values_not(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("nurse;Clinical;*\nclerk;Office;*\n")
    one = qid({"csv": "x.csv"}, exact=False)
    assert count_disallowed_labels(one, ["nurse", "Clinical", "Office", None, "clerk"], tmp_path) == 2
    with pytest.raises(HierarchyError, match=r"'x\.csv' cannot be read"):
        count_disallowed_labels(one, ["nurse"], tmp_path / "elsewhere")


def test_what_is_no_text_is_a_value_as_it_is() -> None:
    assert count_disallowed_labels(qid({"date": ["year"]}, exact=False), [1980, None, 1981], Path()) == 2


@given(AGES, WIDTHS, ENDS, st.booleans())
def test_no_allowed_level_tells_what_is_hidden_and_all_finer_ones_do(
    ages: list[int], widths: list[int], ends: tuple[int | None, int | None], exact: bool
) -> None:
    spec = {"widths": widths} | {name: end for name, end in zip(("bottom", "top"), ends, strict=True) if end is not None}
    one = qid(spec, exact=exact)
    hierarchy = built(spec, domain_of(ages, nulls=2)) if exact else built_of(one, ages)
    for level in range(hierarchy.least, hierarchy.levels):
        assert told_by(one, hierarchy.labels[level].to_pylist()) == 0
        low, high = hierarchy.bounds[level] or (None, None)
        assert count_disallowed_bounds(one, zip(low.to_pylist(), high.to_pylist(), strict=True)) == 0
    for level in range(1, hierarchy.least):
        assert told_by(one, hierarchy.labels[level].to_pylist())


def built_of(one: QuasiIdentifier, ages: list[int]) -> Any:
    from core.hierarchies.hierarchy import build_hierarchy

    return build_hierarchy(one, domain_of(ages, nulls=2), Path())


PIECES = st.sampled_from(
    ["[", "]", ")", "(", " - ", ">= ", "<= ", "< ", "<", "90", "18", "17", "89", "5", "-5", "0.5", "1e3", "*", "#", ".", "36", "036", "000",
     "1980", "-", "Q1", "s", "05", "nurse", "Clinical", "{", ", ", "}", " "]
)  # fmt: skip
LABELS = st.lists(st.lists(PIECES, max_size=5).map("".join), min_size=1, max_size=10)
SHAPED = st.builds(
    lambda start, low, high, end: f"{start}{low} - {high}{end}" if start == "[" else f"{start}{low}",
    st.sampled_from(["[", "[", ">= ", "<= ", "< ", ""]), st.sampled_from([*range(14, 22), *range(86, 94), 17.5, 89.5]),
    st.sampled_from([*range(14, 22), *range(86, 94), 17.5, 89.5]), st.sampled_from("])"),
)  # fmt: skip
SPECS: list[tuple[dict[str, Any], bool]] = [
    ({"widths": [5], "top": 90}, True), ({"widths": [5], "bottom": 18}, True), ({"widths": [5], "bottom": 17.5, "top": 89.5}, True),
    ({"widths": [5], "bottom": 18, "top": 90}, False), ({"widths": [5]}, False), ({"prefix": [3, 2], "sparse": ["036", "178"]}, True),
    ({"prefix": [2]}, False), ({"prefix": [3], "mask": "#", "sparse": ["36"]}, False), ({"date": ["month", "year"]}, False),
    ({"date": ["quarter", "decade"]}, False), ({"date": ["day"]}, False), ({"date": ["year", "decade"], "bottom": 1936}, True),
    ({"date": ["day", "month", "quarter"], "bottom": "1936-05-01", "top": 2020}, True), ({"tree": TREE}, False),
]  # fmt: skip


@pytest.mark.parametrize(("hierarchy", "exact"), SPECS)
@given(LABELS, st.lists(SHAPED, max_size=6))
def test_the_writer_and_the_recount_judge_any_label_alike(
    hierarchy: dict[str, Any], exact: bool, labels: list[str], shaped: list[str]
) -> None:
    for label in [*labels, *shaped]:
        told_by(qid(hierarchy, exact=exact), [label])


@given(st.lists(st.builds("{}{:02}".format, st.sampled_from([*OF_2020, "000", "606"]), st.integers(0, 99)), min_size=1))
def test_sparse_areas_are_told_by_no_level(zips: list[str]) -> None:
    spec = {"prefix": [3, 1], "sparse": "hipaa"}
    hierarchy = built(spec, domain_of(sorted(set(zips))))
    for level in (1, 2, 3):
        assert told_by(qid(spec), hierarchy.labels[level].to_pylist()) == 0
    assert told_by(qid(spec), hierarchy.labels[0].to_pylist()) == len(set(zips))


@pytest.mark.parametrize(
    ("ends", "exact", "pairs", "told"),
    [
        ({"top": 90}, True, [(85, 89), (90, None), (None, None), (89, 89)], 0),
        ({"top": 90}, True, [(90, 94), (85, 94), (91, 91), (91, None), (85, 90), (None, 17), (90, 90)], 7),
        ({"top": 90}, True, [(Decimal("85.0"), Decimal("90.0")), (Decimal("90.0"), None)], 0),
        ({"top": 90}, True, [(85.0, 90.0), (85.0, 90.5), (90.0, 90.0)], 2),
        ({"top": 89.5}, True, [(90, None), (89.5, None), (91, None)], 1),
        ({"bottom": 18}, True, [(None, 17), (None, 18.0), (18, 22), (None, 16), (17, 20), (15, 17), (3, None)], 4),
        ({}, False, [(5, 9), (7, 7), (None, None), (9, 5)], 2),
        ({}, True, [(5, 9), (7, 7), (None, None), (9, 5), (0.5, 0.25)], 2),
    ],
)
def test_bounds_that_tell_are_counted(ends: dict[str, Any], exact: bool, pairs: list[tuple[Any, Any]], told: int) -> None:
    assert count_disallowed_bounds(qid({"widths": [5]} | ends, exact=exact), pairs) == told
