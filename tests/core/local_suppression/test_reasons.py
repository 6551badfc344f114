"""Every record that is suppressed has one reason, and it is true of the last class that was tried for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.models import Closeness, DistinctDiversity
from core.privacy.promise import Promise
from tests.core.local_suppression.test_people_left import PeopleCase, has_too_many_cells, made_with_people, people_cases
from tests.core.local_suppression.test_suppressed_records import Case, Made, as_text, cases, level_of, made_of
from tests.laws import tried
from tests.oracles import lattice

ASKED = st.builds(
    lambda k, other: Promise(k, (other,)),
    st.integers(1, 4),
    st.builds(DistinctDiversity, st.just("x"), st.integers(1, 3)) | st.builds(Closeness, st.just("x"), st.sampled_from([0.1, 0.25, 0.5])),
)


def reasons(made: Made, case: Case, people: Sequence[Any]) -> list[str | None]:
    """What each record lacks, counted record by record; None for those that are not suppressed, and ``pool`` where stars decide."""
    k, ladders = case.model.k, case.example.ladders
    parts = [level_of(made, position, case) for position in range(len(people))]
    masked = [node is not None and all(withheld) and index > 0 for node, withheld, index in parts]
    found: list[str | None] = ["k" if mask else None for mask in masked]
    left = list(range(len(people)))
    for level in made.levels:
        classes: defaultdict[Any, list[int]] = defaultdict(list)
        for position in left:
            classes[tuple(map(as_text, lattice.published(case.example.rows[position], ladders, level.node)))].append(position)
        enough = {one for members in classes.values() if persons(people, members) >= k for one in members}
        found = ["spread" if one in enough and made.rows[one] is None else why for one, why in enumerate(found)]
        left = [position for position in left if position not in enough]
    pool = {"drop": "k", "mask": "spread" if persons(people, left) >= k else "k", "cell": "pool"}[case.treatment]
    return [pool if one in left and made.rows[one] is None else why for one, why in enumerate(found)]


def persons(people: Sequence[Any], members: Sequence[int]) -> int:
    return len({people[member] for member in members} - {None})


def assert_true(made: Made, case: Case, people: Sequence[Any]) -> None:
    told, suppressed, uneven = Counter(reasons(made, case, people)), made.costs.suppressed, made.treated.uneven
    del told[None]
    assert told.total() == suppressed
    # Of pools that stars make it is only known here that each has one of both reasons.
    assert 0 <= uneven - told["spread"] <= told["pool"]
    assert 0 <= suppressed - uneven - told["k"] <= told["pool"]


@given(cases() | cases(ASKED), st.sampled_from(["drop", "mask", "cell"]))
@tried(300)
def test_reasons_are_those_of_every_record(case: Case, treatment: Any) -> None:
    asked = replace(case, treatment=treatment)
    assert_true(made_of(asked), asked, range(len(case.values)))


@given(people_cases())
@tried(200)
def test_reasons_are_those_of_every_record_where_people_count(asked: PeopleCase) -> None:
    assert_true(made_with_people(asked), asked.case, asked.people)


@pytest.mark.parametrize("treatment", ["drop", "mask", "cell"])
@pytest.mark.parametrize("seed", range(20))
def test_so_it_is_where_people_are_in_many_classes(seed: int, treatment: Any) -> None:
    asked = has_too_many_cells(seed)
    asked = replace(asked, case=replace(asked.case, treatment=treatment))
    assert_true(made_with_people(asked), asked.case, asked.people)
