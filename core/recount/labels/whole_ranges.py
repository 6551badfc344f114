"""Ranges of whole numbers, read all at once: where values are millions, so are the labels that cover some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Places = NDArray[np.int64]

_NUMBER = "-?[0-9]{1,18}"
"""Such a number fits into 64 bits."""
_RANGE = rf"^(?:\[(?P<low>{_NUMBER}) - (?P<high>{_NUMBER})\]|(?P<one>{_NUMBER}))$"
FEW, AT_ONCE = 1000, 1 << 17
"""Labels that are as soon read one by one, and those that are read at once."""


def read_whole(keys: NDArray[np.integer[Any]] | None, labels: Sequence[str | None]) -> tuple[Places, Places, NDArray[np.bool_]]:
    """Reads the labels that are a whole number, or all from one to another.

    Args:
        keys: Shape (m,), the values, ascending; None where they are no whole numbers, and no label is read.
        labels: Of any form.

    Returns:
        The first position that each of them covers and the one after the last, 0 and 0 where it covers none, and which labels were read;
        all of shape (labels,).
    """
    low, high, read = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64), np.zeros(len(labels), np.bool_)
    if keys is not None and len(labels) >= FEW:
        for first in range(0, len(labels), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            low[some], high[some], read[some] = _read(keys, pa.array(labels[some], pa.large_string()))
    return low, high, read


def _read(keys: NDArray[np.integer[Any]], labels: pa.Array) -> tuple[Places, Places, NDArray[np.bool_]]:
    found = pc.extract_regex(labels, _RANGE)
    read: NDArray[np.bool_] = found.is_valid().to_numpy(zero_copy_only=False)
    low, high, one = (part.filter(pa.array(read)) for part in found.flatten())
    alone = pc.not_equal(one, "")
    limits = np.iinfo(keys.dtype)
    # An end may lie beyond what the column's type holds.
    least, most = max(int(limits.min), np.iinfo(np.int64).min), min(int(limits.max), np.iinfo(np.int64).max)
    ends = (pc.if_else(alone, one, part).cast(pa.int64()).to_numpy() for part in (low, high))
    first, last = (np.clip(end, least, most).astype(keys.dtype) for end in ends)
    starts, after = np.zeros((2, len(labels)), np.int64)
    starts[read], after[read] = keys.searchsorted(first, "left"), keys.searchsorted(last, "right")
    some = after > starts
    return np.where(some, starts, 0), np.where(some, after, 0), read
