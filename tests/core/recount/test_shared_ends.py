"""The recount's own reading of where ranges may end agrees with what makes releases, and takes nothing else."""

from __future__ import annotations

from datetime import date, datetime, timedelta
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
from core.recoding.ends import Ends, shared_ends
from core.recount.shared_ends import step_lines, unexpected_ends
from schemas.job.columns import QuasiIdentifier


def digits(number: int, places: int) -> Decimal:
    """Return a decimal of so many places with all its digits, of which arithmetic keeps 28 only."""
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -places))


SPECS: dict[str, dict[str, Any]] = {
    "bins": {"widths": [1, 2, 4, 8]},
    "wide bins": {"widths": [0.5, 5], "origin": 2},
    "ranks": {"widths": [2, 4], "encode": True},
    "beginnings": {"prefix": [2, 1]},
    "days": {"date": ["month", "year"]},
}
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any], tuple[str, ...]]] = [
    (pa.int16(), st.integers(-300, 300), ("bins", "wide bins", "ranks", "beginnings")),
    (pa.uint64(), st.integers(0, 2**64 - 1), ("bins", "ranks")),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False), ("bins", "wide bins")),
    (pa.float64(), st.integers(-900, 900).map(lambda number: number / 10), ("bins", "wide bins", "ranks")),
    (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False), ("bins",)),
    (pa.decimal128(7, 2), st.decimals(-9999, 9999, places=2), ("bins", "wide bins")),
    (pa.decimal128(38, 2), st.integers(1 - 10**38, 10**38 - 1).map(lambda number: digits(number, 2)), ("bins", "wide bins")),
    (pa.decimal128(38, 0), st.integers(-(10**30), 10**30).map(lambda number: digits(number, 0)), ("bins", "wide bins", "ranks")),
    (pa.decimal128(38, 30), st.integers(1 - 10**38, 10**38 - 1).map(lambda number: digits(number, 30)), ("bins", "wide bins")),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31)), ("days",)),
    (pa.timestamp("s"), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda one: one.replace(microsecond=0)), ("days",)),
    (pa.timestamp("us", "Europe/Zurich"), st.datetimes(datetime(1900, 1, 1), datetime(2030, 1, 1)), ("days",)),
    (pa.timestamp("ns"), st.integers(0, 10**15).map(lambda number: datetime(2000, 1, 1) + timedelta(microseconds=number)), ("days",)),
]


def texts_of(found: Ends) -> list[tuple[str | None, str | None]]:
    return list(zip(as_text(found.low).to_pylist(), as_text(found.high).to_pylist(), strict=True))


def label(low: str | None, high: str | None) -> str:
    if low is None or high is None:
        return "*" if low is high else f"<= {high}" if low is None else f">= {low}"
    return f"[{low} - {high}]"


@pytest.mark.parametrize("place", range(len(KINDS)))
@given(data=st.data())
def test_both_readings_find_the_same_ends(place: int, data: st.DataObject) -> None:
    dtype, drawn, specs = KINDS[place]
    values = pa.array(data.draw(st.lists(drawn, min_size=1, max_size=25)), dtype).unique().sort()
    people, k = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))), data.draw(st.integers(1, 12))
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": SPECS[data.draw(st.sampled_from(specs))]}).hierarchy
    ends = texts_of(shared_ends(Domain("x", values, people, 0), spec, k))
    labels = [label(low, high) for first, (low, _) in enumerate(ends) for _, high in ends[first:]]
    assert unexpected_ends(values, people.tolist(), spec, k, labels) == 0


FINEST = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many there are in a second."""


@pytest.mark.parametrize(
    ("unit", "step"),
    [
        (unit, step)
        for unit, finest in FINEST.items()
        for step in sorted({1, finest // 1_000_000, finest // 1_000, finest, 60 * finest, 3_600 * finest, 86_400 * finest})
        if step and (unit != "ns" or step > 1)
    ],
)
def test_both_readings_cut_moments_at_whole_steps_of_the_clock(unit: str, step: int) -> None:
    """Seven tenths of a step apart, of one person each; half of them lie before 1970."""
    first = -17 * step + step // 2
    values = pa.array([first + number * 7 * max(step // 10, 1) for number in range(50)], pa.timestamp(unit))
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": SPECS["days"]}).hierarchy
    for k in (2, 5):
        ends = texts_of(shared_ends(Domain("x", values, np.ones(50, np.int64), 0), spec, k))
        assert len(set(ends)) > 3
        assert unexpected_ends(values, [1] * 50, spec, k, [label(*each) for each in ends]) == 0


@pytest.mark.parametrize("first", [0, 1, -1, -2, -9])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("widths", [[1], [1, 3, 9], [1, 2, 4]])
def test_a_line_next_to_nothing_is_a_line(first: int, k: int, widths: list[int]) -> None:
    """Values one apart, each of k persons: every line between two is one at which both readings may cut."""
    values, people = pa.array(range(first, first + 5)), np.full(5, k)
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"widths": widths}}).hierarchy
    ends = texts_of(shared_ends(Domain("x", values, people, 0), spec, k))
    assert len(set(ends)) == 5
    assert unexpected_ends(values, people.tolist(), spec, k, [label(*pair) for pair in ends]) == 0
    assert [(step.first, step.after) for step in step_lines(values, people.tolist(), k)] == [(place, place + 1) for place in range(5)]


@given(st.dictionaries(st.integers(0, 200), st.integers(1, 4), min_size=3, max_size=40))
def test_a_value_of_few_people_is_no_end(people: dict[int, int]) -> None:
    """As an observed range has it: but where a line of the grid happens to be there."""
    values, k = sorted(people), 5
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"prefix": [2, 1]}}).hierarchy
    found = shared_ends(Domain("x", pa.array(values), np.array([people[value] for value in values]), 0), spec, k)
    lows, highs = (set(side.to_pylist()) for side in (found.low, found.high))
    counts = [people[value] for value in values]
    for value in values:
        assert unexpected_ends(pa.array(values), counts, spec, k, [f">= {value}"]) == int(value not in lows or None not in highs)
        assert unexpected_ends(pa.array(values), counts, spec, k, [f"<= {value}"]) == int(value not in highs or None not in lows)


def test_ends_have_all_digits_of_long_decimals() -> None:
    values = pa.array(
        [digits(number, 2) for number in (-93174494411892312331944018349, -51038350013699529112303881347, -14210174398667636759904313812)],
        pa.decimal128(38, 2),
    )
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"widths": [0.1, 0.4, 1.6]}}).hierarchy
    people, found = [3, 2, 20], ("-931744944118923123319440183.49", "-500000000000000000000000000.01")
    assert found in texts_of(shared_ends(Domain("x", values, np.array(people), 0), spec, 3))
    assert unexpected_ends(values, people, spec, 3, [label(*found)]) == 0
    assert unexpected_ends(values, people, spec, 3, [label(found[0], "-500000000000000000000000000.00")]) == 1
    assert unexpected_ends(values, people, spec, 3, [label(found[0][:-1] + "8", found[1])]) == 1


def test_what_is_no_number_is_no_end() -> None:
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"widths": [1]}}).hierarchy
    values = pa.array([Decimal(1), Decimal(2)], pa.decimal128(3, 0))
    assert unexpected_ends(values, [9, 9], spec, 5, ["[1 - 2]", "[1 - x]", ">= x", "*", None, "1"]) == 2


@pytest.mark.parametrize(("width", "steps"), [(10**16, 18), (10**17, 15), (2 * 10**17, 20)])
def test_bins_are_lines_up_to_ten_times_the_numbers_that_fit_and_wider_ones_are_none(width: int, steps: int) -> None:
    """The second is just as wide as that in units of the last place; without it lines are powers of ten."""
    values = pa.array([digits(number, 1) for number in range(100)], pa.decimal128(20, 1))
    spec = QuasiIdentifier.model_validate({"name": "x", "hierarchy": {"widths": [width]}}).hierarchy
    ends = texts_of(shared_ends(Domain("x", values, np.ones(100, np.int64), 0), spec, 5))
    assert len(ends) == steps
    assert unexpected_ends(values, [1] * 100, spec, 5, [label(*each) for each in ends]) == 0


@pytest.mark.parametrize("kind", [pa.int32(), pa.date32()], ids=str)
def test_steps_of_numbers_alone_are_as_wide_as_their_lines_are_apart(kind: pa.DataType) -> None:
    """The outermost steps have one line, and between moments nobody asks how far it is."""
    steps = step_lines(pa.array(range(40), pa.int32()).cast(kind), [1] * 40, 5)
    cuts = [step.first for step in steps[1:]]
    assert (steps[0].first, [step.after for step in steps], len(steps) > 3) == (0, [*cuts, 40], True)
    inner = [float(after - first) if kind == pa.int32() else 0.0 for first, after in pairwise(cuts)]
    assert [step.width for step in steps] == [0.0, *inner, 0.0]
