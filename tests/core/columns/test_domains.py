"""A domain table holds how often each value occurs, however the records are cut, encoded or merged."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import read_domains
from core.histograms.domain_counts import DomainCounter, count_values, merge_domain_tables
from tests.house.replaced import DOMAIN_COUNTS_COMPACT_ROWS
from tests.laws import tried
from tests.oracles.columns import TYPES, encodings, values_of

QIDS = ["word", "number"]
PLAIN = [pa.string(), pa.int32()]
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), st.integers(-2, 2) | st.none()), max_size=25)


def batch(draw: st.DrawFn, rows: list[tuple[Any, Any]]) -> pa.RecordBatch:
    columns = [draw(encodings([row[qid] for row in rows], dtype)) for qid, dtype in enumerate(PLAIN)]
    return pa.RecordBatch.from_arrays(columns, names=QIDS)


def counted(batches: list[pa.RecordBatch]) -> pa.Table:
    counter = DomainCounter(PLAIN)
    for each in batches:
        counter.add(each)
    return counter.table()


def pieces(draw: st.DrawFn, rows: list[Any]) -> list[list[Any]]:
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
@tried(25)
def test_values_are_counted_as_python_counts_them(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(dtype) | st.none(), max_size=15))
    table = count_values(data.draw(encodings(values, dtype, data.draw(st.lists(values_of(dtype), max_size=2)))))
    assert table["value"].type == dtype
    pairs = list(zip(table["value"].to_pylist(), table["count"].to_pylist(), strict=True))
    assert len(pairs) == len(dict(pairs))
    assert dict(pairs) == Counter(values)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
@tried(25)
def test_a_domain_is_ascending_with_its_nulls_apart(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(dtype) | st.none(), max_size=15))
    counter = DomainCounter([dtype])
    counter.add(pa.RecordBatch.from_arrays([data.draw(encodings(values, dtype))], names=["x"]))
    [domain] = read_domains(counter.table(), ["x"])
    found = Counter(values)
    assert domain.qid == "x"
    assert domain.values.type == dtype
    assert domain.values.to_pylist() == sorted(value for value in found if value is not None)
    assert domain.counts.tolist() == [found[value] for value in domain.values.to_pylist()]
    assert (domain.nulls, domain.size, domain.records) == (found[None], len(found), len(values))


@given(st.data(), ROWS)
def test_any_cut_into_chunks_and_batches_in_any_order_gives_the_same_table(data: st.DataObject, rows: list[tuple[Any, Any]]) -> None:
    whole = counted([batch(data.draw, rows)])
    shuffled = data.draw(st.permutations(rows))
    chunks = [counted([batch(data.draw, part) for part in pieces(data.draw, chunk)]) for chunk in pieces(data.draw, shuffled)]
    assert merge_domain_tables(chunks, PLAIN).table().equals(whole)
    assert merge_domain_tables([merge_domain_tables(chunks[:1], PLAIN).table(), *chunks[1:]], PLAIN).table().equals(whole)


@given(st.data(), ROWS)
def test_summing_up_early_changes_nothing(data: st.DataObject, rows: list[tuple[Any, Any]]) -> None:
    whole = counted([batch(data.draw, rows)])
    with patch(DOMAIN_COUNTS_COMPACT_ROWS, 2):
        assert counted([batch(data.draw, part) for part in pieces(data.draw, rows)]).equals(whole)


@given(ROWS)
def test_a_domain_table_has_one_row_per_qid_and_value(rows: list[tuple[Any, Any]]) -> None:
    columns = [pa.array([row[qid] for row in rows], dtype) for qid, dtype in enumerate(PLAIN)]
    table = counted([pa.RecordBatch.from_arrays(columns, names=QIDS)])
    assert table.schema == pa.schema([("qid", pa.int16()), ("count", pa.int64()), ("value_0", pa.string()), ("value_1", pa.int32())])
    expected = []
    for qid in range(2):
        found = Counter(row[qid] for row in rows)
        for value in sorted(found, key=lambda value: (value is None, value)):
            expected.append({"qid": qid, "count": found[value], "value_0": None, "value_1": None} | {f"value_{qid}": value})
    assert table.to_pylist() == expected


def test_columns_whose_batches_differ_in_encoding_are_one_domain() -> None:
    plain = pa.array(["b", "a"])
    counter = DomainCounter([pa.string()])
    for column in (plain, plain.dictionary_encode(), plain.cast(pa.large_string())):
        counter.add(pa.RecordBatch.from_arrays([column], names=["x"]))
    [domain] = read_domains(counter.table(), ["x"])
    assert (domain.values.to_pylist(), domain.counts.tolist()) == (["a", "b"], [3, 3])
