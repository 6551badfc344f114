"""A class has as many persons as there are different ones in it, however they are shared out, and no bound is on the wrong side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from core.units.pairs import Pairs
from core.units.persons import CellPersons, RowPersons, share_of

RECORDS = st.lists(st.tuples(st.none() | st.integers(0, 6), st.integers(0, 9)), max_size=60)
CLASSES = st.lists(st.integers(0, 4), min_size=10, max_size=10)


def persons_of(records: Sequence[tuple[int | None, int]], shares: int = 1, chunks: int = 1) -> CellPersons:
    # Spread over all digests, so that every share has somebody.
    digests = np.array([0 if person is None else (person + 1) * (2**61 + 12345) % 2**64 for person, _ in records], np.uint64)
    cells = np.array([cell for _, cell in records], np.int64)
    parts = [Pairs.of(digests[first::chunks], cells[first::chunks]) for first in range(chunks)]
    return CellPersons.of([share_of([part.share(number, shares) for part in parts], 10) for number in range(shares)])


def people_in(records: Sequence[tuple[int | None, int]], classes: Sequence[int]) -> list[int]:
    return [len({person for person, cell in records if person is not None and classes[cell] == one}) for one in range(5)]


def test_a_share_knows_how_many_records_the_one_has_who_has_most() -> None:
    one = Pairs(np.array([5, 5, 9], np.uint64), np.array([0, 1, 1]), np.array([200, 300, 400]))
    other = Pairs(np.array([5, 7], np.uint64), np.array([1, 0]), np.array([30, 601]))
    found = share_of([one, other], 2)
    assert (found.size, found.most_records, found.per_cell.tolist()) == (3, 601, [2, 2])
    assert share_of([one, other, other], 2).most_records == 1202
    assert share_of([one], 2).most_records == 500


@given(RECORDS, CLASSES, st.integers(1, 5), st.integers(1, 4))
def test_persons_of_classes_are_counted_exactly_whatever_the_shares_and_chunks(
    records: list[tuple[int | None, int]], classes: list[int], shares: int, chunks: int
) -> None:
    persons = persons_of(records, shares, chunks)
    assert persons.count(np.array(classes), 5).tolist() == people_in(records, classes)
    assert persons.per_cell.tolist() == persons.count(np.arange(10), 10).tolist()


@given(RECORDS, CLASSES)
def test_the_order_of_records_changes_nothing(records: list[tuple[int | None, int]], classes: list[int]) -> None:
    backwards = persons_of(records[::-1])
    assert backwards.count(np.array(classes), 5).tolist() == persons_of(records).count(np.array(classes), 5).tolist()


@given(RECORDS, CLASSES)
def test_persons_are_between_both_bounds_and_never_fewer_in_a_union(records: list[tuple[int | None, int]], classes: list[int]) -> None:
    persons, owners = persons_of(records), np.array(classes)
    parts = persons.per_cell
    # Everybody has one first cell.
    assert persons.least().sum() == len({person for person, _ in records if person is not None})
    for one, people in enumerate(people_in(records, classes)):
        mine = owners == one
        assert persons.least()[mine].sum() <= people <= parts[mine].sum()
        assert parts[mine].max(initial=0) <= people
        assert people <= sum(classes[cell] == one for person, cell in records if person is not None)


@given(RECORDS)
def test_only_what_is_asked_for_is_counted(records: list[tuple[int | None, int]]) -> None:
    persons, owners = persons_of(records, 2), np.arange(10) % 5
    asked = persons.count_repeated_pairs(owners, np.array([-1, 1, -1, 0, -1]), 2)
    every = persons.count_repeated_pairs(owners, np.arange(5), 5)
    assert asked.tolist() == every[[3, 1]].tolist()


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 4)), max_size=40))
def test_a_partition_of_records_is_counted_as_cells_are(records: list[tuple[int, int]]) -> None:
    persons = RowPersons.of_records(np.array([person for person, _ in records], np.int32)).persons
    counts = persons.count(np.array([one for _, one in records], np.int64), 5)
    assert counts.tolist() == [len({person for person, mine in records if mine == one and person >= 0}) for one in range(5)]


def test_somebody_with_sixty_records_or_with_all_of_them_is_one_person() -> None:
    records: list[tuple[int | None, int]] = [(0, cell % 10) for cell in range(60)] + [(1, 3), (2, 3), (2, 4), (None, 4)]
    assert persons_of(records).count(np.zeros(10, np.int64), 1).tolist() == [3]
    assert persons_of(records).per_cell.tolist() == [1, 1, 1, 3, 2, 1, 1, 1, 1, 1]
    assert persons_of(records[:60]).count(np.zeros(10, np.int64), 1).tolist() == [1]


@given(RECORDS, st.sets(st.integers(0, 9)), CLASSES, st.integers(1, 3))
def test_some_of_the_cells_count_their_people_alone(
    records: list[tuple[int | None, int]], rows: set[int], classes: list[int], shares: int
) -> None:
    kept = np.array(sorted(rows), np.intp)
    taken = persons_of(records, shares).take(kept)
    mine = [(person, cell) for person, cell in records if cell in rows]
    assert taken.count(np.array(classes)[kept], 5).tolist() == people_in(mine, classes)


@given(RECORDS, CLASSES, st.lists(st.integers(0, 2), min_size=5, max_size=5), st.integers(1, 3))
def test_coarser_cells_count_the_same_people(
    records: list[tuple[int | None, int]], coarser: list[int], classes: list[int], shares: int
) -> None:
    persons, merged = persons_of(records, shares), persons_of(records, shares).merged(np.array(coarser), 5)
    assert merged.per_cell.tolist() == people_in(records, coarser)
    assert merged.count(np.array(classes), 3).tolist() == persons.count(np.array(classes)[coarser], 3).tolist()


@given(RECORDS, CLASSES, st.sets(st.integers(0, 4)), st.lists(st.integers(0, 4), min_size=5, max_size=5), st.integers(1, 3))
@example([(0, 0), (0, 1), (1, 2)], [1, 0, 4] + [2] * 7, {0, 1, 4}, [0] * 5, 1)
def test_some_of_coarser_cells_count_their_people_alone(
    records: list[tuple[int | None, int]], coarser: list[int], rows: set[int], classes: list[int], shares: int
) -> None:
    """A person may come to the first of the coarser cells after others."""
    kept = np.array(sorted(rows), np.intp)
    taken = persons_of(records, shares).merged(np.array(coarser), 5).take(kept)
    mine = [(person, cell) for person, cell in records if coarser[cell] in rows]
    assert taken.count(np.array(classes)[kept], 5).tolist() == people_in(mine, [classes[one] for one in coarser])


def test_the_most_records_of_one_person_are_counted_over_all_rows() -> None:
    digests, rows = np.array([5, 5, 5, 5, 9, 9, 7, 0], np.uint64), np.array([0, 0, 0, 1, 1, 1, 0, 2])
    assert RowPersons.of_pairs([Pairs.of(digests, rows)], 3).figures() == (3, 4)
    assert RowPersons.of_digests(digests).figures() == (3, 4)
    assert RowPersons.of_digests(digests[:0]).figures() == (0, 0)


@given(RECORDS, st.lists(st.integers(-2, 4), min_size=10, max_size=10))
def test_who_was_there_before_is_nobody_new(records: list[tuple[int | None, int]], classes: list[int]) -> None:
    """Cells of class -2 come before all others, -1 is not asked for."""
    owners = np.array(classes)
    found = persons_of(records, 2).persons_not_before(owners == -2, np.maximum(owners, -1), 5)
    before = {person for person, cell in records if owners[cell] == -2}
    for one in range(5):
        mine = {person for person, cell in records if owners[cell] == one}
        assert found[one] == len(mine - before - {None})


@given(RECORDS, st.lists(st.integers(-1, 4), min_size=10, max_size=10), st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_cells_of_no_class_are_counted_in_none(records: list[tuple[int | None, int]], classes: list[int], values: list[int]) -> None:
    persons, owners, codes = persons_of(records, 2), np.array(classes), np.array(values)
    assert persons.count(owners, 5).tolist() == people_in(records, classes)[:5]
    spread = persons.spread(owners, codes, np.ones(3, np.int64))
    found = dict(zip(zip(spread.owners.tolist(), spread.values.tolist(), strict=True), spread.counts.tolist(), strict=True))
    pairs = {(classes[cell], values[cell], person) for person, cell in records if classes[cell] >= 0 and person is not None}
    assert found == Counter((owner, value) for owner, value, _ in pairs)


@given(RECORDS, CLASSES, CLASSES, st.booleans())
def test_persons_of_rows_are_counted_with_their_values_whether_a_row_is_one_record_or_several(
    records: list[tuple[int | None, int]], classes: list[int], values: list[int], several: bool
) -> None:
    """A row of several records has those of one cell, in two parts; a single one is in class and has the value of its cell all the same."""
    digests = np.array([0 if person is None else (person + 1) * (2**61 + 12345) % 2**64 for person, _ in records], np.uint64)
    cells = np.array([cell for _, cell in records], np.int64)
    if several:
        persons = RowPersons.of_pairs([Pairs.of(digests[part], cells[part]) for part in (slice(None, 9), slice(9, None))], 10)
        class_of, value_of = np.array(classes) - 1, np.array(values)
        assert persons.people is None
    else:
        persons = RowPersons.of_digests(digests)
        class_of, value_of = (np.array(given)[cells] for given in (np.array(classes) - 1, values))
        assert [person is None for person, _ in records] == (persons.numbers == -1).tolist()
    known = {person for person, _ in records if person is not None}
    assert persons.size == max(persons.numbers.tolist(), default=-1) + 1
    most = Counter(person for person, _ in records if person is not None)
    assert persons.figures() == (len(known), max(most.values(), default=0))
    held = {(classes[cell] - 1, values[cell], person) for person, cell in records if person is not None and classes[cell]}
    assert persons.count(class_of, 4).tolist() == [len({person for one, _, person in held if one == mine}) for mine in range(4)]
    found, there = persons.spread(class_of, value_of, np.ones(5, np.int64)), Counter((one, value) for one, value, _ in held)
    assert dict(zip(zip(found.owners.tolist(), found.values.tolist(), strict=True), found.counts.tolist(), strict=True)) == there


@given(st.lists(st.tuples(st.integers(-1, 9), st.booleans()), max_size=20))
@example([(7, True), (0, True), (-1, True), (7, True), (3, False), (9, True)])
@example([(2, True), (5, True), (-1, False)])
def test_some_of_the_records_have_their_persons_without_gaps_and_nobody_stays_nobody(records: list[tuple[int, bool]]) -> None:
    whose, rows = [person for person, _ in records], [row for row, (_, is_taken) in enumerate(records) if is_taken]
    some = RowPersons.of_records(np.array(whose, np.int32)).take(np.array(rows, np.intp))
    left = [whose[row] for row in rows]
    assert some.people is not None
    assert some.people.tolist() == left
    people, dense = sorted({person for person in left if person >= 0}), some.dense()
    assert dense.numbers.dtype == np.int32
    assert dense.numbers.tolist() == [people.index(person) if person >= 0 else -1 for person in left]
    assert (dense.size, dense.of) == (len(people), len(left))
