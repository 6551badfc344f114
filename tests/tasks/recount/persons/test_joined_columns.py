"""What columns with equal pseudonyms show over all joins is counted as it is record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.joined_columns import (
    MOST_ROUNDS,
    alike_at_once_sql,
    comparable_columns,
    comparable_sql,
    connected_groups,
    crossing_sql,
    joined_counts_sql,
    joined_rows_sql,
    joining_round_sql,
    link_sql,
    meeting_sql,
)
from core.recount.linked import LinkCount, person_pseudonyms_sql, published_rows_sql
from core.recount.people import classed_persons_sql, combinations_sql
from schemas.job.job import Job
from tests.jobs import job_of
from tests.oracles.linked import Told, told_by, told_by_joins

Row = tuple[str | None, str | None, str | None, int]
LINK = st.sampled_from([None, *"pqrstuvw"])
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), LINK, LINK, st.integers(0, 9)), min_size=1, max_size=40)

TWICE: list[Row] = [
    (q, *links, first + person)
    for q, names, first in (("a", "pstxy", 1), ("b", "ruvzw", 4))
    for links, person in (((names[0], names[3]), 0), ((names[0], names[4]), 0), ((names[1], names[3]), 1), ((names[2], names[4]), 2))
]
"""A person with one combination in two households that show the same, and one person more in each; all of it twice."""


def counted(rows: Sequence[Row], k: int, *, known: bool, exchanged: bool = False) -> LinkCount:
    """Count records of a combination, two pseudonyms and a person, 0 being nobody; ``exchanged`` is what the private file says."""
    links = ["link_0", "link_1"]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE written (q VARCHAR, one VARCHAR, other VARCHAR)")
        connection.execute("CREATE TABLE people (class INTEGER, person UBIGINT, records BIGINT, link_0 VARCHAR, link_1 VARCHAR)")
        connection.execute("CREATE TABLE classes AS SELECT * FROM (VALUES (0, 'a'), (1, 'b'), (2, NULL)) AS t(class, label_0)")
        connection.executemany("INSERT INTO written VALUES (?, ?, ?)", [row[:3] for row in rows])
        kept = [(["a", "b", None].index(q), person, 1, *([other, one] if exchanged else [one, other])) for q, one, other, person in rows]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", kept)
        connection.execute(combinations_sql("written", ['"q"']))
        owners = person_pseudonyms_sql(classed_persons_sql("classes", "people", 1), [0, 1]) if known else ""
        published = published_rows_sql("written", ['"q"'], ["s.one", "s.other"])
        connection.execute(joined_rows_sql(published, owners, links))
        for statement in alike_at_once_sql(2):
            connection.execute(statement)
        for _ in range(MOST_ROUNDS):
            for statement in joining_round_sql(2):
                connection.execute(statement)
        [row] = connection.execute(joined_counts_sql(2, 2, k, published, owners, unlinked_are_persons=True)).fetchall()
    return LinkCount(("one", "other"), known, *row)


def told(count: LinkCount) -> Told:
    return Told(count.people, count.sets, count.smallest, count.below_k, count.left_over)


@example([("a", "p", None, 1), ("b", "q", "p", 2), ("a", "r", None, 3), ("b", "s", "t", 4)], 2)
@example([("a", "p", "u", 1), ("b", "p", "u", 1), ("a", "q", "v", 2), ("b", "q", "w", 2), ("a", "r", "w", 3), ("b", "r", "v", 3)], 3)
@example(TWICE, 2)
@example([(q, *links, person) for q in "ab" for links, person in (("px", 1), ("px", 2), ("qy", 3))], 3)
@given(ROWS, st.integers(1, 4))
def test_people_share_all_that_joins_show(rows: list[Row], k: int) -> None:
    count = counted(rows, k, known=True)
    assert told(count) == told_by_joins([row[0] for row in rows], [row[1:3] for row in rows], [row[3] or None for row in rows], k)
    assert count.unexpected == 0
    assert bool(count.failing) == (count.left_over > 0 or (count.people > 0 and count.smallest < k))


@example([("a", "p", "q", 1), ("a", "p", "r", 1), ("b", "s", "q", 2), ("b", "s", "r", 2)], 2)
@example([("a", None, "p", 0), (None, None, "p", 2), (None, "p", None, 1)], 2)
@example([("a", None, "p", 1), ("b", None, "p", 1), ("a", None, "q", 2), ("b", None, "q", 2), ("a", "p", None, 3)], 2)
@given(ROWS, st.integers(1, 4))
def test_columns_that_do_not_cross_tell_no_more_together(rows: list[Row], k: int) -> None:
    apart: list[Row] = [(q, one, other and other.upper(), person) for q, one, other, person in rows]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (q VARCHAR, one VARCHAR, other VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [row[:3] for row in apart])
        [(crossing,)] = connection.execute(crossing_sql("t", "one", "other")).fetchall()
    people, q = [row[3] or None for row in apart], [row[0] for row in apart]
    alone = [told_by(q, [row[place] for row in apart], people, k).below_k for place in (1, 2)]
    together = told_by_joins(q, [row[1:3] for row in apart], people, k).below_k
    assert together <= sum(alone) or crossing
    linked = [[row[place] for row in apart if row[place]] for place in (1, 2)]
    pairs = {row[1:3] for row in apart if row[1] or row[2]}
    same = all(None not in pair for pair in pairs) and all(len(set(one)) == len(pairs) for one in linked)
    unlinked = [len(set(one)) == len(one) for one in linked]
    by_itself = [any(row[place] and not row[3 - place] for row in apart) for place in (1, 2)]
    nothing = [unlinked[at] and (not by_itself[at] or unlinked[1 - at]) for at in range(2)]
    assert crossing == (not same and not any(nothing))


@pytest.mark.parametrize("known", [True, False])
def test_whoever_has_no_pseudonym_in_any_column_is_left_over_once(known: bool) -> None:
    rows: list[Row] = [(q, link, link.upper(), number) for number, link in enumerate("pqr", start=1) for q in ("a", "b")]
    count = counted([*rows, ("a", None, None, 4), ("a", None, None, 5)], 3, known=known)
    assert (count.left_over, count.below_k, count.smallest) == (2, 0, 3)
    assert count.failing
    assert counted([*rows, *(("a", None, None, number) for number in (4, 5, 6))], 3, known=known).failing == 0


def test_a_grandmother_is_found_over_two_joins() -> None:
    """A mother with her child is there thrice, and a child with its own: all three generations are there once, or twice."""
    three, two, later = [("a", None), ("b", 0), (None, 1)], [("a", None), ("b", 0)], [("b", None), (None, 0)]

    def smallest(*families: list[tuple[str | None, int | None]]) -> int:
        people = [(place, *one) for place, family in enumerate(families) for one in family]
        starts = [sum(map(len, families[:place])) for place in range(len(families))]
        rows: list[Any] = [
            (q, f"{number}", None if mother is None else f"{starts[place] + mother}", number + 1)
            for number, (place, q, mother) in enumerate(people)
        ]
        return counted(rows, 2, known=True).smallest

    assert smallest(three, two, two, later, later) == 1
    assert smallest(three, three, two, two, later, later) == 2


@pytest.mark.parametrize("known", [True, False])
def test_families_that_are_alike_are_not_told_apart(known: bool) -> None:
    rows: list[Any] = [("a", "p", None, 1), ("b", "q", "p", 2), (None, "r", "q", 3)]
    rows += [("a", "s", None, 4), ("b", "t", "s", 5), (None, "u", "t", 6)]
    count = counted(rows, 2, known=known)
    assert (told(count), count.unexpected) == (Told(6, 3, 2, 0, 0), 0)


def test_a_private_file_that_says_otherwise_whose_pseudonyms_they_are_is_seen() -> None:
    assert counted([("a", "p", "q", 1), ("a", "r", "s", 2)], 1, known=True, exchanged=True).unexpected > 0


def test_columns_meet_by_values() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('x', 'y', NULL), (NULL, 'x', 'z')) AS t(a, b, c)")
        met = [connection.execute(meeting_sql("t", *pair)).fetchall() for pair in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "c"))]
    assert met == [[(True,)], [(True,)], [(False,)], [(True,)]]
    a, b, c, d, e = (("a",), ("b",), ("c",), ("d",), ("e",))
    assert connected_groups([a, b, c, d, e], [(a, c), (b, d), (c, d)]) == [[a, b, c, d], [e]]
    assert connected_groups([a, b, c, d], [(c, d), (b, a)]) == [[a, b], [c, d]]
    assert connected_groups([a, b], []) == [[a], [b]]


def test_encrypted_numbers_are_equal_with_the_zeros_that_they_lost() -> None:
    def number(name: str, **settings: Any) -> dict[str, Any]:
        return {"name": name, "treatment": {"encrypt": {"key": {"env": "ONE"}, "alphabet": "digits", **settings}}}

    identifiers = [number("a", width=7), number("b"), number("c", width=6)]
    job = Job.model_validate(
        job_of(columns={"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "identifiers": identifiers})
    )
    made = {name: comparable_sql(job, name, name) for name in "abc"}
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (12345, '0012345', 12345), (123456, NULL, 123456)) AS t(a, b, c)")
        met = [connection.execute(meeting_sql("t", made[one], made[other])).fetchall() for one, other in ("ab", "ac", "bc")]
    assert met == [[(True,)], [(False,)], [(False,)]]


def test_which_pseudonyms_may_be_those_of_one_value() -> None:
    def entry(name: str, treatment: str, key: str, **settings: Any) -> dict[str, Any]:
        return {"name": name, "treatment": {treatment: {"key": {"env": key}, **settings}}}

    digits = {"alphabet": "digits"}
    identifiers = [
        entry("a", "hash", "ONE"), entry("b", "hash", "OTHER", length=16), entry("c", "encrypt", "ONE", **digits),
        entry("d", "encrypt", "OTHER", **digits), entry("e", "encrypt", "ONE", alphabet="digits", separators="-"),
        {"name": "f", "treatment": {"mask": {"keep": 1}}}, {"name": "g", "treatment": {"mask": {"keep": 1}}},
    ]  # fmt: skip
    job = Job.model_validate(
        job_of(columns={"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "identifiers": identifiers})
    )
    assert comparable_columns(job) == [("a", "b"), ("c", "e")]


def test_links_of_several_columns_are_equal_where_all_of_them_are() -> None:
    def entry(name: str) -> dict[str, Any]:
        return {"name": name, "treatment": {"hash": {"key": {"env": "ONE"}}}}

    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "identifiers": [entry("a"), entry("b"), "c"]}
    job = Job.model_validate(job_of(columns={**columns, "person": ["a", "b"]}))
    both, other = link_sql(job, ("a", "b"), ["a", "b"], 0), link_sql(job, ("a", "b"), ["a", "b"], 1)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('x', 'yz'), ('xy', 'z'), ('xy', 'z'), ('x', NULL)) AS t(a, b)")
        assert connection.execute(f"SELECT count({both}), count(DISTINCT {both}) FROM t").fetchall() == [(3, 2)]
        assert connection.execute(f"SELECT count(*) FROM t WHERE {both} = {other}").fetchall() == [(0,)]
