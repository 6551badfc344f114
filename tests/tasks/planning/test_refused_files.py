"""A draft refuses files in the words in which a run refuses them, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SkaldError, SourceError
from schemas.job.formats import FORMATS
from schemas.job.job import load_job
from tasks.planning.draft import draft_job
from tasks.planning.listed_hierarchies import draft_file
from tasks.planning.open_sources import SourceOptions, open_for_draft
from tasks.planning.samples import MOST_LOOKED_AT
from tests.jobs import write_csv, write_parquet

AGES = [20 + row % 6 for row in range(60)]
TEXTS = [str(age) for age in AGES]
DIFFER = r"1\.\w+' and '.*0\.\w+' differ in 'dx' .*source\.schema: evolve\. .* a folder of this machine for each table"


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        pytest.param([pa.table({"age": AGES, "Age": AGES})], "'age' and 'Age' of columns of the source differ in case", id="case"),
        pytest.param([pa.table({"age": AGES, "": AGES})], "1 column without a name", id="no name"),
        pytest.param([pa.table({"age": AGES, "a\0b": AGES})], "a name with a character of code zero", id="a zero in a name"),
        pytest.param([pa.table({"age": AGES, "x" * 1001: AGES})], "a name of more than 1,000 characters", id="a long name"),
        pytest.param([pa.table({"age": AGES, "dx": AGES}), pa.table({"age": AGES, "dx": TEXTS})], DIFFER, id="two types"),
        pytest.param([pa.table({"age": AGES}), pa.table({"age": AGES, "dx": AGES})], DIFFER, id="one column more"),
    ],
)
def test_what_a_run_refuses_is_refused_and_nothing_is_written(tmp_path: Path, tables: list[pa.Table], sentence: str) -> None:
    (tmp_path / "in").mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    with pytest.raises(SkaldError, match=sentence):
        draft_job(SourceOptions((str(tmp_path / "in"),)), tmp_path / "job.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_draft_that_does_not_fit_its_memory_says_what_to_do(tmp_path: Path) -> None:
    """Its memory is no job's, so that no job's ``memory`` can be raised."""
    pq.write_table(pa.table({"age": AGES}), tmp_path / "in.parquet")
    sentence = "in 1 GB of memory, which does not suffice here. Draft the job from a file of fewer records"
    with (
        pytest.raises(SkaldError, match=sentence),
        open_for_draft(SourceOptions((str(tmp_path / "in.parquet"),)), tmp_path / "job.yaml") as front,
    ):
        front.connection.execute("SET memory_limit = '1MB'")
        front.connection.execute("CREATE TABLE held AS SELECT range::VARCHAR FROM range(1000000)")


def test_files_of_which_one_has_only_nulls_in_a_column_are_alike(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, dx in enumerate([pa.array(TEXTS), pa.nulls(60)]):
        pq.write_table(pa.table({"age": AGES, "dx": dx}), tmp_path / "in" / f"{number}.parquet")
    assert draft_job(SourceOptions((str(tmp_path / "in"),)), tmp_path / "job.yaml").records == 120


def test_csv_files_of_other_columns_are_refused_and_a_hierarchy_is_drafted_of_them_all_the_same(tmp_path: Path) -> None:
    write_csv(tmp_path / "in" / "0.csv", pa.table({"age": AGES}))
    write_csv(tmp_path / "in" / "1.csv", pa.table({"age": AGES, "dx": TEXTS}))
    given = SourceOptions((str(tmp_path / "in"),))
    with pytest.raises(SkaldError, match=DIFFER):
        draft_job(given, tmp_path / "job.yaml")
    draft_file(given, "age", tmp_path / "age.csv")
    assert (tmp_path / "age.csv").is_file()


@pytest.mark.parametrize(
    "file", ["notes.txt", "age_hierarchy.csv", "_part.parquet", "._people.csv", "deeper/people.csv", "people.xlsx", None]
)
def test_a_folder_without_data_files_is_refused_with_the_kinds_that_are_read(tmp_path: Path, file: str | None) -> None:
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    if file:
        (tmp_path / "in" / file).write_text("age\n33\n")
    with pytest.raises(SourceError, match=r"No data file was found in '.*in'") as refused:
        draft_job(SourceOptions((str(tmp_path / "in"),)), tmp_path / "job.yaml")
    assert all(ending in str(refused.value) for one in FORMATS.values() for ending in one.suffixes)
    assert "source.path" not in str(refused.value)
    assert "Of several tables name a folder each." in str(refused.value)


def test_what_is_not_there_is_named_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"Not found: '.*nothing'\. ") as refused:
        draft_job(SourceOptions((str(tmp_path / "empty"), str(tmp_path / "nothing"))), tmp_path / "job.yaml")
    assert "empty" not in str(refused.value)


def test_files_that_a_run_leaves_out_are_not_looked_at(tmp_path: Path) -> None:
    write_csv(tmp_path / "in" / "people.csv", pa.table({"age": AGES}))
    (tmp_path / "in" / "._people.csv").write_bytes(bytes(range(256)))
    drafted = draft_job(SourceOptions((str(tmp_path / "in"),)), tmp_path / "job.yaml")
    assert drafted.records == len(AGES)
    assert load_job(tmp_path / "job.yaml").source.path == ["in/*.csv"]


@pytest.mark.parametrize("named", ["in", "in/0.csv", "in/*.csv"])
@pytest.mark.parametrize("front", [2, 3 * MOST_LOOKED_AT], ids=["at once", "further on"])
def test_lines_that_end_differently_are_refused_in_the_words_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, front: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_bytes(b"age,dx\n" + b"33,flu\n" * front + b"34,flu\r\n" * 2)
    with pytest.raises(
        SourceError, match=r"0\.csv' cannot be read as it is: a quote in the wrong place, or lines that do not all end alike"
    ):
        draft_file(SourceOptions((named,)), "age", tmp_path / "age.csv")
    assert not (tmp_path / "age.csv").exists()


@pytest.mark.parametrize(
    ("names", "rows", "sentence"),
    [
        (("nowhere",), {"table": "x"}, "Not found: 'nowhere'."),
        (("no*.csv",), {}, r"Not found: 'no\*\.csv'\."),
        (("in",), {"table": "x"}, "not named like a database .* Leave out --table and --query"),
        (("a.duckdb",), {}, "'a.duckdb' is a database. Name one of its tables with --table"),
        (("a.duckdb",), {"table": "t", "query": "SELECT 1"}, "'a.duckdb' is a database. .* and not both"),
        (("postgresql://reader:secret@host/shop",), {}, "'PostgreSQL' is a database. Name one of its tables with --table"),
        (("a.duckdb",), {"table": "nope"}, r"a\.duckdb' has no table 'nope'; it has 't'\."),
        (("in",), {"column": "ages"}, r"The source has no column 'ages' \(did you mean 'age'\?\)"),
    ],
)
def test_whoever_gives_no_job_reads_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], rows: dict[str, str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "in", pa.table({"age": AGES}))
    with duckdb.connect("a.duckdb") as made:
        made.execute("CREATE TABLE t AS SELECT 33 AS age")
    given = SourceOptions(names, rows.get("table"), rows.get("query"))
    with pytest.raises(SkaldError, match=sentence) as refused:
        draft_file(given, rows.get("column", "age"), tmp_path / "age.csv")
    assert "job" not in str(refused.value).replace(str(tmp_path), "")
    assert "secret" not in str(refused.value)
