"""The records of each class, and what every class publishes for one quasi-identifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.recoding.kernels import count_distinct, count_members, gather_members


def members(classes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the records class by class, each class in the order of the records, and where the classes end.

    Args:
        classes: Shape (n,), dense from 0; -1 for records that are in none.

    Returns:
        Shapes (records in a class,) and (classes + 1,), int64; the second begins with 0.
    """
    # Counted and not sorted: numbers that are dense tell themselves where their records go.
    counts = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    count_members(classes, counts)
    ends = np.append(0, np.cumsum(counts)).astype(np.int64)
    order = np.empty(int(ends[-1]), np.int64)
    gather_members(classes, ends[:-1].copy(), order)
    return order, ends


@dataclass(frozen=True, eq=False)
class QidLabels:
    """What every class publishes for one QID.

    Attributes:
        columns: Published columns by name, each of length (classes,).
        numbers: Shape (classes,), int64, dense from 0: equal where two classes publish the same; ascending with the values of numerical
            QIDs and with the text of others.
        penalties: Shape (classes,): NCP of what is published, from 0 (one value) to 1 (the whole domain).
        covered: Shape (classes,): NCP as if the set of the class's own values were published: of numerical QIDs the same.
    """

    columns: dict[str, pa.Array]
    numbers: NDArray[np.int64]
    penalties: NDArray[np.float64]
    covered: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sets:
    """The records of each class, for one look at a QID after the other.

    Attributes:
        order: Shape (records in a class,), the records class by class.
        starts: Shape (classes,), where each begins.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, classes: NDArray[np.int32]) -> Sets:
        """Gathers the records of each class; negative ones are in none."""
        order, ends = members(classes)
        return cls(order, ends[:-1])

    @property
    def in_order(self) -> Sets:
        """The same classes of records that stand class by class, as ``values[sets.order]`` do: what is looked at often is moved once."""
        return Sets(np.arange(len(self.order)), self.starts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.diff(np.append(self.starts, len(self.order)))

    def extremes(self, values: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Returns the least and the greatest of a value per record in each class."""
        mine = values[self.order]
        # reduceat gives an empty range the value at its start; no class is empty.
        return np.minimum.reduceat(mine, self.starts), np.maximum.reduceat(mine, self.starts)

    def code_bounds(self, codes: NDArray[np.integer], null: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Returns the least and the greatest code of each class that is not the highest, ``null``, and which classes hold both.

        Of a class that holds nothing else both are ``null``. Shapes (classes,).
        """
        low, high = (found.astype(np.int64) for found in self.extremes(codes))
        mixed = (high == null) & (low < null)
        if mixed.any():
            # Signed, so that nothing is greater than what stands for the null among the rest.
            most = self.extremes(np.where(codes == null, np.int64(-1), codes.astype(np.int64)))[1]
            high = np.where(mixed, most, high).astype(np.int64)
        return low, high, mixed

    def pairs(self, codes: NDArray[np.integer], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the different codes below ``size`` of each class, both ascending: the number of the class, and the code."""
        numbers = np.repeat(np.arange(len(self.starts)), self.sizes)
        pairs = np.unique(numbers * size + codes[self.order])
        return pairs // size, pairs % size

    def distinct(self, codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
        """Returns how many different codes below ``size`` each class holds, shape (classes,)."""
        counts: NDArray[np.int64] = count_distinct(codes, self.order, self.starts, size)
        return counts


def text_ranks(texts: pa.Array) -> NDArray[np.int64]:
    """Returns the rank of each text among the different ones, a null last."""
    # Else a null is no entry and its index is null, which no array of ranks can be asked for.
    coded = texts.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    found: NDArray[np.int64] = ranks[coded.indices.to_numpy()]
    return found


def renumbered(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers different numbers from 0, ascending."""
    found: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return found
