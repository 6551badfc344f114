"""Histories of persons written out with Python's own containers: slow, obvious, and nothing of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Row = Mapping[str, Any]
Label = Callable[[Any], Any]


def children(rows: Sequence[Row], reference: str) -> dict[Any, list[Row]]:
    """Return the rows that refer to each key."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        if row[reference] is not None:
            found.setdefault(row[reference], []).append(row)
    return found


def hospital_histories(
    persons: Sequence[Row], person_cells: Sequence[Row], conditions: Sequence[Row], labels: Mapping[str, Mapping[str, Label]]
) -> dict[Any, Any]:
    """Return the history of each person: labels, the multiset of visits with what they found, and of what is known of no visit."""

    def told(table: str, row: Row) -> tuple[Any, ...]:
        return tuple(label(row[name]) for name, label in labels[table].items())

    visits_of, found_in = children(person_cells, "person_id"), children(conditions, "visit_id")
    known = children([row for row in conditions if row["visit_id"] is None], "person_id")

    def below(visit: Row) -> Any:
        return told("visit", visit), frozenset(Counter(told("condition", one) for one in found_in.get(visit["visit_id"], [])).items())

    return {
        person["person_id"]: (
            told("person", person),
            frozenset(Counter(map(below, visits_of.get(person["person_id"], []))).items()),
            frozenset(Counter(told("condition", one) for one in known.get(person["person_id"], [])).items()),
        )
        for person in persons
    }


def rare_choices(of_unit: Mapping[Any, Any], rows: Mapping[Any, Sequence[Sequence[Any]]], most: int, k: int) -> set[Any]:
    """Return the persons who have a choice of at most ``most`` rows of each table that fewer than k persons of one label share."""
    persons: dict[Any, set[Any]] = {}
    for person, label in of_unit.items():
        tables = [
            {tuple(sorted(chosen, key=repr)) for many in range(most + 1) for chosen in combinations(table, many)} for table in rows[person]
        ]
        for choice in product(*tables):
            persons.setdefault((label, choice), set()).add(person)
    return {person for shared in persons.values() if len(shared) < k for person in shared}


def failing(histories: Mapping[Any, Any], k: int) -> set[Any]:
    """Return the persons whose history fewer than k share."""
    shared = Counter(histories.values())
    return {person for person, history in histories.items() if shared[history] < k}
