"""Whose the records of rows are, as the kernels of cuts read it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mondrian.rows import PersonsByRow
from core.persons.kernels import group
from core.units.rows import RowPersons
from core.units.unit import Unit


def persons_by_row(unit: Unit, sensitive: NDArray[np.integer[Any]]) -> PersonsByRow | None:
    """Lists the persons of rows row by row; None where every record counts, so that what looks at persons is not even compiled.

    Args:
        unit: Whose the rows are.
        sensitive: Shape (rows, sensitive columns), the codes of their values.
    """
    if not isinstance(unit, RowPersons):
        return None
    starts, order = group(np.where(unit.numbers < 0, np.int64(-1), unit.places), np.arange(len(unit.numbers)), unit.of)
    persons, rows = unit.numbers[order], unit.places[order]
    values, most = np.empty((sensitive.shape[1], len(order)), np.int32), 0
    for column in range(len(values)):
        codes = sensitive[rows, column].astype(np.int64)
        # In 64 bits: there may be more pairs of a person and a value than 32 have room for.
        found, values[column] = np.unique(persons.astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        most = max(most, len(found))
    return PersonsByRow(starts, persons, values, np.zeros(unit.size, np.int64), np.zeros(most, np.int64), np.zeros(1, np.int64))


def unseen(persons: PersonsByRow) -> PersonsByRow:
    """Returns the same persons with scratch of their own: for another core, which looks at other rows at the same time."""
    return persons._replace(seen=np.zeros_like(persons.seen), seen_values=np.zeros_like(persons.seen_values), passes=np.zeros(1, np.int64))
