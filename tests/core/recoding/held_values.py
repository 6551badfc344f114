"""Slow and obvious: who has which value of a column, value by value, and what of that the code that publishes and the recount need."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from core.recoding.publishing import CountedValues
from core.recount.labels.published_values import ValueCount, as_column, plain_values
from tests.oracles.persons import counted_at


class Held(NamedTuple):
    """The values of a column, as both sides want them."""

    writer: CountedValues
    recount: list[ValueCount]
    nulls: int
    rest: int


def is_value(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not isfinite(value))


def held_values(column: pa.Array, persons: Sequence[int | None], k: int, *, every: bool) -> Held:
    """Counts by brute force; each person once, at one of all values, or of those that fewer than k persons have."""
    rows = list(zip(plain_values(column), persons, strict=True))
    values = sorted({value for value, _ in rows if is_value(value)})
    people = {value: len({person for mine, person in rows if mine == value and person is not None}) for value in values}
    records = {value: sum(mine == value for mine, _ in rows) for value in values}
    counted = {value for value in values if every or people[value] < k}
    drawn = counted_at(((str(person),), value) for value, person in rows if person is not None and value in counted)
    nulls = len({person for value, person in rows if not is_value(value) and person is not None})
    rest = len({person for value, person in rows if is_value(value) and people[value] < k and person is not None})
    arrays = [np.array([counts[value] for value in values], np.int64) for counts in (people, drawn, records)]
    writer = CountedValues(as_column(values, column.type), *arrays, nulls, rest)
    return Held(writer, [ValueCount(value, people[value], drawn[value], records[value]) for value in values], nulls, rest)


def fewest_sharing(published: Sequence[Any], persons: Sequence[int | None]) -> int:
    """Return how many persons the published value of fewest persons has."""
    whose: dict[Any, set[int]] = {}
    for value, person in zip(published, persons, strict=True):
        if person is not None:
            whose.setdefault(value, set()).add(person)
    return min(map(len, whose.values()))
