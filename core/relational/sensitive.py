"""Sensitive values of the persons of one history, each value of a person counted once.

The models are those for persons who have several values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.privacy.kernels import demands_of, is_compiled
from core.privacy.models import Spread
from core.privacy.person_refusals import disclosing_refusals_of_persons
from core.privacy.promise import Promise
from core.units.digests import digests_of


@dataclass(frozen=True)
class PersonValues:
    """Pairs of a person and a value of a sensitive column, each pair once.

    Attributes:
        persons: Shape (pairs,).
        values: Shape (pairs,), the code of the value; that of the null last.
        source_persons: Shape (values,), persons of the whole source by value.
    """

    persons: NDArray[np.integer]
    values: NDArray[np.integer]
    source_persons: NDArray[np.int64]

    def spread(self, classes: NDArray[np.int64]) -> Spread:
        """Return the number of persons of each class who hold each value, as a spread."""
        keys, counts = np.unique(classes[self.persons] * len(self.source_persons) + self.values, return_counts=True)
        return Spread(keys // len(self.source_persons), keys % len(self.source_persons), counts.astype(np.int64), self.source_persons)


class PersonValueSets(NamedTuple):
    """The sets of values that persons have in a sensitive column, numbered by what they hold.

    Attributes:
        of_person: Shape (persons,), the number of each person's set.
        starts: Shape (sets + 1,), where the values of each set begin.
        codes: Values, set by set.
    """

    of_person: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int64]


def sets_of_values(column: PersonValues, person_count: int) -> PersonValueSets:
    """Return the set of values of each person; one without values has the empty set."""
    order = np.lexsort((column.values, column.persons))
    persons, codes = column.persons[order].astype(np.int64), column.values[order].astype(np.int64)
    # The number of a set follows from what it holds alone, whoever has it.
    digests = np.zeros(person_count, np.uint64)
    np.add.at(digests, persons, digests_of([pa.array(codes)], len(codes)))
    _, first, of_person = np.unique(digests, return_index=True, return_inverse=True)
    begins, ends = (np.searchsorted(persons, first, side=side) for side in ("left", "right"))
    lengths = ends - begins
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])
    return PersonValueSets(of_person.astype(np.int64), starts, codes[places])


@dataclass(frozen=True)
class TablePromise:
    """Promise for the sensitive values of one table.

    It applies to histories that have a row of the table: others publish no value of it.

    Attributes:
        columns: Who holds what, by sensitive column.
        has_rows: Shape (persons,), who has a row of the table.
    """

    promise: Promise
    columns: Mapping[str, PersonValues]
    has_rows: NDArray[np.bool_]

    @classmethod
    def of(cls, promise: Promise, columns: Mapping[str, PersonValues], has_rows: NDArray[np.bool_], persons_with_rows: int) -> TablePromise:
        """Return the promise for a table, with holder conditions where a person has several values.

        ``persons_with_rows`` persons have a row of the table in the source.
        """
        wholes = {name: column.source_persons for name, column in columns.items()}
        return cls(promise.of_people(wholes, persons_with_rows), columns, has_rows)

    @property
    def relaxed(self) -> TablePromise:
        """Weaker promise under which coarser nodes never leave out more persons."""
        return replace(self, promise=self.promise.relaxed)

    def failing(self, classes: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the classes with a row of the table that break the promise, shape (classes,).

        Args:
            classes: Shape (persons,).
            sizes: Shape (classes,), persons of each.
        """
        spreads = {name: column.spread(classes) for name, column in self.columns.items()}
        asked = np.bincount(classes[self.has_rows], minlength=len(sizes)) > 0
        return self.promise.failing(sizes, spreads) & asked

    @cached_property
    def sets(self) -> dict[str, PersonValueSets]:
        """The sets of values of each sensitive column, by name."""
        return {name: sets_of_values(column, len(self.has_rows)) for name, column in self.columns.items()}

    def disclosing(self, halves: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of classes whose refused split would disclose a person's value, shape (classes,).

        Args:
            halves: Shape (persons,): the half of each person, two for each class one after the other, then one for all others.
            sizes: Shape (2 * classes,), the persons of each half.
        """
        found = np.zeros(len(sizes) // 2, np.bool_)
        if not is_compiled(self.promise):
            return found
        demands = demands_of(self.promise, list(self.columns), [column.source_persons for column in self.columns.values()])
        members = np.flatnonzero(halves < len(sizes))
        for number, sets in enumerate(self.sets.values()):
            size = len(sets.starts) - 1
            keys, many = np.unique(halves[members] // 2 * size + sets.of_person[members], return_counts=True)
            found |= disclosing_refusals_of_persons(
                keys // size, keys % size, many.astype(np.int64), sizes.reshape(-1, 2), sets.starts, sets.codes, number, demands
            )
        return found
