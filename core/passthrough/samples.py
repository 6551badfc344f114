"""Values of a column counted by digest, and a sample of them that depends on neither order nor chunks: those with the smallest digests."""

from __future__ import annotations

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
        self._digests: list[Digests] = []
        self._counts: list[NDArray[np.int64]] = []
        self.sample: dict[int, str] = {}
        self.waiting = 0

    def add(self, column: pa.Array) -> None:
        """Adds the values of a batch, shape (rows,), in their working type or as a dictionary of it."""
        if isinstance(column, pa.DictionaryArray):
            # A dictionary is small where values repeat, so that rows need no sorting.
            used = np.bincount(positions(column), minlength=len(column.dictionary) + 1)[: len(column.dictionary)]
            found, values = value_digests(column.dictionary), column.dictionary
            there = (used > 0) & (found != NOBODY)
            digests, counts = found[there], used[there].astype(np.int64)
        else:
            found, values = value_digests(column), column
            digests, counts = np.unique(found[found != NOBODY], return_counts=True)
        self._digests.append(digests)
        self._counts.append(counts)
        self.waiting += len(digests)
        self._sample(found, digests, values)

    def _sample(self, found: Digests, digests: Digests, values: pa.Array) -> None:
        known = np.fromiter(self.sample, np.uint64, len(self.sample))
        new = digests[~np.isin(digests, known)]
        if len(known) >= MOST_LOOKED_AT:
            new = new[new < known.max()]
        if not len(new):
            return
        new = np.unique(new)[:MOST_LOOKED_AT]
        _, rows = np.unique(np.where(np.isin(found, new), found, NOBODY), return_index=True)
        rows = rows[np.isin(found[rows], new)]
        self.sample |= dict(zip(found[rows].tolist(), as_texts(values.take(pa.array(rows))), strict=True))
        for digest in sorted(self.sample)[MOST_LOOKED_AT:]:
            del self.sample[digest]

    def counted(self) -> tuple[Digests, NDArray[np.int64]]:
        """Returns what was counted since it was last asked: digests in ascending order and counts, both of shape (distinct,)."""
        if not self._digests:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        digests, places = np.unique(np.concatenate(self._digests), return_inverse=True)
        counts = np.zeros(len(digests), np.int64)
        np.add.at(counts, places, np.concatenate(self._counts))
        self._digests, self._counts, self.waiting = [], [], 0
        return digests, counts


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
