"""Linked records are counted as they are one by one, whoever's they are and wherever a pseudonym is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.linked import LinkCount, linked_sql, owners_sql
from core.recount.people import combinations_sql
from tests.oracles.linked import Told, told_by

Row = tuple[str | None, str | None, int]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([None, *"pqrstuvwxyz"]), st.integers(0, 6)), min_size=1, max_size=60
)


def counted(rows: Sequence[Row], k: int, *, known: bool, changed: int | None = None) -> LinkCount:
    """Count records of a combination, a pseudonym and a person, 0 being nobody; the private file is of one that ``changed`` class."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE written (q VARCHAR, link VARCHAR)")
        connection.execute("CREATE TABLE people (class INTEGER, person UBIGINT, records BIGINT, link_0 VARCHAR)")
        connection.execute("CREATE TABLE classes AS SELECT * FROM (VALUES (0, 'a'), (1, 'b'), (2, NULL)) AS t(class, label_0)")
        connection.executemany("INSERT INTO written VALUES (?, ?)", [row[:2] for row in rows])
        kept = [(["a", "b", None].index(q), person, 1, link) for q, link, person in rows]
        if changed is not None:
            kept[changed] = ((kept[changed][0] + 1) % 3, *kept[changed][1:])
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", kept)
        connection.execute(combinations_sql("written", ['"q"'], "combinations"))
        owners = owners_sql("combinations", "classes", "people", 1, [0]) if known else ""
        [row] = connection.execute(linked_sql("written", ['"q"'], "combinations", ['"link"'], k, owners)).fetchall()
    return LinkCount(("link",), known, *row)


def told(count: LinkCount) -> Told:
    return Told(count.people, count.sets, count.smallest, count.below_k)


@given(ROWS, st.integers(1, 4))
def test_people_are_those_of_the_private_file(rows: list[Row], k: int) -> None:
    count = counted(rows, k, known=True)
    assert told(count) == told_by([row[0] for row in rows], [row[1] for row in rows], [row[2] or None for row in rows], k)
    assert count.unexpected == 0
    assert bool(count.failing) == (count.sets > 0 and count.smallest < k)


@given(ROWS, st.integers(1, 4))
def test_without_it_every_pseudonym_is_a_person_and_so_is_every_record_that_has_none(rows: list[Row], k: int) -> None:
    people: list[Any] = [place if row[1] is None else row[1] for place, row in enumerate(rows)]
    assert told(counted(rows, k, known=False)) == told_by([row[0] for row in rows], [row[1] for row in rows], people, k)


@given(ROWS.filter(lambda rows: any(row[1] for row in rows)), st.data())
def test_a_private_file_of_other_combinations_is_seen(rows: list[Row], data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([place for place, row in enumerate(rows) if row[1]]))
    assert counted(rows, 2, known=True, changed=place).unexpected > 0


@pytest.mark.parametrize("known", [True, False])
def test_sets_of_many_combinations_are_told_apart(known: bool) -> None:
    rows: list[Row] = [(q, link, number) for number, link in enumerate("pqrs", start=1) for q in ("a", "b", None)]
    assert told(counted(rows, 4, known=known)) == Told(4, 1, 4, 0)
    assert told(counted(rows[1:], 4, known=known)) == Told(4, 2, 1, 4)
