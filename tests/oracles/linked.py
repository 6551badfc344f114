"""Linked records counted one by one: who shares the set of combinations that the records of a pseudonym are in."""

from __future__ import annotations

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


def told_by(combinations: Sequence[Hashable], pseudonyms: Sequence[Any], people: Sequence[Any], k: int) -> Told:
    """Count who shares each set.

    Args:
        combinations: What each record publishes.
        pseudonyms: Its pseudonym; None links nothing.
        people: Whose it is; None is nobody.
        k: How many people must share each set.
    """
    sets: dict[Any, set[Any]] = defaultdict(set)
    whose: dict[Any, set[Any]] = defaultdict(set)
    sharing: dict[Set, set[Any]] = defaultdict(set)
    for combination, pseudonym, person in zip(combinations, pseudonyms, people, strict=True):
        mine = set() if person is None else {person}
        if pseudonym is None:
            sharing[frozenset({combination})] |= mine
        else:
            sets[pseudonym].add(combination)
            whose[pseudonym] |= mine
    linked: dict[Set, set[Any]] = defaultdict(set)
    for pseudonym, members in sets.items():
        linked[frozenset(members)] |= whose[pseudonym]
    for members, mine in linked.items():
        sharing[members] |= mine
    few = [mine for members, mine in linked.items() if len(sharing[members]) < k]
    sizes = [len(sharing[members]) for members in linked]
    return Told(len(set().union(*linked.values())), len(linked), min(sizes, default=0), len(set().union(*few)))
