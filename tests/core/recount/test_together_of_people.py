"""Persons who share what is published are counted as sets of them are."""

from __future__ import annotations

from collections import defaultdict

import duckdb
import numpy as np
import pytest

from core.recount.together import together_of_people_sql

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
        [found] = connection.execute(together_of_people_sql("contents", K)).fetchall()
    # A semi-join leaves out what has no combination.
    within = [people for (combination, _), people in cells.items() if combination is not None and len(people) < K]
    assert found[:3] == tuple(len(set[int]().union(*groups)) for groups in (alone, below, within))
    assert all(found[:3])
