"""Phase 1 of SKALD: the values of each QID counted chunk by chunk and merged, numbers by their digits and all else by hashing.

What is counted, and the tables that hold it, are those of ``core.columns.domains`` (papers/skald.txt, section III.B.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.arrays import positions, to_numpy
from core.columns.domains import Counted, domain_blocks, rows_of_axis
from core.columns.kernels import count_numbers
from core.columns.sortable import Keys, is_sortable, keys_of, values_of_keys
from core.histograms.merges import Ascending, sum_ascending
from core.order.sorting import ascending

COMPACT_ROWS = 1_000_000
SHARE = 2
"""Rows are added to a sum that is long where they are this part of it, so that it is not gone through for a few."""
DENSE_SPAN = 1 << 14
SPAN = 2**63
"""Keys that are further apart are sorted by comparing."""


def count_values(column: pa.Array) -> pa.Table:
    """Counts the distinct values of one batch of one column.

    Args:
        column: Shape (n,), any type that can be a QID, or a dictionary of it.

    Returns:
        Table ``value`` (the plain type), ``count`` (int64), nulls counted as a value of their own; dictionary entries that
        no record uses are left out.
    """
    if isinstance(column, pa.DictionaryArray):
        counts = np.zeros(len(column.dictionary) + 1, np.int64)
        count_numbers(positions(column).astype(np.int32), counts)
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
    """Returns the different ones of some numbers, ascending, and how often each is there."""
    if not len(keys):
        return keys, np.zeros(0, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < DENSE_SPAN:
        dense = np.bincount(keys - low)
        found = np.flatnonzero(dense)
        return found + low, dense[found]
    keys = ascending(keys - low, high - low, kept=False) + low if high - low < SPAN else np.sort(keys)
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[firsts], np.diff(firsts, append=len(keys))


def _summed(counts: pa.Table) -> pa.Table:
    # Few rows mostly, of a task that has its share of the threads.
    return counts.group_by("value", use_threads=False).aggregate([("count", "sum")]).rename_columns(["value", "count"])


class _Sum(Protocol):
    """Values of one QID and how often each is there, added up."""

    def put(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        """Adds values, each once, and their counts."""

    def result(self) -> Counted:
        """Returns all that were added."""


class _OfKeys:
    """The sum of values that are whole numbers or can be read as such."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type, self._nulls, self._waiting = dtype, 0, 0
        self._parts = [Ascending(np.zeros(0, np.int64), np.zeros(0, np.int64))]

    def put(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
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

    def result(self) -> Counted:
        self._parts = [sum_ascending(self._parts)]
        [(keys, counts)] = self._parts
        values = values_of_keys(keys, self._type)
        if not self._nulls:
            return Counted(values, counts)
        return Counted(pa.concat_arrays([values, pa.nulls(1, self._type)]), np.append(counts, self._nulls))


class _OfValues:
    """The sum of values of any type."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._schema, self._waiting = pa.schema([("value", dtype), ("count", pa.int64())]), 0
        self._parts = [self._schema.empty_table()]

    def put(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        self._parts.append(pa.table({"value": values, "count": counts}, schema=self._schema))
        self._waiting += len(values)
        if _are_many(self._waiting, len(self._parts[0])):
            self._parts, self._waiting = [_summed(pa.concat_tables(self._parts))], 0

    def result(self) -> Counted:
        # Grouping gives rows in the order in which they came; codes are positions, and must not depend on the order of chunks.
        self._parts = [_summed(pa.concat_tables(self._parts)).sort_by("value")]
        [rows] = self._parts
        return Counted(rows["value"].combine_chunks(), rows["count"].to_numpy())


def _are_many(waiting: int, summed: int) -> bool:
    # By what is summed already: else a domain of over a million values would be summed again at every batch.
    return waiting > max(COMPACT_ROWS, summed // SHARE)


class DomainCounter:
    """Adds up the values of many batches, holding no more than the distinct values, half as many rows again, and a million."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = tuple(types)
        self._sums: list[_Sum] = [_OfKeys(dtype) if is_sortable(dtype) else _OfValues(dtype) for dtype in types]

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts one batch whose columns are the QIDs in job order."""
        for position, (axis, dtype) in enumerate(zip(self._sums, self._types, strict=True)):
            rows = count_values(batch.column(position))
            axis.put(rows["value"].combine_chunks().cast(dtype), rows["count"].to_numpy())

    def merge(self, table: pa.Table) -> None:
        """Adds a domain table that was counted elsewhere."""
        for position, (axis, dtype) in enumerate(zip(self._sums, self._types, strict=True)):
            rows = rows_of_axis(table, position)
            axis.put(rows.values.cast(dtype), rows.counts)

    def counted(self) -> Iterator[Counted]:
        """Yields the values of each QID, ascending with its null last."""
        return (axis.result() for axis in self._sums)

    def blocks(self) -> Iterator[pa.Table]:
        """Yields the domain table in pieces that take little room beside the values."""
        return domain_blocks(self.counted(), self._types)

    def table(self) -> pa.Table:
        """Returns the domain table, each QID's values ascending with its null last."""
        return pa.concat_tables(self.blocks()).combine_chunks()


def add_up(tables: Iterable[pa.Table], types: Sequence[pa.DataType]) -> DomainCounter:
    """Returns a counter of all that the domain tables of chunks have counted."""
    counter = DomainCounter(types)
    for table in tables:
        counter.merge(table)
    return counter
