"""Passes of a run end by what their records take, and what is written of them is as narrow as the largest number lets it be."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.source.chunks import ChunkedSource
from tasks.writing.runs import LONG, RunWriter, count_file_records, published_schema, read_file_records, write_run


@pytest.mark.parametrize(("length", "is_long"), [(LONG - 1, False), (LONG, False), (LONG + 1, True)])
def test_a_pass_ends_by_the_texts_of_its_records_where_these_are_long_and_by_its_entries_otherwise(
    tmp_path: Path, length: int, is_long: bool
) -> None:
    """Ten batches of a hundred records, all but one of which have the one text; a pass takes the texts of two batches and a half."""
    column, others = pa.array(["x" * length] * 99 + [None]).dictionary_encode(), pa.array(range(100)).dictionary_encode()
    batch, most = pa.RecordBatch.from_arrays([column, others], names=["t", "n"]), 250 * length
    path = tmp_path / "run.arrow"
    with RunWriter(path, 1, most) as run:
        for _ in range(10):
            run.add(np.zeros(100, np.int32), batch, np.zeros(100, np.int64))
    bytes_of_batch = (99 * length if is_long else column.nbytes) + others.nbytes
    batches_of_pass = most // bytes_of_batch + 1
    with pa.memory_map(str(path)) as file:
        assert pa.ipc.open_file(file).num_record_batches == ceil(10 / batches_of_pass)


OWN = [pa.int32(), pa.string(), pa.string(), pa.date32(), pa.decimal128(9, 2)]
"""The types in which algorithms use the values of the columns below, and of prices."""
LABELLED = {"number": pa.int32(), "view": pa.string_view(), "coded": pa.dictionary(pa.int8(), pa.string_view()), "day": pa.date32()}


def test_published_columns_have_the_type_of_the_source_where_labels_are_its_values_and_that_of_the_labels_otherwise() -> None:
    columns = pa.schema([*LABELLED.items(), ("price", pa.decimal64(9, 2)), ("note", pa.string())])
    source = ChunkedSource(files=(), chunks=(), payload=("note", "pin"), columns=columns, published=(pa.string(), pa.large_string()))
    texts = [pa.field(name, pa.string(), nullable=False, metadata={"a": "b"}) for name in [*LABELLED, "price", "age_low"]]
    own = [pa.field(name, kind, nullable=False) for name, kind in zip([*LABELLED, "price"], OWN, strict=True)]
    others = [pa.field("note", pa.string()), pa.field("pin", pa.large_string())]
    by_text = {"view": pa.string_view(), "coded": pa.string_view()}
    for given, published in (
        (texts, [by_text.get(field.name, pa.string()) for field in texts]),
        (own, [pa.int32(), pa.string_view(), pa.string_view(), pa.date32(), pa.decimal64(9, 2)]),
    ):
        found = published_schema(pa.schema(given).empty_table(), source)
        expected = [pa.field(field.name, kind) for field, kind in zip(given, published, strict=True)]
        assert found.equals(pa.schema([*expected, *others]), check_metadata=True)


@pytest.mark.parametrize("most", [1, 127, 128, 255, 256])
def test_the_last_of_so_many_files_and_classes_is_no_other(tmp_path: Path, most: int) -> None:
    """They are numbered from 0 in as few bytes as hold the last of them, where 128 and 256 begin anew."""
    numbers = np.array([most, 0, most - 1, most, 0], np.int64)
    texts = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), [f"{number:03d}" for number in range(most + 1)])
    path = tmp_path / "run.arrow"
    assert write_run(path, numbers.astype(np.int32), pa.RecordBatch.from_arrays([texts], names=["t"]), numbers) == 5
    for number in {0, 1, most - 1, most}:
        classes, [found] = read_file_records([path], number, 1)
        assert count_file_records([path], number) == len(classes) == numbers.tolist().count(number)
        assert set(classes.tolist()) <= {number}
        assert set(found.to_pylist()) <= {f"{number:03d}"}


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize(("kind", "packed"), [("numbers", "not narrow"), ("alike", "always"), ("random", "never")])
def test_a_run_is_packed_where_that_pays_and_it_is_no_narrow_numbers(tmp_path: Path, kind: str, packed: str, narrow: bool) -> None:
    few = pa.DictionaryArray.from_arrays(pa.array(np.zeros(50_000, np.int32)), ["a", "b"])
    columns = {"numbers": few, "alike": pa.array(np.zeros(50_000)), "random": pa.array(np.random.default_rng(2).random(50_000))}
    batch, files = pa.RecordBatch.from_arrays([columns[kind]], names=["c"]), np.zeros(50_000, np.int64)
    path = tmp_path / "run.arrow"
    write_run(path, np.zeros(50_000, np.int32), batch, files, narrow=narrow)
    plain = 50_000 * ((1 if narrow else 4) + {"numbers": 1 if narrow else 4}.get(kind, 8))
    assert (2 * path.stat().st_size < plain) is (packed == "always" or (packed == "not narrow" and not narrow))


def test_a_long_text_that_no_record_has_takes_no_room_of_a_pass(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.nulls(5, pa.int32()), ["x" * (LONG + 1)])
    with RunWriter(tmp_path / "run.arrow", 1, 1 << 20) as run:
        run.add(np.arange(5, dtype=np.int32), pa.RecordBatch.from_arrays([column], names=["t"]), np.zeros(5, np.int64))
    classes, [found] = read_file_records([tmp_path / "run.arrow"], 0, 1)
    assert (classes.tolist(), found.to_pylist(), len(found.dictionary)) == ([0, 1, 2, 3, 4], [None] * 5, 0)
