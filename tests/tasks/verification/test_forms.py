"""A data file whose records have another form than they are written in is told of, once each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.release.files import BOM, Csv
from tasks.verification.entries import _holds
from tasks.verification.file_forms import _Entries, csv_faults, more_than_records, parquet_faults
from tasks.writing.runs import write_release

LAYOUT = Csv(";", {"q": "VARCHAR", "kind": "VARCHAR", "n": "BIGINT", "share": "DOUBLE"})
RECORDS = 'q;kind;n;share\n"a;b";"x";1;0.5\n"\'=c";"\'=y";;2.0\n;;-3;\n'
PLAIN = pa.schema([("q", pa.string()), ("n", pa.int64())])


def faults_of(folder: Path, *texts: str | bytes, layout: Csv = LAYOUT, bom: bool | None = None) -> list[str]:
    """The faults of CSV files with some contents."""
    paths = [folder / f"{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with duckdb.connect() as connection:
        found = csv_faults(connection, paths, layout, folder, bom)
    assert sorted(folder.iterdir()) == paths, "no copy is left"
    return found


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (RECORDS, LAYOUT), ("n;share\n1;0.5\n", Csv(";", {"n": "BIGINT", "share": "DOUBLE"})),
        ('q,"a;b"\n"",\n', Csv(",", {"q": "VARCHAR", "a;b": "VARCHAR"})),
    ],
    ids=["both", "numbers", "texts"],
)  # fmt: skip
def test_csv_files_in_the_form_that_they_are_written_in_have_no_fault_with_the_mark_or_without(
    tmp_path: Path, text: str, layout: Csv
) -> None:
    assert faults_of(tmp_path, text, BOM + text, layout=layout) == []
    assert faults_of(tmp_path, text, BOM + text, layout=layout, bom=False) == more_than_records(1)
    assert faults_of(tmp_path, text, text, BOM + text, layout=layout, bom=True) == more_than_records(2)


@pytest.mark.parametrize(
    "other",
    [
        RECORDS.replace("0.5", "0.50"), RECORDS.replace("1;", '"1";'), RECORDS.replace('"x"', "x"), RECORDS.replace("\n", "\r\n"),
        RECORDS.replace("q;", '"q";'), RECORDS.encode() + b'"\xff";;;\n', RECORDS + '"d";"x";many;\n', RECORDS + '"+d";"z";;\n', "",
    ],
    ids=["number", "quoted", "bare", "ends", "header", "bytes", "type", "formula", "empty"],
)  # fmt: skip
def test_a_csv_file_in_another_form_counts_once_and_those_beside_it_do_not(tmp_path: Path, other: str | bytes) -> None:
    assert faults_of(tmp_path, RECORDS, other, RECORDS) == more_than_records(1)


def test_a_column_that_a_csv_file_lacks_is_an_error_of_the_whole_count(tmp_path: Path) -> None:
    with pytest.raises(duckdb.BinderException):
        faults_of(tmp_path, 'q\n"a"\n', layout=Csv(",", {"q": "VARCHAR", "n": "BIGINT"}))


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pa.field("q", pa.dictionary(pa.int32(), pa.string())), {}), (pa.field("q", pa.list_(pa.string())), {}),
        (pa.field("q", pa.string(), nullable=False), {}), (pa.field("q", pa.string(), metadata={"note": "hidden"}), {}),
        (pa.field("q", pa.string()), {"metadata": {"note": "hidden"}}),
    ],
    ids=["dictionary", "nested", "not nullable", "of a column", "of the file"],
)  # fmt: skip
def test_columns_of_data_files_are_plain_and_nothing_is_noted_beside_them(
    tmp_path: Path, column: pa.Field, options: dict[str, Any]
) -> None:
    for schema, faults in ((PLAIN, []), (pa.schema([column, PLAIN.field("n")], **options), more_than_records(1))):
        path = tmp_path / f"{len(faults)}.parquet"
        pq.write_table(schema.empty_table() if faults else pa.table({"q": ["a"], "n": [1]}), path)
        assert parquet_faults([path], tmp_path, same_library=False) == faults
    bare = tmp_path / "bare.parquet"
    pq.write_table(pa.table({"q": ["a"]}), bare, store_schema=False)
    assert parquet_faults([bare], tmp_path, same_library=False) == []


def test_a_document_holds_its_text_or_is_missing_and_no_link_stands_for_it(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert _holds(report, b"text"), "a file that is missing is told of elsewhere"
    for content, is_held in ((b"text", True), (b"Text", False), (b"text and more", False), (b"tex", False)):
        report.write_bytes(content)
        assert _holds(report, b"text") is is_held
    report.write_bytes(b"text")
    (tmp_path / "link").symlink_to(report)
    assert not _holds(tmp_path / "link", b"text")
    assert not _holds(tmp_path, b"text")


def texts(*values: str, indices: list[int] | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)) if indices is None else indices, pa.int32()), pa.array(values))


@pytest.mark.parametrize(
    ("groups", "due"),
    [
        ([[texts("b", "a")]], True), ([[texts("b", "a")], [texts("c", "a")]], True),
        ([[texts("b", "a", indices=[0])], [texts("b", "a")]], True),
        ([[texts("b", "a", indices=[0])], [texts("b", "c")]], False), ([[texts("a", "b"), texts("a", "b")]], True),
        ([[texts("a", "b", indices=[0]), texts("a", "b", indices=[1])]], False), ([[texts("b", "a", indices=[1, 0])]], False),
        ([[texts("a", "b", indices=[1, 0])]], True), ([[pa.array(["b", "a"])]], True),
    ],
)  # fmt: skip
def test_entries_are_used_and_in_order_by_column_and_by_what_its_row_groups_have_in_common(groups: list[list[pa.Array]], due: bool) -> None:
    """Entries are in the order in which records have them, or of their bytes; of two columns each uses its own."""
    entries = _Entries()
    for columns in groups:
        entries.add(columns)
    assert entries.are_due() is due


@pytest.mark.parametrize("numbers", [1, 2000])
@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize(
    ("hidden", "faults"),
    [("nothing", 0), ("entry", 1), ("order", 1), ("statistics", 1), ("dictionary", 1), ("plain", 1), ("as before", 0)],
)
def test_texts_that_fill_a_page_of_entries_and_those_that_do_not_are_written_again_each_in_its_way(
    tmp_path: Path, numbers: int, long: bool, hidden: str, faults: int
) -> None:
    """Texts are a dictionary or plain where they are written, which their bytes alone tell where entries fill more than a page."""
    path, entries = tmp_path / "0.parquet", {"entry": ["x", "y", "z"], "order": ["y", "z", "x"]}.get(hidden, ["x", "y"])
    size = 1_100 if long else 4
    columns: dict[str, pa.Array] = {
        "plain": pa.array([f"{number:0{size}}" for number in range(1_000)] * 2, pa.large_string()),
        "coded": pa.DictionaryArray.from_arrays(pa.array([1, 0] * 1_000, pa.int32()), pa.array(entries, pa.large_string())),
        "number": pa.array([number % numbers for number in range(2_000)]),
        "word": pa.array([f"word {number}" for number in range(2_000)], pa.large_string()),
        "flag": pa.array([True, False] * 1_000),
    }
    kinds = {"number": pa.int64(), "flag": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    # Files of before have a dictionary of every column; one of some that are not shorter with it, or none of one that is, is another form.
    held = {"dictionary": ["plain", "coded", *(["number"] if numbers > 1 else ["word"])], "plain": ["coded"], "as before": list(columns)}
    changed = {"write_statistics": ["number"]} if hidden == "statistics" else {"use_dictionary": held[hidden]} if hidden in held else {}
    with pytest.MonkeyPatch.context() as patch:
        whole = pq.ParquetWriter
        patch.setattr(pq, "ParquetWriter", lambda *given, **named: whole(*given, **named | changed))
        write_release(path, columns, schema)
    assert parquet_faults([path], tmp_path, same_library=True) == more_than_records(faults)
    assert [one.name for one in tmp_path.iterdir()] == ["0.parquet"], "no copy is left"


def test_a_file_without_records_has_its_form_and_one_that_cannot_be_read_makes_none_of_before(tmp_path: Path) -> None:
    """Of the files of a release all are of before, or none."""
    empty, before, broken = (tmp_path / f"{name}.parquet" for name in ("empty", "before", "broken"))
    write_release(empty, {"q": pa.array([], pa.large_string()), "n": pa.array([], pa.int64())}, PLAIN)
    bare = tmp_path / "bare.parquet"
    with pq.ParquetWriter(bare, PLAIN, compression="zstd", write_statistics=False):
        pass
    assert [pq.read_metadata(path).num_rows for path in (empty, bare)] == [0, 0]
    assert [pq.read_metadata(path).num_row_groups for path in (empty, bare)] == [1, 0]
    assert parquet_faults([empty], tmp_path, same_library=True) == []
    assert parquet_faults([bare], tmp_path, same_library=True) == []
    with pytest.MonkeyPatch.context() as patch:
        whole = pq.ParquetWriter
        patch.setattr(pq, "ParquetWriter", lambda *given, **named: whole(*given, **named | {"use_dictionary": True}))
        write_release(before, {"q": pa.array(["a", "b"], pa.large_string()), "n": pa.array([1, 2])}, PLAIN)
    broken.write_bytes(b"PAR1")
    assert parquet_faults([before], tmp_path, same_library=True) == []
    assert parquet_faults([before, broken], tmp_path, same_library=True) == [*more_than_records(2), "a data file cannot be read as Parquet"]
