"""What two releases tell together, by looking at every record and every pair of classes; shares no code with the product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

ABSENT, HIDDEN, BESIDE = "no record of this source", "not released", "a further record of a person"


class Seen(NamedTuple):
    """A record as one release has it.

    That is what tells it from all others, its class or HIDDEN, whose it is, None if nobody's, its sensitive value and its untreated ones.
    """

    identity: Hashable
    group: Hashable
    person: Hashable | None = None
    value: Hashable = None
    untreated: Hashable = None


def told_together(
    mine: Iterable[Seen],
    theirs: Iterable[Seen],
    k: int,
    *,
    persons: bool = False,
    again: bool = False,
) -> dict[str, tuple[int, int]]:
    """Return records, and records or persons at risk, of those in both, in the first alone and in the second alone.

    Records of one identity are told apart by their order, class by class; ``again``, what is left is identified by its persons.
    """
    groups = joint_groups(mine, theirs, again=again)
    found = {}
    for part in ("shared", "added", "removed"):
        records, at_risk, whose = 0, 0, set()
        for (first, second), members in groups.items():
            if part != ("removed" if first == ABSENT else "added" if second == ABSENT else "shared"):
                continue
            mine_alone = sum(one.identity != BESIDE for one in members)
            records += mine_alone
            known = {one.person for one in members} - {None}
            if {first, second} <= {ABSENT, HIDDEN} or (len(known) if persons else mine_alone) >= k:
                continue
            whose |= known
            at_risk += sum(one.person is None for one in members) if persons else mine_alone
        found[part] = (records, at_risk + len(whose) if persons else at_risk)
    return found


def without_values(mine: Iterable[Seen], theirs: Iterable[Seen], least: int, *, persons: bool = False, again: bool = False) -> int:
    """Return how many records or persons are in joint classes with fewer different values than that; a null is none."""
    found, whose = 0, set()
    for group, members in joint_groups(mine, theirs, again=again).items():
        somebody = [one for one in members if one.person is not None] if persons else members
        if set(group) <= {ABSENT, HIDDEN} or not somebody or len({one.value for one in somebody} - {None}) >= least:
            continue
        whose |= {one.person for one in somebody}
        found += sum(one.person is None for one in members) if persons else len(members)
    return found + (len(whose) if persons else 0)


def joint_groups(mine: Iterable[Seen], theirs: Iterable[Seen], *, again: bool) -> Mapping[tuple[Hashable, Hashable], list[Seen]]:
    """Return records by their two classes; those of whom another value is published in the second by either class alone too."""
    here, there = dict[Hashable, Seen](), dict[Hashable, Seen]()
    mine, theirs = list(mine), list(theirs)
    # Who is in both is nobody else there.
    both = {one.person for one in mine} & {one.person for one in theirs} if again else set()

    def whose(one: Seen) -> Hashable:
        return one.identity, one.person if one.person in both else None

    left = [_numbered_by(side, lambda one: (whose(one), one.untreated)) for side in (mine, theirs)]
    # Those first that also publish the same untreated values, then those that are alike in what they are linked by, then persons.
    left = _taken(left, here, there, "published")
    left = [_numbered_by(side.values(), whose) for side in left]
    left = _taken(left, here, there, "alike")
    if again:
        nobody = [{one: seen for one, seen in side.items() if seen.person is None} for side in left]
        left = [{one: seen for one, seen in side.items() if seen.person is not None} for side in left]
        for how in (lambda one: one[2:], lambda one: one[2:4], lambda one: one[2]):
            left = _taken([_numbered_by(side.values(), how) for side in left], here, there, f"person {len(here)}")
        left = [{("nobody", one): seen for one, seen in none.items()} | some for none, some in zip(nobody, left, strict=True)]
    groups: Mapping[tuple[Hashable, Hashable], list[Seen]] = defaultdict(list)
    for one, seen in here.items():
        other = there[one]
        # Of a value that one of both does not publish nobody sees that it changed, and what is known is what the other publishes.
        hidden = HIDDEN in {seen.group, other.group}
        changed = not hidden and (seen.value != other.value, seen.untreated != other.untreated)
        shown = seen._replace(value=other.value) if seen.group == HIDDEN else seen
        if not changed or not any(changed):
            groups[(seen.group, other.group)].append(shown)
            continue
        # Who changed is looked for among those who did, in the same columns: all others stand in the lines of both.
        groups[((seen.group, changed), (other.group, changed))].append(shown)
        groups[((seen.group, changed), ABSENT)].append(seen)
        groups[(ABSENT, (other.group, changed))].append(other._replace(person=seen.person))
    for seen in left[0].values():
        groups[(seen.group, ABSENT)].append(seen)
    for seen in left[1].values():
        groups[(ABSENT, seen.group)].append(seen)
    if again:
        # Of whom one side has a record each, the others' further records are each looked for among those of that one's class.
        for some, others in ((left[0].values(), theirs), (mine, left[1].values())):
            whole = [one.person for one in (theirs if others is theirs else mine) if one.person is not None]
            for seen, other in product(some, others) if len(whole) == len({*whole}) else ():
                if seen.person is not None and seen.person == other.person:
                    shown = seen._replace(value=other.value) if seen.group == HIDDEN else seen
                    groups[(seen.group, other.group)].append(shown._replace(identity=BESIDE))
    return groups


def _taken(
    left: Sequence[Mapping[tuple[Hashable, int], Seen]], here: dict[Hashable, Seen], there: dict[Hashable, Seen], how: str
) -> list[dict[tuple[Hashable, int], Seen]]:
    """Move what both sides have to the pairs, and returns what is left of either."""
    both = left[0].keys() & left[1].keys()
    here.update({(how, one): left[0][one] for one in both})
    there.update({(how, one): left[1][one] for one in both})
    return [{one: seen for one, seen in side.items() if one not in both} for side in left]


def _numbered_by(records: Iterable[Seen], by: Callable[[Seen], Hashable]) -> dict[tuple[Hashable, int], Seen]:
    alike: Mapping[Hashable, list[Seen]] = defaultdict(list)
    for one in records:
        alike[by(one)].append(one)
    return {(identity, place): one for identity, same in alike.items() for place, one in enumerate(_ordered(same))}


def _ordered(same: Sequence[Seen]) -> list[Seen]:
    return sorted(same, key=lambda one: (-1 if one.group == HIDDEN else one.group, 0 if one.person is None else one.person))  # type: ignore[return-value]
