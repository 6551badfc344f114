"""Records of each class, and the labels of every class for one quasi-identifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.kernels import count_numbers
from core.compiling.compiled import compiler, small_in
from core.recoding.price_kernels import first_not_below

kernel = compiler("recoding.price_kernels", "recoding.classes")


def _gather_members(classes: NDArray[np.signedinteger[Any]], next_positions: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    rows = np.flatnonzero(classes >= 0)
    rows = rows[np.argsort(classes[rows], kind="stable")]
    sizes = np.bincount(classes[rows], minlength=len(next_positions))
    # Where each class begins in ``order``, less where it begins among the sorted rows.
    order[np.arange(len(rows)) + np.repeat(next_positions - (np.cumsum(sizes) - sizes), sizes)] = rows
    next_positions += sizes


@small_in(_gather_members)
@kernel
def gather_members(classes: NDArray[np.signedinteger[Any]], next_positions: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """List the record numbers class by class into ``order``; count ``next_positions`` up.

    Args:
        classes: Shape (n,), negative for records that are in none.
        next_positions: Shape (classes,), where each begins; counted up to where it ends.
        order: Shape (records in a class,), written to.
    """
    for row in range(classes.shape[0]):
        number = classes[row]
        if number >= 0:
            order[next_positions[number]] = row
            next_positions[number] += 1


def _count_distinct(codes: NDArray[np.integer[Any]], order: NDArray[np.int64], starts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(Sets(order, starts).pairs(codes, size)[0], minlength=len(starts))


@small_in(_count_distinct)
@kernel
def count_distinct(codes: NDArray[np.integer[Any]], order: NDArray[np.int64], starts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Count the distinct codes of each class in one pass, without sorting.

    Args:
        codes: Shape (n,), below ``size``.
        order: Shape (records in a class,), the records class by class.
        starts: Shape (classes,), where each class begins; none is empty.

    Returns:
        Shape (classes,).
    """
    # There are fewer classes than 2^31.
    seen = np.zeros(size, np.int32)
    counts = np.zeros(starts.shape[0], np.int64)
    number = 0
    for row in range(order.shape[0]):
        while number < starts.shape[0] and starts[number] <= row:
            number += 1
        code = codes[order[row]]
        # The number of the class is the mark, so that nothing is cleared between classes.
        if seen[code] != number:
            seen[code] = number
            counts[number - 1] += 1
    return counts


@kernel
def cut_grid_lines(
    numbers: NDArray[np.int64], before: NDArray[np.int64], widths: NDArray[np.int64], k: int, lines: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Cut a sorted domain at grid lines, k persons a part; write ``lines``, return a mask of the cuts.

    Lines are tried widest first, nearest to the middle first. Where one side has fewer persons, no line on that side is tried any more.

    Args:
        numbers: Shape (m,), ascending: where values lie.
        before: Shape (m + 1,): people at the values before each.
        widths: How far apart lines are, ascending, each a multiple of the one before; all numbers lie within the last one of zero.
        k: People.
        lines: Shape (m,): gets the line between each value and the one before it, where there was a cut.

    Returns:
        Shape (m,): whether there was a cut before the value.
    """
    starts = np.zeros(numbers.shape[0], np.bool_)
    last = widths.shape[0] - 1
    # Lower and upper line of a part, its first value and the one after its last. A part is at most 63 cuts by halves below the whole.
    stack = np.empty((1024, 4), np.int64)
    # Number by number: an array that is set to a tuple takes seconds to compile.
    stack[0, 0] = -widths[last] if numbers.shape[0] and numbers[0] < 0 else 0
    stack[0, 1], stack[0, 2], stack[0, 3] = widths[last], 0, numbers.shape[0]
    size = 1
    while size:
        size -= 1
        low, high, first, end = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        width = last
        while before[end] - before[first] >= 2 * k and width >= 0:
            step = widths[width]
            under = (low + high) // 2 // step * step
            over = under + step
            if under <= low and over >= high:
                width -= 1
                continue
            line = under if under > low and (over >= high or 2 * under + step >= low + high) else over
            at = first_not_below(numbers, first, end, line)
            left, right = before[at] - before[first], before[end] - before[at]
            if left >= k and right >= k:
                starts[at], lines[at] = True, line
                stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = line, high, at, end
                size += 1
                high, end = line, at
            elif left < k:
                low = line
            else:
                high = line
    return starts


def records_by_class(classes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return record numbers class by class, and where classes start and end, shape (classes + 1,).

    Within a class records keep their order.

    Args:
        classes: Shape (n,), dense from 0; -1 for records that are in none.

    Returns:
        Shapes (records in a class,) and (classes + 1,), int64; the second begins with 0.
    """
    # Counted and not sorted: numbers that are dense tell themselves where their records go.
    counts = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    count_numbers(classes, counts)
    ends = np.append(0, np.cumsum(counts)).astype(np.int64)
    order = np.empty(int(ends[-1]), np.int64)
    gather_members(classes, ends[:-1].copy(), order)
    return order, ends


@dataclass(frozen=True, eq=False)
class QidLabels:
    """Labels of every class for one QID, with their NCP.

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
    """Records of each class, as record numbers and start positions.

    Attributes:
        order: Shape (records in a class,), the records class by class.
        starts: Shape (classes,), where each begins.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, classes: NDArray[np.int32]) -> Sets:
        """Gather the record numbers of each class; records of negative classes are in none."""
        order, ends = records_by_class(classes)
        return cls(order, ends[:-1])

    @property
    def in_order(self) -> Sets:
        """The same classes over records that are already sorted by class.

        Use it with ``values[sets.order]``: values that are read often are moved once.
        """
        return Sets(np.arange(len(self.order)), self.starts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.diff(np.append(self.starts, len(self.order)))

    def extremes(self, values: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return the least and greatest value in each class, shapes (classes,).

        ``values`` has one value per record.
        """
        mine = values[self.order]
        # reduceat gives an empty range the value at its start; no class is empty.
        return np.minimum.reduceat(mine, self.starts), np.maximum.reduceat(mine, self.starts)

    def code_bounds(self, codes: NDArray[np.integer], null: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return each class's least and greatest code except ``null``, and a mask of classes with nulls too.

        Shapes (classes,). ``null`` is the highest code. For a class of nulls alone, both codes are ``null``.
        """
        low, high = (found.astype(np.int64) for found in self.extremes(codes))
        mixed = (high == null) & (low < null)
        if mixed.any():
            # Signed, so that nothing is greater than what stands for the null among the rest.
            most = self.extremes(np.where(codes == null, np.int64(-1), codes.astype(np.int64)))[1]
            high = np.where(mixed, most, high).astype(np.int64)
        return low, high, mixed

    def pairs(self, codes: NDArray[np.integer], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct pairs of class number and code, both ascending.

        Codes are below ``size``.
        """
        numbers = np.repeat(np.arange(len(self.starts)), self.sizes)
        pairs = np.unique(numbers * size + codes[self.order])
        return pairs // size, pairs % size

    def distinct(self, codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
        """Return the number of distinct codes in each class, shape (classes,); codes are below ``size``."""
        counts: NDArray[np.int64] = count_distinct(codes, self.order, self.starts, size)
        return counts


def text_ranks(texts: pa.Array) -> NDArray[np.int64]:
    """Return the rank of each text among the distinct texts; a null is last."""
    # Else a null is no entry and its index is null, which no array of ranks can be asked for.
    coded = texts.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    found: NDArray[np.int64] = ranks[coded.indices.to_numpy()]
    return found


def dense_ranks(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of each number among the distinct numbers, dense from 0."""
    found: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return found
