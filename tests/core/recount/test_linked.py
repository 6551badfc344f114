"""Linked records are counted as they are one by one, whoever's they are and wherever a pseudonym is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.linked import (
    LinkCount,
    exposing_links,
    link_claims,
    link_faults,
    linked_sql,
    person_pseudonyms_sql,
    pseudonyms_are_persons,
    reported_link_count,
)
from core.recount.people import classed_persons_sql, combinations_sql
from schemas.job.job import Job
from tests.jobs import job_of
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
        connection.execute(combinations_sql("written", ['"q"']))
        owners = person_pseudonyms_sql(classed_persons_sql("classes", "people", 1), [0]) if known else ""
        [row] = connection.execute(linked_sql("written", ['"q"'], ['"link"'], k, owners)).fetchall()
    return LinkCount(("link",), known, *row)


def told(count: LinkCount) -> Told:
    return Told(count.people, count.sets, count.smallest, count.below_k, count.left_over)


@example([("a", "p", 0), ("b", "q", 1)], 1)  # a set of nobody
@given(ROWS, st.integers(1, 4))
def test_people_are_those_of_the_private_file(rows: list[Row], k: int) -> None:
    count = counted(rows, k, known=True)
    assert told(count) == told_by([row[0] for row in rows], [row[1] for row in rows], [row[2] or None for row in rows], k)
    assert count.unexpected == 0
    assert bool(count.failing) == (count.left_over > 0 or (count.sets > 0 and count.smallest < k))


@given(ROWS, st.integers(1, 4))
def test_without_it_every_pseudonym_is_a_person_and_so_is_every_record_that_has_none(rows: list[Row], k: int) -> None:
    people: list[Any] = [place if row[1] is None else row[1] for place, row in enumerate(rows)]
    assert told(counted(rows, k, known=False)) == told_by([row[0] for row in rows], [row[1] for row in rows], people, k)


@pytest.mark.parametrize("known", [True, False])
def test_whoever_has_no_pseudonym_is_left_over_where_all_others_are_linked_elsewhere(known: bool) -> None:
    """Four people are in two classes, by their pseudonyms alone, and a fifth in one of these."""
    linked: list[Row] = [(q, link, number) for number, link in enumerate("pqrs", start=1) for q in ("a", "b")]
    count = counted([*linked, ("a", None, 5)], 4, known=known)
    assert (told(count), count.failing) == (Told(4, 1, 4, 0, 1), 1)
    # With three more who are there once, it is one of four.
    alone: list[Row] = [("a", link, number) for number, link in enumerate("tuv", start=6)]
    count = counted([*linked, ("a", None, 5), *alone], 4, known=known)
    assert (told(count), count.failing) == (Told(7, 2, 4, 0, 0), 0)


@given(ROWS.filter(lambda rows: any(row[1] for row in rows)), st.data())
def test_a_private_file_of_other_combinations_is_seen(rows: list[Row], data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([place for place, row in enumerate(rows) if row[1]]))
    assert counted(rows, 2, known=True, changed=place).unexpected > 0


@pytest.mark.parametrize("known", [True, False])
def test_sets_of_many_combinations_are_told_apart(known: bool) -> None:
    rows: list[Row] = [(q, link, number) for number, link in enumerate("pqrs", start=1) for q in ("a", "b", None)]
    assert told(counted(rows, 4, known=known)) == Told(4, 1, 4, 0, 0)
    assert told(counted(rows[1:], 4, known=known)) == Told(4, 2, 1, 4, 0)


HASH, MASKED = {"hash": {"key": {"env": "SKALD_KEY"}}}, {"mask": {"keep": 3}}


@pytest.mark.parametrize(
    ("person", "treatments", "linking", "known"),
    [
        ([], {"visit": HASH}, ["visit"], True),
        (["id"], {"id": HASH}, ["id"], True),
        (["id"], {"id": MASKED}, ["id"], False),
        (["id"], {"id": HASH, "visit": MASKED}, ["id"], True),
        (["id"], {"id": HASH, "visit": HASH}, ["visit"], False),
        (["id"], {"id": HASH, "visit": HASH}, ["id", "visit"], False),
        (["id", "site"], {"id": HASH, "site": HASH}, ["site", "id"], True),
        (["id", "site"], {"id": HASH, "site": HASH}, ["id"], False),
    ],
)
def test_a_pseudonym_is_a_person_where_it_is_made_of_all_that_names_one(
    person: list[str], treatments: dict[str, Any], linking: list[str], known: bool
) -> None:
    identifiers = [{"name": name, "treatment": treatment} for name, treatment in treatments.items()]
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5]}}], "identifiers": identifiers, "person": person}
    assert pseudonyms_are_persons(Job.model_validate(job_of(columns=columns)), linking) == known


FEW = LinkCount(("ssn",), known=True, people=40, sets=12, smallest=1, below_k=7, failing=3, left_over=0, unexpected=0)
ACCEPTS: Any = SimpleNamespace(columns=SimpleNamespace(linkable=["ssn", "mail"], person=()), privacy=SimpleNamespace(k=5))
REFUSES: Any = SimpleNamespace(columns=SimpleNamespace(linkable=["mail"], person=()), privacy=SimpleNamespace(k=5))


def test_who_shares_a_set_with_fewer_than_k_is_exposed_unless_the_job_accepts_it_or_nobody_is_known() -> None:
    assert exposing_links(REFUSES, [FEW]) == [FEW]
    assert exposing_links(ACCEPTS, [FEW, replace(FEW, columns=("mail", "ssn"))]) == []
    assert exposing_links(REFUSES, [replace(FEW, known=False), replace(FEW, failing=0)]) == []
    [fault] = link_faults(REFUSES, [FEW, replace(FEW, columns=("mail",))])
    assert fault.endswith("7 of 40 share the set of combinations that theirs are in with fewer than k = 5")
    [fault] = link_faults(REFUSES, [replace(FEW, left_over=2)])
    assert fault.endswith("fewer than k = 5, and 2 without a pseudonym are left over where links show others elsewhere")


def test_each_figure_of_what_links_is_held_against_the_files() -> None:
    names = ("people", "sets", "smallest", "below_k", "left_over")
    true = {name: getattr(FEW, name) for name in names}

    def faults(counted: LinkCount, job: Any = REFUSES, **said: Any) -> list[str]:
        stated = SimpleNamespace(**({"columns": ("ssn",), "accepted": False} | true | said))
        manifest: Any = SimpleNamespace(linked=(stated,))
        return link_claims(job, manifest, [counted])

    assert faults(FEW) == faults(FEW, ACCEPTS, accepted=True) == []
    for name in names:
        more = true[name] + 1
        assert faults(FEW, **{name: more}) == [f"the manifest says linked 'ssn' {name} = {more}, the files hold {true[name]}"]
        unknown = faults(replace(FEW, known=False), **{name: more})
        assert bool(unknown) == (name == "sets"), "of people whom nobody knows nothing can be said"
    assert "accepts" in faults(FEW, ACCEPTS)[0]
    assert "accepts" in faults(FEW, accepted=True)[0]
    assert faults(FEW, columns=("mail",)) == ["the manifest does not say truly which columns show which records belong together"]
    older: Any = SimpleNamespace(linked=None)
    assert link_claims(REFUSES, older, [FEW]) == []


def test_of_people_whom_pseudonyms_do_not_show_no_number_below_k_is_reported() -> None:
    """Earlier versions reported each; what anybody can count is no secret."""
    job: Any = SimpleNamespace(columns=SimpleNamespace(linkable=["ssn"], person=["id"], pseudonyms=()), privacy=SimpleNamespace(k=5))
    found = replace(FEW, below_k=2, left_over=4)
    told = reported_link_count(job, found)
    assert (told.people, told.sets, told.smallest, told.below_k, told.left_over, told.share) == (40, 12, 5, 5, 5, 5 / 40)
    assert reported_link_count(REFUSES, found) == found

    def faults(counts: LinkCount) -> list[str]:
        names = ("columns", "people", "sets", "smallest", "below_k", "left_over")
        stated = SimpleNamespace(**{name: getattr(counts, name) for name in names}, accepted=True)
        manifest: Any = SimpleNamespace(linked=(stated,))
        return link_claims(job, manifest, [found])

    assert faults(told) == faults(found) == []
    assert len(faults(replace(told, below_k=6))) == 1


def test_persons_of_a_class_that_is_not_published_stay_and_are_unexpected() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE written AS SELECT 'a' AS q, 'p' AS link")
        connection.execute("CREATE TABLE classes AS SELECT * FROM (VALUES (0, 'a'), (1, 'b')) AS t(class, label_0)")
        connection.execute(
            "CREATE TABLE people AS SELECT * FROM (VALUES (0, 7, 1, 'p'), (1, 8, 1, 's')) AS t(class, person, records, link_0)"
        )
        connection.execute(combinations_sql("written", ['"q"']))
        owners = person_pseudonyms_sql(classed_persons_sql("classes", "people", 1), [0])
        [(number,)] = connection.execute("SELECT combination FROM combinations").fetchall()
        found = connection.execute(f"SELECT combination, person, link_0 FROM {owners} ORDER BY person").fetchall()
        [row] = connection.execute(linked_sql("written", ['"q"'], ['"link"'], 1, owners)).fetchall()
    assert found == [(number, 7, "p"), (None, 8, "s")]
    assert LinkCount(("link",), True, *row).unexpected
