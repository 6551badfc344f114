"""Values of a column counted by digest, and a sample of them that depends on neither order nor chunks: those with the smallest digests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.arrays import positions
from core.persons.digests import NOBODY, Digests, digests_of

MOST_LOOKED_AT = 2000
"""Distinct values of a column that are looked at."""
LONGEST = 200
"""Characters of a value that are looked at."""


class ValueCounter:
    """Counts the values of one column batch by batch.

    Values are told apart by 64-bit digests: of a million distinct ones two are taken for one in one source out of 37 million.
    """

    def __init__(self) -> None:
        self._single: list[Digests] = []
        self._digests: list[Digests] = []
        self._counts: list[NDArray[np.int64]] = []
        self._beyond: np.uint64 | None = None
        self.sample: dict[int, str] = {}
        self.waiting = 0

    def add(self, column: pa.Array) -> None:
        """Adds the values of a batch, shape (rows,), in their working type or as a dictionary of it."""
        if isinstance(column, pa.DictionaryArray):
            # A dictionary is small where values repeat, so that rows need no sorting.
            used = np.bincount(positions(column), minlength=len(column.dictionary) + 1)[: len(column.dictionary)]
            found, values = value_digests(column.dictionary), column.dictionary
            there = (used > 0) & (found != NOBODY)
            self._digests.append(found[there])
            self._counts.append(used[there].astype(np.int64))
            self.waiting += len(self._digests[-1])
        else:
            found, values = value_digests(column), column
            there = found != NOBODY
            # Sorted once, together with those of other batches.
            self._single.append(found[there])
            self.waiting += len(self._single[-1])
        self._sample(found, there, values)

    def _sample(self, found: Digests, there: NDArray[np.bool_], values: pa.Array) -> None:
        # Of many batches nearly all digests are beyond those of the sample, which is told by comparing alone.
        rows = np.flatnonzero(there if self._beyond is None else there & (found < self._beyond))
        rows = rows[np.argsort(found[rows])]
        digests = found[rows]
        first = np.append(True, digests[1:] != digests[:-1])[: len(digests)]
        kept = [
            row
            for row, digest in zip(rows[first][:MOST_LOOKED_AT].tolist(), digests[first].tolist(), strict=False)
            if digest not in self.sample
        ]
        if not kept:
            return
        self.sample |= dict(zip(found[kept].tolist(), as_texts(values.take(pa.array(kept))), strict=True))
        for digest in sorted(self.sample)[MOST_LOOKED_AT:]:
            del self.sample[digest]
        if len(self.sample) == MOST_LOOKED_AT:
            self._beyond = np.uint64(max(self.sample))

    def counted(self) -> tuple[Digests, NDArray[np.int64]]:
        """Returns what was counted since it was last asked: digests in ascending order and counts, both of shape (distinct,)."""
        single = np.sort(np.concatenate([np.empty(0, np.uint64), *self._single]))
        starts = _starts(single)
        digests, counts = single[starts], np.diff(np.append(starts, len(single)))
        if self._digests:
            digests, counts = counted_together([*self._digests, digests], [*self._counts, counts])
        self._single, self._digests, self._counts, self.waiting = [], [], [], 0
        return digests, counts


def counted_together(digests: Sequence[Digests], counts: Sequence[NDArray[np.int64]]) -> tuple[Digests, NDArray[np.int64]]:
    """Adds up the counts of equal digests, arrays of shape (n,) each; returns the distinct ones in ascending order."""
    whole, summed = np.concatenate(digests), np.concatenate(counts)
    order = np.argsort(whole)
    whole, summed = whole[order], summed[order]
    starts = _starts(whole)
    return whole[starts], np.add.reduceat(summed, starts) if len(starts) else summed


def _starts(ascending: Digests) -> NDArray[np.intp]:
    """Returns where each distinct digest begins."""
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)])


def value_digests(column: pa.Array) -> Digests:
    """Returns the digest of each value, shape (rows,); NOBODY for a null and for what is not a number."""
    if pt.is_duration(column.type) or pt.is_time(column.type):
        column = column.cast(pa.int32() if pt.is_time32(column.type) else pa.int64())
    elif pt.is_float16(column.type):
        column = column.cast(pa.float32())
    elif pt.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    return digests_of([column], len(column))


def as_texts(values: pa.Array) -> list[str]:
    """Returns values as text, their first 200 characters; what has none (bytes, say) as empty text."""
    if pt.is_duration(values.type) or pt.is_binary(values.type) or pt.is_large_binary(values.type) or pt.is_fixed_size_binary(values.type):
        return [""] * len(values)
    return [(text or "")[:LONGEST] for text in values.cast(pa.string()).to_pylist()]
