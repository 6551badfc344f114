"""Messages that say what to write instead: where in which file, by which setting, and in what form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import skald
from tests.jobs import job_of

COLUMNS = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5, 10]}}], "sensitive": ["dis"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a CSV file with one value that is no number."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text('age;dis\n12;"x\ny"\n13;y\ncanary;x\n15;y\n')
    return tmp_path


def told(settings: dict[str, Any] | None = None, **parts: Any) -> str:
    source = {"path": "a.csv", "delimiter": ";", "types": {"age": "integer"}}
    with pytest.raises(skald.SkaldError) as error:
        skald.run(job_of(**({"source": source, "columns": COLUMNS, "privacy": {"k": 2}} | parts)), settings)
    assert "canary" not in str(error.value)
    return str(error.value)


def test_a_value_of_a_wrong_type_is_told_by_file_and_row(here: Path) -> None:
    said = told()
    assert f"'{here / 'a.csv'}'" in said
    assert "(row 3, the header being row 0)" in said
    (here / "a.csv").write_text("age;dis\n" + "canary;x\n" * 5)
    assert "(rows 1, 2, 3 and 2 more, the header being row 0)" in told()


@pytest.mark.parametrize(("delimiter", "spelt"), [(";", '";"'), ("\t", '"\\t"'), ("|", '"|"')])
def test_a_delimiter_that_leaves_one_column_is_told_with_the_one_that_does_not(here: Path, delimiter: str, spelt: str) -> None:
    (here / "a.csv").write_text(f"age{delimiter}dis\n12{delimiter}x\n")
    assert f"Say source.delimiter: {spelt}." in told(source={"path": "a.csv"})


def test_a_single_column_may_have_any_name_that_the_job_knows(here: Path) -> None:
    (here / "a.csv").write_text('"age; years"\n12\n12\n')
    columns = {"quasi_identifiers": [{"name": "age; years", "hierarchy": {"prefix": [1]}}]}
    assert skald.run(job_of(source={"path": "a.csv"}, columns=columns, privacy={"k": 2})).new


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("privacy.k", 0, "(given by --set privacy.k)"),
        ("suppression.limit", "2%", "write 2 % as 0.02, without quotes (given by --set suppression.limit)"),
        ("columns.quasi_identifiers.0.hierarchy.widths", [3, 2], "(given by --set quasi_identifiers[0] 'age': hierarchy.widths)"),
        ("privcy.k", 3, "(given by --set privcy.k)"),
        ("method", "mondrian", "method: {name: mondrian} (given by --set method)"),
        ("memory.size", 3, "--set memory.size: memory holds a single value"),
    ],
)
def test_a_setting_is_named_where_it_is_the_culprit(here: Path, setting: str, value: Any, said: str) -> None:
    assert said in told({setting: value})


def test_a_setting_is_not_blamed_for_a_fault_of_the_file(here: Path) -> None:
    assert "--set" not in told({"privacy.k": 3}, suppression={"limit": 2})
    hierarchy = {"name": "age", "hierarchy": {"widths": [5, 10]}, "exact": 3}
    blamed = {"columns.quasi_identifiers.0.hierarchy.widths": [5, 20]}
    assert "--set" not in told(blamed, columns=COLUMNS | {"quasi_identifiers": [hierarchy]})


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"method": "mondrian"}, "as in method: {name: mondrian}"),
        ({"method": "mondrain"}, "as in method: {name: skald} (did you mean 'mondrian'?)"),
        ({"method": "canary"}, "as in method: {name: skald}"),
        ({"suppression": {"limit": "2 %"}}, "write 2 % as 0.02"),
        ({"source": {"path": "a.xlsx"}}, "save its sheet as CSV"),
        ({"source": {"path": "data/*.json.gz"}}, "make it Parquet"),
        ({"source": {"path": "a.csv", "format": "xlsx"}}, "save its sheet as CSV"),
        ({"source": {"path": "a.csv", "format": "json"}}, "make it Parquet"),
    ],
)
def test_a_form_that_people_try_is_answered_with_the_one_that_works(here: Path, parts: dict[str, Any], said: str) -> None:
    assert said in told(**parts)


def test_rest_in_brackets_is_told_to_be_a_word(here: Path) -> None:
    (here / "a.csv").write_text("age;dis;x\n12;a;1\n")
    assert "write insensitive: rest, without brackets" in told(columns=COLUMNS | {"insensitive": ["rest"]})


def test_a_column_that_is_called_rest_may_be_listed(here: Path) -> None:
    (here / "a.csv").write_text("age;dis;rest\n12;a;1\n12;b;1\n")
    source = {"path": "a.csv", "delimiter": ";", "types": {"age": "integer"}}
    assert skald.run(job_of(source=source, columns=COLUMNS | {"insensitive": ["rest"]}, privacy={"k": 2})).new


def test_a_frame_of_several_types_is_told_by_column_and_row(here: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2, "canary", 4], "dis": ["x"] * 4})
    with pytest.raises(skald.SkaldError, match="'age' holds values of several types, the first other one in row 2 counted from 0") as error:
        skald.anonymise(frame, job_of(source=None, target=None, columns=COLUMNS))
    assert "canary" not in str(error.value)
