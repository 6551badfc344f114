"""What each kind of hierarchy builds: the levels between the values themselves and ``*``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bounds = tuple[pa.Array, pa.Array]


Extent: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Level:
    """One level over the non-null values of a domain.

    Attributes:
        groups: Shape ``(m,)``, uint32: the group of each value, dense, numbered by first appearance in the domain.
        labels: Length ``g``: what is published for each group.
        axis: Bins of the level in the paper's eq. 1; at least ``g``.
        bounds: Low and high of each group, each of length ``g``, where the level has numeric bounds.
        extent: From where to where what is published reaches, each of shape ``(g,)``, float64 in the unit of
            ``core.columns.numbers.as_numbers``, infinite at an open end; where that is not what ``bounds`` say.
    """

    groups: NDArray[np.uint32]
    labels: pa.Array
    axis: int
    bounds: Bounds | None = None
    extent: Extent | None = None


@dataclass(frozen=True, eq=False)
class DraftLevels:
    """The levels of a hierarchy without its two ends.

    Attributes:
        levels: From fine to coarse, neither the values themselves nor ``*``.
        axis: Bins of level 0 in the paper's eq. 1.
        numeric: Whether the levels have numeric bounds.
    """

    levels: tuple[Level, ...]
    axis: int
    numeric: bool = False


def numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Numbers groups by first appearance.

    Args:
        keys: Shape ``(m,)``, int64 or Python integers: equal where two values share a group.

    Returns:
        The group of each value, shape ``(m,)``, and the position at which each group first appears, shape ``(g,)``.
    """
    if not len(keys):
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    # Bins and dates ascend with their domain, which saves the sort.
    if np.all(keys[1:] >= keys[:-1]):
        starts = np.concatenate([[True], keys[1:] != keys[:-1]])
        return (np.cumsum(starts) - 1).astype(np.uint32), np.flatnonzero(starts)
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    number = np.empty(len(order), np.uint32)
    number[order] = np.arange(len(order), dtype=np.uint32)
    return number[inverse], firsts[order]


def labelled(published: pa.Array) -> Level:
    """Makes the level at which values share a group exactly where they are published alike.

    Args:
        published: Shape ``(m,)``, strings without null: the label of each value.
    """
    encoded = published.dictionary_encode()
    groups = np.asarray(encoded.indices).astype(np.uint32)
    return Level(groups, encoded.dictionary.cast(pa.string()), len(encoded.dictionary))
