"""Whether both halves of a cut keep what is promised, in records or in persons; compiled by numba."""

from __future__ import annotations

from core.mondrian.rows import Bounds, Cut, People, Room, Rows, goes_left, whole
from core.privacy.kernels import Demands, keeps, kernel


@kernel
def allowed(rows: Rows, bounds: Bounds, cut: Cut, left: int, weight: int, k: int, demands: Demands | None, room: Room) -> bool:
    """Tells whether both halves of a cut keep the privacy model.

    Args:
        rows: All rows.
        bounds: First row of the node and one past its last.
        cut: The cut.
        left: Records of the left half.
        weight: Records of both.
        k: Persons that both must have; records where no person is named.
        demands: What both must keep besides; None for nothing, and then what looks at sensitive values is not even compiled.
        room: Scratch.
    """
    # Two comparisons before a pass over all rows: nobody is more persons than there are records.
    if left < k or weight - left < k:
        return False
    if not _enough(rows, bounds, cut, k, rows.people):
        return False
    if demands is None:
        return True
    kept = True
    for column in range(rows.sensitive.shape[1]):
        kept = _spread_enough(rows, bounds, cut, column, demands, room)
        if not kept:
            break
    return kept


@kernel
def _enough(rows: Rows, bounds: Bounds, cut: Cut, k: int, people: People | None) -> bool:
    """Tells whether both halves have records of k different persons."""
    if people is None:
        return True
    stamp = _next_stamp(people)
    left = right = whole(0)
    for row in range(bounds[0], bounds[1]):
        number = rows.order[row]
        half = whole(1) if goes_left(rows, row, cut) else whole(2)
        for visit in range(people.starts[number], people.starts[number + 1]):
            person = people.persons[visit]
            people.seen[person] = max(people.seen[person], stamp)
            if people.seen[person] & half == 0:
                people.seen[person] |= half
                if half == 1:
                    left += 1
                else:
                    right += 1
        # Halves of many persons, which most are, need not be read to their end.
        if left >= k and right >= k:
            return True
    return False


@kernel
def _next_stamp(people: People) -> int:
    """Begins a pass over persons; its stamp is above all earlier ones, and its two lowest bits are free for the halves."""
    people.passes[0] += 1
    return people.passes[0] << 2


@kernel
def _spread_enough(rows: Rows, bounds: Bounds, cut: Cut, column: int, demands: Demands, room: Room) -> bool:
    """Tells whether both halves keep the privacy model in one sensitive column."""
    left = right = left_size = right_size = whole(0)
    stamp = _stamped(rows.people)
    for row in range(bounds[0], bounds[1]):
        code = rows.sensitive[row, column]
        if goes_left(rows, row, cut):
            added = _told(rows, row, column, stamp, whole(1), rows.people)
            if added > 0 and room.counts[0, code] == 0:
                room.present[0, left_size] = code
                left_size += 1
            room.counts[0, code] += added
            left += added
        else:
            added = _told(rows, row, column, stamp, whole(2), rows.people)
            if added > 0 and room.counts[1, code] == 0:
                room.present[1, right_size] = code
                right_size += 1
            room.counts[1, code] += added
            right += added
    kept = keeps(left, room.counts[0], room.present[0], left_size, column, demands)
    kept = kept and keeps(right, room.counts[1], room.present[1], right_size, column, demands)
    # Only what was touched: a node of ten rows must not pay for a column of a thousand values.
    for index in range(left_size):
        room.counts[0, room.present[0, index]] = 0
    for index in range(right_size):
        room.counts[1, room.present[1, index]] = 0
    return kept


@kernel
def _stamped(people: People | None) -> int:
    if people is None:
        return whole(0)
    return _next_stamp(people)


@kernel
def _told(rows: Rows, row: int, column: int, stamp: int, half: int, people: People | None) -> int:
    """Returns by how much a row adds to the count of its value in a half: its records, or the persons who had not told it there yet."""
    if people is None:
        return rows.weights[row]
    added, number = whole(0), rows.order[row]
    for visit in range(people.starts[number], people.starts[number + 1]):
        told = people.values[column, visit]
        people.seen_values[told] = max(people.seen_values[told], stamp)
        if people.seen_values[told] & half == 0:
            people.seen_values[told] |= half
            added += 1
    return added
