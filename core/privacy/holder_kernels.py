"""The conditions of core/privacy/holders.py on who holds a value, as kernels ask them; compiled by numba."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.privacy.holders import ClosenessHolders, DistinctHolders, EntropyHolders, Holders, RecursiveHolders
from core.privacy.models import SLACK

kernel = compiler("privacy.holder_kernels")
NO_BOUND = -1.0


class HolderBounds(NamedTuple):
    """By how many persons of a class a value may be held, by sensitive column; a demand that is not made is negative.

    Attributes:
        asked: Shape (columns,): whether there is any.
        distinct: Shape (columns,): l.
        recursive: Shape (columns, 2): numerator and denominator of c.
        entropies: Shape (columns, 2): nats, and how many values the column has.
        closeness: Shape (columns,): t.
        shares: Shape (columns, most values): the share of all persons who hold each value.
    """

    columns_bounded: NDArray[np.bool_]
    distinct: NDArray[np.int64]
    recursive: NDArray[np.int64]
    entropies: NDArray[np.float64]
    closeness: NDArray[np.float64]
    shares: NDArray[np.float64]


def no_holder_bounds(columns: int, most: int) -> HolderBounds:
    """Returns that nothing is asked of so many columns, of at most so many values."""
    return HolderBounds(
        np.zeros(columns, np.bool_),
        np.full(columns, -1, np.int64),
        np.full((columns, 2), -1, np.int64),
        np.full((columns, 2), NO_BOUND),
        np.full(columns, NO_BOUND),
        np.zeros((columns, most)),
    )


def demand_of_holders(held: HolderBounds, model: Holders, column: int, whole: NDArray[np.int64]) -> None:
    """Writes down a condition on who holds a value.

    Args:
        held: Written to.
        model: The condition.
        column: The number of its column.
        whole: Shape (values,), persons of the whole source by value.

    Raises:
        TypeError: a condition that kernels do not know.
    """
    held.columns_bounded[column] = True
    match model:
        case DistinctHolders():
            held.distinct[column] = model.l
        case EntropyHolders():
            held.entropies[column] = (np.log(model.least) - SLACK if model.least > 1 else NO_BOUND), model.values
        case RecursiveHolders():
            held.recursive[column] = model.c.numerator, model.c.denominator
        case ClosenessHolders():
            held.closeness[column] = model.t
            held.shares[column, : len(whole)] = whole / model.people
        case _:
            raise TypeError(type(model).__name__)


@kernel
def held_by_few_persons(
    persons: int, counts: NDArray[np.int64], present: NDArray[np.int64], size: int, column: int, null: int, held: HolderBounds
) -> bool:
    """Tells whether no value of a class is held by too many of its persons.

    Args:
        persons: Persons of the class.
        counts: Persons by sensitive code.
        present: The codes that occur, in its first ``size`` entries.
        size: How many there are.
        column: The sensitive column.
        null: The code of the null where that is no value of diversity, else -1.
        held: What is asked.
    """
    if not held.columns_bounded[column]:
        return True
    kept = True
    for index in range(size):
        kept = kept and counts[present[index]] < fewest_too_many(persons, present[index], column, null, held)
    return kept


@kernel
def fewest_too_many(persons: int, code: int, column: int, null: int, held: HolderBounds) -> int:
    """Returns by how many persons of a class a value is held at least if it is by too many; more than all if it cannot be.

    Args:
        persons: Persons of the class.
        code: The value.
        column: The sensitive column.
        null: The code of the null where that is no value of diversity, else -1.
        held: What is asked.
    """
    fewest = np.int64(persons + 1)
    if code != null:
        if held.distinct[column] >= 0:
            fewest = min(fewest, np.int64(persons - held.distinct[column] + 2))
        numerator, denominator = held.recursive[column]
        if numerator >= 0:
            fewest = min(fewest, np.int64(-(-persons * numerator // (numerator + denominator))))
        if held.entropies[column, 0] >= 0:
            fewest = min(fewest, np.int64(_fewest_uneven(persons, held.entropies[column, 0], held.entropies[column, 1])))
    if held.closeness[column] >= 0:
        most = held.closeness[column] + held.shares[column, code] + SLACK
        least = np.int64(persons * most)
        # As the model asks it, whatever a product of floats is rounded to.
        while least > 0 and least / persons > most:
            least -= 1
        while least <= persons and least / persons <= most:
            least += 1
        fewest = min(fewest, least)
    return int(max(fewest, np.int64(1)))


@kernel
def _fewest_uneven(persons: int, entropy: float, values: float) -> int:
    """Returns how many of the persons hold a value at least if that is too many for an entropy; more than all if it cannot be."""
    # From one in so many values on, the entropy falls.
    low, high = np.int64(persons / values), np.int64(persons + 1)
    while low + 1 < high:
        middle = (low + high) // 2
        share = middle / persons
        rest = 1.0 - share
        own = share * log(share)
        if rest > 0:
            own += rest * log(rest / max(values - 1.0, 1.0))
        if -own < entropy and share * values > 1:
            high = middle
        else:
            low = middle
    return int(high)
