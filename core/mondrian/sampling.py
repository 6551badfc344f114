"""Samples that depend on what records are and on nothing else: not on chunks, files or their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Words

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def sampled(words: Words, share: float, seed: int) -> NDArray[np.bool_]:
    """Returns which records are in a sample, shape (n,): those whose cell has a hash below the share. Equal records are in it together.

    Args:
        words: The cells, arrays of shape (n,).
        share: From 0 to 1; 1 takes all.
        seed: Another one draws another sample.
    """
    state: NDArray[np.uint64] = np.full(len(words[0]), _mixed(np.array([seed], np.uint64))[0])
    for word in words:
        state = _mixed(state ^ word.astype(np.uint64))
    # 53 bits, as many as a float has: the share becomes a whole number and the comparison exact.
    drawn: NDArray[np.bool_] = (state >> np.uint64(11)) < np.uint64(round(share * (1 << 53)))
    return drawn


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood 2014): neighbouring numbers come out unrelated."""
    numbers = numbers + _ODD
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    mixed: NDArray[np.uint64] = numbers ^ (numbers >> np.uint64(31))
    return mixed
