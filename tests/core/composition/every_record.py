"""What two releases tell together, by looking at every record and every pair of classes; shares no code with the product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

ABSENT, HIDDEN = "no record of this source", "not released"


class Seen(NamedTuple):
    """A record as one release has it: what tells it from all others, its class or HIDDEN, and whose it is, None if nobody's."""

    identity: Hashable
    group: Hashable
    person: Hashable | None = None


def told_together(
    mine: Iterable[Seen], theirs: Iterable[Seen], k: int, *, persons: bool = False, again: bool = False
) -> dict[str, tuple[int, int]]:
    """Returns records, and records or persons at risk, of those in both, in the first alone and in the second alone.

    Records of one identity are told apart by their order, class by class; ``again``, what is left is identified by its persons.
    """
    here, there = _numbered(mine), _numbered(theirs)
    if again:
        both = here.keys() & there.keys()
        here, there = ({one: seen for one, seen in side.items() if one in both} | _by_person(side, both) for side in (here, there))
    groups: Mapping[tuple[Hashable, Hashable], list[Seen]] = defaultdict(list)
    for one in here.keys() | there.keys():
        pair = (here[one].group if one in here else ABSENT, there[one].group if one in there else ABSENT)
        groups[pair].append(here.get(one) or there[one])
    found = {}
    for part in ("shared", "added", "removed"):
        records, at_risk, whose = 0, 0, set()
        for (first, second), members in groups.items():
            if part != ("removed" if first == ABSENT else "added" if second == ABSENT else "shared"):
                continue
            records += len(members)
            known = {one.person for one in members} - {None}
            if {first, second} <= {ABSENT, HIDDEN} or (len(known) if persons else len(members)) >= k:
                continue
            whose |= known
            at_risk += sum(one.person is None for one in members) if persons else len(members)
        found[part] = (records, at_risk + len(whose) if persons else at_risk)
    return found


def _numbered(records: Iterable[Seen]) -> dict[tuple[Hashable, int], Seen]:
    """Returns records by identity and number among those of the same one."""
    return _numbered_by(records, lambda one: one.identity)


def _numbered_by(records: Iterable[Seen], by: Callable[[Seen], Hashable]) -> dict[tuple[Hashable, int], Seen]:
    alike: Mapping[Hashable, list[Seen]] = defaultdict(list)
    for one in records:
        alike[by(one)].append(one)
    return {(identity, place): one for identity, same in alike.items() for place, one in enumerate(_ordered(same))}


def _by_person(side: Mapping[tuple[Hashable, int], Seen], both: Set[tuple[Hashable, int]]) -> dict[tuple[Hashable, int], Seen]:
    rest = [(one, seen) for one, seen in side.items() if one not in both]
    nobody = {one: seen for one, seen in rest if seen.person is None}
    return nobody | _numbered_by([seen for _, seen in rest if seen.person is not None], lambda seen: ("person", seen.person))


def _ordered(same: Sequence[Seen]) -> list[Seen]:
    return sorted(same, key=lambda one: (-1 if one.group == HIDDEN else one.group, 0 if one.person is None else one.person))  # type: ignore[return-value]
