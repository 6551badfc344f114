"""Persons who share what is published are counted as sets of them are."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

from core.recount.groups import TogetherCount, combination_claims, person_combination_counts_sql
from core.recount.people import classed_persons_sql, holders_sql
from schemas.release.figures import KINDS, Together

K = 3


@pytest.mark.parametrize("seed", range(5))
def test_persons_are_counted_as_sets_of_them(seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(0, [4, 9, 25], (60, 3)).tolist()
    # Person 0 is nobody; what stands for no class of the files has no combination.
    rows = sorted({(combination or None, person, content) for combination, person, content in drawn}, key=str)
    whole: dict[int, set[int]] = defaultdict(set)
    cells: dict[tuple[int | None, int], set[int]] = defaultdict(set)
    for combination, person, content in rows:
        whole[content] |= {person} - {0}
        cells[combination, content] |= {person} - {0}
    alone = [people for people in whole.values() if len(people) == 1]
    below = [people for people in whole.values() if len(people) < K]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE contents (combination UINTEGER, person UBIGINT, content UBIGINT, records BIGINT)")
        connection.executemany("INSERT INTO contents VALUES (?, ?, ?, 1)", rows)
        [found] = connection.execute(person_combination_counts_sql("contents", K)).fetchall()
    # A semi-join leaves out what has no combination.
    within = [people for (combination, _), people in cells.items() if combination is not None and len(people) < K]
    assert found[:3] == tuple(len(set[int]().union(*groups)) for groups in (alone, below, within))
    assert all(found[:3])


def test_contents_are_those_of_persons_by_what_their_classes_publish() -> None:
    """Two classes publish the same, one has a null, and one is of no file: its persons stay, without a combination."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE combinations AS FROM (VALUES (1, 'a', '5'), (2, 'b', NULL)) AS t(combination, label_0, label_1)")
        connection.execute(
            "CREATE TABLE classes AS FROM (VALUES (0, 'a', 5), (1, 'a', 5), (2, 'b', NULL), (3, 'c', 5)) AS t(class, label_0, label_1)"
        )
        rows = [(0, 7, 40, 1), (1, 7, 40, 2), (1, 7, 41, 4), (1, 8, 40, 1), (2, 7, 40, 3), (3, 9, 42, 2), (4, 9, 42, 1)]
        connection.execute("CREATE TABLE people (class INTEGER, person UBIGINT, insensitive UBIGINT, records BIGINT)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        connection.execute(holders_sql(classed_persons_sql("classes", "people", 2), ["p.insensitive AS content"], "contents"))
        found = connection.execute("SELECT combination, person, content, records FROM contents").fetchall()
    assert set(found) == {(1, 7, 40, 3), (1, 7, 41, 4), (1, 8, 40, 1), (2, 7, 40, 3), (None, 9, 42, 3)}


def test_what_a_manifest_says_of_columns_together_is_held_against_what_was_counted() -> None:
    [first, *others], counted = KINDS, TogetherCount(1, 7, 9, "")

    def faults(said: Together | None, found: TogetherCount | None = counted, unit: str = "record") -> int:
        manifest: Any = SimpleNamespace(privacy={"k": K}, together=lambda kind: said if kind == first else None)
        return len(combination_claims(manifest, dict.fromkeys(others, counted) | ({first: found} if found else {}), unit, 40))

    # One who is alone is told as fewer than k.
    true = Together(unique_records=K, below_k=7, with_classes=9, unit="record", all=40)
    assert faults(true) == faults(None) == 0
    for wrong in ({"unique_records": 1}, {"below_k": 8}, {"with_classes": 8}, {"all": 41}):
        assert faults(true.model_copy(update=wrong)) == 1
    assert faults(true, None) == 1
    persons = true.model_copy(update={"unit": "person"})
    assert faults(persons, unit="person") == 0
    assert faults(persons, None, unit="person") == 0, "persons who are not at hand cannot be counted"
    assert faults(persons.model_copy(update={"below_k": 8}), unit="person") == 1
    assert faults(persons.model_copy(update={"below_k": 8}), unit="record") == 0, "what another unit counts is another question"
