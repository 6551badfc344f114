"""Holder conditions: no value may be held by too many of a class's persons.

They are needed for 1:M data, where persons have several values (Gong, Luo, Yang, Ni and Li 2017). If all persons of a class have the same
two diagnoses, the class has two different values, and both are certain. With n persons of a class, of whom h hold a value v:

- distinct l-diversity: h ≤ n − (l − 1);
- recursive (c, l)-diversity: h < n · c / (1 + c);
- entropy l-diversity: h/n is at most the largest p with −p · ln p − (1 − p) · ln((1 − p)/(m − 1)) ≥ ln l, for m values of the column;
- t-closeness: h/n is at most t plus the share of all persons who hold v.

n counts all persons of the class, also those who have only a null. A null is a v of t-closeness. It is no v of diversity, unless the job
says that it is a value. Records without a person count neither in n nor in h.

Where each person has one value, the first three and the equal distance of t-closeness imply their condition: a holder of v holds nothing
else. Recursive diversity of l = 1 and the other distances do not: they permit one value to be as frequent as they say. So the conditions
are asked of a column only if a person in the source has several of its values. Otherwise the models mean what they always meant.

No condition is monotone where a person has records in several classes. In a union of two classes all persons may hold a value that half of
the persons of each class hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.privacy.models import (
    SLACK,
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    Failing,
    PrivacyModel,
    RecursiveDiversity,
    Spread,
    Spreads,
)

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Holders(ABC):
    """Condition that no sensitive value is held by too many persons of a class.

    Attributes:
        column: The sensitive column.
        null: The code of the null where that is no value.
    """

    column: str
    null: int | None

    def failing(self, counts: Counts, spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes with a value that too many persons hold.

        Arguments are those of ``PrivacyModel``; ``counts`` is exact.
        """
        assert spreads is not None
        spread = spreads[self.column]
        held = spread.without(self.null)
        failing = np.zeros(len(counts), np.bool_)
        failing[held.owners[self.too_many(held, counts[held.owners])]] = True
        return failing

    @abstractmethod
    def too_many(self, value_persons: Spread, persons: Counts) -> NDArray[np.bool_]:
        """Return a mask of the spread's entries with a value that too many persons hold.

        ``persons`` has the persons of each entry's class.
        """

    @property
    def relaxed(self) -> None:
        """No weaker condition (None): a union with one safe class may be unsafe."""
        return None


@dataclass(frozen=True)
class DistinctHolders(Holders):
    """Condition that at least l − 1 persons of a class do not hold a value, for each value."""

    l: int  # noqa: E741 - the model's own name

    def too_many(self, value_persons: Spread, persons: Counts) -> NDArray[np.bool_]:
        """Return a mask of the entries whose value fewer than l − 1 persons lack."""
        return value_persons.counts > persons - (self.l - 1)


@dataclass(frozen=True)
class RecursiveHolders(Holders):
    """Condition that fewer than n · c / (1 + c) of n persons hold a value."""

    c: Fraction

    def too_many(self, value_persons: Spread, persons: Counts) -> NDArray[np.bool_]:
        """Return a mask of the entries whose value n · c / (1 + c) or more persons hold."""
        # Python integers: neither side can overflow.
        sides = value_persons.counts.astype(object) * (self.c.numerator + self.c.denominator), persons.astype(object) * self.c.numerator
        return np.array(sides[0] >= sides[1], np.bool_)


@dataclass(frozen=True)
class EntropyHolders(Holders):
    """Condition on entropy: the share p of persons who hold a value leaves an entropy of at least ln(l).

    The other share, 1 − p, is taken as spread evenly over the other values.

    Attributes:
        least: l.
        values: Number of values of the column that occur.
    """

    least: float
    values: int

    def too_many(self, value_persons: Spread, persons: Counts) -> NDArray[np.bool_]:
        """Return a mask of the entries whose value is held by too large a share of persons."""
        share = value_persons.counts / persons
        rest = 1 - share
        # 0 · ln 0 is 0.
        own = share * np.log(share) + rest * np.log(np.where(rest > 0, rest, 1.0) / max(self.values - 1, 1))
        # The entropy is greatest at one in m: below that a share is smaller than the evenest.
        return np.array((-own < log(self.least) - SLACK) & (share * self.values > 1), np.bool_)


@dataclass(frozen=True)
class ClosenessHolders(Holders):
    """Condition that the share of persons who hold a value is at most t above that of all persons.

    Attributes:
        t: From 0 to 1.
        people: Persons of the whole source.
    """

    t: float
    people: int

    def too_many(self, value_persons: Spread, persons: Counts) -> NDArray[np.bool_]:
        """Return a mask of the entries whose value is held by too large a share of persons."""
        return np.array(
            value_persons.counts / persons > self.t + value_persons.source_counts[value_persons.values] / self.people + SLACK, np.bool_
        )


def condition_of(model: PrivacyModel, source_counts: Mapping[str, NDArray[Any]], person_count: int) -> Holders | None:
    """Return the holder condition that belongs to a privacy model; None if there is none.

    Args:
        source_counts: By sensitive column, shape (values,): persons of the whole source by value.
        person_count: Persons of the whole source.
    """
    match model:
        case DistinctDiversity(column, least, null):
            return DistinctHolders(column, null, least)
        case EntropyDiversity(column, entropy, null):
            values = np.count_nonzero(source_counts[column]) - (null is not None and int(source_counts[column][null] > 0))
            return EntropyHolders(column, null, entropy, int(values))
        case RecursiveDiversity(column, c, _, null):
            return RecursiveHolders(column, null, c)
        case Closeness(column, t):
            return ClosenessHolders(column, None, t, person_count)
    return None


kernel = compiler("privacy.holders")
NO_BOUND = -1.0


class HolderBounds(NamedTuple):
    """Bounds on the persons of a class who hold a value, by sensitive column.

    A bound that is not set is negative.

    Attributes:
        columns_bounded: Shape (columns,): whether there is any.
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


def no_holder_bounds(column_count: int, most_values: int) -> HolderBounds:
    """Return bounds on the persons who share a sensitive value that restrict no column.

    ``column_count`` is the number of sensitive columns, ``most_values`` the greatest number of values.
    """
    return HolderBounds(
        np.zeros(column_count, np.bool_),
        np.full(column_count, -1, np.int64),
        np.full((column_count, 2), -1, np.int64),
        np.full((column_count, 2), NO_BOUND),
        np.full(column_count, NO_BOUND),
        np.zeros((column_count, most_values)),
    )


def write_holder_bounds(holder_bounds: HolderBounds, model: Holders, column: int, source_counts: NDArray[np.int64]) -> None:
    """Write an l-diversity or t-closeness condition on persons into the bounds that kernels read.

    Args:
        holder_bounds: Written to.
        source_counts: Shape (values,), persons of the whole source by value.
    """
    holder_bounds.columns_bounded[column] = True
    match model:
        case DistinctHolders():
            holder_bounds.distinct[column] = model.l
        case EntropyHolders():
            holder_bounds.entropies[column] = (np.log(model.least) - SLACK if model.least > 1 else NO_BOUND), model.values
        case RecursiveHolders():
            holder_bounds.recursive[column] = model.c.numerator, model.c.denominator
        case ClosenessHolders():
            holder_bounds.closeness[column] = model.t
            holder_bounds.shares[column, : len(source_counts)] = source_counts / model.people
        case _:
            raise TypeError(type(model).__name__)


@kernel
def held_by_few_persons(
    person_count: int, counts: NDArray[np.int64], present: NDArray[np.int64], size: int, column: int, null: int, holder_bounds: HolderBounds
) -> bool:
    """Return whether no value of a class is held by too many of its persons.

    Args:
        counts: Persons by sensitive code.
        present: The codes that occur, in its first ``size`` entries.
        column: The sensitive column.
        null: The code of the null where that is no value of diversity, else -1.
        holder_bounds: What is asked.
    """
    if not holder_bounds.columns_bounded[column]:
        return True
    kept = True
    for index in range(size):
        kept = kept and counts[present[index]] < fewest_too_many(person_count, present[index], column, null, holder_bounds)
    return kept


@kernel
def fewest_too_many(person_count: int, code: int, column: int, null: int, holder_bounds: HolderBounds) -> int:
    """Return the least number of holders that is too many for a value; above ``person_count`` if none is.

    Args:
        person_count: Persons of the class.
        column: The sensitive column.
        null: The code of the null where that is no value of diversity, else -1.
        holder_bounds: What is asked.
    """
    fewest = np.int64(person_count + 1)
    if code != null:
        if holder_bounds.distinct[column] >= 0:
            fewest = min(fewest, np.int64(person_count - holder_bounds.distinct[column] + 2))
        numerator, denominator = holder_bounds.recursive[column]
        if numerator >= 0:
            fewest = min(fewest, np.int64(-(-person_count * numerator // (numerator + denominator))))
        if holder_bounds.entropies[column, 0] >= 0:
            fewest = min(
                fewest, np.int64(_fewest_uneven(person_count, holder_bounds.entropies[column, 0], holder_bounds.entropies[column, 1]))
            )
    if holder_bounds.closeness[column] >= 0:
        most = holder_bounds.closeness[column] + holder_bounds.shares[column, code] + SLACK
        least = np.int64(person_count * most)
        # As the model asks it, whatever a product of floats is rounded to.
        while least / person_count > most:
            least -= 1
        while least <= person_count and least / person_count <= most:
            least += 1
        fewest = min(fewest, least)
    return int(max(fewest, np.int64(1)))


@kernel
def _fewest_uneven(persons: int, entropy: float, values: float) -> int:
    """Return the least number of holders with an entropy below a bound; more than ``persons`` if none."""
    # From one in so many values on, the entropy falls; a share in the middle is larger.
    low, high = np.int64(persons / values), np.int64(persons + 1)
    while low + 1 < high:
        middle = (low + high) // 2
        share = middle / persons
        rest = 1.0 - share
        own = share * log(share)
        if rest > 0:
            own += rest * log(rest / max(values - 1.0, 1.0))
        if -own < entropy:
            high = middle
        else:
            low = middle
    return int(high)
