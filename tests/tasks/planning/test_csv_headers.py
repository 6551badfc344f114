"""A draft reads a CSV file as its run will: by the delimiter of the first line, and with the same refusals."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import SkaldError
from tasks.planning.draft import draft_job
from tasks.planning.open_sources import SourceOptions
from tasks.planning.samples import delimiter_of

CANARY = "CANARY"
ROWS = [f"{20 + row % 40},{CANARY}{row % 3},{row % 5}" for row in range(60)]


def drafted_from(folder: Path, lines: list[str], name: str = "people.csv") -> None:
    """Draft a job from a CSV file of some lines."""
    (folder / name).write_text("\n".join(lines) + "\n")
    draft_job(SourceOptions((str(folder / name),)), folder / "job.yaml")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        pytest.param(["age,dx,zip", *ROWS, "33", *ROWS], r"1 row with too few fields \(row 61,", id="a short row"),
        pytest.param(["age,dx,zip", *ROWS, "33,flu,1,2", *ROWS], r"1 row with too many fields \(row 61,", id="a long row"),
        pytest.param(["age,dx,zip", *ROWS * 175, "33"], r"1 row with too few fields \(row 10,501,", id="a short row that is far below"),
        pytest.param(["My export", "age,dx,zip", *ROWS], "a title or a comment stands before the header", id="a title"),
        pytest.param(["sep=,", "age,dx,zip", *ROWS], "'sep='", id="a separator line"),
        pytest.param(["age,age,zip", *ROWS], "every column, each once", id="a name twice"),
        pytest.param(["age,,zip", *ROWS], "every column, each once", id="no name"),
        pytest.param(["age,Age,zip", *ROWS], "differ in case only", id="a name in two cases"),
    ],
)
def test_what_a_run_refuses_is_refused_in_the_same_words_and_nothing_is_written(tmp_path: Path, lines: list[str], sentence: str) -> None:
    with pytest.raises(SkaldError, match=sentence) as refused:
        drafted_from(tmp_path, lines)
    assert CANARY not in str(refused.value)
    # Nor in a traceback.
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_row_of_another_file_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.csv").write_text("\n".join(["zip,age,dx", "1,33"]))
    (tmp_path / "in" / "a.csv").write_text("\n".join(["age,dx,zip", *ROWS]))
    with pytest.raises(SkaldError, match=r"b.csv' cannot be read as it is: 1 row with too few fields \(row 1,"):
        draft_job(SourceOptions((str(tmp_path / "in"),)), tmp_path / "job.yaml")


def test_a_byte_order_mark_and_a_column_alone_change_no_name(tmp_path: Path) -> None:
    drafted_from(tmp_path, ["\ufeffage", *(str(20 + row % 40) for row in range(60))])
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert [one["name"] for one in job["columns"]["quasi_identifiers"]] == ["age"]
    assert job["source"]["delimiter"] == ","


NAMES = st.lists(st.text("ab ,;|\t", min_size=1, max_size=6), min_size=2, max_size=5)


@given(names=NAMES, delimiter=st.sampled_from(",;|\t"), ragged=st.booleans())
def test_the_delimiter_is_that_of_the_header_whatever_the_rows_and_quoted_names_hold(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], delimiter: str, ragged: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "delimiter.csv"
    rows = [delimiter.join("1" for _ in names)] * 5 + (["1"] if ragged else [])
    file.write_text("\n".join([delimiter.join(f'"{name}"' for name in names), *rows]))
    with duckdb.connect() as connection:
        assert delimiter_of(connection, file) == delimiter
