"""A class has as many persons as there are different ones in it, however they are shared out, and no bound is on the wrong side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.persons.pairs import Pairs
from core.persons.visits import Visits, share_of

RECORDS = st.lists(st.tuples(st.none() | st.integers(0, 6), st.integers(0, 9)), max_size=60)
CLASSES = st.lists(st.integers(0, 4), min_size=10, max_size=10)


def visits_of(records: Sequence[tuple[int | None, int]], shares: int = 1, chunks: int = 1) -> Visits:
    # Spread over all digests, so that every share has somebody.
    digests = np.array([0 if person is None else (person + 1) * (2**61 + 12345) % 2**64 for person, _ in records], np.uint64)
    cells = np.array([cell for _, cell in records], np.int64)
    parts = [Pairs.of(digests[first::chunks], cells[first::chunks]) for first in range(chunks)]
    return Visits.of([share_of([part.share(number, shares) for part in parts], 10) for number in range(shares)])


def people_in(records: Sequence[tuple[int | None, int]], classes: Sequence[int]) -> list[int]:
    return [len({person for person, cell in records if person is not None and classes[cell] == one}) for one in range(5)]


@given(RECORDS, CLASSES, st.integers(1, 5), st.integers(1, 4))
def test_persons_of_classes_are_counted_exactly_whatever_the_shares_and_chunks(
    records: list[tuple[int | None, int]], classes: list[int], shares: int, chunks: int
) -> None:
    visits = visits_of(records, shares, chunks)
    assert visits.count(np.array(classes), 5).tolist() == people_in(records, classes)
    assert visits.per_cell.tolist() == visits.count(np.arange(10), 10).tolist()


@given(RECORDS, CLASSES)
def test_the_order_of_records_changes_nothing(records: list[tuple[int | None, int]], classes: list[int]) -> None:
    backwards = visits_of(records[::-1])
    assert backwards.count(np.array(classes), 5).tolist() == visits_of(records).count(np.array(classes), 5).tolist()


@given(RECORDS, CLASSES)
def test_persons_are_between_both_bounds_and_never_fewer_in_a_union(records: list[tuple[int | None, int]], classes: list[int]) -> None:
    visits, owners = visits_of(records), np.array(classes)
    parts = visits.per_cell
    for one, people in enumerate(people_in(records, classes)):
        mine = owners == one
        assert visits.least()[mine].sum() <= people <= parts[mine].sum()
        assert parts[mine].max(initial=0) <= people
        assert people <= sum(classes[cell] == one for person, cell in records if person is not None)


@given(RECORDS)
def test_only_what_is_asked_for_is_counted(records: list[tuple[int | None, int]]) -> None:
    visits, owners = visits_of(records, 2), np.arange(10) % 5
    asked = visits.repeats(owners, np.array([-1, 1, -1, 0, -1]), 2)
    every = visits.repeats(owners, np.arange(5), 5)
    assert asked.tolist() == every[[3, 1]].tolist()


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 4)), max_size=40))
def test_a_partition_of_records_is_counted_as_cells_are(records: list[tuple[int, int]]) -> None:
    visits = Visits.of_records(np.array([person for person, _ in records], np.int32))
    counts = visits.count(np.array([one for _, one in records], np.int64), 5)
    assert counts.tolist() == [len({person for person, mine in records if mine == one and person >= 0}) for one in range(5)]


def test_somebody_with_sixty_records_or_with_all_of_them_is_one_person() -> None:
    records: list[tuple[int | None, int]] = [(0, cell % 10) for cell in range(60)] + [(1, 3), (2, 3), (2, 4), (None, 4)]
    assert visits_of(records).count(np.zeros(10, np.int64), 1).tolist() == [3]
    assert visits_of(records).per_cell.tolist() == [1, 1, 1, 3, 2, 1, 1, 1, 1, 1]
    assert visits_of(records[:60]).count(np.zeros(10, np.int64), 1).tolist() == [1]


@given(RECORDS, st.sets(st.integers(0, 9)), CLASSES, st.integers(1, 3))
def test_visits_to_some_of_the_cells_count_their_people_alone(
    records: list[tuple[int | None, int]], rows: set[int], classes: list[int], shares: int
) -> None:
    kept = np.array(sorted(rows), np.intp)
    taken = visits_of(records, shares).taken(kept)
    mine = [(person, cell) for person, cell in records if cell in rows]
    assert taken.count(np.array(classes)[kept], 5).tolist() == people_in(mine, classes)


@given(RECORDS, CLASSES, st.lists(st.integers(0, 2), min_size=5, max_size=5), st.integers(1, 3))
def test_visits_to_coarser_cells_count_the_same_people(
    records: list[tuple[int | None, int]], coarser: list[int], classes: list[int], shares: int
) -> None:
    visits, merged = visits_of(records, shares), visits_of(records, shares).merged(np.array(coarser), 5)
    assert merged.per_cell.tolist() == people_in(records, coarser)
    assert merged.count(np.array(classes), 3).tolist() == visits.count(np.array(classes)[coarser], 3).tolist()


@given(RECORDS, st.lists(st.integers(-2, 4), min_size=10, max_size=10), st.lists(st.integers(0, 1), min_size=10, max_size=10))
def test_who_was_there_before_is_nobody_new(records: list[tuple[int | None, int]], classes: list[int], kinds: list[int]) -> None:
    """Cells of class -2 come before all others, -1 is not asked for; a class is of one kind, and only cells of that kind come before it."""
    owners, kind = np.array(classes), np.array(kinds)
    owners = np.where((owners >= 0) & (owners % 2 != kind), -1, owners)
    found = visits_of(records, 2).besides(kind, owners == -2, np.maximum(owners, -1), 5)
    for one in range(5):
        before = {person for person, cell in records if owners[cell] == -2 and kind[cell] == one % 2}
        mine = {person for person, cell in records if owners[cell] == one}
        assert found[one] == len(mine - before - {None})
