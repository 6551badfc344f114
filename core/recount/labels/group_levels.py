"""The groups of values at each level of a hierarchy, as the job's words define them, worked out value by value.

The hierarchical distance of t-closeness is measured over these. Nothing here is used by whatever writes a release: numbers are fractions,
text is sliced, dates are taken apart, and a group is named by anything that only its members have.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from core.recount.labels.listed_groups import rows_of_lists
from core.recount.labels.value_texts import local_moments, written
from schemas.errors.hierarchies import HierarchyError
from schemas.hierarchies.hierarchy import CsvHierarchy, DateHierarchy, HierarchySpec, PrefixHierarchy, WidthsHierarchy
from schemas.hierarchies.kinds import entry_of
from schemas.hierarchies.tree import TreeHierarchy

Levels: TypeAlias = list[list[Hashable]]
"""Per level above the values themselves, finest first, the group of each value."""


def group_levels(name: str, spec: HierarchySpec, values: pa.Array, folder: Path) -> Levels:
    """Returns the levels above the values themselves; the last one is a single group of all, which each hierarchy ends in.

    Args:
        name: Of the column, for a message.
        spec: The hierarchy.
        values: Shape (m,), distinct and ascending. A null is a group of its own, up to the last level.
        folder: Where the job file lies.

    Raises:
        HierarchyError: a listed hierarchy cannot be read, or does not list a value; or the recount does not know the kind.
    """
    levels_of = entry_of(spec).recount_levels
    if levels_of is None:
        raise HierarchyError.not_recounted(name, spec.kind)
    try:
        levels: Levels = levels_of(name, spec, values.drop_null(), folder)
    except (ValueError, AttributeError, pa.ArrowException):
        remedy = "give the job and the source that the release was made of"
        raise HierarchyError.wrong_type(name, spec.kind, f"values that {spec.kind} can group", str(values.type), remedy) from None
    present = values.is_valid().to_pylist()
    whole: list[Hashable] = ["*"] * len(values)
    own = _groups_of_null(name, spec, folder)
    return [_with_null(level, present, own[number] if own else None) for number, level in enumerate(levels)] + [whole]


def _groups_of_null(name: str, spec: HierarchySpec, folder: Path) -> Sequence[str]:
    """Returns the groups of the leaf that stands for nulls, finest first; none where they are a group of their own."""
    if not isinstance(spec, CsvHierarchy | TreeHierarchy) or spec.nulls is None:
        return ()
    return next((row[1:] for row in rows_of_lists(name, spec, folder) if row[0] == spec.nulls), ())


def _with_null(level: Sequence[Hashable], present: Sequence[bool], own: str | None) -> list[Hashable]:
    groups = iter(level)
    # In a pair, so that no group can be taken for the null's, whatever it is named by.
    null = None if own is None else ("of values", own)
    return [("of values", next(groups)) if there else null for there in present]


def levels_of_bins(name: str, spec: WidthsHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Bins by each width; the first one is no level of its own where no two values that the column can hold share a bin."""
    numbers = [Fraction(rank) for rank in range(len(values))] if spec.encode else [Fraction(texts[-1]) for texts in written(values)]
    widths = [Fraction(width) for width in spec.widths]
    if not spec.hides and widths[0] <= _resolution(numbers):
        widths = widths[1:]
    return [[_bin(spec, number, width) for number in numbers] for width in widths]


def _resolution(numbers: Sequence[Fraction]) -> Fraction:
    """Returns the least step between numbers with so many decimal places as they need: 1, 0.1, 0.01, …"""
    step = Fraction(1)
    # Comes to an end, because the numbers were decimal text.
    while any((number / step).denominator > 1 for number in numbers):
        step /= 10
    return step


def _bin(spec: WidthsHierarchy, number: Fraction, width: Fraction) -> Hashable:
    if spec.bottom is not None and number < Fraction(spec.bottom):
        return "below"
    if spec.top is not None and number >= Fraction(spec.top):
        return "above"
    return (number - Fraction(spec.origin)) // width


def levels_of_beginnings(name: str, spec: PrefixHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Groups text by its first characters and its length; the first level is none where no text is longer than it."""
    texts = [texts[0] for texts in written(values)]
    kept = list(spec.prefix)
    if not spec.hides and kept[0] >= max(map(len, texts), default=0):
        kept = kept[1:]
    sparse = (*spec.beginnings, "0" * len(spec.beginnings[0])) if spec.beginnings else ()
    return [["sparse" if text.startswith(sparse) else (text[:count], len(text)) for text in texts] for count in kept]


def levels_of_units(name: str, spec: DateHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Groups by calendar unit or by what lies beyond an end; without ends days are no level of their own where all moments are midnight."""
    moments = local_moments(values)
    days = moments.astype("datetime64[D]")
    units = [unit for unit in spec.date if unit != "day" or spec.hides or bool(np.any(days != moments))]
    # Counted from 1970, which a quarter, a year and a decade begin with: whole divisions fall on the calendar's.
    months = days.astype("datetime64[M]").astype(np.int64)
    numbers = {"day": days.astype(np.int64), "month": months, "quarter": months // 3, "year": months // 12, "decade": months // 120}
    return [[_unit_group(spec, day, number) for day, number in zip(days, numbers[unit].tolist(), strict=True)] for unit in units]


def _unit_group(spec: DateHierarchy, day: np.datetime64, number: int) -> Hashable:
    if spec.last_below is not None and day <= np.datetime64(spec.last_below):
        return "below"
    if spec.first_above is not None and day >= np.datetime64(spec.first_above):
        return "above"
    return number


def levels_of_lists(name: str, spec: CsvHierarchy | TreeHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Looks the values up in the rows of a listed hierarchy; a last column of one single label is the level of all.

    Raises:
        HierarchyError: A hierarchy cannot be read, does not nest, or does not fit the column that it is for.
    """
    rows = rows_of_lists(name, spec, folder)
    groups = {row[0]: row[1:] for row in rows}
    found = [next((groups[text] for text in texts if text in groups), None) for texts in written(values)]
    if lacking := found.count(None):
        raise HierarchyError.not_covered(name, "its hierarchy", lacking, len(values))
    depth = len(rows[0]) - 1 if rows else 0
    if depth and len({row[-1] for row in rows}) == 1:
        depth -= 1
    return [[groups[level] for groups in found if groups is not None] for level in range(depth)]


def places(groups: Sequence[Hashable]) -> list[int]:
    """Numbers groups by their first appearance."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]
