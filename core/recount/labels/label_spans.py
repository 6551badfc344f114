"""The values that each label covers, on the axis of its quasi-identifier and at the levels as claimed."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.group_levels import GroupLevel
from core.recount.labels.label_readers import LabelAxis
from core.recount.labels.value_scales import BEYOND_FORM, RANGE_FORM, Span, texts_with_nulls, value_scale, value_texts
from schemas.registry.hierarchies import WidthsHierarchy, decimals
from schemas.release.manifest import MASK, NULL_MEMBER

NOTHING: Span = (0, 0)
DIGITS = 15
"""Decimal digits that a float surely keeps."""
SpanPositions = NDArray[np.int64]
WITH_NULL = f", {NULL_MEMBER}}}"
"""How a set label ends that covers the null too."""
_QUOTED = re.compile(rf'(?s)"((?:"*|.*, ){NULL_MEMBER}"*)"')


@dataclass(frozen=True, eq=False)
class Spans:
    """The positions that each label of a quasi-identifier covers.

    Attributes:
        low: Shape (labels,), int64: the first position that a label covers.
        high: Shape (labels,), int64: the position after the last one; ``low`` where a label covers nothing.
        sets: By label, ascending, the positions that it covers, where some between its first and its last one are not among them.
        nulls: Ascending, the labels that cover nulls, the last position, besides; none of them is a set.
        null: The last position, that of the null.
    """

    low: SpanPositions
    high: SpanPositions
    sets: dict[int, SpanPositions] = field(default_factory=dict)
    nulls: SpanPositions = field(default_factory=lambda: np.empty(0, np.int64))
    null: int = 0

    @property
    def ends(self) -> SpanPositions:
        """The position after the last one that each label covers, shape (labels,)."""
        found = self.high.copy()
        found[self.nulls] = self.null + 1
        return found

    def covered(self, label: int) -> SpanPositions:
        """Return the positions that a label covers, ascending."""
        members = self.sets.get(label)
        if members is None:
            members = np.arange(self.low[label], self.high[label])
        return np.append(members, self.null) if label in self.nulls else members

    def label_of_positions(self, position_count: int) -> NDArray[np.int32] | None:
        """Return the label of each position, -1 for none; None if labels are sets, cover nulls or overlap."""
        if self.sets or len(self.nulls):
            return None
        some = np.flatnonzero(self.high > self.low)
        order = some[np.argsort(self.low[some], kind="stable")]
        # Sorted by their beginnings, some two overlap only if two neighbours do.
        if np.any(self.high[order][:-1] > self.low[order][1:]):
            return None
        # What lies before each label belongs to none, and what lies after the last one.
        edges = np.stack([self.low[order], self.high[order]], axis=1).ravel()
        labels = np.stack([np.full(len(order), -1), order], axis=1).ravel()
        return np.repeat(np.append(labels, -1).astype(np.int32), np.diff(edges, prepend=0, append=position_count))


def read_labels(axis: LabelAxis, labels: Sequence[str | None]) -> Spans:
    """Return the axis positions that each label of a quasi-identifier covers, value sets included.

    A null covers the nulls, ``*`` anything, ``{a, b}`` a set of values. Any other label is a value or a group of the hierarchy. ``{a,
    null}`` and ``{[20 - 29], null}`` cover nulls as well. A value that looks like the word stands in quotes in a set.
    """
    null = len(axis.positions)
    low, high, read = read_integer_labels(axis.integer_keys, labels)
    sets: dict[int, SpanPositions] = {}
    nulls = []
    for number in np.flatnonzero(~read).tolist():
        label = labels[number]
        if label is None:
            low[number], high[number] = null, null + 1
        elif label == MASK:
            low[number], high[number] = 0, null + 1
        else:
            found = _read(label, axis)
            if not label.startswith("{"):
                low[number], high[number] = found
                continue
            members = _members(label, axis)
            beside, inner = _beside_null(label, axis, null)
            if beside and members is None and inner is None and found == NOTHING:
                nulls.append(number)
                found = beside
            else:
                members = _joined([members, inner, np.append(np.arange(*beside), null) if beside else None])
            if members is not None and found == NOTHING:
                sets[number] = members
            low[number], high[number] = _set_label([found, NOTHING if members is None else (int(members[0]), int(members[-1]) + 1)])
    return Spans(low, high, sets, np.array(nulls, np.int64), null)


def _read(label: str, axis: LabelAxis) -> Span:
    """Return the positions that a label other than a set covers, in all its readings together."""
    return _set_label([span for read in (axis.exact, *axis.others) if (span := read(label))])


def _beside_null(label: str, axis: LabelAxis, null: int) -> tuple[Span | None, SpanPositions | None]:
    """Return the span before the null in ``{[20 - 29], null}``, or the positions of ``{a, b, null}``.

    The label begins with a brace. None for each that does not apply.
    """
    if not label.endswith(WITH_NULL):
        return None, None
    inner = label[1 : -len(WITH_NULL)]
    members = _members(f"{{{inner}}}", axis) if ", " in inner else None
    if members is not None:
        return None, np.append(members, null)
    span = _read(unquoted_member(inner), axis)
    return None if span == NOTHING else span, None


def _joined(parts: Sequence[SpanPositions | None]) -> SpanPositions | None:
    some = [part for part in parts if part is not None]
    return np.unique(np.concatenate(some)) if some else None


def unquoted_member(member: str) -> str:
    """Return a member of a set label as the value without its quotes."""
    return found[1] if (found := _QUOTED.fullmatch(member)) else member


def pair_labels(pairs: Sequence[tuple[str | None, str | None]], *, includes_high: bool, is_one_level: bool) -> list[str | None]:
    """Return pairs of bounds as text labels such as ``[20 - 29]``; an open pair is None or ``*``.

    An open pair is a null or ``*``. Where all labels are of one level, and others are not open, it is a null; else it is taken for ``*``,
    which covers nulls too.

    Args:
        pairs: The texts of the low and the high bound, None where one is open.
        includes_high: Whether a high bound above the low one belongs to the range.
    """
    nothing = None if is_one_level and any(low is not None or high is not None for low, high in pairs) else MASK

    def label(low: str | None, high: str | None) -> str | None:
        if low is None or high is None:
            return nothing if low == high else f">= {low}" if high is None else f"{'<=' if includes_high else '<'} {high}"
        return low if low == high else f"[{low} - {high}{']' if includes_high else ')'}"

    return [label(low, high) for low, high in pairs]


def is_closed(spec: WidthsHierarchy, kind: pa.DataType, columns: Sequence[pa.Array]) -> bool:
    """Return whether the high bound of a level's bins belongs to the bins.

    It does for integers and ranks, and not for fractions. Floats may be so large that a bound was rounded to one of the values below it,
    which is then covered all the same.
    """
    if spec.encode or pt.is_integer(kind):
        return True
    places = max(decimals(number) for number in (*spec.widths, spec.origin, spec.bottom, spec.top) if number is not None)
    most = 10.0 ** (DIGITS - places)
    return any(pt.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) >= most for column in columns)


def _set_label(spans: Sequence[Span]) -> Span:
    some = [span for span in spans if span[1] > span[0]]
    if len(some) < 2:
        return some[0] if some else NOTHING
    return min(low for low, _ in some), max(high for _, high in some)


def _members(label: str, axis: LabelAxis) -> SpanPositions | None:
    """Return the positions of the values of a set such as ``{a, b}``, ascending; None for other labels.

    The label begins with a brace. A value may hold a comma itself, so that every way of splitting the list into values counts.
    """
    if not label.endswith("}"):
        return None
    pieces = label[1:-1].split(", ")
    # The pieces that a value may begin with, reading on from the first one, and may end before, reading back from the last one.
    parts = {
        (first, last): span
        for first in range(len(pieces))
        for last in range(first + 1, min(first + axis.pieces, len(pieces)) + 1)
        if (span := axis.exact(unquoted_member(", ".join(pieces[first:last])))) and span[1] > span[0]
    }
    starts, ends = {0}, {len(pieces)}
    # Ascending, so that every way to a piece has been gone when it is its turn.
    for first, last in sorted(parts):
        if first in starts:
            starts.add(last)
    for first, last in sorted(parts, reverse=True):
        if last in ends:
            ends.add(first)
    held = [np.arange(*span) for (first, last), span in parts.items() if first in starts and last in ends]
    return np.unique(np.concatenate(held)) if held else None


_NUMBER = "-?[0-9]{1,18}"
"""Such a number fits into 64 bits."""
_RANGE = rf"^(?:\[(?P<low>{_NUMBER}) - (?P<high>{_NUMBER})\]|(?P<one>{_NUMBER}))$"
FEW, AT_ONCE = 1000, 1 << 17
"""Labels that are as soon read one by one, and those that are read at once."""


def read_integer_labels(
    keys: NDArray[np.integer[Any]] | None, labels: Sequence[str | None]
) -> tuple[SpanPositions, SpanPositions, NDArray[np.bool_]]:
    """Return first and end positions of labels of whole numbers or their ranges, and a mask of these.

    Args:
        keys: Shape (m,), the values, ascending; None where they are no whole numbers, and no label is read.

    Returns:
        The first position that each of them covers and the one after the last, 0 and 0 where it covers none, and which labels were read;
        all of shape (labels,).
    """
    low, high, read = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64), np.zeros(len(labels), np.bool_)
    if keys is not None and len(labels) >= FEW:
        for first in range(0, len(labels), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            low[some], high[some], read[some] = _read_range(keys, pa.array(labels[some], pa.large_string()))
    return low, high, read


def _read_range(keys: NDArray[np.integer[Any]], labels: pa.Array) -> tuple[SpanPositions, SpanPositions, NDArray[np.bool_]]:
    found = pc.extract_regex(labels, _RANGE)
    read: NDArray[np.bool_] = found.is_valid().to_numpy(zero_copy_only=False)
    low, high, one = (part.filter(pa.array(read)) for part in found.flatten())
    alone = pc.not_equal(one, "")
    limits = np.iinfo(keys.dtype)
    # An end may lie beyond the column's type. A type may hold numbers beyond 64 bits with a sign, which no end is.
    least, most = int(limits.min), min(int(limits.max), np.iinfo(np.int64).max)
    begins, ends = (pc.if_else(alone, one, part).cast(pa.int64()).to_numpy() for part in (low, high))
    first, last = (np.clip(end, least, most).astype(keys.dtype) for end in (begins, ends))
    starts, after = np.zeros((2, len(labels)), np.int64)
    starts[read] = np.where(begins > most, len(keys), keys.searchsorted(first, "left"))
    after[read] = np.where(ends < least, 0, keys.searchsorted(last, "right"))
    some = after > starts
    return np.where(some, starts, 0), np.where(some, after, 0), read


NOWHERE = -1


class ClaimedLabels(NamedTuple):
    """The groups of values and labels at one level.

    Attributes:
        groups: Shape (values,): the group of each value at the level, a null among them.
        numbers: Shape (labels,): the group of each label, -1 for none.
    """

    groups: SpanPositions
    numbers: SpanPositions


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
    """Match labels with the groups of a coarser level; return the group of each, -1 for unknown labels."""
    if len(columns) == 1:
        group_of: dict[Hashable, int] = {label: number for number, label in enumerate(level.labels)}
        published: Sequence[Hashable] = texts_with_nulls(columns[0])
    else:
        group_of = {_bounds(label, [column.type for column in columns]): number for number, label in enumerate(level.labels)}
        published = list(zip(*(column.to_pylist() for column in columns), strict=True))
    return ClaimedLabels(level.groups, np.array([group_of.get(label, NOWHERE) for label in published], np.int64))


def claimed_spans(claims: Sequence[ClaimedLabels], starred: NDArray[np.bool_]) -> tuple[SpanPositions, Spans] | None:
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
    sets = {int(label): _claimed_members(claims, int(label), positions) for label in apart}
    return positions, Spans(np.minimum(low, high), high, sets, null=size)


def _claimed_members(claims: Sequence[ClaimedLabels], label: int, positions: SpanPositions) -> SpanPositions:
    """Return the positions of the values that a label covers at any of the levels, ascending."""
    inside = np.any([claim.groups == claim.numbers[label] for claim in claims], axis=0)
    return np.sort(positions[inside])


def _places(labels: pa.Array, values: pa.Array) -> SpanPositions:
    """Return the position of each label among values of its type, -1 for none; signs of zero are ignored."""
    if pt.is_floating(values.type):
        labels, values = (pc.add(one, pa.scalar(0.0, one.type)) for one in (labels, values))
    return np.asarray(pc.fill_null(pc.index_in(labels, values), NOWHERE)).astype(np.int64)


def _places_of_texts(texts: Sequence[str | None], values: pa.Array) -> SpanPositions:
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
    if label is not None and (found := RANGE_FORM.fullmatch(label)):
        ends = found[1], found[2]
    elif label is not None and (found := BEYOND_FORM.fullmatch(label)):
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
