"""The form of a data file is a function of its records: dictionaries where these are shorter, and verification asks for no others."""

from __future__ import annotations

import base64
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.values import ValuesError
from tasks.verification.file_forms import GROUP, parquet_faults
from tasks.writing.runs import write_release

ROWS = 20_000
KINDS = {
    "number": lambda number: number,
    "text": lambda number: f"note {number}",
    "day": lambda number: date(1990, 1, 1) + timedelta(days=number),
    "price": lambda number: Decimal(number) / 4,
    "share": lambda number: number / 7,
    "bytes": lambda number: number.to_bytes(3, "big"),
    "answer": lambda number: number % 2 == 0,
}


def table_of(distinct: int, rows: int = ROWS) -> pa.Table:
    """Records with so many values in each column, in no order, and no value in some."""
    numbers = np.random.default_rng(distinct).permutation(rows) % distinct
    return pa.table(
        {kind: pa.array([None if number == 5 else make(number) for number in numbers.tolist()]) for kind, make in KINDS.items()}
    )


def written(path: Path, table: pa.Table, *coded: str) -> Path:
    """Write records as a release does, with some columns given as dictionaries."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    write_release(path, {name: column.dictionary_encode() if name in coded else column for name, column in columns.items()}, table.schema)
    return path


def forged(path: Path, table: pa.Table, **options: Any) -> Path:
    """Write records in the form of a release, but for the options."""
    with pq.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False, store_schema=False, **options) as writer:
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(table.schema.serialize().to_pybytes()).decode()})
        writer.write_table(table)
    return path


def held(path: Path) -> set[str]:
    group = pq.read_metadata(path).row_group(0)
    return {column.path_in_schema for place in range(group.num_columns) if (column := group.column(place)).has_dictionary_page}


@pytest.mark.parametrize(("distinct", "expected"), [(40, set(KINDS) - {"answer"}), (ROWS, set())], ids=["repeated", "distinct"])
def test_values_that_hardly_repeat_are_written_without_dictionaries(tmp_path: Path, distinct: int, expected: set[str]) -> None:
    """Which form takes fewer bytes is the library's; that they are read back, and verified, is ours."""
    table = table_of(distinct)
    path = written(tmp_path / "part.parquet", table, "text")
    assert held(path) == expected
    assert pq.read_table(path).equals(table)
    assert parquet_faults([path], tmp_path, same_library=True) == []


@given(rows=st.integers(0, 60), distinct=st.integers(1, 60), missing=st.sampled_from([0, 2, 5]))
def test_text_is_written_alike_whether_it_comes_plain_or_as_a_dictionary_and_every_form_is_verified(
    rows: int, distinct: int, missing: int
) -> None:
    table = table_of(distinct, rows)
    table = table.filter(pa.array(np.arange(rows) % 7 >= missing)) if rows else table.cast(table_of(1, 1).schema)
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain, coded = written(folder / "plain.parquet", table), written(folder / "coded.parquet", table, "text")
        assert held(plain) == held(coded)
        texts = [pq.read_table(path)["text"] for path in (plain, coded)]
        assert texts[0].equals(texts[1])
        if "text" not in held(plain):
            assert plain.read_bytes() == coded.read_bytes()
        assert parquet_faults([plain, coded], folder, same_library=True) == []


def test_nothing_but_text_is_written_as_the_dictionary_that_it_comes_as(tmp_path: Path) -> None:
    """The order of its entries may be that of the source, and nobody who reads the file would notice."""
    values = [f"v{number}".encode() if number % 10 < 6 else b"same" for number in np.random.default_rng(1).permutation(ROWS).tolist()]
    column = pa.array(values)
    entries = column.dictionary_encode()
    other = np.random.default_rng(2).permutation(len(entries.dictionary))
    turned = pa.DictionaryArray.from_arrays(pa.array(np.argsort(other)[entries.indices]), entries.dictionary.take(pa.array(other)))
    schema = pa.schema([("bytes", pa.binary())])
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, given_as in zip(paths, (column, entries, turned), strict=True):
        write_release(path, {"bytes": given_as}, schema)
    assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
    assert parquet_faults(paths, tmp_path, same_library=True) == []


@pytest.mark.parametrize("distinct", [40, ROWS])
def test_a_file_with_dictionaries_of_other_columns_is_told_and_one_of_an_earlier_version_is_not(tmp_path: Path, distinct: int) -> None:
    table = table_of(distinct)
    for number, options in enumerate([["number"], ["text", "day"], sorted(set(KINDS) - {"answer", "share"})]):
        assert parquet_faults([forged(tmp_path / f"{number}.parquet", table, use_dictionary=options)], tmp_path, same_library=True)
    coded = table.set_column(table.column_names.index("text"), "text", table["text"].dictionary_encode())
    before = tmp_path / "before.parquet"
    with pq.ParquetWriter(before, coded.schema, compression="zstd", write_statistics=False, store_schema=False) as writer:
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(table.schema.serialize().to_pybytes()).decode()})
        writer.write_table(coded)
    assert parquet_faults([before], tmp_path, same_library=True) == []
    faults = parquet_faults([before, written(tmp_path / "today.parquet", table, "text")], tmp_path, same_library=True)
    assert bool(faults) == (distinct == ROWS)


def test_equal_records_that_few_bytes_of_a_file_stand_for_by_the_gigabyte_are_refused(tmp_path: Path) -> None:
    texts = pa.array(["x" * 1_000_000, "short"])
    schema = pa.schema([("note", pa.string())])
    much, little = (pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), texts) for places in ([0] * 400 + [1], [0] + [1] * 400))
    with pytest.raises(ValuesError, match="'note'"):
        write_release(tmp_path / "much.parquet", {"note": much}, schema)
    assert write_release(tmp_path / "little.parquet", {"note": little}, schema) == 401


def test_row_groups_are_full_but_for_the_last(tmp_path: Path) -> None:
    full = forged(tmp_path / "full.parquet", pa.table({"x": pa.nulls(2 * GROUP + 5, pa.int8())}))
    assert pq.read_metadata(full).num_row_groups == 3
    assert parquet_faults([full], tmp_path, same_library=False) == []
    small = tmp_path / "small.parquet"
    pq.write_table(pa.table({"x": pa.nulls(2, pa.int8())}), small, row_group_size=1, write_statistics=False)
    assert len(parquet_faults([small], tmp_path, same_library=False)) == 1


def test_a_dictionary_of_long_texts_is_not_written_as_one_page(tmp_path: Path) -> None:
    texts = np.random.default_rng(1).bytes(4_300_000).hex()
    entries = pa.array([texts[start : start + 4000] for start in range(0, len(texts), 4000)])
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(2 * len(entries), dtype=np.int32) % len(entries)), entries)
    write_release(tmp_path / "x.parquet", {"x": column}, pa.schema([("x", pa.string())]))
    pages = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    assert not pages.has_dictionary_page or pages.data_page_offset - pages.dictionary_page_offset < 3_000_000


def test_a_file_of_another_writer_is_one_with_more_in_it(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    duckdb.sql("SELECT 'a' AS q, 1 AS v").write_parquet(str(path))
    with pq.ParquetFile(path) as file:
        assert not file.schema_arrow.metadata, "nothing else tells it from one of ours"
    for same_library in (True, False):
        assert len(parquet_faults([path], tmp_path, same_library=same_library)) == 1


def test_a_file_that_cannot_be_read_is_no_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    assert [("more in it" in one, "cannot be read" in one) for one in parquet_faults([path], tmp_path, same_library=False)] == [
        (True, False),
        (False, True),
    ]
