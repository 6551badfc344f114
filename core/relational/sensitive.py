"""Sensitive values of the persons of one history, each value of a person counted once.

The models are those for persons who have several values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.privacy.models import Spread
from core.privacy.promise import Promise


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


@dataclass(frozen=True)
class TablePromise:
    """Promise for the sensitive values of one table.

    It applies to histories that have a row of the table: others publish no value of it.

    Attributes:
        promise: k and the models.
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
        """Return a mask of the classes that break the promise, shape (classes,).

        Args:
            classes: Shape (persons,).
            sizes: Shape (classes,), persons of each.
        """
        spreads = {name: column.spread(classes) for name, column in self.columns.items()}
        asked = np.bincount(classes[self.has_rows], minlength=len(sizes)) > 0
        return self.promise.failing(sizes, spreads) & asked
