"""People counted by nested loops over records: who is in a class is a set, however often somebody is in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import md5
from math import log
from typing import Any

from tests.oracles.lattice import DraftLevels, Losses, Node, Rows, all_nodes, precision, published

People = Sequence[Hashable | None]
"""Whose record each one is; None for nobody's."""
Class = tuple[Any, ...]
Pair = tuple[Hashable | None, Hashable]


def people_of(rows: Rows, people: People, ladders: Sequence[DraftLevels], node: Node) -> dict[Class, set[Hashable]]:
    """Who has a record in each class."""
    found: dict[Class, set[Hashable]] = defaultdict(set)
    for row, person in zip(rows, people, strict=True):
        members = found[published(row, ladders, node)]
        if person is not None:
            members.add(person)
    return found


def losses(rows: Rows, people: People, ladders: Sequence[DraftLevels], node: Node, k: int) -> Losses:
    """As ``tests.oracles.lattice.losses``, of a promise of k people."""
    sizes = Counter(published(row, ladders, node) for row in rows)
    members_of = people_of(rows, people, ladders, node)
    failing = {name for name, members in members_of.items() if len(members) < k}
    kept = [len(members) for name, members in members_of.items() if name not in failing]
    suppressed = sum(sizes[name] for name in failing)
    squares = sum(size**2 for name, size in sizes.items() if name not in failing)
    every = sum(size**2 for size in sizes.values())
    return Losses(suppressed, squares + suppressed**2, every, len(sizes), Fraction(sum(kept), len(kept)) if kept else Fraction(0))


def passing_nodes(
    rows: Rows, people: People, ladders: Sequence[DraftLevels], k: int, limit: Fraction, root: Node | None = None
) -> set[Node]:
    """Nodes that suppress no more than the limit's share of all records."""
    nodes = all_nodes(ladders, root)
    return {node for node in nodes if losses(rows, people, ladders, node, k).suppressed <= limit * len(rows)}


def best_node(
    rows: Rows, people: People, ladders: Sequence[DraftLevels], k: int, limit: Fraction, objective: str, root: Node | None = None
) -> Node | None:
    """The passing node that publishes something; then of lowest objective, fewest suppressed, most precise, finest in job order."""

    def rank(node: Node) -> tuple[bool, int, int, Fraction, Node]:
        loss = losses(rows, people, ladders, node, k)
        nothing = loss.suppressed == len(rows)
        return nothing, 0 if nothing else getattr(loss, objective), loss.suppressed, -precision(ladders, node), node

    return min(passing_nodes(rows, people, ladders, k, limit, root), key=rank, default=None)


def values_of(people: People, classes: Sequence[Hashable], values: Sequence[Hashable]) -> dict[Hashable, Counter[Hashable]]:
    """How many people have each value in each class: everybody counts once for each of theirs."""
    pairs = {(group, value, person) for group, value, person in zip(classes, values, people, strict=True) if person is not None}
    found: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for group, value, _ in pairs:
        found[group][value] += 1
    return found


def safe_for_people(members: Sequence[Pair], everyone: Sequence[Pair], privacy: Mapping[str, Any]) -> bool:
    """Whether a class keeps what a job's ``l`` and ``t`` ask of one column, the distance being the equal one.

    Args:
        members: Whose each record of the class is, and its value.
        everyone: The same of all records.
        privacy: The sections of the job.
    """
    mine, whole = (Counter(value for person, value in set(pairs) if person is not None) for pairs in (members, everyone))
    falling, total = sorted(mine.values(), reverse=True), mine.total()
    for asked in privacy.get("l", {}).values():
        if len(falling) < asked.get("distinct", 1):
            return False
        if "entropy" in asked and -sum(count / total * log(count / total) for count in falling) < log(asked["entropy"]) - 1e-9:
            return False
        if "recursive" in asked and falling[0] >= asked["recursive"]["c"] * sum(falling[asked["recursive"]["l"] - 1 :]):
            return False
    moved = sum(abs(mine[value] / total - whole[value] / whole.total()) for value in whole) / 2
    return all(moved <= asked["t"] + 1e-9 for asked in privacy.get("t", {}).values())


def too_many_hold(members: Sequence[Pair], everyone: Sequence[Pair], privacy: Mapping[str, Any], *, always: bool = False) -> bool:
    """Whether too many people of a class hold one value of a column, by what a job's ``l`` and ``t`` ask of it; a null is None.

    Args:
        members: Whose each record of the class is, and its value.
        everyone: The same of all records.
        privacy: The sections of the job.
        always: Whether the class is looked at although nobody at all has several values.
    """
    n, total = (len({person for person, _ in pairs} - {None}) for pairs in (members, everyone))
    mine, whole = (Counter(value for person, value in set(pairs) if person is not None) for pairs in (members, everyone))
    if whole.total() == total and not always:
        return False
    for asked in privacy.get("l", {}).values():
        none = None if asked.get("nulls") != "value" else object()
        m = len([value for value in whole if value != none])
        for value, held in mine.items():
            p = held / n
            rest = (1 - p) * log((1 - p) / (m - 1)) if p < 1 and m > 1 else 0.0
            if value == none:
                continue
            if "distinct" in asked and held > n - (asked["distinct"] - 1):
                return True
            if "recursive" in asked and Fraction(held) >= n * Fraction(asked["recursive"]["c"]) / (1 + Fraction(asked["recursive"]["c"])):
                return True
            if "entropy" in asked and p > 1 / m and -p * log(p) - rest < log(asked["entropy"]) - 1e-9:
                return True
    return any(mine[value] / n > asked["t"] + whole[value] / total + 1e-9 for asked in privacy.get("t", {}).values() for value in mine)


def values_of_few_by_force(held: Sequence[tuple[str | None, int]], k: int, rest: str | None, *, persons: bool) -> set[str | None]:
    """What becomes the rest: first the values of fewer than k, then the one of fewest until the rest is of k."""

    def people(values: set[str | None]) -> int:
        return len({owner if persons else place for place, (value, owner) in enumerate(held) if value in values})

    values = sorted({value for value, _ in held}, key=lambda value: (value is None, value or ""))
    gone = {value for value in values if value != rest and people({value}) < k}
    there = {rest} & set(values)
    while (gone | there) and people(gone | there) < k and (left := [value for value in values if value not in gone | there]):
        gone.add(min(left, key=lambda value: people({value})))
    return gone


def drawn_place(texts: Sequence[str], records: int) -> int:
    """The place of the drawn record among those of a person, by what the person is called."""
    return int.from_bytes(md5("\x1f".join(texts).encode()).digest()[8:], "little") % records


def drawn_values(held: Iterable[tuple[Sequence[str], Any]]) -> Mapping[Sequence[str], Any]:
    """By person the value of the drawn record, of pairs of a person and a value."""
    values: dict[Sequence[str], list[Any]] = {}
    for person, value in held:
        values.setdefault(person, []).append(value)
    return {person: sorted(mine)[drawn_place(person, len(mine))] for person, mine in values.items()}


def counted_at(held: Iterable[tuple[Sequence[str], Any]]) -> Counter[Any]:
    """How many persons count at each value."""
    return Counter(drawn_values(held).values())
