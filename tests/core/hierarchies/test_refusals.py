"""What a hierarchy refuses, in one sentence that counts and never tells a value."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.hierarchies.hierarchy import check_static
from core.hierarchies.levels import checked_table
from schemas.errors.hierarchies import HierarchyError
from schemas.job.source import TYPES
from tests.oracles.hierarchies import built, domain_of, quasi_identifier

CANARY = "Kanarienvogel-4711"
NAME = "profession"


def refusal(spec: dict[str, Any], folder: Path = Path(), domain: Domain | None = None) -> str:
    with pytest.raises(HierarchyError) as caught:
        if domain is None:
            check_static(quasi_identifier(spec, NAME), folder)
        else:
            built(spec, replace(domain, qid=NAME), folder)
    assert caught.value.exit_code == 2
    message = str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert message.startswith(f"Column '{NAME}': ")
    assert CANARY not in message
    assert "4711" not in message
    return message


def listed(folder: Path, text: str | bytes) -> dict[str, Any]:
    (folder / "h.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"csv": "h.csv"}


def test_labels_under_two_labels_are_counted_with_their_level(tmp_path: Path) -> None:
    spec = listed(tmp_path, f"a;{CANARY};p;*\nb;{CANARY};q;*\nc;x;p;*\nd;x;q;*\ne;y;q;*\n")
    message = refusal(spec, tmp_path)
    assert "does not nest" in message
    assert "2 labels of level 1 lie under several labels of level 2" in message
    assert refusal(spec, tmp_path, domain_of(["a"])) == message


def test_a_level_that_nests_in_the_first_but_not_in_the_next_is_found(tmp_path: Path) -> None:
    message = refusal(listed(tmp_path, f"a;x;{CANARY};1\nb;y;{CANARY};2\n"), tmp_path)
    assert "1 label of level 2 lies under several labels of level 3" in message


def test_values_listed_twice_with_other_labels_are_counted(tmp_path: Path) -> None:
    message = refusal(listed(tmp_path, f"{CANARY};x\n{CANARY};y\nb;x\nb;x\n"), tmp_path)
    assert "1 value occurs more than once in the file 'h.csv'" in message


def test_rows_of_another_length_are_counted(tmp_path: Path) -> None:
    message = refusal(listed(tmp_path, f"a;x;*\nb;{CANARY}\nc;x;*\nd;x;*;*\n"), tmp_path)
    assert "2 of 4 rows of the file 'h.csv' have another depth than the first (3 levels)" in message


def test_values_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    spec = listed(tmp_path, "a;x\nb;y\n")
    assert "2 of 3 values are not in the file 'h.csv'" in refusal(spec, tmp_path, domain_of(["A", CANARY, "a"], nulls=5))
    assert "1 of 1 value is not in its tree" in refusal({"tree": {"x": ["a"], "y": ["b"]}}, domain=domain_of([CANARY]))


def test_a_wrong_delimiter_is_hinted_at(tmp_path: Path) -> None:
    message = refusal(listed(tmp_path, "a,x\nb,y\n"), tmp_path, domain_of(["a", "b"]))
    assert "2 of 2 values" in message
    assert "delimiter" in message


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b"\n\n", "is empty"), (CANARY.encode() + b";\xff\n", "is not UTF-8"), (f'"{CANARY};x\n'.encode(), "is not CSV")],
)
def test_a_file_that_is_no_table_says_why(tmp_path: Path, content: bytes, says: str) -> None:
    assert f"the hierarchy file 'h.csv' {says}" in refusal(listed(tmp_path, content), tmp_path)


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    assert "does not exist" in refusal({"csv": "missing.csv"}, tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be opened" in refusal({"csv": "folder.csv"}, tmp_path)
    assert os.fspath(tmp_path) not in refusal({"csv": "missing.csv"}, tmp_path)


def test_groups_of_one_name_under_two_parents_are_refused() -> None:
    with pytest.raises(HierarchyError, match="1 label of level 1 lies under several labels of level 2") as caught:
        checked_table(NAME, "its tree", [("a", CANARY, "p"), ("b", CANARY, "q")])
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "values", "dtype", "says"),
    [
        ({"widths": [1, 2]}, [CANARY], pa.string(), "widths needs integers, floats or decimals, but the column is of type string"),
        ({"widths": [1, 2]}, [True], pa.bool_(), "is of type bool"),
        ({"widths": [1, 2]}, [0], pa.date32(), "a hierarchy of another kind (date, CSV file or tree)"),
        ({"prefix": [3]}, [4711.5], pa.float64(), "prefixes needs text or integers, but the column is of type double"),
        ({"date": ["day"]}, [CANARY], pa.large_string(), "dates needs dates or timestamps, but the column is of type large_string"),
        ({"tree": {"a": ["b"]}}, [CANARY.encode()], pa.binary(), "listed values needs text, numbers, booleans or dates"),
    ],
)
def test_a_column_of_the_wrong_type_is_told_what_to_do(spec: dict[str, Any], values: list[Any], dtype: pa.DataType, says: str) -> None:
    message = refusal(spec, domain=domain_of(values, dtype))
    assert says in message
    assert "source" in message


@pytest.mark.parametrize(("spec", "value"), [({"prefix": [3]}, True), ({"prefix": [3], "sparse": ["036"]}, 4711)])
def test_a_type_that_a_message_asks_for_is_one_that_the_job_takes(spec: dict[str, Any], value: Any) -> None:
    [asked] = re.findall(r"the type (\w+) in source\.types", refusal(spec, domain=domain_of([value])))
    assert asked in TYPES


def test_records_without_a_finite_number_are_counted() -> None:
    values = [float("-inf"), 4711.5, float("inf"), float("nan")]
    assert "8 records hold NaN or an infinite number" in refusal({"widths": [1]}, domain=domain_of(values))  # 1 + 3 + 4 records
    assert "2 records hold" in refusal({"widths": [1], "encode": True}, domain=domain_of([4711.5, float("nan")], pa.float32()))


def test_negative_integers_have_no_prefix() -> None:
    assert "2 values are negative" in refusal({"prefix": [2]}, domain=domain_of([-4711, -1, 4711]))


def test_an_unknown_time_zone_is_named() -> None:
    for spec in ({"date": ["day"]}, {"tree": {"x": ["a"], "y": ["b"]}}):
        message = refusal(spec, domain=domain_of([4711], pa.timestamp("s", tz="Mars/Olympus")))
        assert "the time zone 'Mars/Olympus' of its timestamps is not known" in message
