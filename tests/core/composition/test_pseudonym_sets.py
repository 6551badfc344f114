"""The statements on pseudonyms of several releases count what is counted here row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.composition.pseudonym_sets import (
    FOLDED,
    NEW,
    OLD,
    all_releases_sql,
    columns_together_sql,
    joined_people_sql,
    keyed_disclosures_sql,
    pseudonym_owners_sql,
    remaining_pseudonyms_sql,
)
from tests.laws import tried

KNOWN = ("key", "owner", "everything", "labels")
Rows = Sequence[tuple[int | None, ...]]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def written(connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Rows) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({', '.join(f'{column} UBIGINT' for column in columns)})")
    if rows:
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def folded(connection: duckdb.DuckDBPyConnection, old: Rows, new: Rows, *, again: bool = False) -> list[tuple[Any, ...]]:
    connection.execute(f"DROP TABLE IF EXISTS {FOLDED}")
    written(connection, OLD, KNOWN, old)
    written(connection, NEW, KNOWN, new)
    connection.execute(all_releases_sql(is_published_again=again))
    return connection.execute(f"SELECT key, owner, everything, labels, before, mine FROM {FOLDED} ORDER BY key").fetchall()


DIGESTS = st.none() | st.integers(1, 3)
PEOPLE = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3), DIGESTS, DIGESTS), max_size=10)


@given(PEOPLE, st.integers(1, 4))
@tried(200)
def test_people_who_are_joined_are_counted_as_one_by_one(people: list[tuple[int, ...]], k: int) -> None:
    rows = [(100 + place, *row) for place, row in enumerate(people)]
    groups: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for key, owner, *digests in rows:
        for kind, digest in enumerate(digests):
            groups[kind, digest].add(owner or key)
    joined, below, by_labels, smallest = set[int](), set[int](), set[int](), list[int]()
    for key, owner, everything, labels, before, mine in rows:
        unit, size = owner or key, len(groups[0, everything])
        joins = before is not None and mine is not None
        alone = len(groups[2, before]) if before is not None else len(groups[3, mine]) if mine is not None else 0
        joined |= {unit} if joins else set()
        smallest += [size] if joins else []
        below |= {unit} if size < k and (joins or alone > size) else set()
        by_labels |= {unit} if joins and len(groups[1, labels]) < k else set()
    with duckdb.connect() as connection:
        written(connection, FOLDED, [*KNOWN, "before", "mine"], rows)
        [found] = connection.execute(joined_people_sql(k)).fetchall()
    assert found == (len(joined), len(below), len(by_labels), min(smallest, default=0))


def test_who_comes_to_share_a_set_with_fewer_is_below_k_though_he_is_in_one_release_alone(connection: duckdb.DuckDBPyConnection) -> None:
    written(connection, FOLDED, [*KNOWN, "before", "mine"], [(1, 0, 7, 1, 5, None), (2, 0, 8, 1, 5, 6), (3, 0, 9, 1, None, 6)])
    assert connection.execute(joined_people_sql(2)).fetchall() == [(1, 3, 0, 1)]


def test_who_has_several_pseudonyms_is_counted_once(connection: duckdb.DuckDBPyConnection) -> None:
    written(connection, FOLDED, [*KNOWN, "before", "mine"], [(1, 9, 7, 1, 5, 6), (2, 9, 7, 1, 5, 6)])
    assert connection.execute(joined_people_sql(2)).fetchall() == [(1, 1, 1, 1)]


OLDER = [
    (
        1,
        0,
        5,
        50,
    ),
    (2, 7, 6, 60),
]
NEWER = [(2, 0, 3, 30), (3, 9, 4, 40)]
BOTH = [(1, 0, 5, 50, 5, None), (2, 7, 6 ^ 3, 60 ^ 30, 6, 3), (3, 9, 4, 40, None, 4)]


def test_a_release_is_added_to_what_is_known_and_owners_stay(connection: duckdb.DuckDBPyConnection) -> None:
    assert folded(connection, OLDER, NEWER) == BOTH
    assert connection.execute(remaining_pseudonyms_sql()).fetchall() == [row[:4] for row in BOTH]


def test_a_release_that_is_published_again_is_taken_out_as_it_was_put_in(connection: duckdb.DuckDBPyConnection) -> None:
    assert folded(connection, [row[:4] for row in BOTH], NEWER, again=True) == BOTH


def test_a_pseudonym_that_several_people_have_is_published_without_an_owner(connection: duckdb.DuckDBPyConnection) -> None:
    people = [(1, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (1, "d"), (0, "e"), (5, None)]
    connection.execute("CREATE OR REPLACE TEMP TABLE people (person UBIGINT, pseudonym VARCHAR)")
    connection.executemany("INSERT INTO people VALUES (?, ?)", people)
    owners = pseudonym_owners_sql("people", ["pseudonym"])
    texts = {f"1:{name}": name for name in "abcde"}
    names = {key: texts[text] for text in texts for [key] in connection.execute(f"SELECT md5_number_lower('{text}')").fetchall()}
    assert {(names[key], owner) for key, owner in connection.execute(owners).fetchall()} == {("a", 1), ("c", 4), ("d", 1)}
    written(connection, "digests", ["key", "everything", "labels"], [(key, 1, 2) for key in names])
    connection.execute(f"DROP TABLE IF EXISTS {NEW}")
    connection.execute(keyed_disclosures_sql("digests", owners, "'secret'", "'people-0'", "'person'"))
    found = connection.execute(f"SELECT owner, everything, labels FROM {NEW} ORDER BY key").fetchall()
    keyed = {name: connection.execute(f"SELECT md5_number_lower('secret' || {key}::UBIGINT)").fetchone() for key, name in names.items()}
    order = sorted(names.values(), key=lambda name: keyed[name] or ())
    by_name = dict(zip(order, found, strict=True))
    assert by_name["a"][0] == by_name["d"][0] != by_name["c"][0] != 0 != by_name["a"][0]
    assert by_name["b"][0] == by_name["e"][0] == 0
    assert len({row[1:] for row in found}) == 1
    connection.execute(f"DROP TABLE {NEW}")
    connection.execute(keyed_disclosures_sql("digests", "", "'secret'", "'people-0'", "'person'"))
    assert connection.execute(f"SELECT count(*), max(owner) FROM {NEW}").fetchall() == [(5, 0)]


BIG = st.sampled_from([0, 1, 5, 2**63, 2**64 - 1])
OF_KEYS = st.dictionaries(st.integers(0, 3), st.tuples(BIG, BIG), max_size=4)
OWNERS = st.dictionaries(st.integers(0, 3), st.integers(1, 2), max_size=4)


@given(st.lists(OF_KEYS, min_size=1, max_size=3), st.lists(OWNERS, max_size=2))
def test_columns_of_one_key_disclose_the_sum_of_what_each_does(
    disclosed: list[dict[int, tuple[int, int]]], owned: list[dict[int, int]]
) -> None:
    owned = owned[: len(disclosed)]
    with duckdb.connect() as connection:
        for number, one in enumerate(disclosed):
            written(connection, f"digests{number}", ["key", "everything", "labels"], [(key, *found) for key, found in one.items()])
        for number, mine in enumerate(owned):
            written(connection, f"owners{number}", ["key", "owner"], list(mine.items()))
        names = [f"digests{number}" for number in range(len(disclosed))], [f"owners{number}" for number in range(len(owned))]
        digests, owners = columns_together_sql(*names)
        found = {key: both for key, *both in connection.execute(f"SELECT key, everything, labels FROM {digests}").fetchall()}
        known = dict(connection.execute(owners).fetchall()) if owners else {}
    keys = {key for one in disclosed for key in one}
    sums = {key: [sum(one.get(key, (0, 0))[place] for one in disclosed) % 2**64 for place in (0, 1)] for key in keys}
    assert found == sums
    of = {key: {mine[key] for mine in owned if key in mine} for mine in owned for key in mine}
    assert known == {key: min(whose) for key, whose in of.items() if len(whose) == 1}
