"""Models of sensitive values: which classes of a recoding may not be published.

All algorithms use this one interface.

Every model here is monotone: a union of safe classes is safe. So where nothing may be suppressed, every node coarser than a passing node
passes, and thin fragments may be merged. With a limit of suppression that is not enough. A safe class may join an unsafe one and become
unsafe, so that a coarser node suppresses more. k and distinct diversity exclude that, because a union with one safe part is safe. Entropy,
recursive diversity and closeness do not. ``relaxed`` is the part of a model that does: a necessary condition that predictive tagging may
rely on at any limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Sums of logarithms and shares depend on their order in the last bits: a class that is just at the limit must not fail by rounding.
SLACK = 1e-9
# Entries of the table of classes and values that is made at a time: 32 MB of floats, however many classes there are.
BLOCK = 1 << 22

Failing = NDArray[np.bool_]


@dataclass(frozen=True)
class Spread:
    """Counts of the values of one sensitive column in each class; a null has a code of its own.

    Attributes:
        owners: Shape (entries,), int64, ascending: the class of each entry.
        values: Shape (entries,), the value's code in the column's domain; no class has a value twice.
        counts: Shape (entries,), int64, all positive.
        source_counts: Shape (values,), int64: records of the whole source per value.
    """

    owners: NDArray[np.int64]
    values: NDArray[np.integer[Any]]
    counts: NDArray[np.int64]
    source_counts: NDArray[np.int64]

    def totals(self, class_count: int) -> NDArray[np.int64]:
        """Return the sum of counts of each class, shape (classes,), the base of shares.

        With persons it is not their number: a person with two values counts twice.
        """
        return np.bincount(self.owners, weights=self.counts, minlength=class_count).astype(np.int64)

    def without(self, value: int | None) -> Spread:
        """Return the spread without the entries of one value code; unchanged for None."""
        kept = np.flatnonzero(self.values != (-1 if value is None else value))
        return replace(self, owners=self.owners[kept], values=self.values[kept], counts=self.counts[kept])

    def union(self, classes: NDArray[np.bool_]) -> Spread:
        """Return the spread of the marked classes joined to one class."""
        mine = classes[self.owners]
        # bincount adds weights as floats, exact below 2^53 records.
        counts = np.bincount(self.values[mine], weights=self.counts[mine], minlength=len(self.source_counts)).astype(np.int64)
        values = np.flatnonzero(counts)
        return Spread(np.zeros(len(values), np.int64), values, counts[values], self.source_counts)


Spreads = Mapping[str, Spread]


class PrivacyModel(Protocol):
    """Interface of a privacy model: a mask of failing classes, and the weaker model that unions keep."""

    def failing(self, counts: NDArray[np.int64], spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes that fail the model, shape (classes,).

        Args:
            counts: Shape (classes,), persons per class; where the job has no person column, each record counts as one.
            spreads: By sensitive column, for the columns that the model looks at.
        """
        ...

    @property
    def relaxed(self) -> PrivacyModel | None:
        """The weaker model that a union keeps if one of its classes keeps it; None if there is none.

        It is the model itself if that has this property.
        """
        ...


@dataclass(frozen=True)
class DistinctDiversity:
    """Distinct l-diversity: every class has at least l different sensitive values.

    See Machanavajjhala et al. 2007, section 4.1.

    Monotone: a union has every value that a part has. ``null`` is the code of the null where that is no value, here and below.
    """

    column: str
    l: int  # noqa: E741 - the model's own name
    null: int | None = None

    def failing(self, counts: NDArray[np.int64], spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes with fewer than l values."""
        return np.bincount(_of(spreads, self.column).without(self.null).owners, minlength=len(counts)) < self.l

    @property
    def relaxed(self) -> PrivacyModel:
        """This model itself: if one class has l values, so has every union of classes that contains it."""
        return self


@dataclass(frozen=True)
class EntropyDiversity:
    """Entropy l-diversity: the entropy of a class's sensitive values is at least ln(l).

    See Machanavajjhala et al. 2007, definition 4.1.

    Monotone: entropy is concave, so that of a union, a mixture of its parts, is no less than the least of theirs. A class that reaches
    ln(l) but for rounding (1e-9) is safe. Nulls are left out, shares are of what is left, and a class of nulls alone fails.
    """

    column: str
    l: float  # noqa: E741 - the model's own name
    null: int | None = None

    def failing(self, counts: NDArray[np.int64], spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes with an entropy below ln(l), or with no value at all."""
        spread = _of(spreads, self.column).without(self.null)
        sums = np.bincount(spread.owners, weights=spread.counts * np.log(spread.counts), minlength=len(counts))
        records = np.maximum(totals := spread.totals(len(counts)), 1)
        return np.array((np.log(records) - sums / records < np.log(self.l) - SLACK) | (totals == 0), np.bool_)

    @property
    def relaxed(self) -> PrivacyModel:
        """Weaker model, distinct l-diversity: an entropy of ln(l) takes at least l different values."""
        return DistinctDiversity(self.column, ceil(self.l - SLACK), self.null)


@dataclass(frozen=True)
class RecursiveDiversity:
    """Recursive (c, l)-diversity: r1 < c·(rl + … + rm) for a class's value counts r1 ≥ r2 ≥ ….

    See Machanavajjhala et al. 2007, definition 4.2. Monotone (their theorem 4.3). Exact: c is a fraction, counts are integers. Nulls are
    left out; a class of nulls alone fails.
    """

    column: str
    c: Fraction
    l: int  # noqa: E741 - the model's own name
    null: int | None = None

    def failing(self, counts: NDArray[np.int64], spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes whose most frequent value is too frequent."""
        spread = _of(spreads, self.column).without(self.null)
        order = np.lexsort((-spread.counts, spread.owners))
        owners, sizes = spread.owners[order], spread.counts[order]
        rank = np.arange(len(owners)) - np.searchsorted(owners, np.arange(len(counts)))[owners]
        tail = np.zeros(len(counts), np.int64)
        # add.at, because a class owns several entries, of which += would add one.
        np.add.at(tail, owners[rank >= self.l - 1], sizes[rank >= self.l - 1])
        greatest = np.zeros(len(counts), np.int64)
        greatest[owners[rank == 0]] = sizes[rank == 0]
        # Python integers: neither side can overflow.
        return np.array(greatest.astype(object) * self.c.denominator >= tail.astype(object) * self.c.numerator, np.bool_)

    @property
    def relaxed(self) -> PrivacyModel:
        """Weaker model, distinct l-diversity: a tail that is not empty takes at least l different values."""
        return DistinctDiversity(self.column, self.l, self.null)


@dataclass(frozen=True)
class Closeness:
    """t-closeness: a class's sensitive values are within t of the source's, by earth mover's distance.

    See Li et al. 2007. A null is a value here, because classes and source are compared in how often they lack a value, too. Monotone: the
    distance from a fixed distribution is convex, and a union is a mixture of its parts. A class within 1e-9 of t is safe.

    Attributes:
        t: From 0 to 1.
        ranks: For the ordered distance, shape (values,): the position of each value in the order. None for the other distances.
        groups: For the hierarchical distance, from fine to coarse, each of shape (values,): the group of each value at each level of its
            hierarchy above the values, the last being one group for all. Empty for the equal distance, where all values are equally far.
    """

    column: str
    t: float
    ranks: NDArray[np.int64] | None = None
    groups: tuple[NDArray[np.int64], ...] = ()

    def failing(self, counts: NDArray[np.int64], spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes that are farther than t from the source."""
        spread = _of(spreads, self.column)
        return np.array(self.distances(counts, spread) > self.t + SLACK, np.bool_)

    def distances(self, counts: NDArray[np.int64], spread: Spread) -> NDArray[np.float64]:
        """Return the earth mover's distance of each class from the source, shape (classes,), float64."""
        whole, totals = spread.source_counts / max(int(spread.source_counts.sum()), 1), spread.totals(len(counts))
        if self.ranks is None and not self.groups:
            shares = spread.counts / totals[spread.owners]
            there = whole[spread.values]
            # A value that a class lacks adds its whole share, and those are 1 less the shares that are there: no table of all is needed.
            near = np.bincount(spread.owners, weights=np.abs(shares - there) - there, minlength=len(counts))
            # Rounding may end a little below nothing.
            return np.maximum((near + 1.0) / 2, 0.0)
        found = np.empty(len(counts))
        step = max(BLOCK // max(len(whole), 1), 1)
        for first in range(0, len(counts), step):
            mine = slice(*np.searchsorted(spread.owners, [first, first + step]))
            size = min(step, len(counts) - first)
            extra = np.zeros((size, len(whole)))
            owners = spread.owners[mine]
            extra[owners - first, spread.values[mine]] = spread.counts[mine] / totals[owners]
            found[first : first + size] = self._moved(extra - whole)
        return found

    def _moved(self, extra: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ordered or hierarchical distance for the differences of shares, one row per class."""
        if self.ranks is not None:
            ordered = np.empty_like(extra)
            ordered[:, self.ranks] = extra
            # On a line all that is moved past a value passes it: the running sum is what moves there (Li et al., 5.1).
            total: NDArray[np.float64] = np.abs(np.cumsum(ordered, axis=1)).sum(axis=1) / max(extra.shape[1] - 1, 1)
            return total
        # What is left over in some children of a group and wanted in others moves within it, at a cost of its height (Li et al., 5.2).
        total, height, below = np.zeros(len(extra)), len(self.groups), np.arange(extra.shape[1])
        for level, groups in enumerate(self.groups, start=1):
            parents = np.zeros(extra.shape[1], np.int64)
            parents[below] = groups
            size = int(groups.max(initial=0)) + 1
            spare, wanted, net = (np.zeros((len(extra), size)) for _ in range(3))
            for child in range(extra.shape[1]):
                part = extra[:, child]
                spare[:, parents[child]] += np.maximum(part, 0)
                wanted[:, parents[child]] += np.maximum(-part, 0)
                net[:, parents[child]] += part
            total += np.minimum(spare, wanted).sum(axis=1) * level / height
            extra, below = net, groups
        return total

    @property
    def relaxed(self) -> None:
        """No weaker model (None): a union with one safe class may be unsafe."""
        return None


def _of(spreads: Spreads | None, column: str) -> Spread:
    """Return the spread of a column; a missing one is an error."""
    if spreads is None:
        raise LookupError(column)
    return spreads[column]
