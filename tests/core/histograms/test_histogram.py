"""Cells are counted as Python counts tuples, whichever way is the quickest, and histograms add up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import PackedWords, Packing
from core.histograms.histogram import Histogram, HistogramCounter, add_parts, count_cells, merge_parts, merge_sql, merge_way
from tests.house.replaced import HISTOGRAM_COMPACT_KEYS, HISTOGRAM_COUNT_DENSE

Row = tuple[int, ...]
Cells = list[tuple[Row, int]]
WAYS: dict[str, dict[str, int]] = {
    "dense": {"core.histograms.histogram.DENSE_PER_CELL": 10**9},
    "sorted": {"core.histograms.histogram.DENSE_PER_CELL": -(10**9)},
    "several words": {"core.columns.coding.WORD": 4},
}


@pytest.fixture(params=WAYS, scope="module")
def way(request: pytest.FixtureRequest) -> Any:
    """One of the ways to count, whatever the sizes."""
    patches = [patch(name, value) for name, value in WAYS[request.param].items()]
    for each in patches:
        each.start()
    yield request.param
    for each in patches:
        each.stop()


@st.composite
def tables(draw: st.DrawFn) -> tuple[Packing, list[Row]]:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=5)))
    return Packing(sizes), draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=40))


def packed(packing: Packing, rows: list[Row]) -> PackedWords:
    return packing.pack([np.array([row[qid] for row in rows], np.uint8) for qid in range(len(packing.sizes))])


def as_cells(packing: Packing, words: PackedWords, counts: np.ndarray) -> Cells:
    groups = map(tuple, packing.unpack(words).tolist())
    return list(zip(groups, counts.tolist(), strict=True))


def by_hand(rows: list[Row]) -> Cells:
    return sorted(Counter(rows).items())


def test_each_way_is_taken(way: str) -> None:
    packing = Packing((3, 3))
    assert len(packing.words) == (2 if way == "several words" else 1)
    with patch(HISTOGRAM_COUNT_DENSE, side_effect=RuntimeError):
        if way == "dense":
            with pytest.raises(RuntimeError):
                count_cells(packed(packing, [(1, 2)]), packing.product)
        else:
            count_cells(packed(packing, [(1, 2)]), packing.product)


@given(case=tables())
def test_cells_are_counted_ascending_as_python_counts_tuples(way: str, case: tuple[Packing, list[Row]]) -> None:
    packing, rows = case
    words, counts = count_cells(packed(packing, rows), packing.product)
    assert counts.dtype == np.int64
    assert all(word.dtype == np.int64 for word in words)
    assert as_cells(packing, words, counts) == by_hand(rows)


@given(case=tables(), data=st.data())
def test_counts_of_equal_cells_are_added(way: str, case: tuple[Packing, list[Row]], data: st.DataObject) -> None:
    packing, rows = case
    weights = data.draw(st.lists(st.integers(1, 2**45), min_size=len(rows), max_size=len(rows)))
    words, counts = count_cells(packed(packing, rows), packing.product, np.array(weights, np.int64))
    expected: Counter[Row] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        expected[row] += weight
    assert as_cells(packing, words, counts) == sorted(expected.items())


@given(case=tables(), data=st.data(), keys=st.sampled_from([1, 7, 10**6]))
def test_a_counter_gives_the_same_cells_for_any_batches(way: str, case: tuple[Packing, list[Row]], data: st.DataObject, keys: int) -> None:
    packing, rows = case
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    shuffled = data.draw(st.permutations(rows))
    with patch(HISTOGRAM_COMPACT_KEYS, keys):
        counter = HistogramCounter(packing)
        for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            counter.add(packed(packing, shuffled[start:end]))
        assert as_cells(packing, *counter.result()) == by_hand(rows)
        assert as_cells(packing, *counter.result()) == by_hand(rows)


def test_a_counter_without_records_has_no_cell(way: str) -> None:
    packing = Packing((2, 3, 2))
    words, counts = HistogramCounter(packing).result()
    assert [len(word) for word in words] == [0] * len(packing.words)
    assert counts.tolist() == []


@given(case=tables())
def test_a_histogram_knows_its_cells_and_records(case: tuple[Packing, list[Row]]) -> None:
    packing, rows = case
    histogram = Histogram((0,) * len(packing.sizes), packing, *count_cells(packed(packing, rows), packing.product))
    assert histogram.cells == len(set(rows))
    assert histogram.records == len(rows)
    assert list(zip(*(group.tolist() for group in histogram.groups), strict=True)) == sorted(set(rows))


def test_histograms_of_chunks_are_merged_by_duckdb_as_counters_are_added(way: str, tmp_path: Path) -> None:
    packing = Packing((3, 4, 2))
    random = np.random.default_rng(7)
    chunks = [list(zip(*(random.integers(0, size, rows).tolist() for size in packing.sizes), strict=True)) for rows in (50, 1, 9, 0)]
    files = []
    for number, rows in enumerate(chunks):
        words, counts = count_cells(packed(packing, rows), packing.product)
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({f"cell_{word}": values for word, values in enumerate(words)} | {"count": counts * 3}), path)
        files.append(f"'{path}'")
    merged = duckdb.connect().sql(merge_sql(f"read_parquet([{', '.join(files)}])", len(packing.words))).to_arrow_table()
    words = tuple(merged[f"cell_{word}"].to_numpy() for word in range(len(packing.words)))
    expected = [(cell, 3 * count) for cell, count in by_hand([row for rows in chunks for row in rows])]
    assert as_cells(packing, words, merged["count"].to_numpy()) == expected
    assert merged["count"].type == pa.int64()


@given(case=tables(), data=st.data())
def test_parts_are_summed_alike_in_an_array_and_by_merging(way: str, case: tuple[Packing, list[Row]], data: st.DataObject) -> None:
    packing, rows = case
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    parts = [
        count_cells(packed(packing, rows[start:end]), packing.product) for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    assert as_cells(packing, *merge_parts(parts, packing.product)) == by_hand(rows)
    if len(packing.words) == 1:
        assert as_cells(packing, *add_parts(parts, packing.product)) == by_hand(rows)


@pytest.mark.parametrize(
    ("product", "rows", "way"),
    [
        (20_000_000, 10**9, "dense"),
        (10**12, 10_000_000, "merge"),
        (10**12, 15_000_000, "spill"),
        (10**12, 10**8, "spill"),
        (1 << 70, 10**8, "spill"),
    ],
)
def test_histograms_are_summed_by_what_fits_a_gigabyte(product: int, rows: int, way: str) -> None:
    assert merge_way(product, rows, 10**9) == way
