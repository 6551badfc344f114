"""Hierarchies over observed domains: groups and labels by level, and labels that disclose values.

Such values are those of quasi-identifiers that may not be published exactly. Only labels are looked at, with no more knowledge than the
job's. ``*`` and null disclose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.levels import Bounds, DraftLevels, Extent, LabelTable, Level, null_route
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import DateHierarchy, PrefixHierarchy, WidthsHierarchy
from schemas.registry.hierarchy_kinds import hierarchy_kind

Flags = NDArray[np.bool_]
_STAR = "*"
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_BIN = rf"^\[(?P<low>{_NUMBER}) - (?P<high>{_NUMBER})(?P<close>[\])])$"
_YEAR = r"[0-9]{4,}"
_UNITS = {
    "day": rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}", "month": rf"{_YEAR}-[0-9]{{2}}", "quarter": rf"{_YEAR}-Q[1-4]", "year": _YEAR,
    "decade": r"[0-9]{3,}0s",
}  # fmt: skip


def count_disclosing_labels(qid: QuasiIdentifier, labels: pa.Array, folder: Path) -> int:
    """Count the labels that disclose a value which the job hides.

    Args:
        qid: A QID whose values may not be published as they are.
        labels: Shape (m,), the different labels of a release.
        folder: Where the job file lies.
    """
    known = labels.filter(pc.is_valid(labels))
    if not is_text(known.type):
        return len(known)
    texts = known.cast(pa.large_string())
    texts = texts.filter(pc.not_equal(texts, _STAR))
    kind = hierarchy_kind(qid.hierarchy)
    if kind.telling:
        return int(kind.telling(texts, qid).sum())
    if kind.table:
        return _beyond_groups(texts, kind.table(qid.name, qid.hierarchy, folder))
    # Nothing is known of the kind that could excuse a label.
    return len(texts)


def disclosing_bins(texts: pa.Array, qid: QuasiIdentifier) -> Flags:
    """Return a mask of bin labels that disclose values that the job hides, shape (m,)."""
    spec = qid.hierarchy
    assert isinstance(spec, WidthsHierarchy)
    return ~_in_bins(texts, spec, exact=qid.exact)


def disclosing_days(texts: pa.Array, qid: QuasiIdentifier) -> Flags:
    """Return a mask of date labels that disclose values that the job hides, shape (m,).

    These are labels that are no calendar unit of the job's, or a unit that lies completely beyond its bottom or top.
    """
    spec = qid.hierarchy
    assert isinstance(spec, DateHierarchy)
    units = "|".join(_UNITS[unit] for unit in spec.date)
    told: Flags = ~np.asarray(pc.match_substring_regex(texts, rf"^-?(?:{units})$")).astype(np.bool_)
    # Digits in the form of a unit may be no unit, such as a thirteenth month.
    told |= ~np.array([_has_shown_day(label, spec) for label in texts.to_pylist()], np.bool_)
    return told & ~np.asarray(pc.is_in(texts, pa.array([label for label in spec.end_labels if label], texts.type))).astype(np.bool_)


def _has_shown_day(label: str, spec: DateHierarchy) -> bool:
    """Return whether a calendar unit has a day between bottom and top.

    A label that is no unit of the calendar has none.
    """
    year, quarter, number = label.partition("-Q")
    try:
        if quarter:
            first = np.datetime64(year, "Y").astype("datetime64[M]") + 3 * (int(number) - 1)
            following = first + 3
        elif label.endswith("s"):
            first = np.datetime64(label[:-1], "Y")
            following = first + 10
        else:
            first = np.datetime64(label)
            following = first + 1
    except (ValueError, OverflowError):
        return False
    below, above = spec.last_below, spec.first_above
    after = below is None or following.astype("datetime64[D]") > np.datetime64(below, "D") + 1
    return bool(after and (above is None or first.astype("datetime64[D]") < np.datetime64(above, "D")))


def _in_bins(texts: pa.Array, spec: WidthsHierarchy, *, exact: bool) -> Flags:
    """Return a mask of labels that are bins within bottom and top, or the groups beyond them."""
    parts = pc.extract_regex(texts, _BIN)
    low, high = (np.asarray(pc.struct_field(parts, name).cast(pa.float64())).astype(np.float64) for name in ("low", "high"))
    closed = np.asarray(pc.fill_null(pc.equal(pc.struct_field(parts, "close"), "]"), False))
    fine: Flags = ((low < high) | ((low == high) & closed & exact)) & ~_outside(low, high, closed, spec)
    if exact:
        # Bottom and top hide what lies beyond them; between them a bin may be a single integer.
        number = pc.match_substring_regex(texts, rf"^{_NUMBER}$")
        single = np.asarray(pc.if_else(number, texts, None).cast(pa.float64())).astype(np.float64)
        fine |= ~np.isnan(single) & ~_outside(single, single, np.ones(len(single), np.bool_), spec)
    # Integers are told by the next one inside.
    for sign, end, next_one in (("<=", spec.bottom, -1), ("<", spec.bottom, None), (">=", spec.top, 0)):
        if end is not None:
            open_ended = pc.extract_regex(texts, rf"^{sign} (?P<end>{_NUMBER})$")
            edge = np.asarray(pc.struct_field(open_ended, "end").cast(pa.float64())).astype(np.float64)
            if next_one is not None:
                fine |= edge == ceil(end) + next_one
            if sign != "<=":
                fine |= edge == float(end)
    return fine


def _outside(low: NDArray[np.float64], high: NDArray[np.float64], closed: Flags, spec: WidthsHierarchy) -> Flags:
    """Return a mask of ranges that hold values beyond bottom or top; ``closed`` ranges include ``high``."""
    told = np.zeros(len(low), np.bool_)
    if spec.top is not None:
        top = float(spec.top)
        told |= (high > top) | ((high == top) & closed)
    if spec.bottom is not None:
        told |= low < float(spec.bottom)
    return told


def disclosing_prefixes(texts: pa.Array, qid: QuasiIdentifier) -> Flags:
    """Return a mask of the prefix labels that are finer than the job publishes, shape (m,).

    These are labels with more characters than the finest level, with a sparse beginning, or with all characters where exact values are
    hidden.
    """
    spec = qid.hierarchy
    assert isinstance(spec, PrefixHierarchy)
    kept = pc.utf8_length(pc.utf8_rtrim(texts, spec.mask))
    told = np.asarray(pc.greater(kept, spec.prefix[0])).astype(np.bool_)
    if not qid.exact:
        told |= np.asarray(pc.equal(kept, pc.utf8_length(texts))).astype(np.bool_)
    if spec.sparse_values:
        length = len(spec.sparse_values[0])
        beginning = pc.utf8_slice_codeunits(texts, 0, length)
        sparse = pc.is_in(beginning, pa.array(spec.sparse_values, texts.type))
        told = np.where(np.asarray(pc.equal(texts, "0" * length)), False, told | np.asarray(sparse).astype(np.bool_))
    return told


def _beyond_groups(texts: pa.Array, table: LabelTable) -> int:
    """Count the labels that are no group of the table, or equal one of its values."""
    # Nothing of the values, but their type: a table of one column has no groups, and no arrays cannot be concatenated.
    groups = pa.concat_arrays([column.slice(0, 0) for column in table.columns[:1]] + list(table.columns[1:]))
    allowed = pc.and_(pc.is_in(texts, groups), pc.invert(pc.is_in(texts, table.columns[0])))
    return int(pc.sum(pc.invert(allowed)).as_py() or 0)


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
