"""Statements of the recount find what is counted here row by row, on tables of a few rows with nulls among them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.classes import recount_sql
from core.recount.coverage import candidate_records_sql
from core.recount.figures import nodes_by_height
from core.recount.groups import combination_counts_sql
from core.recount.histories import (
    ReadTable,
    choices_sql,
    history_values_sql,
    row_person_faults_sql,
    row_person_table,
    row_text_table,
    source_value_persons_sql,
)
from core.recount.linked import LinkCount, malformed_pseudonym_groups, shared_sql
from core.recount.people import (
    classed_persons_sql,
    classes_sql,
    combinations_sql,
    holders_sql,
    one_value_sql,
    people_sql,
    person_values_sql,
    persons_of_source_sql,
    source_counts_sql,
    source_pairs_sql,
    source_persons_sql,
    unexpected_values_sql,
)
from core.recount.spreads import holder_classes_sql
from core.recount.truth import (
    DigestPart,
    excess_records_sql,
    join_source_values_sql,
    marginal_sql,
    released_parts_sql,
    source_digests,
    source_part_counts_sql,
)
from schemas.job.identifiers import Identifier
from tests.laws import tried

Rows = Sequence[tuple[Any, ...]]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def table(connection: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Rows) -> None:
    connection.execute(f"CREATE TABLE {name} ({columns})")
    if rows:
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def answer(connection: duckdb.DuckDBPyConnection, statement: str, parameters: object = None) -> tuple[Any, ...]:
    [found] = connection.execute(statement, parameters).fetchall()
    return tuple(found)


HELD = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(0, 3), st.sampled_from(["x", "y", None]), st.integers(1, 3)), max_size=10
)


@given(HELD, st.sampled_from([(), (1,), (1, 2)]), st.booleans(), st.integers(1, 3))
@tried(150)
def test_people_of_classes_are_counted_as_one_by_one(held: Rows, known: Sequence[int], right: bool, k: int) -> None:
    records, people = Counter[int | None](), defaultdict[int | None, Counter[int]](Counter)
    for combination, person, _, many in held:
        records[combination] += many
        people[combination][person] += many
    published = {one: records[one] + (not right) or 1 for one in known}
    combinations = [(one, published[one], one == 2) for one in known]
    everybody = Counter[int]()
    for mine in people.values():
        everybody.update({person: many for person, many in mine.items() if person})
    different = {one: len([person for person in people[one] if person]) for one in {*people, *known}}
    falling = sorted(everybody.values(), reverse=True)
    largest = [max((many for person, many in people[one].items() if person), default=0) / published[one] for one in known]
    with duckdb.connect() as connection:
        table(connection, "held", "combination BIGINT, person BIGINT, value_0 VARCHAR, records BIGINT", held)
        table(connection, "combinations", "combination BIGINT, records BIGINT, masked BOOLEAN", combinations)
        found = answer(connection, people_sql(1, k))
    assert found == (
        len(everybody), (falling[k - 1 : k] or [0])[0], different.get(2, 0) if 2 in known else 0, min(different.values(), default=0),
        sum(many < k for many in different.values()), sum(published[one] for one in known if different[one] < k),
        sum(one not in known or published[one] != records[one] for one in different), dict(Counter(different.values())),
        max(largest, default=0), max(falling, default=0),
    )  # fmt: skip


WRITTEN = st.lists(st.tuples(st.sampled_from(["a", None]), st.sampled_from(["x", "y", None])), max_size=6)


@given(WRITTEN, HELD.map(lambda rows: [row for row in rows if row[0] in (1, 2)]), st.booleans())
@tried(150)
def test_values_that_are_not_those_of_the_people_are_counted_by_class(written: Rows, held: Rows, same: bool) -> None:
    numbers = {"a": 1, None: 2}
    if same:
        held = [(numbers[label], place, value, 1) for place, (label, value) in enumerate(written)]
    mine, theirs = Counter((numbers[label], value) for label, value in written), Counter[Any]()
    for combination, _, value, many in held:
        theirs[combination, value] += many
    expected = {combination for combination, value in {*mine, *theirs} if mine[combination, value] != theirs[combination, value]}
    with duckdb.connect() as connection:
        table(connection, "written", "q VARCHAR, v VARCHAR", written)
        table(connection, "combinations", "combination BIGINT, label_0 VARCHAR", [(1, "a"), (2, None)])
        table(connection, "held", "combination BIGINT, person BIGINT, value_0 VARCHAR, records BIGINT", held)
        assert answer(connection, unexpected_values_sql("written", ["q"], "v", "value_0")) == (len(expected),)


@given(HELD)
@tried(100)
def test_classes_in_which_all_who_have_a_value_have_the_same_are_counted(held: Rows) -> None:
    expected = []
    for one in (1, 2, 4):
        mine = {(person, value) for combination, person, value, _ in held if combination == one and person and value is not None}
        holders = Counter(value for _, value in mine)
        if max(holders.values(), default=0) == len({person for person, _ in mine}):
            expected.append(10 * one)
    with duckdb.connect() as connection:
        table(connection, "held", "combination BIGINT, person BIGINT, value_0 VARCHAR, records BIGINT", held)
        table(connection, "combinations", "combination BIGINT, records BIGINT", [(one, 10 * one) for one in (1, 2, 4)])
        assert answer(connection, one_value_sql("value_0")) == (len(expected), sum(expected))


def test_holders_of_a_value_are_asked_for_where_somebody_has_several_values_alone(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "pairs", "combination BIGINT, person BIGINT, v VARCHAR", [(1, 1, "x"), (1, 2, "x"), (2, 3, "y"), (2, 4, None)])
    table(connection, "single", "value VARCHAR, records BIGINT, persons BIGINT", [("x", 2, 4), ("y", 1, 4), (None, 1, 4)])
    table(connection, "several", "value VARCHAR, records BIGINT, persons BIGINT", [("x", 3, 4), ("y", 1, 4), (None, 1, 4), ("z", 0, 4)])
    everybody = "held = persons"
    assert answer(connection, holder_classes_sql("pairs", "v", everybody, "single", counts_nulls=True)) == (0,)
    assert answer(connection, holder_classes_sql("pairs", "v", everybody, "several", counts_nulls=True)) == (1,)
    assert answer(connection, holder_classes_sql("pairs", "v", "held < persons", "several", counts_nulls=True)) == (1,)
    assert answer(connection, holder_classes_sql("pairs", "v", "value IS NULL", "several", counts_nulls=False)) == (0,)
    assert answer(
        connection, holder_classes_sql("pairs", "v", "everywhere = 1 AND everybody = 4 AND m = 3", "several", counts_nulls=True)
    ) == (1,)
    nobody_knows = "value IS NULL AND everywhere = 1"
    assert answer(connection, holder_classes_sql("pairs", "v", nobody_knows, "several", counts_nulls=True)) == (1,), (
        "a null is found as values are"
    )
    table(connection, "others", "value VARCHAR, records BIGINT, persons BIGINT", [("x", 3, 4), ("z", 2, 4)])
    assert answer(connection, holder_classes_sql("pairs", "v", "everywhere = 0", "others", counts_nulls=True)) == (1,), (
        "of a value that is nowhere"
    )


def test_values_that_are_published_more_often_than_the_source_has_them_are_counted(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "released", "value VARCHAR, records BIGINT", [(None, 3), ("a", 2), ("b", 1), ("c", 4)])
    table(connection, "given", "value VARCHAR, records BIGINT", [(None, 1), ("b", 5), ("c", 1), ("d", 9)])
    assert answer(connection, marginal_sql("released", "given")) == (2 + 2 + 3,)


def test_persons_are_counted_by_value_and_a_value_of_nobody_is_one_of_no_person(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "people", "holder BIGINT, value VARCHAR", [(1, "a"), (2, "a"), (3, "a"), (1, None), (2, "b")])
    table(connection, "source", "v VARCHAR", [("a",), ("c",), ("c",), ("b",), (None,)])
    alone = {("a", 3, 3), (None, 1, 3), ("b", 1, 3)}
    assert set(connection.execute(source_counts_sql("people")).fetchall()) == alone
    assert set(connection.execute(source_counts_sql("people", "source", "v")).fetchall()) == alone | {("c", 0, 3)}


def test_classes_that_publish_the_same_are_one_combination_and_one_that_nobody_publishes_is_none(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    table(connection, "kept", "class BIGINT, label_0 VARCHAR, label_1 BIGINT", [(0, "a", 1), (1, None, 1), (2, "a", 1), (3, "b", None)])
    table(connection, "combinations", "combination BIGINT, label_0 VARCHAR, label_1 VARCHAR", [(7, "a", "1"), (8, None, "1")])
    people = [(0, 1, "x", 2), (2, 1, "x", 3), (2, 1, "y", 1), (1, 1, "x", 4), (3, 2, "x", 5)]
    table(connection, "people", "class BIGINT, person BIGINT, value_0 VARCHAR, records BIGINT", people)
    connection.execute(holders_sql(classed_persons_sql("kept", "people", 2), ["p.value_0"], "held"))
    found = connection.execute("SELECT combination, person, value_0, records FROM held").fetchall()
    assert set(found) == {(7, 1, "x", 5), (7, 1, "y", 1), (8, 1, "x", 4), (None, 2, "x", 5)}


def test_records_that_the_source_lacks_and_digests_of_as_many_others_are_counted(connection: duckdb.DuckDBPyConnection) -> None:
    released = [(1, 5, 50), (2, 3, 30), (3, 2, 20), (4, 4, 40), (5, 1, 10)]
    table(connection, "released", "bucket BIGINT, records BIGINT, digests BIGINT", released)
    table(connection, "given", "bucket BIGINT, records BIGINT, digests BIGINT", [(1, 5, 50), (2, 3, 31), (3, 9, 90), (4, 1, 40)])
    assert answer(connection, excess_records_sql("released", "given")) == (3 + 1, 1)


def test_records_with_a_null_have_the_digest_of_its_label(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "source", "q VARCHAR", [(None,), ("a",), (None,), ("b",)])
    table(connection, "of_q", "value VARCHAR, digest UBIGINT", [(None, 3), ("a", 4)])
    counted = source_digests("source", [DigestPart("r.q", "of_q.digest", "of_q", "q")])
    assert sorted(records for _, records, _ in connection.execute(counted.sql).fetchall()) == [1, 2], "no label covers the last one"


def test_counts_of_a_null_have_its_place(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "counted", "part INTEGER, value VARCHAR, records BIGINT", [(0, None, 3), (1, "a", 2), (1, "b", 8)])
    table(connection, "positions", "place BIGINT, value VARCHAR", [(5, None), (6, "a")])
    assert sorted(connection.execute(source_part_counts_sql("counted", "positions")).fetchall()) == [(0, 5, 3), (1, 6, 2)]


def test_records_with_a_null_are_those_that_a_class_may_cover_too(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "source", "q VARCHAR, r BIGINT", [(None, 1), ("a", 1), ("b", 2), (None, None)])
    table(connection, "of_q", "value VARCHAR, mask BIGINT", [(None, 3), ("a", 1), ("b", 4)])
    table(connection, "of_r", "value BIGINT, mask BIGINT", [(1, 2), (2, 4), (None, 1)])
    connection.execute(candidate_records_sql("source", ["q", "r"], ["of_q", "of_r"], ["0"], ["q"], "covered"))
    assert sorted(connection.execute("SELECT * FROM covered").fetchall(), key=str) == [(1, 0, None), (2, 0, None), (4, 0, "b")]


@pytest.mark.parametrize("masked", [True, False])
def test_records_of_nobody_and_of_no_class_are_read_as_such(connection: duckdb.DuckDBPyConnection, masked: bool) -> None:
    rows = [(1, 7, "x"), (1, None, "y"), (None, 7, "x"), (None, 8, "x"), (3, 8, "z"), (1, 7, "x")]
    table(connection, "source", "q BIGINT, p BIGINT, v VARCHAR", rows)
    table(connection, "owner_0", "value BIGINT, number BIGINT", [(1, 0), (None, 1), (3, 2)])
    table(connection, "classes", "class BIGINT, number_0 BIGINT", [(10, 0), (11, 1)])
    table(connection, "persons", "name_0 BIGINT, person BIGINT", [(7, 1), (8, 2)])
    connection.execute(source_persons_sql("source", ["q"], ["p"], ["v"], has_masked_records=masked))
    found = connection.execute("SELECT person, value_0, records FROM given WHERE class IN (10, 11) ORDER BY ALL").fetchall()
    assert found == [(0, "y", 1), (1, "x", 1), (1, "x", 2), (2, "x", 1)]
    beside = connection.execute("SELECT person, value_0, records FROM given WHERE class NOT IN (10, 11)").fetchall()
    assert beside == ([(2, "z", 1)] if masked else [])


def test_pseudonyms_are_malformed_or_beside_stars_only_where_there_are_some(connection: duckdb.DuckDBPyConnection) -> None:
    good = "0123456789abcdef"
    rows = [("*", "x", good), ("*", "*", good), ("*", "*", None), (None, "*", "no hash"), ("*", "*", "neither"), ("y", "z", good)]
    table(connection, "release", "q VARCHAR, r VARCHAR, ssn VARCHAR", rows)
    one = Identifier.model_validate({"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}, "length": 16}}})
    assert answer(connection, malformed_pseudonym_groups("release", ["q", "r"], "ssn", one).sql) == (2, 2)


def test_rows_of_nobody_and_of_different_persons_and_the_most_of_one_are_counted(connection: duckdb.DuckDBPyConnection) -> None:
    visit = ReadTable("visit", "visit", (), ("id",), {})
    table(
        connection, row_person_table(visit), "person BIGINT, differs BOOLEAN", [(1, False), (1, True), (2, False), (None, False), (1, True)]
    )
    assert answer(connection, row_person_faults_sql(visit)) == (1, 2, 3)


def test_choices_of_rows_hold_a_row_as_often_as_somebody_has_it(connection: duckdb.DuckDBPyConnection) -> None:
    unit = ReadTable("person", "person", ("sex",), ("id",), {})
    table(connection, "person", "id BIGINT, sex VARCHAR", [(1, "F"), (2, "F"), (3, "F")])
    table(connection, row_person_table(unit), f"person BIGINT, {unit.at('id')} BIGINT", [(1, 1), (2, 2), (3, 3)])
    # The first has a row twice and another one, the second the first of these once, the third nothing.
    items = [(1, 0, 5, 1, 1), (1, 0, 5, 2, 2), (1, 0, 6, 1, 3), (2, 0, 5, 1, 1)]
    table(connection, "items", "person BIGINT, place BIGINT, item BIGINT, time BIGINT, rank BIGINT", items)
    # Nothing: three persons. The first row: two. Twice the first row, the other one, both together: one.
    assert answer(connection, choices_sql(unit, 1, 2), {"k": 2}) == (3, 5, 1)
    assert answer(connection, choices_sql(unit, 1, 1), {"k": 3}) == (2, 3, 1)


def test_nodes_are_counted_by_height() -> None:
    assert nodes_by_height([(1, 2), (0, 1)]) == [0, 1, 2, 1]
    assert nodes_by_height([(0, 2), (2, 2), (0, 1)]) == [0, 0, 1, 2, 2, 1]


def test_nobody_is_no_share_of_nobody() -> None:
    counts = LinkCount(("person",), known=True, people=0, sets=0, smallest=0, below_k=0, failing=0, left_over=0, unexpected=0)
    assert counts.share == 0


def test_a_value_that_a_person_has_in_several_rows_is_theirs_once(connection: duckdb.DuckDBPyConnection) -> None:
    unit, visit = ReadTable("person", "person", ("sex",), ("id",), {}), ReadTable("visit", "visit", (), ("visit_id",), {}, ("icd",))
    table(connection, row_person_table(unit), f"person BIGINT, {unit.at('id')} BIGINT", [(1, 10), (2, 20)])
    table(connection, row_text_table(unit), f"text VARCHAR, {unit.at('id')} BIGINT", [("F, two rows", 10), ("M", 20)])
    table(connection, row_person_table(visit), f"person BIGINT, {visit.at('icd')} VARCHAR", [(1, "I10"), (1, "I10"), (2, "I10"), (2, None)])
    found = connection.execute(history_values_sql(visit, unit, "icd")).fetchall()
    assert Counter(found) == Counter([("F, two rows", 1, "I10"), ("M", 2, "I10"), ("M", 2, None)])


def test_classes_of_one_sensitive_value_are_counted_with_their_records(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [("a", 1, "x"), ("a", 1, "y"), ("b", 2, "x"), ("b", None, "y"), ("c", None, "x")]
    table(connection, "r", "q VARCHAR, s BIGINT, t VARCHAR", rows)
    *counts, sizes, starred, alone = answer(connection, recount_sql("r", ["q"], 2, sensitive=["s", "t"]))
    assert (counts, sizes) == ([5, 3, 1, 1, 1, 0], {1: 1, 2: 2})
    # By s each class has one value or none; by t that of one record alone.
    assert (starred, alone) == ([], [3, 5, 1, 1])


def test_pseudonyms_and_source_values_are_counted_once_however_often_they_occur(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "release", "p VARCHAR", [("1",), ("1",), ("2",), ("x",), (None,), ("x",)])
    table(connection, "source", "p BIGINT", [(1,), (1,), (2,), (3,), (None,)])
    assert answer(connection, shared_sql("release", "source", "p")) == (3, 2, 3)


def test_a_class_is_masked_only_where_each_label_is_a_star_and_none_is_missing(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [("*", "*"), ("*", "*"), ("*", None), (None, None), ("a", "*"), ("a", "*")]
    table(connection, "release", "q VARCHAR, r VARCHAR", rows)
    connection.execute(combinations_sql("release", ["q", "r"]))
    found = connection.execute("SELECT label_0, label_1, records, masked FROM combinations").fetchall()
    assert set(found) == {("*", "*", 2, True), ("*", None, 1, False), (None, None, 1, False), ("a", "*", 2, False)}


def test_a_null_is_held_by_as_many_of_the_source_as_have_none(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "pairs", "combination BIGINT, person BIGINT, v VARCHAR", [(1, 1, "x"), (1, 2, None), (2, 2, None)])
    table(connection, "source", "value VARCHAR, records BIGINT, persons BIGINT", [("x", 4, 4), (None, 2, 4)])
    asked = "value IS NULL AND everywhere = 2"
    assert answer(connection, holder_classes_sql("pairs", "v", asked, "source", counts_nulls=True)) == (2,)


def test_a_class_has_one_value_where_all_hold_it_though_some_hold_another_too(connection: duckdb.DuckDBPyConnection) -> None:
    held = [(1, 1, "x", 1), (1, 2, "x", 1), (1, 1, "y", 1), (2, 3, "x", 1), (2, 4, "y", 1)]
    table(connection, "held", "combination BIGINT, person BIGINT, v VARCHAR, records BIGINT", held)
    table(connection, "combinations", "combination BIGINT, records BIGINT", [(1, 3), (2, 2)])
    assert answer(connection, one_value_sql("v")) == (1, 3)


def test_records_of_a_combination_that_k_share_are_not_rare(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [(1, 10, 2), (1, 11, 1), (2, 12, 2), (3, 13, 1), (4, 14, 5)]
    table(connection, "counted", "alone BIGINT, labelled BIGINT, records BIGINT", rows)
    # Of three, of two, of one and of five records; with labels the three are two and one.
    assert answer(connection, combination_counts_sql("counted", 3))[:3] == (1, 2 + 1, 2 + 1 + 2 + 1)
    assert answer(connection, combination_counts_sql("counted", 2))[:3] == (1, 1, 1 + 1)


def test_records_of_the_source_without_a_value_get_the_digest_of_their_label(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "source", "q VARCHAR, r BIGINT", [(None, 1), ("a", 2), ("b", 3)])
    table(connection, "of_q", "value VARCHAR, digest UBIGINT", [(None, 3), ("a", 4)])
    parts = [DigestPart("r.q", "of_q.digest", "of_q", "q")]
    connection.execute(join_source_values_sql("source", parts, ["s.r + 10"], ["r"], "joined"))
    assert set(connection.execute("SELECT digest_0, later_0 FROM joined").fetchall()) == {(11, 1), (12, 2)}, "no label covers the last one"


def test_records_without_a_label_are_counted_beside_the_others(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "counted", "label_0 VARCHAR, label_1 VARCHAR, part INTEGER, records INTEGER", [("a", None, 1, 4), (None, None, 2, 7)])
    table(connection, "labels", "label_0 VARCHAR, label_1 VARCHAR, number INTEGER", [("a", None, 0), (None, None, 1), ("a", "a", 2)])
    assert sorted(connection.execute(released_parts_sql("counted", 2, "labels")).fetchall()) == [(1, 0, 4), (2, 1, 7)]


@pytest.mark.parametrize("masked", [False, True])
def test_classes_have_the_number_of_each_label_a_missing_one_too(connection: duckdb.DuckDBPyConnection, masked: bool) -> None:
    table(connection, "release", "q VARCHAR, low BIGINT, high BIGINT", [("a", 1, 5), ("a", 1, 5), (None, 1, None), ("b", 6, 9)])
    table(connection, "of_q", "number BIGINT, label_0 VARCHAR", [(0, "a"), (1, None)])
    table(connection, "of_r", "number BIGINT, label_0 BIGINT, label_1 BIGINT", [(7, 1, 5), (8, 1, None), (9, 6, 9)])
    connection.execute(
        classes_sql("release", [(["q"], "of_q"), (["low", "high"], "of_r")], ["q", "low", "high"], has_masked_records=masked)
    )
    found = connection.execute(
        "SELECT number_0, number_1, label_0, label_1, label_2, records FROM classes ORDER BY ALL NULLS LAST"
    ).fetchall()
    stars = [(None, None, "*", "*", "*", None)] * masked
    assert found == [(0, 7, "a", "1", "5", 2), (1, 8, None, "1", None, 1), *stars], "no label covers the last one"
    assert connection.execute("SELECT count(*) FROM classes WHERE class = -1").fetchall() == [(len(stars),)]


def test_persons_of_each_value_are_counted_once_however_many_rows_they_have(connection: duckdb.DuckDBPyConnection) -> None:
    visit = ReadTable("visit", "visit", (), ("visit_id",), {}, ("icd",))
    rows = [(1, "x"), (1, "x"), (1, "y"), (2, "x"), (2, None), (3, None), (3, None), (None, "x"), (None, "z")]
    table(connection, row_person_table(visit), f"person BIGINT, {visit.at('icd')} VARCHAR", rows)
    assert Counter(connection.execute(source_value_persons_sql(visit, "icd")).fetchall()) == Counter(
        [("x", 2, 3), ("y", 1, 3), (None, 2, 3)]
    )


def test_persons_have_each_of_their_values_once_in_a_combination_and_once_in_all(connection: duckdb.DuckDBPyConnection) -> None:
    held = [(1, 1, "x"), (1, 1, "x"), (1, 1, "y"), (2, 1, "x"), (2, 2, None), (2, 2, None), (1, 0, "x"), (2, 0, None)]
    table(connection, "held", "combination BIGINT, person BIGINT, s VARCHAR", held)
    found = connection.execute(f"FROM {person_values_sql('s')}").fetchall()
    assert Counter(found) == Counter({one: 1 for one in held if one[1]})
    found = connection.execute(f"FROM {source_pairs_sql('s')}").fetchall()
    assert Counter(found) == Counter([(1, "x"), (1, "y"), (2, None)])


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_person_of_several_columns_is_another_where_any_of_them_is(connection: duckdb.DuckDBPyConnection, columns: int) -> None:
    rows = [(a, b, c, value) for a in (1, 2, None) for b in (1, 2) for c in (1, None) for value in "xyx"]
    table(connection, "source", "a BIGINT, b BIGINT, c BIGINT, s VARCHAR", rows)
    persons = {name: False for name in "abc"[:columns]}
    somebody = {(row[:columns], row[3]) for row in rows if None not in row[:columns]}
    found = connection.execute(f"FROM {persons_of_source_sql('source', persons, 's')}").fetchall()
    assert Counter(found) == Counter((mine[0] if columns == 1 else mine, value) for mine, value in somebody)


@pytest.mark.parametrize("masked", [True, False])
def test_records_whose_value_no_label_covers_are_of_no_class(connection: duckdb.DuckDBPyConnection, masked: bool) -> None:
    table(connection, "source", "q BIGINT, p BIGINT, v VARCHAR", [(1, 7, "x"), (9, 7, "y"), (9, None, "y")])
    table(connection, "owner_0", "value BIGINT, number BIGINT", [(1, 0)])
    table(connection, "classes", "class BIGINT, number_0 BIGINT", [(10, 0)])
    table(connection, "persons", "name_0 BIGINT, person BIGINT", [(7, 1)])
    connection.execute(source_persons_sql("source", ["q"], ["p"], ["v"], has_masked_records=masked))
    found = connection.execute("SELECT class = 10, person, value_0, records FROM given").fetchall()
    beside = [(False, 1, "y", 1), (False, 0, "y", 1)] if masked else []
    assert Counter(found) == Counter([(True, 1, "x", 1), *beside])
