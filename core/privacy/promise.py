"""What is promised of every class: k, and what its sensitive values must keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.privacy.holders import Holders, condition_of
from core.privacy.models import Failing, PrivacyModel, Spreads

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Promise:
    """What every class must keep. Monotone as each of the models is, and as k is: the size of a union is no less than that of a part.

    Attributes:
        k: Fewest units of a class: persons, or records where no person is named (Sweeney 2002; papers/skald.txt, II.A).
        models: What its sensitive values must keep besides.
    """

    k: int
    models: tuple[PrivacyModel, ...] = ()

    def fails(self, units: Counts, spreads: Spreads | None = None) -> Failing:
        """Returns which classes break the promise, shape (classes,).

        Args:
            units: Shape (classes,), persons per class; where no person is named, each record counts as one.
            spreads: By sensitive column, for the columns that the models look at.
        """
        failing = self.too_few(units)
        for model in self.models:
            failing |= model.fails(units, spreads)
        return failing

    def too_few(self, units: Counts) -> Failing:
        """Returns which counts are below k."""
        return units < self.k

    @property
    def of_size(self) -> Promise:
        """What a class must keep whatever its sensitive values: k alone."""
        return Promise(self.k)

    @cached_property
    def relaxed(self) -> Promise:
        """A weaker promise under which a union with one safe part is safe, so that coarser nodes never suppress more."""
        return self if self.closed else Promise(self.k, tuple(weaker for one in self.models if (weaker := one.relaxed) is not None))

    @cached_property
    def closed(self) -> bool:
        """Whether a union with one safe part is safe, even where persons are in several classes."""
        return all(one.relaxed is one for one in self.models)

    def of_people(self, wholes: Mapping[str, NDArray[Any]], people: int) -> Promise:
        """Returns the promise together with the conditions on who holds a value; itself where nobody has several values of a column.

        Args:
            wholes: By sensitive column, shape (values,): persons of the whole source by value.
            people: Persons of the whole source.
        """
        several = {column for column, whole in wholes.items() if int(whole.sum()) > people}
        added = [found for one in self.models if (found := condition_of(one, wholes, people)) is not None and found.column in several]
        return Promise(self.k, (*self.models, *added)) if added else self

    def column_broken_by_holders(self, units: Counts, spreads: Spreads) -> str | None:
        """Returns the column of which too many persons hold one value, if one class fails by nothing else.

        Args:
            units: Shape (1,), as for ``fails``.
            spreads: The same.
        """
        if self.too_few(units)[0]:
            return None
        columns = [one.column if isinstance(one, Holders) else None for one in self.models if one.fails(units, spreads)[0]]
        return columns[0] if columns and None not in columns else None
