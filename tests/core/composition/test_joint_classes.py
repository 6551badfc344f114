"""The statements that count what two releases tell together, against a look at every record."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from random import Random
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.composition.joint_classes import (
    ABSENT,
    JOINED,
    MINE,
    THEIRS,
    RecordMatching,
    common_persons_sql,
    equal_record_count_sql,
    equal_records_sql,
    joined_records_sql,
)
from core.composition.joint_figures import (
    FAILING,
    few_persons_sql,
    joint_classes_sql,
    joint_values_sql,
    means_sql,
    numbered_classes_sql,
    sets_table_sql,
    sizes_sql,
    values_at_risk_sql,
)
from core.units.source_digests import Likeness
from tests.core.composition.every_record import HIDDEN, Seen, told_together, without_values


class Row(NamedTuple):
    """A record as the statements read it."""

    content: int
    group: int
    shared: bool
    person: int
    untreated: int = 0
    value: int = 0


# What records are linked by holds their sensitive value, so that those that are alike have the same.
rows = st.builds(
    lambda content, group, shared, person, untreated: Row(content, group, shared, person, untreated, content % 3),
    st.integers(0, 12), st.integers(-1, 3), st.booleans(), st.integers(0, 5), st.integers(0, 2),
)  # fmt: skip
releases = st.tuples(st.lists(rows, max_size=25), st.lists(rows, max_size=25))
PARTS = ("shared", "added", "removed")
SCHEMA = pa.schema(
    [
        ("content", pa.uint64()),
        ("class", pa.int64()),
        ("shared", pa.bool_()),
        *((name, pa.uint64()) for name in ("person", "untreated", "value_0")),
    ]
)


def loaded(database: duckdb.DuckDBPyConnection, mine: list[Row], theirs: list[Row]) -> None:
    """Fill the tables of both sides."""
    for name, side in ((MINE, mine), (THEIRS, theirs)):
        database.register(f"{name}_rows", pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in side], SCHEMA))
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")


def asked(statement: str, mine: list[Row], theirs: list[Row], identity: RecordMatching | None = None) -> list[tuple[object, ...]]:
    """Return the rows of a statement over two releases."""
    with duckdb.connect() as database:
        loaded(database, mine, theirs)
        if identity:
            database.execute(joined_records_sql(identity))
        return database.execute(statement).fetchall()


def seen(side: list[Row], private: str, identity: RecordMatching) -> list[Seen]:
    """The same records for the oracle; those of private files are told apart by side unless they are linked by what they hold."""
    place = "either" if identity.contents else private
    return [
        Seen(
            (row.content, "both" if row.shared else place), HIDDEN if row.group < 0 else row.group, row.person or None,
            row.value or None if identity.values else None, row.untreated if identity.untreated else None,
        )
        for row in side
    ]  # fmt: skip


IDENTITIES = [RecordMatching(*flags, 1, (0,)) for flags in product([False, True], repeat=3)]


@given(persons=st.booleans(), identity=st.sampled_from(IDENTITIES), both=releases, k=st.integers(1, 5))
def test_at_risk_is_who_shares_both_classes_with_fewer_than_k(
    persons: bool, identity: RecordMatching, both: tuple[list[Row], list[Row]], k: int
) -> None:
    found = {part: (records, risk) for part, records, risk, _ in asked(joint_classes_sql(k, count_persons=persons), *both, identity)}
    sides = seen(both[0], "mine", identity), seen(both[1], "theirs", identity)
    assert {part: found.get(part, (0, 0)) for part in PARTS} == told_together(*sides, k, persons=persons, again=identity.persons)


@given(persons=st.booleans(), untreated=st.booleans(), both=releases, k=st.integers(1, 5))
def test_lines_change_no_count_and_hide_nobody_who_is_known_by_both_classes(
    persons: bool, untreated: bool, both: tuple[list[Row], list[Row]], k: int
) -> None:
    identity = RecordMatching(True, False, untreated, 1, (0,))
    plain, lines = (
        {part: rest for part, *rest in asked(joint_classes_sql(k, count_persons=persons), *both, one)}
        for one in (identity, identity._replace(lines=(0,)))
    )
    assert {part: (records, changed) for part, (records, _, changed) in lines.items()} == {
        part: (records, changed) for part, (records, _, changed) in plain.items()
    }
    assert all(lines[part][1] == risk if part == "shared" else lines[part][1] >= risk for part, (_, risk, _) in plain.items())


@pytest.mark.parametrize("group", [0, 1])
def test_hidden_changes_hide_no_leaver_in_any_class(group: int) -> None:
    """Three records changed where no line shows it; a fourth one left, and its line is gone."""
    stayed = [Row(content, group, False, 0, 1, 0) for content in (1, 2, 3)]
    mine = [*stayed, *(Row(content, group, False, 0, 1, 1) for content in (4, 5, 6))]
    theirs = [*stayed, *(Row(content, group, False, 0, 1, 1) for content in (7, 8, 9, 10))]
    identity = RecordMatching(True, False, True, 1, (0,), lines=(0,))
    for sides, gone, more in ((mine, theirs), "removed", "added"), ((theirs, mine), "added", "removed"):
        found = {part: rest for part, *rest in asked(joint_classes_sql(3, count_persons=False), *sides, identity)}
        assert found == {"shared": [3, 0, 0], gone: [4, 1, 0], more: [3, 0, 0]}


def test_a_line_like_that_of_another_record_hides_nobody_who_is_alone_in_both_classes() -> None:
    """The note of record 1 changed to what another record showed that left a class of mostly the same people."""
    mine = [Row(content, 0, False, 0, 1, value) for content, value in ((1, 0), (5, 1), (6, 1), (7, 1))]
    theirs = [Row(content, 0, False, 0, 1, value) for content, value in ((2, 1), (4, 0), (6, 1), (7, 1))]
    theirs += [Row(1, 1, False, 0, 2), Row(3, 1, False, 0, 2)]
    identity = RecordMatching(True, False, True, 1, (0,), lines=(0,))
    found = {part: rest for part, *rest in asked(joint_classes_sql(2, count_persons=False), mine, theirs, identity)}
    assert found == {"shared": [3, 1, 0], "added": [2, 2, 1], "removed": [4, 2, 1]}


@given(both=releases, k=st.integers(1, 6))
def test_records_of_few_persons_are_those_of_a_look_at_every_person(both: tuple[list[Row], list[Row]], k: int) -> None:
    with duckdb.connect() as database:
        loaded(database, *both)
        database.execute(joined_records_sql(RecordMatching(True, True, True, 1, (0,))))
        rows = database.execute(f"SELECT a = {ABSENT}, b = {ABSENT}, changed, person FROM {JOINED} WHERE NOT beside").fetchall()
        [(found,)] = database.execute(few_persons_sql(k)).fetchall()
    shared, came, gone, changes = (
        Counter(person for *kind, person in rows if kind == wanted)
        for wanted in ([False, False, False], [False, True, False], [True, False, False], [False, True, True])
    )
    counts = (shared, came, gone, changes, shared - changes)
    assert found == any(held.total() >= k > len({*held} - {0}) for held in counts)


@given(persons=st.booleans(), identity=st.sampled_from(IDENTITIES), both=releases, least=st.integers(1, 3))
def test_joint_classes_with_too_few_values_are_those_that_a_look_at_every_record_finds(
    persons: bool, identity: RecordMatching, both: tuple[list[Row], list[Row]], least: int
) -> None:
    with duckdb.connect() as database:
        loaded(database, *both)
        database.execute(joined_records_sql(identity))
        database.execute(sets_table_sql())
        database.execute(numbered_classes_sql([0], count_persons=persons))
        classes = database.execute(sizes_sql([0])).fetchall()
        values = Counter(number for number, value, _ in database.execute(joint_values_sql(0, count_persons=persons)).fetchall() if value)
        failing = pa.table({"number": pa.array([number for number in range(len(classes)) if values[number] < least], pa.int64())})
        database.register(FAILING, failing)
        [(found,)] = database.execute(values_at_risk_sql(count_persons=persons)).fetchall()
    sides = seen(both[0], "mine", identity), seen(both[1], "theirs", identity)
    assert found == without_values(*sides, least, persons=persons, again=identity.persons)


VALUES = st.none() | st.integers(0, 2)


@given(st.lists(st.tuples(VALUES, VALUES, st.integers(0, 3)), max_size=12), st.integers(1, 4), st.booleans())
def test_two_means_are_those_of_enough_or_whose_they_are_is_counted(
    records: list[tuple[int | None, int | None, int]], k: int, persons: bool
) -> None:
    """The means of each record in this release and in the other: none where it is absent, 0 for a null."""
    mine, theirs = (
        [Row(number, 0, False, record[2], 0, record[side]) for number, record in enumerate(records) if record[side] is not None]
        for side in (0, 1)
    )
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for here, there, person in records:
        if (here, there) != (None, None):
            cells[here or 0, there or 0].append(person)
    expected: list[object] = []
    for (here, there), whose in cells.items():
        size = len({*whose} - {0}) if persons else len(whose)
        if size < k and (here or there):
            expected += whose
    found = asked(means_sql(0, k, count_persons=persons), mine, theirs, RecordMatching(contents=True, persons=False, values=1))
    assert found == [(len({*expected} - {0}) + expected.count(0) if persons else len(expected),)]


@given(both=releases)
def test_persons_in_both_are_counted_once_and_nobody_is_none(both: tuple[list[Row], list[Row]]) -> None:
    mine, theirs = ({row.person for row in side} - {0} for side in both)
    assert asked(common_persons_sql(), *both) == [(len(mine & theirs),)]


@given(both=releases)
def test_likeness_counts_records_of_files_that_only_one_has(both: tuple[list[Row], list[Row]]) -> None:
    [found] = asked(equal_records_sql(), *both)
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
    found = asked(joint_classes_sql(10, count_persons=False), [*before, *came], before, RecordMatching(contents=True, persons=False))
    assert sorted(found) == [("added", 5, 5, 0), ("shared", 100, 0, 0)]


@pytest.mark.parametrize("untreated", [False, True])
def test_one_person_of_whom_another_value_is_published_left_and_came(untreated: bool) -> None:
    before = [Row(number, number // 10, False, number + 1, 7, 1) for number in range(100)]
    after = [*before[1:], before[0]._replace(untreated=8) if untreated else before[0]._replace(content=1000, value=2)]
    found = asked(joint_classes_sql(10, count_persons=True), after, before, RecordMatching(True, True, True, 1, (0,)))
    # The nine others of the class are known by their lines, which are in both.
    assert sorted(found) == [("added", 1, 1, 1), ("removed", 1, 1, 1), ("shared", 100, 10, 0)]


def test_further_records_of_persons_are_looked_for_among_the_class_of_the_one_that_the_other_release_has() -> None:
    """Each of 40 has a visit like everybody's, and one like that of three others, of whom each is of another age."""
    persons = [Row(1000 + person, person % 4, False, person + 1) for person in range(40)]
    visits = [Row(2000 + 2 * person + other, (1 + person // 4) * other, False, person + 1) for person in range(40) for other in (0, 1)]
    identity = RecordMatching(contents=False, persons=True)
    found = asked(joint_classes_sql(4, count_persons=True), visits, persons, identity)
    assert sorted(found) == [("added", 40, 0, 0), ("shared", 40, 40, 0)]
    assert sorted(asked(joint_classes_sql(4, count_persons=True), persons, visits, identity)) == [
        ("removed", 40, 0, 0),
        ("shared", 40, 40, 0),
    ]
    # Nobody says which of several visits is which of several others.
    assert ("shared", 80, 0, 0) in asked(joint_classes_sql(4, count_persons=True), visits, visits, identity)


@pytest.mark.parametrize(("persons", "at_risk"), [(True, 2), (False, 0)])
def test_two_who_change_places_are_each_alone_in_the_classes_of_both(persons: bool, at_risk: int) -> None:
    """The files are the same. Whoever knows who moved looks for one in the class left and in the other one."""
    before = [Row(content, group, False, person) for content, group, person in ((1, 0, 1), (2, 0, 2), (3, 1, 3), (4, 1, 4))]
    after = [before[0]._replace(person=3), before[1], before[2]._replace(person=1), before[3]]
    found = asked(joint_classes_sql(2, count_persons=persons), after, before, RecordMatching(True, persons, False, 1, (0,)))
    # Of two of each class one has gone, so that who stays is alone, too.
    assert found == [("shared", 4, 2 * at_risk, 0)]


def test_records_of_which_each_side_has_several_are_alike_as_often_as_the_side_with_fewer_has_them() -> None:
    """Those of nobody have no equal where only their person would name them."""
    drawn = Random(3)

    def some(size: int) -> list[Row]:
        return [Row(drawn.randrange(3), 0, drawn.random() < 0.7, drawn.randrange(3), 0, drawn.randrange(2)) for _ in range(size)]

    both, fields = (some(50), some(40)), {"content": "content", "person": "person", "value_0": "value"}
    with duckdb.connect() as database:
        loaded(database, *both)
        for columns, of_files in product((["content"], ["person"], ["content", "person"], [*fields]), (False, True)):
            mine, theirs = (
                Counter(
                    tuple(getattr(row, fields[column]) for column in columns)
                    for row in side
                    if (row.shared or not of_files) and (row.person or "content" in columns)
                )
                for side in both
            )
            assert database.execute(equal_record_count_sql(columns, of_files=of_files)).fetchall() == [((mine & theirs).total(),)]
