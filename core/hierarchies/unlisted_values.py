"""Rows for values that a listed hierarchy lacks, found from its own rows.

Values without a plausible place go to a group of others.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from core.hierarchies.drafts import LONGEST_CODE, OTHER

Row = tuple[str, ...]
LEAST_BEGINNING = 2


@dataclass(frozen=True)
class UnlistedRows:
    """Rows for values that a hierarchy lacked, and how many were found in each way.

    Attributes:
        rows: One per value: the value, then its labels.
        spelt: How many are another one with other capitals or spaces.
        between: How many are numbers whose neighbours on both sides are in one group.
        beginning: How many are codes that begin as those of one group do.
        others: How many went to a group of others.
    """

    rows: tuple[Row, ...]
    spelt: int
    between: int
    beginning: int
    others: int


def rows_for_unlisted_values(missing: Sequence[str], rows: Sequence[Row]) -> UnlistedRows:
    """Find a hierarchy row for each missing value.

    Args:
        missing: The values as text.
        rows: Of the hierarchy, at least one, all of one length, values first.
    """
    by_spelling = {_folded(row[0]): row[1:] for row in rows}
    numbers = sorted((number, row[1:]) for row in rows if (number := _number(row[0])) is not None)
    beginnings = _beginnings(rows)
    found: list[Row] = []
    counts = {"spelt": 0, "between": 0, "beginning": 0, "others": 0}
    for value in missing:
        labels, why = by_spelling.get(_folded(value)), "spelt"
        if labels is None:
            labels, why = _between(value, numbers), "between"
        if labels is None:
            labels, why = _beginning(value, beginnings), "beginning"
        if labels is None:
            labels, why = _others(rows), "others"
        found.append((value, *labels))
        counts[why] += 1
    return UnlistedRows(tuple(found), **counts)


def _folded(text: str) -> str:
    """Return a text without capitals and repeated spaces."""
    return " ".join(text.casefold().split())


def _number(text: str) -> float | None:
    """Parse a text as a number; None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def _between(value: str, numbers: Sequence[tuple[float, Row]]) -> Row | None:
    """Return the labels shared by the next lesser and next greater number of the hierarchy."""
    number = _number(value)
    if number is None:
        return None
    place = bisect(numbers, number, key=lambda one: one[0])
    if not 0 < place < len(numbers):
        return None
    return numbers[place][1] if numbers[place - 1][1] == numbers[place][1] else None


def _beginnings(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the labels of all values by prefix, for every prefix length of codes."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for kept in range(LEAST_BEGINNING, min(len(row[0]), LONGEST_CODE) + 1):
            found.setdefault(row[0][:kept], []).append(row[1:])
    return found


def _beginning(value: str, beginnings: dict[str, list[Row]]) -> Row | None:
    """Return the labels shared by all codes with the longest prefix in common with this code.

    None where a single code or codes of different labels have that prefix.
    """
    if not any(letter.isdigit() for letter in value):
        return None
    for kept in range(min(len(value) - 1, LONGEST_CODE), LEAST_BEGINNING - 1, -1):
        if every := beginnings.get(value[:kept]):
            return every[0] if len(every) > 1 and len(set(every)) == 1 else None
    return None


def _others(rows: Sequence[Row]) -> Row:
    """Return the labels of a group of others, which ends in the labels that all rows share."""
    labels: list[str] = []
    for level in range(1, len(rows[0])):
        # Where the hierarchy has such a group already, what lies above it is said.
        if chain := next((row[level:] for row in rows if row[level] == OTHER), None):
            return (*labels, *chain)
        column = {row[level] for row in rows}
        labels.append(next(iter(column)) if len(column) == 1 else OTHER)
    return tuple(labels)
