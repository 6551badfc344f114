"""Counts of the distinct values of each QID, chunk by chunk and merged (phase 1 of SKALD).

Numbers are counted by their digits, all else by hashing. The tables are those of ``core.columns.domains`` (papers/skald.txt, section
III.B.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.data_parallel import LEAST_ROWS, parts_in_parallel
from core.columns.domains import QidValueCounts, domain_blocks, rows_of_axis
from core.columns.kernels import count_numbers
from core.columns.numbers import Keys, dictionary_positions, is_sortable, keys_of, to_numpy, values_of_keys
from core.columns.sorting import order_of, run_starts, sort_numbers
from core.histograms.kernels import pack_counts, sum_packed

RANGE = 1 << 18
"""Rows that are summed together, about."""
CELLS_PER_SAMPLE = 1 << 6
"""One cell of so many says where ranges end."""
UNUSED = 8
"""Which part of an array may be held for nothing by a sum that is shorter."""
BITS = 64


class Ascending(NamedTuple):
    """Distinct cells as ascending numbers, and their counts; both of shape (cells,)."""

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]

    def part(self, first: int, last: int) -> Ascending:
        """Return the cells and counts from position ``first`` to before ``last``."""
        return Ascending(self.cells[first:last], self.counts[first:last])

    def only_read(self) -> Ascending:
        """Return read-only views of the arrays.

        Arrays of files are read-only too, and loops are compiled for each kind.
        """
        views = Ascending(self.cells.view(), self.counts.view())
        for view in views:
            view.flags.writeable = False
        return views


def sum_ascending(parts: Sequence[Ascending]) -> Ascending:
    """Sum one or more histograms of ascending one-word cells into one, on several cores.

    Each range of cells is brought together from all of them and sorted by its digits, on several cores; every row is moved a few times,
    however many histograms there are.
    """
    if len(parts) == 1:
        return parts[0]
    rows = sum(len(part.cells) for part in parts)
    bits = max((int(part.counts.max(initial=0)) for part in parts), default=0).bit_length()
    into = Ascending(np.empty(rows, np.int64), np.empty(rows, np.int64))
    places = _places(parts, -(-rows // RANGE))
    starts = places.sum(axis=1)

    def summed(some: slice) -> list[int]:
        ends = []
        for number in range(some.start, some.stop):
            mine = [part.part(*rows) for part, *rows in zip(parts, places[number], places[number + 1], strict=True)]
            ends.append(starts[number] + _sum_range(mine, into.part(*starts[number : number + 2]), bits))
        return ends

    ranges = len(starts) - 1
    ends = [end for some in parts_in_parallel(summed, ranges, least=1 if rows >= 2 * LEAST_ROWS else ranges) for end in some]
    found = _closed(into, list(zip(starts[:-1].tolist(), ends, strict=True)))
    # A slice would keep room for all.
    return Ascending(found.cells.copy(), found.counts.copy()) if len(found.cells) < rows - rows // UNUSED else found


def _places(parts: Sequence[Ascending], ranges: int) -> NDArray[np.int64]:
    """Return the position of each cell range in each histogram, shape (ranges + 1, histograms).

    The last row has the ends of the last range.
    """
    some = np.sort(np.concatenate([part.cells[::CELLS_PER_SAMPLE] for part in parts]))
    cuts = np.unique(some[[len(some) * number // ranges for number in range(1, ranges)]]) if len(some) else some
    # Equal cells are in one range, whichever histogram they are of.
    bounds = [np.concatenate([[0], np.searchsorted(part.cells, cuts), [len(part.cells)]]) for part in parts]
    return np.stack(bounds, axis=1).astype(np.int64)


def _sum_range(parts: Sequence[Ascending], into: Ascending, bits: int) -> int:
    """Sum neighbouring cells of histograms into an array; return the number of distinct cells.

    Args:
        parts: The neighbouring cells of each histogram.
        into: Room for the sums, written to.
        bits: Bits of the largest count.
    """
    some = [part for part in parts if len(part.cells)]
    if not some:
        return 0
    low = min(int(part.cells[0]) for part in some)
    span = max(int(part.cells[-1]) for part in some) - low
    if span.bit_length() + bits > BITS - 1:
        return _sum_wide(some, into)
    rows, start = np.empty(len(into.cells), np.int64), 0
    for part in some:
        pack_counts(*part.only_read(), low, bits, rows[start:])
        start += len(part.cells)
    # Equal cells may stand in any order of their counts, which need not be looked at.
    return int(sum_packed(sort_numbers(rows, (span << bits) | ((1 << bits) - 1), lowest_bit=bits, keeps_input=False), low, bits, *into))


def _sum_wide(parts: Sequence[Ascending], into: Ascending) -> int:
    """Sum cells so far apart that a cell and its count do not fit in one number."""
    cells, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    low = int(cells.min())
    # The lesser of two numbers without a sign stays so, however far apart they are and wherever they begin.
    order = order_of(cells.view(np.uint64) - np.uint64(low % 2**BITS), int(cells.max()) - low)
    cells = cells[order]
    firsts = run_starts(cells)
    into.cells[: len(firsts)], into.counts[: len(firsts)] = cells[firsts], np.add.reduceat(counts[order], firsts)
    return len(firsts)


def _closed(into: Ascending, bounds: Sequence[tuple[int, int]]) -> Ascending:
    """Close the gaps between the sums of ranges in an array; return the sums.

    Gaps are where several histograms have one cell.
    """
    end = bounds[0][1]
    for first, last in bounds[1:]:
        if first > end:
            for array in into:
                array[end : end + last - first] = array[first:last]
        end += last - first
    return into.part(0, end)


COMPACT_ROWS = 1_000_000
SHARE = 2
"""Rows are added to a sum that is long where they are this part of it, so that it is not gone through for a few."""
DENSE_SPAN = 1 << 14
SPAN = 2**63
"""Keys that are further apart are sorted by comparing."""


def count_values(column: pa.Array) -> pa.Table:
    """Return a table of a batch's distinct values, the null among them, and their counts.

    Args:
        column: Shape (n,), any type that can be a QID, or a dictionary of it.

    Returns:
        Table ``value`` (the plain type), ``count`` (int64), nulls counted as a value of their own; dictionary entries that
        no record uses are left out.
    """
    if isinstance(column, pa.DictionaryArray):
        counts = np.zeros(len(column.dictionary) + 1, np.int64)
        count_numbers(dictionary_positions(column).astype(np.int32), counts)
        values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
        seen = np.flatnonzero(counts)
        found = pa.table({"value": values.take(pa.array(seen)), "count": counts[seen]})
        # A dictionary may itself hold nulls or repeats; grouping once more makes the values distinct.
        clean = not column.dictionary.null_count and pc.count_distinct(column.dictionary).as_py() == len(column.dictionary)
        return found if clean else _summed(found)
    if not is_sortable(column.type):
        found = pc.value_counts(column)
        return pa.table({"value": found.field("values"), "count": found.field("counts")})
    values, counts = _count_keys(keys_of(column.drop_null()))
    nulls = column.null_count
    found = values_of_keys(values, column.type)
    return pa.table(
        {
            "value": pa.concat_arrays([found, pa.nulls(1, column.type)]) if nulls else found,
            "count": np.append(counts, nulls) if nulls else counts,
        }
    )


def _count_keys(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the distinct numbers of an array, ascending, and the count of each."""
    if not len(keys):
        return keys, np.zeros(0, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < DENSE_SPAN:
        dense = np.bincount(keys - low)
        found = np.flatnonzero(dense)
        return found + low, dense[found]
    keys = sort_numbers(keys - low, high - low, keeps_input=False) + low if high - low < SPAN else np.sort(keys)
    firsts = run_starts(keys)
    return keys[firsts], np.diff(firsts, append=len(keys))


def _summed(counts: pa.Table) -> pa.Table:
    # Few rows mostly, of a task that has its share of the threads.
    return counts.group_by("value", use_threads=False).aggregate([("count", "sum")]).rename_columns(["value", "count"])


class _OfKeys:
    """Sum of the counts of values that are integers or can be mapped to integers."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type, self._nulls, self._waiting = dtype, 0, 0
        self._parts = [Ascending(np.zeros(0, np.int64), np.zeros(0, np.int64))]

    def put(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        """Add distinct values and their counts, as integer keys in the order of the values."""
        if values.null_count:
            missing = to_numpy(values.is_null())
            self._nulls += int(counts[missing].sum())
            values, counts = values.drop_null(), counts[~missing]
        keys = keys_of(values)
        if np.any(keys[1:] < keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        self._parts.append(Ascending(keys, counts))
        self._waiting += len(keys)
        if _are_many(self._waiting, len(self._parts[0].cells)):
            self._parts, self._waiting = [sum_ascending(self._parts)], 0

    def result(self) -> QidValueCounts:
        """Return all values added, ascending, and their counts."""
        self._parts = [sum_ascending(self._parts)]
        [(keys, counts)] = self._parts
        values = values_of_keys(keys, self._type)
        if not self._nulls:
            return QidValueCounts(values, counts)
        return QidValueCounts(pa.concat_arrays([values, pa.nulls(1, self._type)]), np.append(counts, self._nulls))


class _OfValues:
    """Sum of the counts of values of any type."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._schema, self._waiting = pa.schema([("value", dtype), ("count", pa.int64())]), 0
        self._parts = [self._schema.empty_table()]

    def put(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        """Add distinct values and their counts, as a table."""
        self._parts.append(pa.table({"value": values, "count": counts}, schema=self._schema))
        self._waiting += len(values)
        if _are_many(self._waiting, len(self._parts[0])):
            self._parts, self._waiting = [_summed(pa.concat_tables(self._parts))], 0

    def result(self) -> QidValueCounts:
        """Return all values added, ascending, and their counts."""
        # Grouping gives rows in the order in which they came; codes are positions, and must not depend on the order of chunks.
        self._parts = [_summed(pa.concat_tables(self._parts)).sort_by("value")]
        [rows] = self._parts
        return QidValueCounts(rows["value"].combine_chunks(), rows["count"].to_numpy())


def _are_many(waiting: int, summed: int) -> bool:
    # By what is summed already: else a domain of over a million values would be summed again at every batch.
    return waiting > max(COMPACT_ROWS, summed // SHARE)


class DomainCounter:
    """Counter of the distinct values of each QID over many batches.

    It holds no more than the distinct values, half as many rows again, and a million.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = tuple(types)
        self._sums: list[_OfKeys | _OfValues] = [_OfKeys(dtype) if is_sortable(dtype) else _OfValues(dtype) for dtype in types]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the values of one batch whose columns are the QIDs in job order."""
        for position, (axis, dtype) in enumerate(zip(self._sums, self._types, strict=True)):
            rows = count_values(batch.column(position))
            axis.put(rows["value"].combine_chunks().cast(dtype), rows["count"].to_numpy())

    def merge(self, table: pa.Table) -> None:
        """Add a domain table, the counts of another counter."""
        for position, (axis, dtype) in enumerate(zip(self._sums, self._types, strict=True)):
            rows = rows_of_axis(table, position)
            axis.put(rows.values.cast(dtype), rows.counts)

    def value_counts(self) -> Iterator[QidValueCounts]:
        """Yield the distinct values of each QID and their counts, ascending with its null last."""
        return (axis.result() for axis in self._sums)

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the domain table in blocks, which take little memory besides the values."""
        return domain_blocks(self.value_counts(), self._types)

    def table(self) -> pa.Table:
        """Return the domain table, each QID's values ascending with its null last."""
        return pa.concat_tables(self.blocks()).combine_chunks()


def merge_domain_tables(tables: Iterable[pa.Table], types: Sequence[pa.DataType]) -> DomainCounter:
    """Merge the domain tables of chunks into one counter."""
    counter = DomainCounter(types)
    for table in tables:
        counter.merge(table)
    return counter
