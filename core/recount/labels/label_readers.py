"""Readers of published labels: which source values a label may cover, by the job's hierarchy.

The values of a quasi-identifier are ordered so that the values of a label are neighbours: numbers and dates ascend, codes with a common
prefix are adjacent, and so are listed values of one group. A label that can be read in several ways covers all of these readings
together, so that a release is never refused for a reading that was not meant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.labels.group_levels import group_levels, rows_of_lists
from core.recount.labels.value_scales import BEYOND_FORM, LAST_CHARACTER, RANGE_FORM, Span, ValueScale, value_scale, value_texts
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import CsvHierarchy, HierarchySpec, PrefixHierarchy
from schemas.registry.hierarchy_kinds import TreeHierarchy, hierarchy_kind

Reader = Callable[[str], Span | None]


@dataclass(frozen=True, eq=False)
class LabelAxis:
    """The values of a quasi-identifier in an order in which labels cover neighbours.

    Attributes:
        positions: Shape (m,), int64: the position of each value, given in the ascending order of the source. That of a null is m.
        exact: Reads a label that is a value.
        others: Read labels that are groups, ranges and beginnings.
        pieces: Parts between commas of the value that has most of them.
        integer_keys: Shape (m,), the values, ascending, where they are whole numbers and labels are ranges of these; else None.
    """

    positions: NDArray[np.int64]
    exact: Reader
    others: tuple[Reader, ...]
    pieces: int = 1
    integer_keys: NDArray[np.integer[Any]] | None = None


def label_axis(qid: QuasiIdentifier, values: pa.Array, folder: Path, *, ranges: bool, prefixes: bool) -> LabelAxis:
    """Order a QID's values so that its labels cover neighbours; return positions and readers of labels.

    Args:
        values: Shape (m,), distinct, ascending, without null.
        folder: Where the job file lies.
        ranges: Whether labels are ranges of numbers or dates whatever the hierarchy is, as some methods write them.
        prefixes: Whether labels are common beginnings whatever the hierarchy is.
    """
    if prefixes:
        return _by_text(values)
    if ranges and (scale := value_scale(values)):
        return _ascending(scale, values)
    axis: LabelAxis = (hierarchy_kind(qid.hierarchy).recount_axis or label_axis_by_levels)(qid.name, qid.hierarchy, values, folder)
    return axis


def label_axis_by_levels(name: str, spec: HierarchySpec, values: pa.Array, folder: Path) -> LabelAxis:
    """Order source values by hierarchy groups, coarsest first, so that each label covers neighbours."""
    levels = group_levels(name, spec, values, folder)
    order, spelt = np.lexsort([level.groups for level in levels]), value_texts(values)
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    spans: dict[str | None, Span] = {}
    for level in levels[:-1]:
        for group, label in enumerate(level.labels):
            held = positions[level.groups == group]
            if len(held):
                low, high = spans.get(label, (len(order), 0))
                spans[label] = min(low, int(held.min())), max(high, int(held.max()) + 1)
    values_at = {text: (place, place + 1) for place, texts in zip(positions.tolist(), spelt, strict=True) for text in texts}
    return LabelAxis(positions, values_at.get, (spans.get,), _pieces(values_at))


def axis_of_ends(name: str, spec: HierarchySpec, values: pa.Array, folder: Path) -> LabelAxis:
    """Order numbers, dates or times ascending, for labels such as ``[20 - 29]`` and ``2020-Q1``."""
    scale = value_scale(values)
    return _ascending(scale, values) if scale else _by_text(values)


def _ascending(scale: ValueScale, values: pa.Array) -> LabelAxis:
    others = _ranges(scale, wide=bool(getattr(values.type, "tz", None))), scale.unit
    return LabelAxis(scale.positions, scale.exact, others, integer_keys=scale.keys if pa.types.is_integer(values.type) else None)


def _ranges(scale: ValueScale, *, wide: bool) -> Reader:
    """Return a reader of labels such as ``[20 - 29]``, ``[1.5 - 2)``, ``>= 90`` and ``<= 17``."""

    def read(label: str) -> Span | None:
        if found := RANGE_FORM.fullmatch(label):
            return scale.between(found[1], found[2], closed=found[3] == "]", wide=wide)
        if found := BEYOND_FORM.fullmatch(label):
            # Up to a year or day is to the end of it.
            if (unit := scale.unit(found[2])) is not None:
                return (unit[0], len(scale.keys)) if found[1] == ">=" else (0, unit[1])
            return scale.between(found[2], None) if found[1] == ">=" else scale.between(None, found[2], closed=found[1] == "<=")
        return None

    return read


def _pieces(texts: Iterable[str]) -> int:
    return max((text.count(", ") for text in texts), default=0) + 1


def _sorted_by(keys: Sequence[tuple[object, ...]]) -> NDArray[np.int64]:
    """Return the position of each key in ascending order, shape (keys,)."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    positions = np.empty(len(keys), np.int64)
    positions[order] = np.arange(len(keys))
    return positions


def _by_text(values: pa.Array) -> LabelAxis:
    """Order values by their text, for common prefixes such as ``1*``."""
    # A moment that is published as text has a space between date and time.
    form = 1 if pa.types.is_timestamp(values.type) else 0
    texts = [spelt[form] for spelt in value_texts(values)]
    ordered = sorted(texts)

    def exact(label: str) -> Span | None:
        return bisect_left(ordered, label), bisect_right(ordered, label)

    def beginning(label: str) -> Span | None:
        stem = label.rstrip("*")
        return (bisect_left(ordered, stem), bisect_right(ordered, stem + LAST_CHARACTER)) if stem != label else None

    return LabelAxis(_sorted_by([(text,) for text in texts]), exact, (beginning,), _pieces(texts))


def axis_of_prefixes(name: str, spec: PrefixHierarchy, values: pa.Array, folder: Path) -> LabelAxis:
    """Order codes by length and text, sparse ones first, for labels such as ``12***`` and ``000``."""
    length = len(spec.sparse_values[0]) if spec.sparse_values else 0
    sparse = (*spec.sparse_values, "0" * length) if length else ()
    keys = [(not text.startswith(sparse), len(text), text) for text, *_ in value_texts(values)]
    ordered = sorted(keys)
    hidden = bisect_left(ordered, (True, 0, ""))

    def exact(label: str) -> Span | None:
        key = (not label.startswith(sparse), len(label), label)
        return bisect_left(ordered, key), bisect_right(ordered, key)

    def kept(count: int) -> Reader:
        def read(label: str) -> Span | None:
            masked = len(label) - count
            # A label that is no longer than what is kept is a value, and read as it.
            if label[count:] != spec.mask * masked:
                return None
            # A beginning that is shorter than the sparse ones says nothing of those: they are published as a group of their own.
            return (
                bisect_left(ordered, (True, len(label), label[:count])),
                bisect_right(ordered, (True, len(label), label[:count] + LAST_CHARACTER * masked)),
            )

        return read

    def group(label: str) -> Span | None:
        return (0, hidden) if length and label == "0" * length else None

    return LabelAxis(_sorted_by(keys), exact, (group, *map(kept, spec.prefix)), _pieces(text for _, _, text in keys))


def axis_of_groups(name: str, spec: CsvHierarchy | TreeHierarchy, values: pa.Array, folder: Path) -> LabelAxis:
    """Order listed values by their groups, coarsest first, so that each label covers neighbours.

    A value that is not listed comes last, and is covered by its own label only.
    """
    listed = {row[0]: row for row in rows_of_lists(name, spec, folder)}
    spelt = value_texts(values)
    found = [next((listed[text] for text in texts if text in listed), None) for texts in spelt]
    # The groups of the null stand last, so that it is beside them.
    own = listed.get(spec.nulls, ()) if spec.nulls is not None else ()
    keys = [(bool(own) == (row is not None), _place(row or texts[:1], own)) for row, texts in zip(found, spelt, strict=True)]
    positions = _sorted_by(keys)
    spans: dict[str, Span] = {}
    values_at: dict[str, Span] = {}
    for place, row, texts in zip(positions.tolist(), found, spelt, strict=True):
        for text in texts:
            values_at[text] = place, place + 1
        for label in row[1:] if row else ():
            low, high = spans.get(label, (place, place + 1))
            spans[label] = min(low, place), max(high, place + 1)
    for label in own[1:]:
        spans[label] = spans.get(label, (len(values), 0))[0], len(values) + 1
    return LabelAxis(positions, values_at.get, (spans.get,), _pieces(values_at))


def _place(row: Sequence[str], own: Sequence[str]) -> tuple[tuple[bool, str], ...]:
    """Return the sort key of a value: its groups from the coarsest, then the value.

    Those that are the null's own come after others.
    """
    return tuple((bool(own) and label == own[level], label) for level, label in reversed(list(enumerate(row))))
