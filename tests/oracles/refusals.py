"""Whether the refusal of a cut discloses something, by going through the ways to give a class's values to its people one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Values = Mapping[Any, int]
"""Records by value; None is no value."""
FIRST = 8


def discloses(
    values: Values, sizes: Sequence[int], persons: Sequence[int], fails: Callable[[Values], bool], least: int, fewest: Any = None
) -> bool:
    """Tells whether somebody is left with too few possible values, or with one that he surely has.

    Args:
        values: The class.
        sizes: Records of both halves.
        persons: Their persons.
        fails: Whether a half with these values breaks the model.
        least: How many possible values everybody must be left with.
        fewest: How many of so many persons are too many to hold a value; None where nobody asks who holds a value.
    """
    possible: list[set[Any]] = [set(), set()]
    lacked: list[set[Any]] = [set(), set()]
    failed = False
    for half in range(2):
        for mine, other in filled(values, sizes, half):
            if fails(mine) or fails(other):
                failed = True
                for place, there in ((half, mine), (1 - half, other)):
                    possible[place] |= {value for value, count in there.items() if count}
                    lacked[place] |= {value for value in values if fewest is None or there[value] < persons[place]}
        for value in values if fewest is not None and sizes[half] > persons[half] else ():
            many = fewest(persons[half], value)
            if many <= min(persons[half], values[value]):
                failed = True
                for place, (may_hold, may_lack) in enumerate(held_by_many(values, sizes, persons, half, value, many)):
                    possible[place] |= may_hold
                    lacked[place] |= may_lack
    is_enough = all(len(found - {None}) >= least for found in possible) and all(set(values) - {None} <= found for found in lacked)
    return failed and not is_enough


def filled(values: Values, sizes: Sequence[int], half: int) -> Iterator[tuple[Values, Values]]:
    """Yields what both halves hold if one is filled with one value first, then with nulls, then with the most frequent values."""
    falling = sorted(values, key=lambda value: (value is not None, -values[value]))
    for place, first in enumerate(falling):
        if place > FIRST and values[first] < min(sizes):
            return
        order = [first, *(value for value in falling if value != first)]
        records = [value for value in order for _ in range(values[value])]
        yield Counter(records[: sizes[half]]), Counter(records[sizes[half] :])


def held_by_many(
    values: Values, sizes: Sequence[int], persons: Sequence[int], half: int, value: Any, many: int
) -> list[tuple[set[Any], set[Any]]]:
    """Returns, of each half, what everybody in it may hold and may be without, in the ways in which many of one half hold a value.

    Of each half all but one have one record. What somebody with one record may hold, all may; what the other may be without, all may be.
    """
    owners = [(place, 0) for place in range(2) for _ in range(sizes[place] - persons[place])]
    owners += [(place, person) for place in range(2) for person in range(persons[place])]
    may_hold, may_lack = ([set[Any](), set[Any]()] for _ in range(2))
    for way in orders(Counter(values)):
        held: dict[tuple[int, int], set[Any]] = {}
        for owner, one in zip(owners, way, strict=True):
            held.setdefault(owner, set()).add(one)
        if sum(value in held[half, person] for person in range(persons[half])) >= many:
            for place in range(2):
                may_hold[place] |= held[place, persons[place] - 1]
                may_lack[place] |= set(values) - held[place, 0]
    return list(zip(may_hold, may_lack, strict=True))


def orders(values: Counter[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields every different order of some values."""
    if not values.total():
        yield ()
    for value in [value for value, count in values.items() if count]:
        for others in orders(values - Counter([value])):
            yield (value, *others)
