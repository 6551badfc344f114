"""The recount withholds of each person the records whose digests are greatest, and counts them."""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import sha256

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.together import NUMBER, bounded_sql, withheld_sql
from tests.laws import tried

PERSONS = {"a": False, "b": True}
Row = tuple[int | None, float | None]
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 1), st.sampled_from([None, 0.5, float("nan")])), max_size=12)


def is_somebody(row: Row) -> bool:
    return None not in row and row[1] == row[1]


@given(ROWS, st.integers(0, 6), st.integers(1, 3))
@tried(100)
def test_of_each_person_the_records_of_the_least_digests_stay_and_of_nobody_all(rows: list[Row], cut: int, most: int) -> None:
    files = [("f0", "aa", rows[:cut]), ("f1", "bb", rows[cut:])]
    digests: defaultdict[Row, list[tuple[str, int]]] = defaultdict(list)
    nobodys = []
    for name, digest, mine in files:
        for number, row in enumerate(mine):
            place = 100 * int(name[1]) + number
            if is_somebody(row):
                digests[row].append((sha256(f"key:{digest}:{number}".encode()).hexdigest(), place))
            else:
                nobodys.append(place)
    stay = sorted([*nobodys, *(place for mine in digests.values() for _, place in sorted(mine)[:most])])
    withheld = Counter({row: len(mine) - most for row, mine in digests.items() if len(mine) > most})
    with duckdb.connect() as connection:
        for name, _, mine in files:
            connection.execute(f"CREATE TABLE {name} (a BIGINT, b DOUBLE, place BIGINT, {NUMBER} BIGINT)")
            for number, row in enumerate(mine):
                connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", (*row, 100 * int(name[1]) + number, number))
        bounded = bounded_sql([(name, digest) for name, digest, _ in files], PERSONS, "key", most)
        assert [place for (place,) in connection.execute(f"SELECT place FROM {bounded} ORDER BY place").fetchall()] == stay
        given = "(FROM f0 UNION ALL FROM f1)"
        assert connection.execute(withheld_sql(given, bounded, list(PERSONS))).fetchall() == [(withheld.total(), len(withheld))]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_as_many_as_asked_stay(most: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE f AS SELECT 1 AS a, 0.5::DOUBLE AS b, number AS {NUMBER} FROM range(3) AS t(number)")
        bounded = bounded_sql([("f", "aa")], PERSONS, "key", most)
        assert connection.execute(f"SELECT count(*) FROM {bounded}").fetchall() == [(most,)]
