"""What is disclosed of each person of several tables, held against nested multisets that are written out."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from core.composition.pseudonym_sets import ShownTable, disclosed_persons_sql, row_digests_sql

UNIT = ShownTable("person", "persons", ("m.age",), ("m.income",), ("id",), ())
VISIT = ShownTable("visit", "visits", ("m.ward",), (), ("no",), (("person", ("id",)),))
NOTE = ShownTable("note", "notes", (), ("m.word",), (), (("person", ("id",)), ("visit", ("no",))))
few = st.sampled_from([1, None])
persons = st.lists(st.tuples(few, few), min_size=1, max_size=4)
visits = st.lists(st.tuples(st.integers(0, 3), few), max_size=6)
notes = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 5), few), max_size=6)


def written_out(who: list[Any], came: list[Any], said: list[Any], *, labels: bool) -> list[Any]:
    """Return what is disclosed of each person, as containers that compare by value."""

    def bag(members: Any) -> Any:
        return frozenset(Counter(members).items())

    def word(row: Any) -> Any:
        return "note" if labels else row[2]

    def of_visit(number: int) -> Any:
        return came[number][1], bag(word(row) for row in said if row[1] == number)

    return [
        (
            age, None if labels else income,
            bag(of_visit(number) for number, (whose, _) in enumerate(came) if whose == person),
            bag(word(row) for row in said if row[1] is None and row[0] == person),
        )
        for person, (age, income) in enumerate(who)
    ]  # fmt: skip


@given(who=persons, came=visits, said=notes, digest=st.sampled_from(["md5_number_lower", "hash"]))
def test_persons_have_equal_digests_where_equal_things_are_disclosed_of_them(
    who: list[Any], came: list[Any], said: list[Any], digest: str
) -> None:
    came = [row for row in came if row[0] < len(who)]
    said = [row for row in said if row[0] < len(who) and (row[1] is None or row[1] < len(came))]
    whole = pa.int64()
    tables = {
        "persons": {"id": range(len(who)), "age": [row[0] for row in who], "income": [row[1] for row in who]},
        "visits": {"no": range(len(came)), "id": [row[0] for row in came], "ward": [row[1] for row in came]},
        "notes": {"id": [row[0] for row in said], "no": [row[1] for row in said], "word": [row[2] for row in said]},
    }
    with duckdb.connect() as database:
        for name, columns in tables.items():
            database.register(name, pa.table({column: pa.array(values, whole) for column, values in columns.items()}))
        for table, below in ((NOTE, []), (VISIT, [NOTE]), (UNIT, [VISIT, NOTE])):
            database.execute(row_digests_sql(table, below, "'salt'", digest=digest))
        keys = database.execute(disclosed_persons_sql(UNIT, ["k0"])).fetchall()
        order = [key for (key,) in database.execute('SELECT k0 FROM "shown person"').fetchall()]
    assert len({key for key, _, _ in keys}) == len(who)
    found = {person: (everything, labels) for person, (_, everything, labels) in zip(order, keys, strict=True)}
    for place, only in enumerate((False, True)):
        disclosed = written_out(who, came, said, labels=only)
        for one, other in combinations(range(len(who)), 2):
            assert (found[one][place] == found[other][place]) == (disclosed[one] == disclosed[other])
