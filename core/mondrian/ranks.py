"""Axes of QIDs: the order in which Mondrian cuts values, their ranks in it, and the scales of spans.

Kernels read values by their ranks.

The order is that of papers/distributed-mondrian.txt, 4.1. A listed hierarchy says which values belong together, and not in which order
siblings stand. That order can be learnt from how many records the siblings have: what is cut off at an end leaves the others together, so
that what is frequent enough to be by itself belongs there. It follows from the domain alone, and no label reveals it
(docs/decisions/order-of-siblings.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import is_numerical, number_line
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import LabelTable, listed_rows
from core.mondrian.rows import CutScale
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchy_kinds import hierarchy_kind

Order = Literal["listed", "ends", "ascending"]
"""Siblings as they are listed, the most frequent at both ends and the rarest in the middle, or from the rarest to the most frequent."""


def axis_of(qid: QuasiIdentifier, domain: Domain, hierarchy: Hierarchy, folder: Path, order: Order = "listed") -> CutAxis:
    """Return the order in which Mondrian cuts the values of a QID, as an axis.

    Numbers and dates are ascending. Other values have the order of the leaves of their hierarchy.

    Args:
        qid: The QID as the job describes it.
        domain: Its observed values.
        hierarchy: Its hierarchy over them.
        folder: Where the job file lies; paths of CSV hierarchies are relative to it.
        order: Of siblings, where it is free.
    """
    line, ranks = number_line(domain), np.arange(domain.size, dtype=np.min_scalar_type(domain.size))
    numbers = line.of(domain.values) if line else None
    if numbers is None:
        leaves = _leaves(qid, domain, hierarchy, folder, order)
        # A null is no part of the order and keeps the last rank.
        ranks[leaves] = np.arange(len(leaves))
    return CutAxis(qid.name, ranks, numbers, domain.nulls > 0)


def is_order_free(qid: QuasiIdentifier, domain: Domain) -> bool:
    """Return whether the order of siblings in the hierarchy is free, so that it may be learnt from counts.

    It is free for listed hierarchies of values that are neither numbers nor dates.
    """
    return hierarchy_kind(qid.hierarchy).table is not None and not is_numerical(domain)


def _leaves(qid: QuasiIdentifier, domain: Domain, hierarchy: Hierarchy, folder: Path, order: Order) -> NDArray[np.intp]:
    """Return the positions of a domain's values in the order of the leaves of their hierarchy."""
    if table := hierarchy_kind(qid.hierarchy).table:
        keys = _listed(qid.name, domain, table(qid.name, qid.hierarchy, folder))
        keys = keys if order == "listed" else _learnt(keys, domain.counts, order)
    else:
        # Groups are numbered by first appearance, so that the values keep their order as far as groups allow.
        keys = [groups[: len(domain.values)] for groups in hierarchy.groups]
    # The last key, which is the coarsest level, sorts first: a walk from the root.
    return np.lexsort(keys)


def _listed(qid: str, domain: Domain, table: LabelTable) -> list[NDArray[Any]]:
    """Return for each level the first row of the label table at which each value's group is listed."""
    rows = listed_rows(qid, domain.values, table)
    keys = []
    for column in table.columns:
        coded = column.dictionary_encode()
        _, firsts = np.unique(np.asarray(coded.indices), return_index=True)
        keys.append(firsts[np.asarray(coded.take(pa.array(rows)).indices)])
    return keys


def _learnt(listed: Sequence[NDArray[Any]], counts: NDArray[np.int64], order: Order) -> list[NDArray[Any]]:
    """Return for each level the rank of each value's group among its siblings, by record counts.

    With ``ends``, groups are put at the first and the last free place in turn, by falling counts; else at the last free place. Of groups
    with equal counts the one listed first is put first.

    Args:
        listed: By level, finest first, shape (values,): where the group of each value is listed.
        counts: Shape (values,), records of each.
    """
    parents, found = np.zeros(len(counts), np.int64), []
    for level in reversed(listed):
        _, firsts, groups = np.unique(parents * (int(level.max(initial=0)) + 1) + level, return_index=True, return_inverse=True)
        totals = np.bincount(groups, weights=counts, minlength=len(firsts))
        # Sorted by parent, then by number of records, then as listed.
        ranked = np.lexsort((level[firsts], -totals, parents[firsts]))
        siblings = np.bincount(parents[firsts])
        family = parents[firsts][ranked]
        place = np.arange(len(ranked)) - (np.cumsum(siblings) - siblings)[family]
        last = siblings[family] - 1
        place = np.where(place % 2 == 0, place // 2, last - place // 2) if order == "ends" else last - place
        places = np.empty(len(ranked), np.int64)
        places[ranked] = place
        found.append(places[groups])
        parents = groups
    return found[::-1]


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
