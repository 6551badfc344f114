"""Linked records counted one by one: who shares the set of combinations that the records of a pseudonym are in."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

Set = frozenset[Any]


class Told(NamedTuple):
    """What pseudonyms tell, in people."""

    people: int
    sets: int
    smallest: int
    below_k: int
    left_over: int


def told_by(combinations: Sequence[Hashable], pseudonyms: Sequence[Any], people: Sequence[Any], k: int) -> Told:
    """Count who shares each set and has the same of its members.

    Args:
        combinations: What each record publishes.
        pseudonyms: Its pseudonym; None links nothing.
        people: Whose it is; None is nobody.
        k: How many people must share each set.
    """
    sets: dict[Any, set[Any]] = defaultdict(set)
    owned: dict[Any, dict[Any, set[Any]]] = defaultdict(lambda: defaultdict(set))
    sharing: dict[tuple[Set, Set], set[Any]] = defaultdict(set)
    for combination, pseudonym, person in zip(combinations, pseudonyms, people, strict=True):
        mine = set() if person is None else {person}
        if pseudonym is None:
            sharing[(frozenset({combination}),) * 2] |= mine
        else:
            sets[pseudonym].add(combination)
            for one in mine:
                owned[pseudonym][one].add(combination)
    linked: dict[tuple[Set, Set], set[Any]] = defaultdict(set)
    for pseudonym, members in sets.items():
        # A pseudonym that is nobody's is one of whoever has all of the set.
        for person, own in (owned[pseudonym] or {None: members}).items():
            linked[frozenset(members), frozenset(own)] |= set() if person is None else {person}
    for members, mine in linked.items():
        sharing[members] |= mine
    few = [mine for members, mine in linked.items() if len(sharing[members]) < k]
    left = [mine - linked.get(members, set()) for members, mine in sharing.items() if len(mine) < k]
    sizes = [len(sharing[members]) for members in linked]
    sets_of_links = len({members for members, _ in linked})
    return Told(len(set().union(*linked.values())), sets_of_links, min(sizes, default=0), len(set().union(*few)), len(set().union(*left)))


def told_by_joins(combinations: Sequence[Hashable], pseudonyms: Sequence[Sequence[Any]], people: Sequence[Any], k: int) -> Told:
    """Count who shares all that joins over equal pseudonyms of several columns show.

    Args:
        combinations: What each record publishes.
        pseudonyms: Its pseudonyms, one a column; None links nothing.
        people: Whose it is; None is nobody.
        k: How many people must share what is seen of them.
    """
    # A record without a pseudonym has one that nobody else has.
    named = [[("alone", row, at) if one is None else one for at, one in enumerate(mine)] for row, mine in enumerate(pseudonyms)]
    # Records may have several pseudonyms in common at once.
    places = [some for size in range(2, len(named[0]) + 1) for some in itertools.combinations(range(len(named[0])), size)]
    at_once: dict[Any, set[Any]] = defaultdict(set)
    for mine, combination in zip(named, combinations, strict=True):
        for some in places:
            at_once[some, *(mine[at] for at in some)].add(combination)
    seen: list[Any] = [
        (combination, *(frozenset(at_once[some, *(mine[at] for at in some)]) for some in places))
        for mine, combination in zip(named, combinations, strict=True)
    ]
    holding: dict[Any, Any] = {}
    for _ in range(len(seen) + 2):
        members: dict[Any, set[Any]] = defaultdict(set)
        for mine, record in zip(named, seen, strict=True):
            for at, one in enumerate(mine):
                members[one].add((at, record))
        # Numbers stand for what is seen: nested sets would grow without end.
        holding = _numbered({one: frozenset(what) for one, what in members.items()})
        seen = list(_numbered({row: (record, *map(holding.get, named[row])) for row, record in enumerate(seen)}).values())
    owned: dict[Any, set[Any]] = defaultdict(set)
    for mine, record, person in zip(named, seen, people, strict=True):
        if person is not None:
            for at, one in enumerate(mine):
                owned[one, person].add((at, record))
    sharing: dict[Set, set[Any]] = defaultdict(set)
    linked: dict[Set, set[Any]] = defaultdict(set)
    for (one, person), own in owned.items():
        for groups in [sharing] + [linked] * (not (isinstance(one, tuple) and one[0] == "alone")):
            groups[frozenset(own)].add(person)
    few = [mine for own, mine in linked.items() if len(sharing[own]) < k]
    sets = {holding[one] for mine in named for one in mine if not (isinstance(one, tuple) and one[0] == "alone")}
    left = [mine - linked.get(own, set()) for own, mine in sharing.items() if len(mine) < k]
    smallest = min((len(sharing[own]) for own in linked), default=0)
    return Told(len(set().union(*linked.values())), len(sets), smallest, len(set().union(*few)), len(set().union(*left)))


def _numbered(of: dict[Any, Any]) -> dict[Any, int]:
    """Return for each key the same number as for all keys of an equal value."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(of.values()))}
    return {key: numbers[value] for key, value in of.items()}
