"""What several tables publish untreated is counted as persons and rows are counted here one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pytest

from core.recount.groups import person_combination_counts_sql
from core.recount.histories import ReadTable, row_person_table, row_text_table
from core.recount.untreated_tables import (
    choice_persons_sql,
    column_persons_sql,
    known_digest_table,
    known_digests_sql,
    renamed_table,
    same_persons_sql,
    table_contents_sql,
    tables_with_columns,
    text_persons_sql,
)

Row = tuple[Any, ...]
UNIT = ReadTable("person", "person", ("sex",), ("id",), {}, ("sex", "note"))
VISIT = ReadTable("visit", "visit", ("ward",), ("visit_id",), {"person": ("id",)}, ("ward", "icd", "note"))


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def hold(connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Make a table anew; a person is a number and all else text."""
    typed = ", ".join(f"{column} {'BIGINT' if column in ('person', 'text') else 'VARCHAR'}" for column in columns)
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({typed})")
    if rows:
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def answer(connection: duckdb.DuckDBPyConnection, statement: str) -> Row:
    [found] = connection.execute(statement).fetchall()
    return tuple(found)


def persons_of(pairs: Sequence[tuple[Hashable, int | None]]) -> Mapping[Hashable, set[int]]:
    """Return who has each thing; a row of nobody adds nobody."""
    found: dict[Hashable, set[int]] = defaultdict(set)
    for thing, person in pairs:
        found[thing] |= set() if person is None else {person}
    return found


def below(shared: Mapping[Hashable, set[int]], k: int) -> int:
    """Count the persons who share anything with fewer than k."""
    return len(set().union(*(persons for persons in shared.values() if len(persons) < k)))


CHAINS: Mapping[str, Sequence[str]] = {"person": (), "visit": ("person",), "lab": ("person", "visit"), "letter": ("person",)}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ["person"]),
        ({"person": ["x"], "letter": []}, ["person"]),
        ({"lab": ["x"]}, ["person", "visit", "lab"]),
        ({"letter": ["x", "y"]}, ["person", "letter"]),
        ({"visit": ["x"], "letter": ["x"]}, ["person", "visit", "letter"]),
    ],
)
def test_tables_that_have_columns_come_with_those_above_them_and_the_unit(columns: Mapping[str, list[str]], expected: list[str]) -> None:
    assert tables_with_columns(CHAINS, columns) == expected


def test_a_renamed_table_refers_to_renamed_tables_and_has_the_persons_of_the_one_it_was(connection: duckdb.DuckDBPyConnection) -> None:
    renamed = renamed_table(VISIT, "all", ["icd", "note"])
    assert (renamed.name, renamed.qids, renamed.references) == ("all visit", ("icd", "note"), {"all person": ("id",)})
    assert (renamed.relation, renamed.key, renamed.sensitive) == (VISIT.relation, VISIT.key, VISIT.sensitive)
    hold(connection, row_person_table(UNIT), ["c0", "person"], [("a", 1), ("b", 2)])
    again = renamed_table(UNIT, "all", ["note"])
    connection.execute(same_persons_sql(UNIT, again))
    assert connection.execute(f"FROM {row_person_table(again)} ORDER BY person").fetchall() == [("a", 1), ("b", 2)]


def test_values_of_a_column_are_counted_with_those_who_have_them_alone(connection: duckdb.DuckDBPyConnection) -> None:
    random = np.random.default_rng(3)
    place = VISIT.at("icd")
    for number in range(0, 12, 3):
        rows: list[Row] = [
            (int(person) or None, "abcde"[value] if value < 5 else None)
            for person, value in zip(random.integers(0, 5, number), random.integers(0, 6, number), strict=True)
        ]
        # One has a value twice and nobody else has it; another has two values alone.
        rows += [(7, "twice"), (7, "twice"), (8, "one"), (8, "other")]
        hold(connection, row_person_table(VISIT), ["person", place], rows)
        many = Counter(value for _, value in rows if value is not None)
        alone = [persons for value, persons in persons_of([(value, person) for person, value in rows]).items() if value is not None]
        expected = (
            len(many),
            sum(one == 1 for one in many.values()),
            many.total(),
            len(set().union(*(who for who in alone if len(who) == 1))),
        )
        assert answer(connection, column_persons_sql(VISIT, "icd")) == expected
    hold(connection, row_person_table(VISIT), ["person", place], [(1, None)])
    assert answer(connection, column_persons_sql(VISIT, "icd")) == (0, 0, 0, 0)
    numbers = f"SELECT * FROM (VALUES (1, 'nan'::DOUBLE), (2, 0.0), (3, -0.0), (4, 2.0), (5, NULL)) AS t(person, {place})"
    connection.execute(f"CREATE OR REPLACE TABLE {row_person_table(VISIT)} AS {numbers}")
    assert answer(connection, column_persons_sql(VISIT, "icd", floating=True)) == (2, 1, 3, 1)


@pytest.mark.parametrize("k", [2, 3])
def test_what_persons_publish_is_shared_alone_and_with_the_labels_of_row_and_person(connection: duckdb.DuckDBPyConnection, k: int) -> None:
    random = np.random.default_rng(k)
    for _ in range(4):
        units: list[Row] = [(person, "FM"[int(random.integers(2))], [None, "x", "y"][int(random.integers(3))]) for person in range(1, 8)]
        visits: list[Row] = [
            (
                int(random.integers(0, 8)) or None,
                "AB"[int(random.integers(2))],
                "xyz"[int(random.integers(3))],
                [None, "n"][int(random.integers(2))],
            )
            for _ in range(int(random.integers(14)))
        ]
        hold(connection, row_person_table(UNIT), ["person", UNIT.at("sex"), UNIT.at("note")], units)
        hold(connection, row_person_table(VISIT), ["person", *map(VISIT.at, ("ward", "icd", "note"))], visits)
        sex = {person: label for person, label, _ in units}
        for table, columns, held in (
            (UNIT, ["note"], [(person, (label,), (note,)) for person, label, note in units]),
            (VISIT, ["icd", "note"], [(one, (ward, sex[one]), (icd, note)) for one, ward, icd, note in visits if one is not None]),
        ):
            connection.execute(table_contents_sql(table, UNIT, columns, "made"))
            records = Counter((person, labels, content) for person, labels, content in held)
            rows = connection.execute("SELECT person, records FROM made").fetchall()
            assert Counter(rows) == Counter((person, many) for (person, _, _), many in records.items())
            contents = persons_of([(content, person) for person, _, content in held])
            cells = persons_of([((labels, content), person) for person, labels, content in held])
            found = answer(connection, person_combination_counts_sql("made", k))[:3]
            assert found == (below(contents, 2), below(contents, k), below(cells, k))


LAB = ReadTable("lab", "lab", ("x",), (), {"person": ("id",), "visit": ("visit_id",)})


@pytest.mark.parametrize(
    "known",
    [
        {"person": ["sex"], "visit": ["ward"], "lab": ["x"]},
        {"person": [], "visit": [], "lab": ["x"]},
        {"person": ["sex", "note"], "visit": ["icd", "ward"]},
        {"person": []},
    ],
)
def test_rows_have_equal_digests_where_all_that_is_known_of_them_and_below_them_is_equal(
    connection: duckdb.DuckDBPyConnection, known: Mapping[str, list[str]]
) -> None:
    random = np.random.default_rng(len(known))

    def some(*values: str | None) -> str | None:
        return values[int(random.integers(len(values)))]

    for _ in range(3):
        people = [{"id": f"p{number}", "sex": some("F", "M"), "note": some(None, "", "n")} for number in range(12)]
        visits: list[dict[str, str | None]] = [
            {"visit_id": f"v{number}", "id": some("p0", "p1", "p2", "p3", None), "ward": some("A", "B", None), "icd": some("A", "B")}
            for number in range(10)
        ]
        labs: list[dict[str, str | None]] = [
            {"id": some("p0", "p1", "p2", "p3", None), "visit_id": some("v0", "v1", "v2", None), "x": some("1", "2")} for _ in range(14)
        ]
        for name, rows in (("person", people), ("visit", visits), ("lab", labs)):
            hold(connection, name, list(rows[0]), [tuple(row.values()) for row in rows])
        everything = {name: columns for name, columns in (("person", ["sex"]), ("visit", ["icd"]), ("lab", ["x"]))}
        for table, children in ((LAB, []), (VISIT, [LAB]), (UNIT, [VISIT, LAB])):
            connection.execute(f"DROP TABLE IF EXISTS {known_digest_table(table)}")
            connection.execute(known_digests_sql(table, children, [known, everything]))
        for number, columns in enumerate((known, everything)):

            def shown(table: str, row: Mapping[str, str | None], columns: Mapping[str, list[str]] = columns) -> Row:
                return tuple(row[column] for column in columns[table])

            lab_of_visit, of_person = defaultdict(list), defaultdict(list)
            for lab in labs if "lab" in columns else ():
                (lab_of_visit[lab["visit_id"]] if lab["visit_id"] else of_person[lab["id"]]).append(("lab", *shown("lab", lab)))
            for visit in visits if "visit" in columns else ():
                of_person[visit["id"]].append(("visit", *shown("visit", visit), sorted(lab_of_visit[visit["visit_id"]])))
            texts = {person["id"]: repr((shown("person", person), sorted(map(repr, of_person[person["id"]])))) for person in people}
            shared = Counter(texts.values())
            for k in (2, 4):
                expected = (sum(many == 1 for many in shared.values()), sum(many for many in shared.values() if many < k))
                assert answer(connection, text_persons_sql(known_digest_table(UNIT), f"text_{number}", k)) == expected


def test_rows_that_exchange_their_values_have_other_digests(connection: duckdb.DuckDBPyConnection) -> None:
    """If a row had its values' digests by exclusive or and no more, these two persons would have equal sums."""
    visits: list[Row] = [("v0", "p0", "57", "2028"), ("v1", "p0", "1351", "2517"), ("v2", "p1", "57", "2517"), ("v3", "p1", "1351", "2028")]
    hold(connection, "person", ["id", "sex", "note"], [("p0", "F", None), ("p1", "F", None)])
    hold(connection, "visit", ["visit_id", "id", "ward", "icd"], visits)
    for table, children in ((VISIT, []), (UNIT, [VISIT])):
        connection.execute(known_digests_sql(table, children, [{"person": ["sex"], "visit": ["ward", "icd"]}]))
    assert answer(connection, text_persons_sql(known_digest_table(UNIT), "text_0", 2)) == (2, 2)


def test_persons_alone_with_their_text_and_those_below_k_are_counted(connection: duckdb.DuckDBPyConnection) -> None:
    hold(connection, row_text_table(UNIT), ["text"], [(1,), (2,), (2,), (3,), (3,), (3,), (4,)])
    assert [answer(connection, text_persons_sql(row_text_table(UNIT), "text", k)) for k in (1, 2, 3, 4)] == [(2, 0), (2, 2), (2, 4), (2, 7)]
    hold(connection, row_text_table(UNIT), ["text"], [])
    assert answer(connection, text_persons_sql(row_text_table(UNIT), "text", 2)) == (0, 0)


def test_a_person_counts_once_however_many_choices_of_rows_few_have(connection: duckdb.DuckDBPyConnection) -> None:
    hold(connection, "person", ["id", "sex"], [("1", "F"), ("2", "F"), ("3", "F")])
    hold(connection, row_person_table(UNIT), ["person", UNIT.at("id")], [(1, "1"), (2, "2"), (3, "3")])
    # The first has a row three times and another one, the second each of these once, the third nothing.
    connection.execute("CREATE TABLE items (person BIGINT, place BIGINT, item BIGINT, time BIGINT, rank BIGINT)")
    connection.execute(
        "INSERT INTO items VALUES (1, 0, 5, 1, 1), (1, 0, 5, 2, 2), (1, 0, 5, 3, 3), (1, 0, 6, 1, 4), (2, 0, 5, 1, 1), (2, 0, 6, 1, 2)"
    )
    # Three have the choice of nothing, two either row and both together, one the first several times.
    assert [answer(connection, choice_persons_sql(UNIT, 1, 3, k)) for k in (1, 2, 3, 4)] == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert answer(connection, choice_persons_sql(UNIT, 1, 1, 3)) == (0, 2)
