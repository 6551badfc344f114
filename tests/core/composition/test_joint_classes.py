"""The statements that count what two releases tell together, against a look at every record."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.composition.contents import Likeness
from core.composition.joint_classes import MINE, THEIRS, Identity, common_persons_sql, joint_classes_sql, likeness_sql
from tests.core.composition.every_record import HIDDEN, Seen, told_together


class Row(NamedTuple):
    """A record as the statements read it."""

    content: int
    group: int
    shared: bool
    person: int


rows = st.builds(Row, st.integers(0, 12), st.integers(-1, 3), st.booleans(), st.integers(0, 5))
releases = st.tuples(st.lists(rows, max_size=25), st.lists(rows, max_size=25))
PARTS = ("shared", "added", "removed")


def asked(statement: str, mine: list[Row], theirs: list[Row]) -> list[tuple[object, ...]]:
    """Returns the rows of a statement over two releases."""
    schema = pa.schema([("content", pa.uint64()), ("class", pa.int64()), ("shared", pa.bool_()), ("person", pa.uint64())])
    with duckdb.connect() as database:
        for name, side in ((MINE, mine), (THEIRS, theirs)):
            database.register(f"{name}_rows", pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in side], schema))
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
        return database.execute(statement).fetchall()


def seen(side: list[Row], private: str, *, known_again: bool) -> list[Seen]:
    """The same records for the oracle; those of private files are told apart by side unless they are known again."""
    place = "either" if known_again else private
    return [
        Seen((row.content, "both" if row.shared else place), HIDDEN if row.group < 0 else row.group, row.person or None) for row in side
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("identity", [Identity(*flags) for flags in product([False, True], repeat=2)])
@given(both=releases, k=st.integers(1, 5))
def test_at_risk_is_who_shares_both_classes_with_fewer_than_k(
    persons: bool, identity: Identity, both: tuple[list[Row], list[Row]], k: int
) -> None:
    mine, theirs = both
    found = {part: (records, risk) for part, records, risk in asked(joint_classes_sql(k, identity, persons=persons), *both)}
    sides = seen(mine, "mine", known_again=identity.contents), seen(theirs, "theirs", known_again=identity.contents)
    assert {part: found.get(part, (0, 0)) for part in PARTS} == told_together(*sides, k, persons=persons, again=identity.persons)


@given(both=releases)
def test_persons_in_both_are_counted_once_and_nobody_is_none(both: tuple[list[Row], list[Row]]) -> None:
    mine, theirs = ({row.person for row in side} - {0} for side in both)
    assert asked(common_persons_sql(), *both) == [(len(mine & theirs),)]


@given(both=releases)
def test_likeness_counts_records_of_files_that_only_one_has(both: tuple[list[Row], list[Row]]) -> None:
    [found] = asked(likeness_sql(), *both)
    mine, theirs = (Counter(row.content for row in side if not row.shared) for side in both)

    def doubled(side: Counter[int]) -> float:
        return sum(count for count in side.values() if count > 1) / max(side.total(), 1)

    assert Likeness(*found) == Likeness(  # type: ignore[arg-type]
        mine.total(),
        theirs.total(),
        sum(count for content, count in mine.items() if content in theirs),
        sum(count for content, count in theirs.items() if content in mine),
        pytest.approx(doubled(mine)),
        pytest.approx(doubled(theirs)),
    )


def test_five_people_who_came_are_left_when_the_others_are_taken_out() -> None:
    before = [Row(number, number // 10, False, 0) for number in range(100)]
    came = [Row(1000 + number, number, False, 0) for number in range(5)]
    found = asked(joint_classes_sql(10, Identity(contents=True, persons=False), persons=False), [*before, *came], before)
    assert sorted(found) == [("added", 5, 5), ("shared", 100, 0)]
