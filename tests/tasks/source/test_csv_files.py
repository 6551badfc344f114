"""CSV files become the Parquet that their author meant, or are refused with counts."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError, StorageError
from schemas.job.job import load_job
from tasks.planning.profiles import planning_connection
from tasks.planning.samples import csv_sample
from tasks.source.csv_files import convert_csv, csv_sql, write_in_utf8
from tasks.store.database import database_kept_open
from tasks.store.store import Store
from tests.jobs import write_job


def converted(folder: Path, content: str | bytes, name: str = "t.csv", memory: str = "64MB", **source: Any) -> pa.Table:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "insensitive": "rest"}
    parts = {"version": 1, "name": "t", "source": {"path": name, **source}, "columns": columns, "privacy": {"k": 1}}
    job = load_job(write_job(folder, parts | {"method": {"name": "skald"}, "memory": memory, "target": "out"}))
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    store = Store.at(job.work_path)
    return pq.read_table(store.path(convert_csv(job, folder / name, name, "digest", store)))


def test_columns_without_a_type_are_text_as_it_is_written(tmp_path: Path) -> None:
    table = converted(tmp_path, "q,b\n007,1.0\n , x \n")
    assert table.to_pydict() == {"q": ["007", " "], "b": ["1.0", " x "]}


def test_a_folder_that_is_named_like_a_column_changes_no_value(tmp_path: Path) -> None:
    assert converted(tmp_path / "q=7" / "c=1", "q,b\n1,2\n3,4\n").to_pydict() == {"q": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize(("name", "other"), [("in[1]", "in1"), ("a*", "ab"), ("a?", "ac")])
def test_no_other_file_is_read_that_a_name_is_a_pattern_for(tmp_path: Path, name: str, other: str) -> None:
    converted(tmp_path / other, "q,b\n5,6\n")
    assert converted(tmp_path / name, "q,b\n1,2\n").to_pydict() == {"q": ["1"], "b": ["2"]}


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.GZ", "a?b.csv.gz", "a?b.csv", "a.gz?b.csv", "a.gz?/t.csv"])
def test_a_file_is_unpacked_by_the_end_of_its_name(tmp_path: Path, name: str) -> None:
    content = b"q,b\n1,2\n3,4\n"
    packed = gzip.compress(content) if name.lower().endswith(".gz") else content
    (tmp_path / name).parent.mkdir(exist_ok=True)
    assert converted(tmp_path, packed, name, format="csv").to_pydict() == {"q": ["1", "3"], "b": ["2", "4"]}
    with planning_connection() as connection:
        drafted = csv_sample(connection, [tmp_path / name])
        assert connection.execute(f"SELECT q::VARCHAR, b::VARCHAR FROM {drafted.relation}").fetchall() == [("1", "2"), ("3", "4")]


def test_packed_and_plain_files_are_drafted_together(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("q,b\n1,2\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"q,b\n3,4\n"))
    with planning_connection() as connection:
        drafted = csv_sample(connection, [tmp_path / "1.csv", tmp_path / "2.csv.gz"])
        assert sorted(connection.execute(f"SELECT q::VARCHAR FROM {drafted.relation}").fetchall()) == [("1",), ("3",)]


def test_columns_of_packed_and_plain_files_are_taken_together_by_name(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("q,b\n1,2\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"b,q\n4,3\n"))
    with planning_connection() as connection:
        read = csv_sql([tmp_path / "1.csv", tmp_path / "2.csv.gz"], "header = true, all_varchar = true")
        assert sorted(connection.execute(f"SELECT q, b FROM {read}").fetchall()) == [("1", "2"), ("3", "4")]


@pytest.mark.parametrize("name", ["a\\b[1].csv", "a\\b*.csv", "a\\?/t.csv"])
def test_a_path_that_no_pattern_names_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with pytest.raises(SourceError, match="a path with a backslash may have none of"):
        converted(tmp_path, "q,b\n1,2\n", name, format="csv")


def test_a_backslash_alone_is_a_letter(tmp_path: Path) -> None:
    assert converted(tmp_path, "q,b\n1,2\n", "a\\b.csv").to_pydict() == {"q": ["1"], "b": ["2"]}


def test_quotes_keep_delimiters_line_breaks_and_quotes(tmp_path: Path) -> None:
    assert converted(tmp_path, 'q,b\n"a,b","c""d"\n"e\nf",g\n').to_pydict() == {"q": ["a,b", "e\nf"], "b": ['c"d', "g"]}


def test_types_are_those_of_the_job(tmp_path: Path) -> None:
    types = {"q": "integer", "b": "double", "c": "decimal(5,2)", "d": "boolean", "e": "date", "f": "timestamp"}
    table = converted(tmp_path, "q,b,c,d,e,f\n1,0.5,1.25,true,2020-02-29,2020-02-29 12:00:00\n,,,,,\n", types=types)
    assert [str(dtype) for dtype in table.schema.types] == ["int64", "double", "decimal128(5, 2)", "bool", "date32[day]", "timestamp[us]"]
    assert [len(values) - values.count(None) for values in table.to_pydict().values()] == [1] * 6


def test_null_values_are_those_of_the_job_and_no_others(tmp_path: Path) -> None:
    text = "q,b\n?,NA\nNULL,\n"
    assert converted(tmp_path / "1", text).to_pydict() == {"q": ["?", "NULL"], "b": ["NA", None]}
    assert converted(tmp_path / "2", text, null_values=["?", "NA"]).to_pydict() == {"q": [None, "NULL"], "b": [None, ""]}


def test_numbers_and_days_are_read_as_the_file_spells_them(tmp_path: Path) -> None:
    spelling = {"delimiter": ";", "decimal": ",", "thousands": ".", "dates": "dd.mm.yyyy"}
    types = {"q": "double", "b": "date", "c": "integer"}
    table = converted(tmp_path / "1", "q;b;c;d\n1.234,5;31.01.2024;-1.000;1,5\n;;;\n", types=types, **spelling)
    assert table.to_pydict() == {"q": [1234.5, None], "b": [date(2024, 1, 31), None], "c": [-1000, None], "d": ["1,5", None]}
    with pytest.raises(SourceError, match=r"1 row with a \"b\" not of the type .* days without a time, such as 31\.01\.2024 \(row 2, "):
        converted(tmp_path / "2", "q;b\n1,5;31.01.2024\n1,5;01/31/2024\n", types={"q": "double", "b": "date"}, **spelling)
    with pytest.raises(SourceError, match='2 rows with a "q" not of the type'):
        converted(tmp_path / "3", "q\n1.5\n1.234.5\n1,5\n", types={"q": "double"}, **spelling)


@pytest.mark.parametrize(
    ("encoding", "text"), [("windows-1252", "Zürich – 5 €"), ("iso-8859-2", "Łódź"), ("utf-16", "東京"), ("shift_jis", "東京")]
)
@pytest.mark.parametrize("compressed", [False, True])
def test_text_is_read_in_the_encoding_of_the_file(tmp_path: Path, encoding: str, text: str, compressed: bool) -> None:
    content = f"q,{text}\n1,{text}\n".encode(encoding)
    name = "t.csv.gz" if compressed else "t.csv"
    table = converted(tmp_path, gzip.compress(content) if compressed else content, name, encoding=encoding)
    assert table.to_pydict() == {"q": ["1"], text: [text]}
    assert not list(tmp_path.rglob("spill/csv/*"))


def test_bytes_of_another_encoding_are_refused_with_what_to_say(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is not text in utf-8\. Say what it is in under source\.encoding"):
        converted(tmp_path / "1", "q,Zürich\n1,2\n".encode("windows-1252"))
    with pytest.raises(SourceError, match=r"source\.encoding says what else"):
        converted(tmp_path / "2", ("q,b\n" + "1,2\n" * 50_000 + "1,Zürich\n").encode("windows-1252"))
    with pytest.raises(SourceError, match="is not text in ascii"):
        converted(tmp_path / "3", "q,b\n1,Zürich\n", encoding="ascii")
    assert not list((tmp_path / "3").rglob("spill/csv/*"))


@pytest.mark.parametrize(("name", "delimiter"), [("t.tsv", None), ("t.csv", "\t"), ("t.csv", "|"), ("t.csv", "'")])
def test_the_delimiter_is_the_jobs_or_that_of_the_suffix(tmp_path: Path, name: str, delimiter: str | None) -> None:
    given = {} if delimiter is None else {"delimiter": delimiter}
    mark = delimiter or "\t"
    assert converted(tmp_path, f"q{mark}b\n1{mark}2\n", name, **given).to_pydict() == {"q": ["1"], "b": ["2"]}


def test_compressed_files_are_read_as_they_are(tmp_path: Path) -> None:
    assert converted(tmp_path, gzip.compress(b"q,b\n1,2\n"), "t.csv.gz").to_pydict() == {"q": ["1"], "b": ["2"]}


def test_the_order_of_the_rows_is_kept(tmp_path: Path) -> None:
    rows = [str(number) for number in range(300_000)]
    assert converted(tmp_path, "q\n" + "\n".join(rows) + "\n")["q"].to_pylist() == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_do_not_matter(tmp_path: Path, end: str, last: bool) -> None:
    assert converted(tmp_path, end.join(["q,b", "1,2", "3,4"]) + end * last).to_pydict() == {"q": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "\ufeff\n"])
def test_a_file_that_holds_nothing_is_called_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(SourceError, match=r"'t\.csv' is empty: it has no first line"):
        converted(tmp_path, content, types={})


@pytest.mark.parametrize(
    ("content", "types", "fault"),
    [
        ("q,b\n1,2\n3\n4\n", {}, "2 rows with too few fields"),
        ("q,b\n1,2\n3,4,5\n", {}, "1 row with too many fields"),
        ("q,b\n1,2\nx,4\ny,5\n", {"q": "integer"}, '2 rows with a "q" not of the type that source.types gives'),
        ("q,b\n1,2020-02-28\n1,2020-02-30\n", {"b": "date"}, '1 row with a "b" not of the type'),
        ("q,q\n1,2\n", {}, "the first line does not name every column, each once"),
        ("q,\n1,2\n", {}, "the first line does not name every column, each once"),
        ("\nq\n1\n", {}, "the first line does not name every column, each once"),
        ('q,b\n1,"2\n', {}, "1 row with a quote that does not close"),
        ('q,b\n1,"2\n3"4,5\n', {}, "a quote that does not close"),
        ("q,b\r\n1,2\n3,4\r\n", {}, "lines that do not all end alike"),
    ],
)
def test_rows_that_do_not_fit_are_counted_and_refused(tmp_path: Path, content: str | bytes, types: dict[str, str], fault: str) -> None:
    with pytest.raises(SourceError) as refused:
        converted(tmp_path, content, types=types)
    assert fault in str(refused.value)
    assert "t.csv' cannot be read as it is" in str(refused.value)
    assert list((tmp_path / ".skald" / "t" / "artifacts").glob("converted/*")) == []


def test_a_copy_that_cannot_be_written_is_no_fault_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("q\n1\n", "utf-16")
    with pytest.raises(StorageError, match="nowhere"):
        write_in_utf8(tmp_path / "t.csv", "t.csv", "utf-16", tmp_path / "nowhere" / "copy.csv")


def test_files_that_share_a_database_are_told_of_their_own_rows_alone(tmp_path: Path) -> None:
    with database_kept_open():
        assert converted(tmp_path / "1", "q,b\n1,2\n").to_pydict() == {"q": ["1"], "b": ["2"]}
        for folder, rows, shown in (("2", "1\n2\n3,4\n", r"2 rows with too few fields \(rows 1, 2,"), ("3", "3,4\n5\n", r"\(row 2,")):
            with pytest.raises(SourceError, match=shown):
                converted(tmp_path / folder, "q,b\n" + rows)
        assert converted(tmp_path / "4", "a,q\n1,2\n").to_pydict() == {"a": ["1"], "q": ["2"]}
