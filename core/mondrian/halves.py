"""Kernels that check whether both halves of a cut keep the privacy model, compiled by numba.

They count records or persons.
"""

from __future__ import annotations

import numpy as np

from core.mondrian.rows import Bounds, Cut, CutBuffers, Numbers, PersonsByRow, Rows, is_left_of_cut, whole
from core.privacy.kernels import Demands, class_keeps, kernel
from core.privacy.refusals import refusal_discloses

Spreads = tuple[int, int, int, int]


@kernel
def is_allowed_cut(
    rows: Rows,
    bounds: Bounds,
    cut: Cut,
    left: int,
    weight: int,
    k: int,
    demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
) -> bool:
    """Return whether both halves of a cut have k units and keep what a privacy model demands, if any.

    Args:
        left: Records of the left half.
        weight: Records of both.
        k: Persons that both must have; records where the job has no person column.
        demands: What both must keep besides; None for nothing, and then what looks at sensitive values is not even compiled.
    """
    # Two comparisons before a pass over all rows: nobody is more persons than there are records.
    if left < k or weight - left < k:
        return False
    if not _enough(rows, bounds, cut, k, people):
        return False
    if demands is None:
        return True
    kept = True
    for column in range(rows.sensitive.shape[1]):
        kept = _spread_enough(rows, bounds, cut, column, demands, people, room)
        if not kept:
            break
    return kept


@kernel
def keeps_without_disclosure(rows: Rows, bounds: Bounds, cut: Cut, demands: Demands, people: PersonsByRow | None, room: CutBuffers) -> bool:
    """Check that both halves meet the model beyond k and a refused cut would reveal no sensitive value.

    Args:
        cut: A cut that leaves k on both sides.
        demands: What both must keep besides.
        people: Whose the records are; None where every record counts.
    """
    persons = _persons(rows, bounds, cut, people)
    for column in range(rows.sensitive.shape[1]):
        codes, totals, sizes = _values(rows, bounds, cut, column, room)
        if refusal_discloses(codes, totals, sizes, sizes if people is None else persons, column, demands, room.counts, room.present):
            return False
    # Only now, when no column speaks against trying: which half fails must not decide what is tried.
    kept = True
    for column in range(rows.sensitive.shape[1]):
        kept = kept and _spread_enough(rows, bounds, cut, column, demands, people, room)
    return kept


@kernel
def _values(rows: Rows, bounds: Bounds, cut: Cut, column: int, room: CutBuffers) -> tuple[Numbers, Numbers, Numbers]:
    """Return a node's sensitive values, the records of each value, and the records of both halves."""
    left, left_size, right, right_size = _spread(rows, bounds, cut, column, room)
    codes, totals = np.empty(left_size + right_size, np.int64), np.empty(left_size + right_size, np.int64)
    size = left_size
    for index in range(left_size):
        code = room.present[0, index]
        codes[index], totals[index] = code, room.counts[0, code] + room.counts[1, code]
        room.counts[0, code] = room.counts[1, code] = 0
    for index in range(right_size):
        code = room.present[1, index]
        # What is in both halves was taken, and emptied, before.
        if room.counts[1, code] > 0:
            codes[size], totals[size] = code, room.counts[1, code]
            room.counts[1, code] = 0
            size += 1
    sizes = np.empty(2, np.int64)
    sizes[0], sizes[1] = left, right
    return codes[:size], totals[:size], sizes


@kernel
def _enough(rows: Rows, bounds: Bounds, cut: Cut, k: int, people: PersonsByRow | None) -> bool:
    """Return whether both halves of a cut have records of k different persons."""
    if people is None:
        return True
    # Arrays by names of their own: for each use of a tuple's numba would count references, which costs more than the loop.
    starts, persons, seen, order, ranks = people.starts, people.persons, people.person_marks, rows.order, rows.ranks
    qid, most, last = cut
    stamp = _next_stamp(people)
    left = right = whole(0)
    for row in range(bounds[0], bounds[1]):
        number = order[row]
        rank = np.int64(ranks[row, qid])
        half = whole(1) if is_left_of_cut(rank, number, most, last) else whole(2)
        for visit in range(starts[number], starts[number + 1]):
            person = persons[visit]
            met = max(seen[person], stamp)
            if met & half == 0:
                seen[person] = met | half
                if half == 1:
                    left += 1
                else:
                    right += 1
        # Halves of many persons, which most are, need not be read to their end.
        if left >= k and right >= k:
            return True
    return False


@kernel
def _persons(rows: Rows, bounds: Bounds, cut: Cut, people: PersonsByRow | None) -> Numbers:
    """Return the number of different persons in both halves, shape (2,); 0 without a person column."""
    found = np.zeros(2, np.int64)
    if people is None:
        return found
    starts, persons, seen, order, ranks = people.starts, people.persons, people.person_marks, rows.order, rows.ranks
    qid, most, last = cut
    stamp = _next_stamp(people)
    for row in range(bounds[0], bounds[1]):
        number = order[row]
        half = whole(0) if is_left_of_cut(np.int64(ranks[row, qid]), number, most, last) else whole(1)
        for visit in range(starts[number], starts[number + 1]):
            person = persons[visit]
            met = max(seen[person], stamp)
            if met & (half + 1) == 0:
                seen[person] = met | (half + 1)
                found[half] += 1
    return found


@kernel
def _next_stamp(people: PersonsByRow) -> int:
    """Return the stamp of a new pass over persons.

    It is above all earlier stamps, and its two lowest bits are free for the halves.
    """
    people.passes[0] += 1
    return int(people.passes[0]) << 2


@kernel
def _spread_enough(
    rows: Rows, bounds: Bounds, cut: Cut, column: int, demands: Demands, people: PersonsByRow | None, room: CutBuffers
) -> bool:
    """Return whether both halves of a cut keep the privacy model in one sensitive column."""
    if people is None:
        left, left_size, right, right_size = _spread(rows, bounds, cut, column, room)
    else:
        left, left_size, right, right_size = _spread_of_people(rows, bounds, cut, column, people, room)
    left_persons, right_persons = left, right
    if people is not None and demands.holder_bounds.columns_bounded[column]:
        persons = _persons(rows, bounds, cut, people)
        left_persons, right_persons = persons[0], persons[1]
    kept = class_keeps(left, left_persons, room.counts[0], room.present[0], left_size, column, demands)
    kept = kept and class_keeps(right, right_persons, room.counts[1], room.present[1], right_size, column, demands)
    # Only what was touched: a node of ten rows must not pay for a column of a thousand values.
    for index in range(left_size):
        room.counts[0, room.present[0, index]] = 0
    for index in range(right_size):
        room.counts[1, room.present[1, index]] = 0
    return kept


@kernel
def _spread(rows: Rows, bounds: Bounds, cut: Cut, column: int, room: CutBuffers) -> Spreads:
    """Count the records of each sensitive value in both halves of a cut.

    Return the total and the number of values of the left half, then those of the right half.
    """
    ranks, weights, sensitive, order = rows.ranks, rows.weights, rows.sensitive, rows.order
    counts, present = room.counts, room.present
    qid, most, last = cut
    left = left_size = right = right_size = whole(0)
    for row in range(bounds[0], bounds[1]):
        code, weight = np.int64(sensitive[row, column]), weights[row]
        if is_left_of_cut(np.int64(ranks[row, qid]), order[row], most, last):
            if counts[0, code] == 0:
                present[0, left_size] = code
                left_size += 1
            counts[0, code] += weight
            left += weight
        else:
            if counts[1, code] == 0:
                present[1, right_size] = code
                right_size += 1
            counts[1, code] += weight
            right += weight
    return left, left_size, right, right_size


@kernel
def _spread_of_people(rows: Rows, bounds: Bounds, cut: Cut, column: int, people: PersonsByRow, room: CutBuffers) -> Spreads:
    """Count the persons of each sensitive value in both halves of a cut.

    A person counts once for each of their values in a half. Return what ``_spread`` returns.
    """
    starts, values, seen, order = people.starts, people.values, people.value_marks, rows.order
    sensitive, counts, present, ranks = rows.sensitive, room.counts, room.present, rows.ranks
    qid, most, last = cut
    stamp = _next_stamp(people)
    left = left_size = right = right_size = whole(0)
    for row in range(bounds[0], bounds[1]):
        number, code, rank = order[row], np.int64(sensitive[row, column]), np.int64(ranks[row, qid])
        half = whole(0) if is_left_of_cut(rank, number, most, last) else whole(1)
        for visit in range(starts[number], starts[number + 1]):
            value = values[column, visit]
            met = max(seen[value], stamp)
            if met & (half + 1) == 0:
                seen[value] = met | (half + 1)
                if counts[half, code] == 0:
                    present[half, right_size if half else left_size] = code
                    left_size += 1 - half
                    right_size += half
                counts[half, code] += 1
                left += 1 - half
                right += half
    return left, left_size, right, right_size
