"""Values are counted right, and the sample is the same in whatever batches and order they come."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formats import samples
from core.formats.samples import ValueCounter, value_digests

VALUES = st.lists(st.one_of(st.none(), st.text("abc", max_size=3)), max_size=60)


def fed(values: list[str | None], batches: int, *, encode: bool) -> ValueCounter:
    counter = ValueCounter()
    for part in np.array_split(np.array(values, object), batches):
        column = pa.array(part.tolist(), pa.string())
        counter.add(column.dictionary_encode() if encode else column)
    return counter


@given(VALUES, st.integers(1, 5), st.booleans(), st.integers(1, 30))
def test_counts_and_sample_are_those_of_the_whole(values: list[str | None], batches: int, encode: bool, most: int) -> None:
    with patch.object(samples, "MOST_SAMPLED_VALUES", most):
        counter, whole = fed(values, batches, encode=encode), fed(sorted(values, key=str), 1, encode=not encode)
    digests, counts = counter.take_counts()
    there = Counter(value for value in values if value is not None)
    assert sorted(counts.tolist()) == sorted(there.values())
    (smallest, texts), (of_whole, texts_of_whole) = counter.sample, whole.sample
    assert smallest.tolist() == of_whole.tolist() == digests[:most].tolist()
    assert texts.to_pylist() == texts_of_whole.to_pylist()
    assert set(texts.to_pylist()) <= set(there)


@given(st.lists(st.dictionaries(st.integers(1, 12), st.integers(1, 3)), max_size=4))
def test_figures_of_parts_are_those_of_all_values(parts: list[dict[int, int]]) -> None:
    there = sum((Counter(part) for part in parts), Counter[int]())
    digests = [np.array(sorted(part), np.uint64) for part in parts]
    counts = [np.array([part[digest] for digest in sorted(part)], np.uint32) for part in parts]
    expected = len(there), list(there.values()).count(1), there.total()
    assert samples.digest_totals(digests, counts) == expected


COLUMNS = {
    "whole": pa.array([1, 2, None, 2]),
    "boolean": pa.array([True, False, None, False]),
    "double": pa.array([0.5, 1.5, None, 1.5]),
    "half": pa.array(np.array([0.5, 1.5, np.nan, 1.5], np.float16)),
    "decimal": pa.array([Decimal("0.5"), Decimal("1.5"), None, Decimal("1.5")]),
    "date": pa.array([date(2020, 1, 1), date(2021, 1, 1), None, date(2021, 1, 1)]),
    "moment": pa.array([datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC), None, datetime(2021, 1, 1, tzinfo=UTC)]),
    "unknown zone": pa.array([1, 2, None, 2], pa.timestamp("us", "Nowhere/Land")),
    "time": pa.array([time(1), time(2), None, time(2)]),
    "duration": pa.array([timedelta(1), timedelta(2), None, timedelta(2)]),
    "bytes": pa.array([b"\xff", b"\xfe", None, b"\xfe"]),
    "fixed bytes": pa.array([b"\xff", b"\xfe", None, b"\xfe"], pa.binary(1)),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_values_of_every_type_are_told_apart(kind: str) -> None:
    column = COLUMNS[kind]
    counter = ValueCounter()
    counter.add(column)
    assert sorted(counter.take_counts()[1].tolist()) == [1, 2]
    assert len(counter.sample[0]) == 2
    digests = value_digests(column)
    assert digests[1] == digests[3]
    assert digests[2] == 0
