"""Axes of QIDs: ranks of values in cutting order and the scales of spans.

Kernels read values by their ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.mondrian.rows import CutScale


@dataclass(frozen=True, eq=False)
class CutAxis:
    """Values of one QID in the order in which it is cut.

    Numbers are ascending, other values have the order of the leaves of their hierarchy, a null is last.

    Attributes:
        qid: Name of the column.
        ranks: Shape (size,), whole numbers of any type: the rank of each domain code.
        numbers: Shape (values,), float64: the number of each rank; None for a QID that is not numerical.
        size: Number of ranks.
        nulls: Whether the last one is the null.
    """

    qid: str
    ranks: NDArray[np.integer[Any]]
    numbers: NDArray[np.float64] | None
    nulls: bool

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def values(self) -> int:
        """Number of ranks without the null."""
        return self.size - self.nulls

    @cached_property
    def is_code(self) -> bool:
        """Whether every code equals its rank, as it does for numbers."""
        return bool(np.array_equal(self.ranks, np.arange(self.size, dtype=self.ranks.dtype)))


class CutAxes(tuple[CutAxis, ...]):
    """Axes of all QIDs of a job, with the scale that kernels measure them by.

    The scale is as long as all domains together and is computed once.

    Attributes:
        scale: What kernels measure the QIDs by. It has the numbers of all axes, and these look at them there.
    """

    scale: CutScale

    @classmethod
    def of(cls, axes: Iterable[CutAxis]) -> Self:
        """Create the axes of a job from one axis per QID."""
        given = list(axes)
        scale = _scale_of(given)
        firsts = scale.starts.tolist()
        for place, axis in enumerate(given):
            if axis.numbers is not None:
                given[place] = replace(axis, numbers=scale.positions[firsts[place] : firsts[place] + axis.values])
        made = cls(given)
        made.scale = scale
        return made


def ranks_of(codes: NDArray[np.integer[Any]], axes: Sequence[CutAxis]) -> NDArray[np.unsignedinteger[Any]]:
    """Convert domain codes to ranks in cutting order, a new array of shape (rows, QIDs).

    Args:
        codes: Shape (rows, QIDs, …).
        axes: One per QID.
    """
    return ranks_of_columns(codes.T, axes)


def ranks_of_columns(
    columns: Sequence[NDArray[np.integer[Any]]] | NDArray[Any], axes: Sequence[CutAxis]
) -> NDArray[np.unsignedinteger[Any]]:
    """Convert domain codes, given as one array per QID, to ranks in cutting order.

    Each array has the shape (rows,). The result has the shape (rows, QIDs). Further columns are left out.
    """
    # Ranks are what is read most, and the largest array of a run: two bytes suffice for nearly all QIDs.
    ranks = np.empty((len(columns[0]), len(axes)), np.uint16 if max(axis.size for axis in axes) <= 1 << 16 else np.uint32)
    for position, axis in enumerate(axes):
        ranks[:, position] = columns[position] if axis.is_code else axis.ranks[columns[position]]
    return ranks


def axes_scale(axes: Sequence[CutAxis]) -> CutScale:
    """Return the scale by which kernels measure the spans of QIDs."""
    return axes.scale if isinstance(axes, CutAxes) else _scale_of(axes)


def _scale_of(axes: Sequence[CutAxis]) -> CutScale:
    """Compute the scale of axes: positions of numbers, ranges and domain sizes."""
    starts = np.cumsum([0, *(axis.size for axis in axes)], dtype=np.int64)
    places = np.zeros(int(starts[-1]))
    wholes = np.full(len(axes), -1.0)
    for position, (start, axis) in enumerate(zip(starts, axes, strict=False)):
        if axis.numbers is not None:
            places[start : start + axis.values] = axis.numbers
            wholes[position] = axis.numbers[-1] - axis.numbers[0] if axis.values else 0.0
    nulls = np.array([axis.values for axis in axes], np.int64)
    return CutScale(starts, places, nulls, wholes, np.array([axis.size for axis in axes], np.float64))


def scale_of_fragment(axes: Sequence[CutAxis], ranks: NDArray[np.unsignedinteger[Any]]) -> CutScale:
    """Return the scale of a fragment: spans and distinct values of its own rows.

    See the paper's letter, section 5.
    """
    whole = axes_scale(axes)
    wholes, domains = whole.scale_totals.copy(), whole.domains.copy()
    for position, axis in enumerate(axes):
        seen = np.unique(ranks[:, position])
        domains[position] = len(seen)
        numbers = seen[seen < axis.values]
        if axis.numbers is not None:
            wholes[position] = axis.numbers[numbers[-1]] - axis.numbers[numbers[0]] if len(numbers) else 0.0
    return whole._replace(scale_totals=wholes, domains=domains)
