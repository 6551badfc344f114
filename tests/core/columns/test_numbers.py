"""Distances between numbers are right however close to each other they are, and as they always were where floats tell all values apart."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.numbers import as_numbers, number_line
from tests.oracles.hierarchies import domain_of

STEPS = st.lists(st.integers(0, 2**12), min_size=2, max_size=6, unique=True).map(sorted)
EDGES = [(pa.int64(), 2**63 - 2**12 - 1), (pa.int64(), -(2**63)), (pa.uint64(), 2**63), (pa.uint64(), 2**64 - 2**12 - 1)]
EDGES += [(pa.timestamp("ns"), 2**63 - 2**12 - 1), (pa.timestamp("us", "UTC"), 253_402_300_799_000_000), (pa.date64(), 0)]
DECIMALS = [(38, 0, 10**25), (38, 2, 10**20), (38, 38, -(10**38) + 1), (5, 2, 100)]


@pytest.mark.parametrize(("dtype", "first"), EDGES)
@given(STEPS)
def test_differences_of_integers_and_moments_are_exact(dtype: pa.DataType, first: int, steps: list[int]) -> None:
    whole = [first + step * (86_400_000 if pa.types.is_date64(dtype) else 1) for step in steps]
    values = pa.array(whole, pa.uint64() if pa.types.is_uint64(dtype) else pa.int64()).cast(dtype)
    check(values, [Fraction(number) for number in whole])


@pytest.mark.parametrize(("precision", "scale", "first"), DECIMALS)
@given(STEPS)
def test_differences_of_decimals_are_exact(precision: int, scale: int, first: int, steps: list[int]) -> None:
    exact = [Fraction(first + step, 10**scale) for step in steps]
    texts = [Decimal((int(first + step < 0), tuple(map(int, str(abs(first + step)))), -scale)) for step in steps]
    check(pa.array(texts, pa.decimal128(precision, scale)), exact)


def check(values: pa.Array, exact: list[Fraction]) -> None:
    line, floats = number_line(domain_of(values)), as_numbers(values)
    assert line is not None
    assert floats is not None
    found = line.of(values)
    assert line.at(values, np.array([0, len(values) - 1])).tolist() == found[[0, -1]].tolist()
    if len(set(floats.tolist())) == len(exact):
        assert found.tolist() == floats.tolist()
    else:
        assert (found - found[0]).tolist() == [float(number - exact[0]) for number in exact]


@pytest.mark.parametrize("values", [[], [0.0], [5e-324, 1e-323, 1.7e308], [-1.5, 0.0]])
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_floats_are_what_they_are(values: list[float], dtype: pa.DataType) -> None:
    column = pa.array(np.unique(np.array(values)[np.array(values) < 1e30]), pa.float64()).cast(dtype)
    line = number_line(domain_of(column))
    assert line is not None
    assert line.of(column).tolist() == column.to_pylist()


@pytest.mark.parametrize("values", [["a", "b"], [False, True]])
def test_words_stand_nowhere(values: list[Any]) -> None:
    assert number_line(domain_of(values)) is None
