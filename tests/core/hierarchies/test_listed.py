"""Hierarchies listed value by value: ARX's CSV files and the job's own trees."""

from __future__ import annotations

import csv
from datetime import date, datetime
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import check_static
from tests.oracles.hierarchies import built, domain_of, first_appearance, published, quasi_identifier
from tests.places import ADULT

EIGHT = datetime(2024, 3, 17, 8)
ADULT_QIDS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


def write(folder: Path, text: str, encoding: str = "utf-8") -> dict[str, Any]:
    (folder / "h.csv").write_text(text, encoding=encoding)
    return {"csv": "h.csv"}


@st.composite
def nested_rows(draw: st.DrawFn) -> list[list[str]]:
    names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4)
    rows = [[value] for value in draw(st.lists(names, min_size=1, max_size=12, unique=True))]
    for _ in range(draw(st.integers(0, 3))):
        labels = draw(st.lists(names, min_size=1, max_size=4))
        parents = {label: draw(st.sampled_from(labels)) for label in sorted({row[-1] for row in rows})}
        for row in rows:
            row.append(parents[row[-1]])
    return rows


@given(rows=nested_rows(), data=st.data())
def test_each_value_is_published_as_its_line_says(tmp_path_factory: Any, rows: list[list[str]], data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("listed")
    with (folder / "h.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(data.draw(st.permutations(rows)))
    observed = sorted(data.draw(st.sets(st.sampled_from([row[0] for row in rows]), min_size=1)))
    hierarchy = built({"csv": "h.csv"}, domain_of(observed, pa.string()), folder)
    lines = {row[0]: row for row in rows}
    depth = len(rows[0])
    closed = depth > 1 and len({row[-1] for row in rows}) == 1
    assert hierarchy.levels == depth + (not closed)
    for level in range(depth - closed):
        expected = [lines[value][level] for value in observed]
        assert published(hierarchy, level) == expected
        assert hierarchy.groups[level].tolist() == first_appearance(expected)
        assert hierarchy.axes[level] == len(set(expected))
    assert published(hierarchy, hierarchy.top) == ["*"] * len(observed)


@pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult data set does not lie beside this checkout")
def test_the_hierarchies_of_adult_span_a_lattice_of_6480_nodes() -> None:
    table = pyarrow.csv.read_csv(ADULT / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    levels = []
    for name in ADULT_QIDS:
        values = table[name].combine_chunks().unique().sort()
        hierarchy = built({"csv": f"hierarchy_{name}.csv", "delimiter": ";"}, domain_of(values, name=name), ADULT)
        with (ADULT / f"hierarchy_{name}.csv").open(encoding="utf-8") as file:
            lines = {line[0]: line for line in csv.reader(file, delimiter=";")}
        for level in range(1, hierarchy.levels):
            assert published(hierarchy, level) == [lines[str(value)][level] for value in values.to_pylist()]
        levels.append(hierarchy.levels)
    assert levels == [2, 5, 2, 3, 4, 3, 3, 3]
    assert prod(levels) == 6480


def test_a_last_column_of_one_label_is_the_star_whatever_it_is_called(tmp_path: Path) -> None:
    spec = write(tmp_path, "a;x;Any\nb;y;Any\n")
    hierarchy = built(spec, domain_of(["a", "b"], pa.string(), nulls=2), tmp_path)
    assert [labels.to_pylist() for labels in hierarchy.labels] == [["a", "b", None], ["x", "y", None], ["*"]]
    assert hierarchy.groups[2].tolist() == [0, 0, 0]


def test_a_star_is_added_where_only_the_observed_values_share_their_last_label(tmp_path: Path) -> None:
    hierarchy = built(write(tmp_path, "a;x\nb;x\nc;y\n"), domain_of(["a", "b"]), tmp_path)
    assert [labels.to_pylist() for labels in hierarchy.labels] == [["a", "b"], ["x"], ["*"]]


def test_a_file_of_values_alone_has_two_levels(tmp_path: Path) -> None:
    assert built(write(tmp_path, "a\nb\n"), domain_of(["a", "b"]), tmp_path).levels == 2
    assert built(write(tmp_path, "a\n"), domain_of(["a"]), tmp_path).levels == 2


@pytest.mark.parametrize(
    ("listed", "values", "dtype"),
    [
        (["-7", "39"], [-7, 39], pa.int16()),
        (["false", "true"], [False, True], pa.bool_()),
        (["-0.5", "0.1", "39.0"], [-0.5, 0.1, 39.0], pa.float64()),
        (["39", "1e+20", "1e-07"], [39.0, 1e20, 1e-7], pa.float64()),
        (["0.1", "39", "16777216"], [0.1, 39.0, 16777216.0], pa.float32()),
        (["0.5", "39"], [0.5, 39.0], pa.float16()),
        (["0.10", "39.00"], [Decimal("0.1"), Decimal(39)], pa.decimal128(5, 2)),
        (["0.1", "39", "1000"], [Decimal("0.1"), Decimal(39), Decimal(1000)], pa.decimal128(6, 2)),
        (["1969-12-31", "2024-03-17"], [date(1969, 12, 31), date(2024, 3, 17)], pa.date32()),
        (["2024-03-17"], [date(2024, 3, 17)], pa.date64()),
        (["2024-03-17T08:00:00", "2024-03-17T08:00:00.500000"], [EIGHT, EIGHT.replace(microsecond=500_000)], pa.timestamp("us")),
        (["2024-03-17 08:00:00", "2024-03-17 08:00:00.500"], [EIGHT, EIGHT.replace(microsecond=500_000)], pa.timestamp("ms")),
        (["2024-03-17T09:00:00+01:00"], [EIGHT], pa.timestamp("ms", tz="Europe/Berlin")),
        (["", "été"], ["", "été"], pa.large_string()),
    ],
)  # fmt: skip
def test_values_of_every_type_are_matched_by_their_text(tmp_path: Path, listed: list[str], values: list[Any], dtype: pa.DataType) -> None:
    with (tmp_path / "h.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([text, f"group {position}"] for position, text in enumerate([*listed, "another"]))
    hierarchy = built({"csv": "h.csv"}, domain_of(values, dtype), tmp_path)
    assert hierarchy.labels[0].type == dtype
    assert published(hierarchy, 1) == [f"group {position}" for position in range(len(values))]


def test_quotes_byte_order_marks_blank_and_repeated_lines_do_no_harm(tmp_path: Path) -> None:
    spec = write(tmp_path, '"a;1";x\r\n\r\n"say ""b""";y\r\n"a;1";x\r\n"two\nlines";y', encoding="utf-8-sig")
    hierarchy = built(spec, domain_of(["a;1", 'say "b"', "two\nlines"]), tmp_path)
    assert published(hierarchy, 1) == ["x", "y", "y"]


def test_a_path_is_relative_to_the_job_and_the_delimiter_is_the_jobs(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "h.csv").write_text("a|x\nb|y\n", encoding="utf-8")
    assert built({"csv": "sub/h.csv", "delimiter": "|"}, domain_of(["a", "b"]), tmp_path).labels[1].to_pylist() == ["x", "y"]


def test_a_tree_publishes_parents_up_to_its_roots() -> None:
    tree = {"Service": {"Healthcare": ["Nursing", "Doctor"], "Education": ["Teacher"]}, "Non-Service": {"Trades": ["Welder", "Other"]}}
    hierarchy = built({"tree": tree}, domain_of(["Doctor", "Nursing", "Teacher", "Welder"]))
    assert [published(hierarchy, level) for level in range(4)] == [
        ["Doctor", "Nursing", "Teacher", "Welder"],
        ["Healthcare", "Healthcare", "Education", "Trades"],
        ["Service", "Service", "Service", "Non-Service"],
        ["*"] * 4,
    ]


def test_the_single_root_of_a_tree_is_its_star() -> None:
    hierarchy = built({"tree": {"Any": {"Low": [1, 2], "High": [3]}}}, domain_of([1, 3]))
    assert [labels.to_pylist() for labels in hierarchy.labels] == [[1, 3], ["Low", "High"], ["*"]]


def test_a_name_may_return_at_another_level_of_a_tree() -> None:
    tree = {"Other": {"Other": ["Other"]}, "Work": {"Office": ["Clerk"]}}
    assert published(built({"tree": tree}, domain_of(["Clerk", "Other"])), 1) == ["Office", "Other"]
    check_static(quasi_identifier({"tree": tree}), Path())
