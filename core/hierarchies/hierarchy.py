"""Hierarchies over observed domains: each level's group of every domain code, and its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.disclosing_labels import count_disclosing_labels
from core.hierarchies.levels import Bounds, DraftLevels, Extent, Level, null_route
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchy_kinds import hierarchy_kind


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels of one QID's hierarchy over its domain, finest first.

    All attributes but ``qid``, ``least``, ``height`` and ``has_null_group`` have one entry per level.

    Level 0 holds the values themselves, the last level the one group ``*``. A null is a group of its own, the highest, at every level but
    the last. A listed hierarchy may say by ``nulls`` to which groups it belongs instead.

    Attributes:
        qid: Name of the column.
        groups: Shape ``(size,)``, uint32: the group of each domain code, dense from 0, numbered by first appearance in
            the domain (so groups of ordered kinds ascend). Read-only.
        labels: Length ``g``: what is published. The values themselves at level 0, strings above; null for the group of the null.
        bounds: The published low and high of each group, each of length ``g``, for numerical kinds; null at ``*``. None for others.
        axes: Bins of the level as the paper counts them (papers/skald.txt, eq. 1), a null included.
        least: The finest level that may be published; an int, not one per level.
        extents: From where to where what is published of each group reaches (``core.hierarchies.levels.Level``), one entry per level; empty
            if that is the range of the values in it.
        height: The number of the last level of the whole hierarchy, where coarse ones were left out (:meth:`within`); else None.
        has_null_group: Whether a null is a group of its own up to the last level; else it is a leaf like any other, the highest code still.
    """

    qid: str
    groups: tuple[NDArray[np.uint32], ...]
    labels: tuple[pa.Array, ...]
    bounds: tuple[Bounds | None, ...]
    axes: tuple[int, ...]
    least: int = 0
    extents: tuple[Extent | None, ...] = ()
    height: int | None = None
    has_null_group: bool = True

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.groups)

    @property
    def top(self) -> int:
        """Number of the last level; it is ``*`` unless coarse levels were left out."""
        return len(self.groups) - 1

    @property
    def steps(self) -> int:
        """Number of levels above the first of the complete hierarchy, at least 1.

        A level's relative height is a share of it.
        """
        return max(self.top if self.height is None else self.height, 1)

    def is_suppressed_level(self, level: int) -> bool:
        """Return whether a level is the level of ``*``."""
        return level > 0 and level == (self.top if self.height is None else self.height)

    def within(self, lowest: int, highest: int) -> Hierarchy:
        """Return the hierarchy without levels above ``highest``, and with levels below ``lowest`` unpublished.

        Levels below ``lowest`` are kept but not published.
        """
        end = highest + 1
        groups, labels, bounds, axes = self.groups[:end], self.labels[:end], self.bounds[:end], self.axes[:end]
        height = self.top if self.height is None else self.height
        return replace(
            self, groups=groups, labels=labels, bounds=bounds, axes=axes, least=max(self.least, lowest), height=height,
            extents=self.extents[:end],
        )  # fmt: skip

    def rolled(self, level_from: int, level_to: int) -> NDArray[np.uint32]:
        """Map each group at one level to its group at the same or a coarser level; shape (g,), uint32.

        Returns:
            Shape ``(g,)`` with g groups at ``level_from``, uint32.
        """
        if level_to < level_from:
            msg = f"level {level_to} is finer than level {level_from}"
            raise ValueError(msg)
        fine = self.groups[level_from]
        rolled = np.zeros(len(self.labels[level_from]), np.uint32)
        # Every group has a value in the domain, so that no entry keeps the 0 that it was made with.
        rolled[fine] = self.groups[level_to]
        return rolled


def build_hierarchy(qid: QuasiIdentifier, domain: Domain, folder: Path) -> Hierarchy:
    """Build a QID's hierarchy over its domain, from the values to ``*``; raise HierarchyError if unfit.

    Args:
        qid: The QID as the job describes it.
        domain: Its observed values.
        folder: Where the job file lies; paths of CSV hierarchies are relative to it.
    """
    values = domain.values
    ladder: DraftLevels = hierarchy_kind(qid.hierarchy).ladder(qid.name, domain, qid.hierarchy, folder)
    exact = Level(np.arange(len(values), dtype=np.uint32), values, ladder.axis, (values, values) if ladder.numeric else None)
    leaf = null_route(qid.name, qid.hierarchy, folder) if domain.nulls else ()
    coarser = (
        [_with_leaf(level, name) for level, name in zip(ladder.levels, leaf, strict=False)] if leaf else map(_with_null, ladder.levels)
    )
    levels = [_with_null(exact), *coarser] if domain.nulls else [exact, *ladder.levels]
    levels.append(_star(domain.size, levels[-1].bounds))
    for level in levels:
        # Callers share these arrays, some of them on other threads.
        level.groups.setflags(write=False)
    return Hierarchy(
        qid.name,
        tuple(level.groups for level in levels),
        tuple(level.labels for level in levels),
        tuple(level.bounds for level in levels),
        tuple(level.axis for level in levels),
        _least(qid, levels, folder),
        tuple(level.extent for level in levels),
        has_null_group=not leaf,
    )


def _least(qid: QuasiIdentifier, levels: Sequence[Level], folder: Path) -> int:
    """Return the finest level whose labels disclose nothing that the job hides.

    The check is that of the recount of a release.
    """
    if not qid.hides:
        return 0
    return next(number for number, level in enumerate(levels) if number and not count_disclosing_labels(qid, level.labels, folder))


def check_recounted(qid: QuasiIdentifier) -> None:
    """Raise HierarchyError if the recount cannot compare a QID's published labels with the source."""
    kind = hierarchy_kind(qid.hierarchy)
    if kind.recount_levels is None or (qid.hides and kind.recount_rule is None):
        raise HierarchyError.not_recounted(qid.name, kind.name)


def check_static(qid: QuasiIdentifier, folder: Path) -> None:
    """Raise HierarchyError for faults of a listed hierarchy that can be found without the data."""
    if table := hierarchy_kind(qid.hierarchy).table:
        table(qid.name, qid.hierarchy, folder)
        null_route(qid.name, qid.hierarchy, folder)


def _with_leaf(level: Level, group: str) -> Level:
    """Put the null into a named group of a level, added where no value is in it."""
    place = pc.index(level.labels, pa.scalar(group, level.labels.type)).as_py()
    labels = level.labels if place >= 0 else pa.concat_arrays([level.labels, pa.array([group], level.labels.type)])
    groups = np.append(level.groups, np.uint32(place if place >= 0 else len(labels) - 1))
    return Level(groups, labels, max(level.axis, len(labels)))


def _with_null(level: Level) -> Level:
    """Add the null to a level as a group of its own, the last."""
    groups = np.append(level.groups, np.uint32(len(level.labels)))
    bounds = (_ended(level.bounds[0]), _ended(level.bounds[1])) if level.bounds else None
    # The group of the null has no numbers.
    extent = (np.append(level.extent[0], np.nan), np.append(level.extent[1], np.nan)) if level.extent else None
    return Level(groups, _ended(level.labels), level.axis + 1, bounds, extent)


def _ended(column: pa.Array) -> pa.Array:
    """Append a null to a column."""
    return pa.concat_arrays([column, pa.nulls(1, column.type)])


def _star(size: int, below: Bounds | None) -> Level:
    """Return the level of the one group ``*``."""
    bounds = (pa.nulls(1, below[0].type), pa.nulls(1, below[1].type)) if below else None
    return Level(np.zeros(size, np.uint32), pa.array(["*"]), 1, bounds)
