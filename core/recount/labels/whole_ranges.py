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
FEW = 1000
"""Labels that are as soon read one by one."""


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
    if keys is None or len(labels) < FEW:
        return low, high, read
    found = pc.extract_regex(pa.array(labels, pa.large_string()), _RANGE)
    read[:] = found.is_valid().to_numpy(zero_copy_only=False)
    parts = {name: part.filter(found.is_valid()) for name, part in zip(("low", "high", "one"), found.flatten(), strict=True)}
    alone = pc.not_equal(parts["one"], "")
    ends = [pc.if_else(alone, parts["one"], parts[name]).cast(pa.int64()).to_numpy() for name in ("low", "high")]
    limits = np.iinfo(keys.dtype)
    least, most = max(int(limits.min), np.iinfo(np.int64).min), min(int(limits.max), np.iinfo(np.int64).max)
    # An end may lie beyond what the column's type holds.
    first, last = (np.clip(end, least, most).astype(keys.dtype) for end in ends)
    starts, after = keys.searchsorted(first, "left"), keys.searchsorted(last, "right")
    some = after > starts
    low[read], high[read] = np.where(some, starts, 0), np.where(some, after, 0)
    return low, high, read
