"""What a draft says that columns give away is counted in all records where that is cheap, and is said to be of a sample elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formats.proposals import ColumnProfile
from tasks.planning.draft_text import counted_among
from tasks.planning.evidence import Exposures, columns_exposures, determines_column
from tasks.planning.profiles import MOST_RECORDS

OTHERS = {"a": ["b"], "b": ["a"], "c": ["a", "b"]}
Rows = Sequence[tuple[int | None, str | None, float | None, int | None]]


def unique_share(rows: Rows, places: Sequence[int], *, persons: bool) -> float:
    """Return the share of rows, or of persons, with values that nobody else has, one by one."""
    if not places:
        return 0.0
    holders = defaultdict(list)
    for number, row in enumerate(rows):
        if not persons or row[3] is not None:
            holders[tuple(row[place] for place in places)].append(row[3] if persons else number)
    alone = {mine[0] for mine in holders.values() if len(set(mine)) == 1}
    return len(alone) / max(len({row[3] for row in rows} - {None}) if persons else len(rows), 1)


def expected(rows: Rows, *, persons: bool) -> dict[str, tuple[float, ...]]:
    """Return what each column gives away: alone, with the others and without it."""
    sets = {"a": ([0], [0, 1], [1]), "b": ([1], [0, 1], [0]), "c": ([2], [0, 1, 2], [0, 1])}
    return {name: tuple(unique_share(rows, places, persons=persons) for places in each) for name, each in sets.items()}


def opened(rows: Rows, sampled: int) -> duckdb.DuckDBPyConnection:
    """Return a connection with the source, and its first records as the sample."""
    connection = duckdb.connect(config={"threads": 1})
    values = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    arrays = [pa.array(column, dtype) for column, dtype in zip(values, types, strict=True)]
    connection.register("source", pa.table(dict(zip("abcp", arrays, strict=True))))
    connection.execute(f"CREATE TABLE sample AS FROM source LIMIT {sampled}")
    return connection


SMALL = st.none() | st.integers(0, 3)


@pytest.mark.parametrize("looked_at", [0, 0.5, 1])
@pytest.mark.parametrize("about", [0.7, 1.3])
@pytest.mark.parametrize(("many", "slips"), [(100, 1), (99, 1), (200, 2), (199, 2), (300, 4), (1, 1), (0, 0), (50, 0)])
def test_a_column_determines_another_whatever_is_looked_at_first(many: int, slips: int, about: float, looked_at: float) -> None:
    """A hundredth of its values may differ, whatever its approximate number, and nulls say nothing."""
    rows = [*((value, value % 4) for value in range(slips)), *((value, 9) for value in range(many)), (0, None), (None, 5), (None, 6)]
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, records in (("source", rows), ("evidence", rows[: round(len(rows) * looked_at)])):
            columns = [[row[place] for row in records] for place in (0, 1)]
            connection.register(name, pa.table([pa.array(column, pa.int64()) for column in columns], names=["a", "b"]))
        finer, coarser = ColumnProfile("a", "integer", len(rows), round(many * about)), ColumnProfile("b", "integer", len(rows), 5)
        assert determines_column(connection, finer, coarser) == (many > 0 and 100 * slips <= many)


@given(st.lists(st.tuples(SMALL, st.sampled_from([None, "", "x", "X "]), SMALL.map(lambda one: one and one / 2), SMALL), max_size=12))
def test_whoever_has_values_that_nobody_else_has_is_counted(rows: Rows) -> None:
    with opened(rows, len(rows)) as connection:
        found = columns_exposures(connection, OTHERS, None, len(rows))
    assert ({name: tuple(one) for name, one in found.columns.items()}, found.sampled) == (expected(rows, persons=False), False)


DRAWN = 20
MANY = [(number % 37, "x" if number % 2 else None, number % 11 / 2, number // 3) for number in range(60)]
STATEMENTS = 5
"""Of three columns: each alone, two together, and all."""


@pytest.mark.parametrize("person", [None, "p"])
def test_all_records_are_counted_where_there_are_more_than_in_a_sample(person: str | None) -> None:
    with opened(MANY, DRAWN) as connection:
        found = columns_exposures(connection, OTHERS, person, len(MANY), most_rows=STATEMENTS * len(MANY))
    assert ({name: tuple(one) for name, one in found.columns.items()}, found.sampled) == (expected(MANY, persons=bool(person)), False)
    assert found.people == (20 if person else 60)


def test_a_sample_is_counted_and_named_where_all_records_would_take_long() -> None:
    with opened(MANY, DRAWN) as connection:
        found = columns_exposures(connection, OTHERS, None, len(MANY), most_rows=STATEMENTS * len(MANY) - 1)
    shares = {name: tuple(one) for name, one in found.columns.items()}
    assert (shares, found.people, found.sampled) == (expected(MANY[:DRAWN], persons=False), DRAWN, True)


@pytest.mark.parametrize(
    ("people", "sampled", "unit", "records", "has_more", "words"),
    [
        (900, False, "record", 900, False, "all records"), (300, False, "person", 900, False, "all persons"),
        (20_000, True, "record", 90_000, False, "a sample of 20,000 records"),
        (20_000, True, "person", MOST_RECORDS, True, "a sample of 20,000 persons"),
        (MOST_RECORDS, False, "record", MOST_RECORDS, False, "all records"),
        (MOST_RECORDS, False, "record", MOST_RECORDS, True, "the first 1,000,000 records"),
        (300_000, False, "person", 900_000, True, "the first 900,000 records"),
    ],
)  # fmt: skip
def test_a_draft_says_among_whom_it_counted(people: int, sampled: bool, unit: str, records: int, has_more: bool, words: str) -> None:
    assert counted_among(Exposures({}, people, sampled), unit, records, has_more=has_more) == words
