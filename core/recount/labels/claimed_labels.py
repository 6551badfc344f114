"""The values that each label covers at the levels which the manifest claims."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.group_levels import GroupLevel
from core.recount.labels.label_spans import Spans, read_integer_labels
from core.recount.labels.value_scales import texts_with_nulls, value_scale, value_texts

ClaimPositions = NDArray[np.int64]
NOWHERE = -1
_SPAN = re.compile(r"\[(.+?) - (.+)[\])]")
_BEYOND = re.compile(r"(>=|<=|<) (.+)")


class ClaimedLabels(NamedTuple):
    """The groups of values and labels at one level.

    Attributes:
        groups: Shape (values,): the group of each value at the level, a null among them.
        numbers: Shape (labels,): the group of each label, -1 for none.
    """

    groups: ClaimPositions
    numbers: ClaimPositions


def match_value_labels(values: pa.Array, columns: Sequence[pa.Array]) -> ClaimedLabels:
    """Match labels of single values with source values; return the group of each, -1 for unknown labels.

    Args:
        values: Shape (m,), distinct and ascending, a null last if there is one.
        columns: What is published: labels, or their two bounds.
    """
    labels = columns[0]
    numbers = _places(labels, values) if labels.type == values.type else _places_of_texts(texts_with_nulls(labels), values)
    if len(columns) > 1:
        # Both bounds are the value.
        numbers = np.where(match_value_labels(values, columns[1:]).numbers == numbers, numbers, NOWHERE)
    return ClaimedLabels(np.arange(len(values)), numbers)


def match_level_labels(level: GroupLevel, columns: Sequence[pa.Array]) -> ClaimedLabels:
    """Match labels with the groups of a coarser level; return the group of each, -1 for unknown labels.

    Arguments as for ``match_value_labels``.
    """
    if len(columns) == 1:
        group_of: dict[Hashable, int] = {label: number for number, label in enumerate(level.labels)}
        published: Sequence[Hashable] = texts_with_nulls(columns[0])
    else:
        group_of = {_bounds(label, [column.type for column in columns]): number for number, label in enumerate(level.labels)}
        published = list(zip(*(column.to_pylist() for column in columns), strict=True))
    return ClaimedLabels(level.groups, np.array([group_of.get(label, NOWHERE) for label in published], np.int64))


def claimed_spans(claims: Sequence[ClaimedLabels], starred: NDArray[np.bool_]) -> tuple[ClaimPositions, Spans] | None:
    """Order values so that claimed labels cover neighbours; return positions and spans, None if unfit.

    Args:
        claims: The labels of each level that they may be of, finest first.
        starred: Shape (labels,): a mask of the labels that cover any value.

    Returns:
        The position of each value, shape (values,), and what labels cover; behind the last position is one of no value. None where a
        label is of none of the levels, or these do not nest.
    """
    if not np.all(np.any([claim.numbers >= 0 for claim in claims], axis=0) | starred):
        return None
    size = len(claims[0].groups)
    order = np.lexsort([claim.groups for claim in claims])
    positions = np.empty(size, np.int64)
    positions[order] = np.arange(size)
    low, high, covered = np.full(len(starred), size), np.zeros(len(starred), np.int64), np.zeros(len(starred), np.int64)
    for claim in claims:
        groups = claim.groups[order]
        firsts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
        begins, counts = np.zeros((2, max(int(groups.max(initial=0)), int(claim.numbers.max(initial=0))) + 1), np.int64)
        begins[groups[firsts]], counts[groups[firsts]] = firsts, np.diff(firsts, append=size)
        if counts.sum() < size:
            # A group begins twice: the levels do not nest.
            return None
        here = np.flatnonzero((claim.numbers >= 0) & (counts[claim.numbers] > 0))
        start, held = begins[claim.numbers[here]], counts[claim.numbers[here]]
        low[here], high[here] = np.minimum(low[here], start), np.maximum(high[here], start + held)
        covered[here] = np.maximum(covered[here], held)
    low[starred], high[starred], covered[starred] = 0, size, size
    apart = np.flatnonzero(high - low > covered)
    sets = {int(label): _members(claims, int(label), positions) for label in apart}
    return positions, Spans(np.minimum(low, high), high, sets, null=size)


def _members(claims: Sequence[ClaimedLabels], label: int, positions: ClaimPositions) -> ClaimPositions:
    """Return the positions of the values that a label covers at any of the levels, ascending."""
    inside = np.any([claim.groups == claim.numbers[label] for claim in claims], axis=0)
    return np.sort(positions[inside])


def _places(labels: pa.Array, values: pa.Array) -> ClaimPositions:
    """Return the position of each label among values of its type, -1 for none; signs of zero are ignored."""
    if pt.is_floating(values.type):
        labels, values = (pc.add(one, pa.scalar(0.0, one.type)) for one in (labels, values))
    return np.asarray(pc.fill_null(pc.index_in(labels, values), NOWHERE)).astype(np.int64)


def _places_of_texts(texts: Sequence[str | None], values: pa.Array) -> ClaimPositions:
    """Return the position of the value that each text denotes, -1 for none."""
    known = values.drop_null()
    null = len(known) if values.null_count else NOWHERE
    scale = value_scale(known)
    # Two moments may have one local time, where clocks are put back.
    if scale is not None and not getattr(known.type, "tz", None):
        low, high, read = read_integer_labels(scale.keys if pt.is_integer(known.type) else None, texts)
        places = np.where(high - low == 1, low, NOWHERE)
        for number in np.flatnonzero(~read).tolist():
            text = texts[number]
            span = None if text is None else scale.exact(text)
            places[number] = null if text is None else span[0] if span and span[1] - span[0] == 1 else NOWHERE
        ranges = pc.starts_with(pa.array(texts, pa.large_string()), "[").fill_null(fill_value=False)
        places[np.asarray(ranges)] = NOWHERE
        return places
    spelt = {text: place for place, ways in enumerate(value_texts(known)) for text in ways}
    return np.array([null if text is None else spelt.get(text, NOWHERE) for text in texts], np.int64)


def _bounds(label: str | None, kinds: Sequence[pa.DataType]) -> Hashable:
    """Return the two published bounds of a label of numbers, in the types of their columns."""
    ends: tuple[str | None, str | None] = (label, label)
    if label is not None and (found := _SPAN.fullmatch(label)):
        ends = found[1], found[2]
    elif label is not None and (found := _BEYOND.fullmatch(label)):
        ends = (found[2], None) if found[1] == ">=" else (None, found[2])
    return tuple(map(_number, ends, kinds))


def _number(text: str | None, kind: pa.DataType) -> Hashable:
    if text is None:
        return None
    if pt.is_floating(kind):
        try:
            return float(kind.to_pandas_dtype()(text))
        except ValueError:
            return None
    try:
        return Decimal(text)
    except InvalidOperation:
        # The label of all has no bounds.
        return None
