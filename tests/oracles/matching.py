"""How many records of a release can be given a record of the source each: by augmenting paths, one record at a time (Kuhn 1955)."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def matched(covers: Sequence[Collection[int]], values: Sequence[int]) -> int:
    """Return the most records that can have a value of their own.

    Args:
        covers: Of each released record, the values that its label covers.
        values: Of each record of the source, its value.
    """
    taken: dict[int, int] = {}

    def place(record: int, seen: set[int]) -> bool:
        for number, value in enumerate(values):
            if value in covers[record] and number not in seen:
                seen.add(number)
                if number not in taken or place(taken[number], seen):
                    taken[number] = record
                    return True
        return False

    return sum(place(record, set()) for record in range(len(covers)))
