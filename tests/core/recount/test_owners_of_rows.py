"""Whose a row is, as the recount joins it: a reference that is there and finds no row makes it nobody's."""

from __future__ import annotations

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from core.recount.histories import ReadTable, persons_of_rows_sql, row_person_table, unit_persons_sql

KEYS = st.none() | st.integers(0, 3)
"""Of persons and visits there are 0 and 1 alone; what is more finds nobody."""


@given(st.lists(KEYS, min_size=2, max_size=2), st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=8))
def test_rows_are_of_the_person_whom_the_nearest_reference_finds_unless_one_finds_nobody(
    visits: list[int | None], conditions: list[tuple[int | None, int | None]]
) -> None:
    whose = [visit if visit in (0, 1) else None for visit in visits]

    def owner(person: int | None, visit: int | None) -> int | None:
        if person not in (None, 0, 1) or visit not in (None, 0, 1):
            return None
        return person if visit is None else whose[visit]

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person AS SELECT * FROM (VALUES (0), (1)) AS t(id)")
        connection.execute("CREATE TABLE visit (id INTEGER, person INTEGER)")
        connection.executemany("INSERT INTO visit VALUES (?, ?)", list(enumerate(visits)))
        connection.execute("CREATE TABLE condition (person INTEGER, visit INTEGER, place INTEGER)")
        connection.executemany("INSERT INTO condition VALUES (?, ?, ?)", [(*row, place) for place, row in enumerate(conditions)])
        tables = {
            "person": ReadTable("person", "person", (), ("id",), {}),
            "visit": ReadTable("visit", "visit", (), ("id",), {"person": ("person",)}),
            "condition": ReadTable("condition", "condition", (), (), {"person": ("person",), "visit": ("visit",)}, ("place",)),
        }
        connection.execute(unit_persons_sql(tables["person"]))
        for name in ("visit", "condition"):
            connection.execute(persons_of_rows_sql(tables[name], tables))
        numbers = dict(
            connection.execute(f"SELECT person, {tables['person'].at('id')} FROM {row_person_table(tables['person'])}").fetchall()
        )
        rows = tables["condition"]
        found = connection.execute(f"SELECT person FROM {row_person_table(rows)} ORDER BY {rows.at('place')}").fetchall()
    assert [numbers.get(person) for (person,) in found] == [owner(*row) for row in conditions]
