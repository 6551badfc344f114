"""An intruder who knows everybody's quasi-identifiers and the algorithm, by force (Wong et al., VLDB 2007).

He reads a release: which people are together in a class, whose he knows, and which sensitive values the class holds. He gives these values
to these people in every way there is, and those who were left out any value at all, runs the algorithm on each, and keeps the ways that
make the release that he has. What somebody has in all of them, he knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Classes = Sequence[Sequence[int]]
Release = Callable[[Sequence[Any]], object]
"""What is published if everybody has these values, as the intruder sees it: whatever is equal looks equal to him."""


def arrangements(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Every different order of some values."""
    counts = Counter(values)
    if not counts:
        yield ()
    for value in sorted(counts, key=repr):
        rest = list(values)
        rest.remove(value)
        for others in arrangements(rest):
            yield (value, *others)


def worlds(classes: Classes, values: Sequence[Any], domain: Sequence[Any]) -> Iterator[list[Any]]:
    """Everybody's values in every way that leaves each class the values that it holds."""
    known = {person for members in classes for person in members}
    hidden = [person for person in range(len(values)) if person not in known]
    ways = [list(arrangements([values[person] for person in members])) for members in classes]
    for chosen in product(*ways, *[[(value,) for value in domain] for _ in hidden]):
        world = list(values)
        for members, given in zip([*classes, *([person] for person in hidden)], chosen, strict=True):
            for person, value in zip(members, given, strict=True):
                world[person] = value
        yield world


def possible(classes: Classes, values: Sequence[Any], domain: Sequence[Any], release: Release) -> Mapping[int, set[Any]]:
    """The values that everybody has in the ways that make the same release."""
    mine = release(values)
    found: dict[int, set[Any]] = {person: set() for person in range(len(values))}
    for world in worlds(classes, values, domain):
        if release(world) == mine:
            for person, value in enumerate(world):
                found[person].add(value)
    return found


def told(classes: Classes, values: Sequence[Any], domain: Sequence[Any], release: Release, least: int = 2) -> set[int]:
    """The people who have fewer possible values than their class holds different ones and was to leave them.

    Args:
        classes: Who is together in each published class.
        values: Everybody's value; None is no value.
        domain: Every value that somebody who was left out may have.
        release: The algorithm.
        least: How many possible values everybody was to be left with.
    """
    found = possible(classes, values, domain, release)
    held = {person: {values[other] for other in members} - {None} for members in classes for person in members}
    everything = set(domain) - {None}
    return {person for person, ways in found.items() if len(ways - {None}) < min(least, len(held.get(person, everything)))}


Values = Mapping[Any, int]
"""Records by value; None is no value."""
FIRST = 8
"""Values that fill a half first, besides those that could fill one alone."""


def discloses(
    values: Values, sizes: Sequence[int], persons: Sequence[int], fails: Callable[[Values], bool], least: int, fewest: Any = None
) -> bool:
    """Return whether somebody is left with too few possible values, or with one that he surely has.

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
    """Yield what both halves hold if one is filled with one value first, then with nulls, then with the most frequent values."""
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
    """Return, of each half, what everybody in it may hold and may be without, in the ways in which many of one half hold a value.

    Of each half all but one have one record. What somebody with one record may hold, all may; what the other may be without, all may be.
    """
    owners = [(place, 0) for place in range(2) for _ in range(sizes[place] - persons[place])]
    owners += [(place, person) for place in range(2) for person in range(persons[place])]
    may_hold, may_lack = ([set[Any](), set[Any]()] for _ in range(2))
    for way in arrangements([value for value, count in values.items() for _ in range(count)]):
        held: dict[tuple[int, int], set[Any]] = {}
        for owner, one in zip(owners, way, strict=True):
            held.setdefault(owner, set()).add(one)
        if sum(value in held[half, person] for person in range(persons[half])) >= many:
            for place in range(2):
                may_hold[place] |= held[place, persons[place] - 1]
                may_lack[place] |= set(values) - held[place, 0]
    return list(zip(may_hold, may_lack, strict=True))


Sets = Sequence[tuple[Any, ...]]


def discloses_of_sets(
    sets: Sets, sizes: Sequence[int], fails: Callable[[Values, int], bool], least: int, fewest: Any = None, *, is_close: bool = False
) -> bool:
    """Return whether the refusal of a split discloses, where each person's values are published together.

    Args:
        sets: The values of each person of the class; None is no value.
        sizes: Persons of both halves.
        fails: Whether a half of so many persons, of whom so many hold each value, breaks the model.
        least: How many possible values everybody must be left with.
        fewest: How many of so many persons are too many to hold a value; None where nobody asks who holds a value.
        is_close: Whether the model is one of closeness, of which nothing is known before.
    """
    totals = Counter(value for mine in sets for value in mine)
    falling = sorted({*totals} - {None}, key=lambda value: (-totals[value], value))
    if not totals or not (is_close or may_fail(sets, sizes, fails, fewest)):
        return False
    possible: list[set[Any]] = [set(), set()]
    lacked: list[set[Any]] = [{*totals}, {*totals}] if fewest is None else [set(), set()]
    for value in falling[:FIRST]:
        for alone in (True, False) if fewest is not None else (True,):
            order = sorted(sets, key=lambda mine: [-1 if one is None else one for one in mine])
            order.sort(key=place_of(value, falling, alone=alone))
            for size, half in ((sizes[0], 0), (sizes[1], 1)):
                held = [Counter(one for mine in part for one in mine) for part in (order[:size], order[size:])]
                if not (fails(held[0], size) or fails(held[1], sizes[1 - half])):
                    continue
                for place, there in ((half, held[0]), (1 - half, held[1])):
                    possible[place] |= {*there}
                    lacked[place] |= {one for one in totals if there[one] < sizes[place]}
            if all(len(found - {None}) >= least for found in possible) and all({*falling} <= found for found in lacked):
                return False
    return True


def place_of(value: Any, falling: Sequence[Any], *, alone: bool) -> Callable[[tuple[Any, ...]], int]:
    """Return what orders sets: those with a value alone, those without values, the frequent ones; or all with the value first."""

    def place(mine: tuple[Any, ...]) -> int:
        others = [falling.index(one) for one in mine if one not in (None, value)]
        if alone and others:
            return 2 + max(others)
        return 0 if value in mine else 1

    return place


def may_fail(sets: Sets, sizes: Sequence[int], fails: Callable[[Values, int], bool], fewest: Any = None) -> bool:
    """Return whether a half may break the model: too many may hold a value, or the least even values do not suffice."""
    totals = Counter(value for mine in sets for value in mine if value is not None)
    for size in sizes:
        if fewest is not None and any(fewest(size, value) <= min(size, many) for value, many in totals.items()):
            return True
        valued = size - sum(not {*mine} - {None} for mine in sets)
        records = sorted(totals.elements(), key=lambda value: (-totals[value], value))[: max(valued, 0)]
        if valued <= 0 or fails(Counter(records), size):
            return True
    return False
