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
