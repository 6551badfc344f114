"""The order of texts by their bytes, told by eight bytes of each as far as these differ: numbers are sorted far quicker than texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.order.sorting import order_of, tied

FEW = 1024
"""Texts that are sorted as they are."""
WORD = 8


def text_order(texts: pa.StringArray) -> tuple[NDArray[np.intp], bool]:
    """Returns the permutation that sorts texts, none of them null, by their bytes, shape (n,), and whether none comes twice.

    Those that are equal come in any order.
    """
    if len(texts) < FEW:
        order = _arrow_order([texts])
        return order, _distinct(texts.take(pa.array(order)))
    words = _words(texts, _shared_bytes(texts))
    first = words.min()
    order = order_of(words - first, int(words.max() - first))
    words = words[order]
    same = words[1:] == words[:-1]
    alike = tied(same)
    if not len(alike):
        return order, True
    # Alike in these bytes, which come after what all have in common; texts of hardly any column are.
    groups = np.cumsum(~np.append(False, same))[alike]
    rows = order[alike]
    among = texts.take(pa.array(rows))
    within = _arrow_order([pa.array(groups), among])
    order[alike] = rows[within]
    return order, _distinct(among.take(pa.array(within)))


def _distinct(ascending: pa.StringArray) -> bool:
    return not pc.any(pc.equal(ascending[1:], ascending[:-1])).as_py()


def _arrow_order(columns: list[pa.Array]) -> NDArray[np.intp]:
    table = pa.table(columns, [str(place) for place in range(len(columns))])
    order: NDArray[np.intp] = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy().astype(np.intp)
    return order


def _shared_bytes(texts: pa.StringArray) -> int:
    """Returns how many bytes all texts begin with alike: those of the first and the last."""
    ends = pc.min_max(texts)
    first, last = (np.frombuffer(ends[end].as_buffer(), np.uint8) for end in ("min", "max"))
    most = min(len(first), len(last))
    unlike = first[:most] != last[:most]
    return int(np.argmax(unlike)) if unlike.any() else most


def _words(texts: pa.StringArray, skipped: int) -> NDArray[np.uint64]:
    """Returns eight bytes of each text after so many as a number that is as large as they are late, shape (n,); where it ends, zeros."""
    _, bounds, data = texts.buffers()
    ends = np.frombuffer(bounds, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    starts = ends[:-1] + skipped
    given = np.frombuffer(data, np.uint8) if data is not None and data.size >= WORD else np.zeros(WORD, np.uint8)
    if data is not None and data.size < WORD:
        given[: data.size] = np.frombuffer(data, np.uint8)
    # Of a text near the end of all, what stands before it is read too, and shifted out.
    at = np.minimum(starts, len(given) - WORD)
    found = np.lib.stride_tricks.sliding_window_view(given, WORD)[at].view(">u8").ravel().astype(np.uint64)
    before, beyond = (starts - at) * WORD, np.maximum(WORD - (ends[1:] - starts), 0) * WORD
    there = (before < 64) & (beyond < 64)
    left, right = (np.where(there, bits, 0).astype(np.uint64) for bits in (before, beyond))
    return np.where(there, found << left >> right << right, np.uint64(0))
