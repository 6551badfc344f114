"""Whatever becomes Parquet has as many records there as in the file that it was, or is refused."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from schemas.errors.base import SkaldError, SourceError
from schemas.errors.storage import DatabaseError
from schemas.job.job import load_job
from tasks.source import batches, csv_files
from tasks.source.arrow_files import convert_arrow
from tasks.source.extracts import extract_duckdb
from tasks.store.store import Store
from tests.jobs import job_of, write_job
from tests.tasks.source.test_csv_files import converted

MB = 1_000_000
FEW = b"".join(b"%d,x\n" % number for number in range(50))


def with_one_of(size: int, *, quoted: bool = False) -> bytes:
    """A file of 101 records, of which the one in the middle has a field of so many bytes."""
    field = b'"' + b"y\n" * (size // 2) + b'"' if quoted else b"y" * size
    return b"q,b\n" + FEW + b"7," + field + b"\n" + FEW


def packed(content: bytes) -> bytes:
    whole: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return whole


@pytest.mark.ci
@pytest.mark.parametrize("size", [7 * MB, 9 * MB, 15 * MB])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_record_of_up_to_16_mb_is_read(tmp_path: Path, size: int, quoted: bool) -> None:
    table = converted(tmp_path, with_one_of(size, quoted=quoted), memory="256MB")
    assert (len(table), len(table["b"][50].as_py())) == (101, size // 2 * 2)


@pytest.mark.ci
@pytest.mark.parametrize(("name", "pack"), [("t.csv", bytes), ("t.csv.gz", lambda text: gzip.compress(text, 1)), ("t.csv.zst", packed)])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_longer_record_is_refused_however_the_file_is_packed(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes], quoted: bool
) -> None:
    with pytest.raises(SourceError, match=r"has a record of 17,000,0\d\d bytes, and a record of CSV may have 16 MB at most"):
        converted(tmp_path, pack(with_one_of(17 * MB, quoted=quoted)), name)


def test_a_record_that_the_reader_loses_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is lost between two buffers that are shorter than it is."""
    monkeypatch.setattr(csv_files, "BUFFER", 64_000)
    monkeypatch.setattr(csv_files, "MARGIN", -1_000_000)
    with pytest.raises(SourceError, match="has 101 records, of which 100 were read"):
        converted(tmp_path, with_one_of(200_000))


@pytest.mark.ci
def test_compressed_files_that_are_cut_off_or_damaged_are_refused_and_several_in_one_are_read(tmp_path: Path) -> None:
    content = b"q,b\n" + b"".join(b"%d,x%d\n" % (number, number * 7919) for number in range(200_000))
    half = content.index(b"\n", len(content) // 2) + 1
    for suffix, pack in (("gz", lambda text: gzip.compress(text, 1)), ("zst", packed)):
        whole = pack(content)
        broken = {"cut": whole[: len(whole) // 2]} | ({"damaged": whole[:-8] + bytes(8)} if suffix == "gz" else {})
        for name, file in broken.items():
            with pytest.raises(SourceError, match="cannot be read as csv"):
                converted(tmp_path / f"{name}.{suffix}", file, f"t.csv.{suffix}")
        parts = pack(content[:half]) + pack(content[half:])
        assert len(converted(tmp_path / f"parts.{suffix}", parts, f"t.csv.{suffix}")) == 200_000


def arrow(folder: Path, content: bytes) -> int:
    path = folder / "t.arrow"
    path.write_bytes(content)
    return convert_arrow(path, "t.arrow", str(len(content)), Store.at(folder), 512 * MB).rows


@pytest.mark.ci
@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream])
def test_arrow_files_in_a_row_and_streams_without_an_end_are_refused(
    tmp_path: Path, new: Callable[..., ipc.RecordBatchStreamWriter]
) -> None:
    table, sink = pa.table({"q": range(100)}), pa.BufferOutputStream()
    with new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=30)
    content = sink.getvalue().to_pybytes()
    assert arrow(tmp_path, content) == 100
    for broken in (content + content, content[:-8]):
        with pytest.raises(SourceError, match=r"is cut off, or holds more than one Arrow file|cannot be read as arrow"):
            arrow(tmp_path, broken)


def test_values_of_more_than_16_mb_are_refused_in_every_format(tmp_path: Path) -> None:
    long, sink = ["y" * (17 * MB)], pa.BufferOutputStream()
    table = pa.table({"q": pa.array(long).dictionary_encode()})
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SourceError, match="'q'"):
        arrow(tmp_path, sink.getvalue().to_pybytes())
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT repeat('y', {17 * MB}) AS q")
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}]}
    job = load_job(write_job(tmp_path, job_of(source={"path": "t.duckdb", "table": "t"}, columns=columns)))
    with pytest.raises(SourceError, match="'q'"):
        extract_duckdb(job, tmp_path / "t.duckdb", "t.duckdb", "digest", Store.at(job.work_path))
    # A file that another program has open is not to be replaced.
    (tmp_path / "t.duckdb").write_bytes(b"no database" * 999)
    with pytest.raises(DatabaseError, match="Close the program that has it open for writing"):
        extract_duckdb(job, tmp_path / "t.duckdb", "t.duckdb", "other", Store.at(job.work_path))


def test_rows_that_get_lost_on_the_way_into_parquet_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_as_kept", lambda batch, schema: batch.slice(1))
    with pytest.raises(SkaldError, match="malformed"):
        batches.write_batches(tmp_path / "t.parquet", pa.schema({"q": pa.int64()}), pa.table({"q": range(9)}).to_batches(), "t")


def stored(folder: Path, table: pa.Table) -> pa.Table:
    """Return an Arrow file of a table as it is kept."""
    path = folder / "t.arrow"
    with ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)
    store = Store.at(load_job(write_job(folder, job_of(source={"path": "t.arrow"}))).work_path)
    return pq.read_table(store.path(convert_arrow(path, "t.arrow", "digest", store, 256 * MB)))


@pytest.mark.parametrize("dtype", [pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_null_in_a_dictionary_is_a_null_of_its_records(tmp_path: Path, dtype: pa.DataType, ordered: bool) -> None:
    entries = pa.array([None, *([0, 1] if not pa.types.is_string(dtype) else ["0", "1"]), None]).cast(dtype)
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1, 3, 2], pa.int8()), entries, ordered=ordered)
    assert stored(tmp_path, pa.table({"q": column}))["q"].to_pylist() == column.to_pylist()


UNKEPT = {
    "decimal128(5, -2)": pa.decimal128(5, -2),
    "fixed_size_binary[0]": pa.binary(0),
    "struct<>": pa.struct([]),
    "list<item: decimal128(5, -2)>": pa.list_(pa.decimal128(5, -2)),
    "month_day_nano_interval": pa.month_day_nano_interval(),
    "dictionary<values=list<item: int8>, indices=int8, ordered=0>": pa.dictionary(pa.int8(), pa.list_(pa.int8())),
}


@pytest.mark.parametrize("named", UNKEPT)
def test_a_type_that_parquet_does_not_have_is_refused_by_its_column(tmp_path: Path, named: str) -> None:
    with pytest.raises(DatabaseError, match=re.escape(f"'q' ({named})")):
        stored(tmp_path, pa.table({"q": pa.nulls(3, UNKEPT[named]), "b": [1, 2, 3]}))
