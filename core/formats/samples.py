"""Counts of a column's values by digest, and a sample of the values with the smallest digests.

The sample depends neither on order nor on chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import holds_bytes, in_utc
from core.columns.numbers import dictionary_positions, null_mask
from core.columns.sorting import GREATEST_DIGEST, order_of_digests, run_starts, sort_numbers
from core.units.digests import NOBODY, Digests, digests_of

MOST_SAMPLED_VALUES = 2000
"""Distinct values of a column that are looked at."""
SOME = (1.25, 8)
"""How many times as many digests are sorted where a batch holds more: enough, but where values repeat, or where they repeat often."""
LONGEST = 200
"""Characters of a value that are looked at."""


class ValueCounter:
    """Counter of the values of one column, batch by batch.

    Values are identified by 64-bit digests: of a million distinct ones two are taken for one in one source out of 37 million.

    Attributes:
        waiting: Digests that were not counted yet.
        bytes: Of all values that are text or bytes.
    """

    def __init__(self) -> None:
        """Start with no values."""
        self._single: list[Digests] = []
        self._digests: list[Digests] = []
        self._counts: list[NDArray[np.int64]] = []
        self._beyond: np.uint64 | None = None
        self._smallest: tuple[Digests, pa.Array | None] = np.empty(0, np.uint64), None
        self.waiting = 0
        self.bytes = 0

    def add(self, column: pa.Array) -> None:
        """Count the values of a batch, shape (rows,), without nulls and NaN, and sample them.

        They have their working type, or are a dictionary of it.
        """
        if isinstance(column, pa.DictionaryArray):
            # A dictionary is small where values repeat, so that rows need no sorting.
            used = np.bincount(dictionary_positions(column), minlength=len(column.dictionary) + 1)[: len(column.dictionary)]
            found, values = value_digests(column.dictionary), column.dictionary
            there = (used > 0) & (found != NOBODY)
            self._digests.append(found[there])
            self._counts.append(used[there].astype(np.int64))
            self.waiting += len(self._digests[-1])
            self.bytes += int(used @ _lengths(values))
        else:
            found, values = value_digests(column), column
            there = found != NOBODY
            # Sorted once, together with those of other batches.
            self._single.append(found[there])
            self.waiting += len(self._single[-1])
            self.bytes += int(_lengths(values).sum())
        self._sample(found, there, values)

    @property
    def sample(self) -> tuple[Digests, pa.StringArray]:
        """Smallest digests in ascending order, and their values as text, both of shape (distinct,)."""
        digests, values = self._smallest
        return digests, pa.array([], pa.string()) if values is None else as_texts(values)

    def _sample(self, found: Digests, there: NDArray[np.bool_], values: pa.Array) -> None:
        """Add the values of a batch with small digests to the sample."""
        # Of many batches nearly all digests are beyond those of the sample, which is told by comparing alone.
        rows = np.flatnonzero(there if self._beyond is None else there & (found < self._beyond))
        if not len(rows):
            return
        digests, first = _smallest(found[rows])
        kept = values.take(pa.array(rows[first]))
        known, texts = self._smallest
        if texts is not None:
            digests, first = distinct_digests(np.concatenate([known, digests]))
            kept = pa.concat_arrays([texts, kept]).take(pa.array(first[:MOST_SAMPLED_VALUES]))
        self._smallest = digests[:MOST_SAMPLED_VALUES], kept
        if len(kept) == MOST_SAMPLED_VALUES:
            self._beyond = digests[MOST_SAMPLED_VALUES - 1]

    def take_counts(self) -> tuple[Digests, NDArray[np.int64]]:
        """Return and forget the distinct digests, ascending, and their counts since the last call."""
        single = sort_numbers(np.concatenate([np.empty(0, np.uint64), *self._single]), GREATEST_DIGEST, keeps_input=False)
        starts = run_starts(single)
        digests, counts = single[starts], np.diff(np.append(starts, len(single)))
        if self._digests:
            digests, counts = sum_counts([*self._digests, digests], [*self._counts, counts])
        self._single, self._digests, self._counts, self.waiting = [], [], [], 0
        return digests, counts


def sum_counts(digests: Sequence[Digests], counts: Sequence[NDArray[np.int64]]) -> tuple[Digests, NDArray[np.int64]]:
    """Return the distinct digests, ascending, and the sum of the counts of each.

    The arrays given have the shape (n,) each.
    """
    whole, summed = np.concatenate(digests), np.concatenate(counts)
    order = order_of_digests(whole)
    whole, summed = whole[order], summed[order]
    starts = run_starts(whole)
    return whole[starts], np.add.reduceat(summed, starts) if len(starts) else summed


def digest_totals(digests: Sequence[Digests], counts: Sequence[NDArray[np.integer[Any]]]) -> tuple[int, int, int]:
    """Return the number of distinct digests, the number of those that count once, and the total count.

    Args:
        digests: Arrays of shape (n,), in each of which the digests are distinct.
        counts: Of these, none 0, arrays of the same shapes.
    """
    # Sorting digests alone is several times as quick as sorting what belongs to them along with them.
    whole = sort_numbers(np.concatenate([np.empty(0, np.uint64), *digests]), GREATEST_DIGEST, keeps_input=False)
    starts = run_starts(whole)
    lengths = np.diff(np.append(starts, len(whole)))
    often = np.concatenate([np.empty(0, np.uint64), *(found[count > 1] for found, count in zip(digests, counts, strict=True))])
    # Of those that stand in one array alone, some count more than once there.
    more = np.count_nonzero(lengths[np.searchsorted(whole[starts], often)] == 1)
    return len(starts), int(np.count_nonzero(lengths == 1) - more), sum(int(count.sum(dtype=np.int64)) for count in counts)


def distinct_digests(digests: Digests) -> tuple[Digests, NDArray[np.intp]]:
    """Return the distinct digests in ascending order, and a position of each, shapes (distinct,)."""
    order = order_of_digests(digests)
    ascending = digests[order]
    starts = run_starts(ascending)
    return ascending[starts], order[starts]


def _smallest(digests: Digests) -> tuple[Digests, NDArray[np.intp]]:
    """Return the smallest distinct digests in ascending order, and a position of each.

    There are at most as many as a sample has.
    """
    for times in SOME:
        # Digests are as good as random, so that a share of all numbers has the same share of those that are distinct.
        share = times * MOST_SAMPLED_VALUES / max(len(digests), 1)
        if share < 1:
            near = np.flatnonzero(digests <= np.uint64(int(share * (1 << 64))))
            found, first = distinct_digests(digests[near])
            if len(found) >= MOST_SAMPLED_VALUES:
                return found[:MOST_SAMPLED_VALUES], near[first[:MOST_SAMPLED_VALUES]]
    found, first = distinct_digests(digests)
    return found[:MOST_SAMPLED_VALUES], first[:MOST_SAMPLED_VALUES]


def _lengths(values: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each value, shape (n,); 0 for nulls and for types other than text and bytes."""
    if not holds_bytes(values.type):
        return np.zeros(len(values), np.int64)
    lengths: NDArray[np.int64] = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
    return lengths


def value_digests(column: pa.Array) -> Digests:
    """Return the digest of each value, shape (rows,); NOBODY for nulls and NaN."""
    if pt.is_duration(column.type) or pt.is_time(column.type):
        column = column.cast(pa.int32() if pt.is_time32(column.type) else pa.int64())
    elif pt.is_float16(column.type):
        column = column.cast(pa.float32())
    elif pt.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    elif pt.is_date32(column.type) or pt.is_date64(column.type) or pt.is_timestamp(column.type):
        # As numbers, which are told apart as their texts are, and need not be written.
        column = column.cast(pa.int32() if pt.is_date32(column.type) else pa.int64())
    elif pt.is_decimal128(column.type):
        words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
        return digests_of([pa.array(words[:, place], mask=null_mask(column)) for place in range(2)], len(column))
    return digests_of([column], len(column))


def as_texts(values: pa.Array) -> pa.StringArray:
    """Return values as text, at most 200 characters each; empty for nulls and types without a text.

    Bytes are such a type.
    """
    if pt.is_duration(values.type) or pt.is_binary(values.type) or pt.is_large_binary(values.type) or pt.is_fixed_size_binary(values.type):
        return pa.repeat("", len(values))
    # Not every zone that a file names is known on this machine.
    return pc.utf8_slice_codeunits(pc.fill_null(values.cast(in_utc(values.type)).cast(pa.string()), ""), 0, LONGEST)
