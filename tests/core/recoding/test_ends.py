"""No range ends at what only few people have: every end stands for k people, and none of them can be told by it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.levels import as_text
from core.recoding.ends import Ends, grid_of, shared_ends
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import HierarchySpec
from tests.oracles.shared_ends import parts

BINS = {"widths": [1, 2, 4, 8]}


def spec_of(spec: dict[str, Any]) -> HierarchySpec:
    return QuasiIdentifier.model_validate({"name": "x", "hierarchy": spec}).hierarchy


def domain(people: dict[Any, int], dtype: pa.DataType) -> Domain:
    values = sorted(people)
    return Domain("x", pa.array(values, dtype), np.array([people[value] for value in values], np.int64), 0)


def ends(people: dict[Any, int], dtype: pa.DataType, spec: dict[str, Any], k: int) -> Ends:
    return shared_ends(domain(people, dtype), spec_of(spec), k)


def written(found: Ends) -> list[tuple[str | None, str | None]]:
    return list(zip(as_text(found.low).to_pylist(), as_text(found.high).to_pylist(), strict=True))


NUMBERED = st.dictionaries(st.integers(-40, 300), st.integers(1, 12), min_size=1, max_size=40)


@given(NUMBERED, st.integers(1, 12), st.sampled_from([BINS, {"widths": [5, 10]}, {"widths": [4, 8], "origin": -3}, {"prefix": [2, 1]}]))
def test_steps_are_those_of_the_oracle(people: dict[int, int], k: int, spec: dict[str, Any]) -> None:
    found, grid = ends(people, pa.int64(), spec, k), grid_of(domain(people, pa.int64()).values, spec_of(spec))
    origin = spec.get("origin", 0)
    assert grid.grid_lines.tolist() == [value - origin for value in sorted(people)]
    expected = parts({value - origin: count for value, count in people.items()}, grid.widths.tolist(), k)
    assert [len(part.places) for part in expected] == np.bincount(found.steps).tolist()
    for part, (low, high) in zip(expected, written(found), strict=True):
        least, greatest = (place + origin for place in (part.places[0], part.places[-1]))
        line_low, line_high = (None if line is None else line + origin for line in (part.low, part.high))
        assert low == (str(least) if people[least] >= k else None if line_low is None else str(line_low))
        assert high == (str(greatest) if people[greatest] >= k else None if line_high is None else str(line_high - 1))


@given(NUMBERED, st.integers(1, 12))
def test_every_step_is_of_k_people_and_between_its_ends(people: dict[int, int], k: int) -> None:
    found, values = ends(people, pa.int32(), BINS, k), sorted(people)
    counts = np.bincount(found.steps, weights=[people[value] for value in values])
    assert len(counts) == 1 or counts.min() >= k
    for step, (low, high) in enumerate(zip(found.low.to_pylist(), found.high.to_pylist(), strict=True)):
        mine = [value for value, of in zip(values, found.steps.tolist(), strict=True) if of == step]
        assert low is None or low <= mine[0]
        assert high is None or high >= mine[-1]
    for (_, high), (low, _) in pairwise(written(found)):
        assert int(high) < int(low)


@given(NUMBERED, st.integers(2, 12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_how_high_the_highest_are_changes_no_end(people: dict[int, int], k: int, one: int, other: int) -> None:
    """Fewer than k people above all others, wherever they are."""
    top = 1 << 9
    releases = [ends(people | {top + place: k - 1}, pa.int64(), BINS, k) for place in (one, other)]
    assert written(releases[0]) == written(releases[1])
    assert written(releases[0])[-1][1] is None


def test_the_highest_income_is_in_no_release() -> None:
    incomes = {10_000 + 500 * number: 20 for number in range(100)} | {1_234_567: 1, 98_765_432: 1}
    assert written(ends(incomes, pa.int64(), {"widths": [1, 1000]}, 10))[-1] == ("59500", None)
    moved = {value: count for value, count in incomes.items() if value != 98_765_432} | {5_000_000_001: 1}
    assert written(ends(moved, pa.int64(), {"widths": [1, 1000]}, 10)) == written(ends(incomes, pa.int64(), {"widths": [1, 1000]}, 10))


@pytest.mark.parametrize(
    ("dtype", "people", "spec", "expected"),
    [
        (pa.int8(), {-128: 3, -1: 3, 0: 3, 127: 3}, BINS, [("-128", "-128"), ("-1", "-1"), ("0", "0"), ("127", "127")]),
        (pa.uint64(), {0: 3, 2**64 - 1: 3}, BINS, [("0", "0"), (str(2**64 - 1), str(2**64 - 1))]),
        (pa.int64(), {1: 2, 2: 1, 3: 2, 4: 1, 9: 2}, BINS, [(None, "3"), ("4", None)]),
        (pa.float64(), {0.1: 2, 0.2: 2, 7.5: 2, 8.0: 2}, {"widths": [0.5, 1]}, [(None, "3.9"), ("4.0", None)]),
        (pa.float32(), {0.1: 4, 0.2: 4}, {"widths": [0.1]}, [("0.1", "0.1"), ("0.2", "0.2")]),
        (pa.decimal128(5, 2), {Decimal("1.10"): 2, Decimal("1.15"): 1, Decimal("9.99"): 3}, {"widths": [1, 10]},
         [(None, "4.99"), ("9.99",) * 2]),
        (pa.date32(), {date(1903, 5, 1): 1, date(1960, 2, 1): 3, date(1960, 3, 1): 3, date(1999, 1, 1): 2, date(2005, 1, 1): 1},
         {"date": ["month", "year"]}, [(None, "1960-02-01"), ("1960-03-01", "1960-03-01"), ("1970-01-01", None)]),
        (pa.timestamp("ns"), {datetime(2020, 1, 1, 8): 2, datetime(2020, 1, 1, 8, 30): 2, datetime(2020, 1, 2): 4}, {"date": ["day"]},
         [(None, "2020-01-01 23:59:59.999999999"), ("2020-01-02 00:00:00",) * 2]),
    ],
)  # fmt: skip
def test_ends_of_every_type(dtype: pa.DataType, people: dict[Any, int], spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert written(ends(people, dtype, spec, 3)) == expected
