"""The information loss of a quasi-identifier, computed from its published labels and the job alone.

Normalised certainty penalty (Xu et al., KDD 2006) with the published grid in the place of the source's range. Two sources with the same
labels have the same losses, however far a value behind a label lies from the others. Here it is defined what a release says under
``ncp`` and ``gcp``; what the search minimises may divide by what the source holds (`core.units.losses`).

- A value that is published as it is costs 0, and so does a null. ``*`` costs 1.
- A range of numbers or dates costs its length over that of the grid, from the least to the greatest end in any label of the column. A range
  that is open at one end reaches to the end of the grid, and costs no less than its share of the labels.
- A group that is listed, in a file or as a tree, costs the values that are listed for it over all that are listed, whether or not they
  occur. A group of one value that is published under another name costs one of them.
- A set costs its values over all values that are listed or, where none are, over all that labels name.
- A common beginning costs the labels that begin with it, and are no beginnings of others, over all such labels.
- Of a kind of hierarchy that the recount cannot read every label costs its share of the labels.
- A null in a set with any of these costs one value, or one label, more.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.group_levels import Row
from core.recount.labels.label_spans import WITH_NULL, unquoted_member
from core.recount.labels.value_scales import BEYOND_FORM, LAST_CHARACTER, RANGE_FORM, calendar_days, is_scale_type
from schemas.release.manifest import MASK

Number: TypeAlias = int | Fraction
Reach: TypeAlias = tuple[Number | None, Number | None]
"""The least and the greatest number of a label, None where it is open."""
Ends: TypeAlias = Callable[[str], tuple[Number, Number] | None]
"""Reads a value or a calendar unit; None for what is neither."""

_OFFSET = re.compile(r"([+-][0-9]{2}:[0-9]{2}|Z)$")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_MOMENT = re.compile(r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})[T ]([0-9:.]+)")
MOST_DIGITS = 400
"""Characters that no number of a column has; Python refuses to read whole numbers of some thousand."""
NO_NUMBERS = ("nan", "inf", "-inf")
"""Values of floats that have no place on a grid."""


def bounds_reader(kind: pa.DataType) -> Ends:
    """Return a function that reads a text of a number, date or calendar unit as its low and high end."""
    if pt.is_date(kind):
        return _day_ends
    if pt.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return lambda text: _moment_ends(text, unit)
    return _number_ends


def range_of(label: str, ends: Ends) -> Reach | None:
    """Return the ends of the numbers that a label covers, None for an open end; None if no number."""
    if found := RANGE_FORM.fullmatch(label):
        low, high = ends(found[1]), ends(found[2])
        return None if low is None or high is None else (low[0], high[1])
    if found := BEYOND_FORM.fullmatch(label):
        at = ends(found[2])
        if at is None:
            return None
        # Up to a year or a day is to the end of it.
        return (at[0], None) if found[1] == ">=" else (None, at[1])
    return ends(label)


def _number_ends(text: str) -> tuple[Number, Number] | None:
    if len(text) > MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number: Number = int(text) if text.lstrip("+-").isdigit() else Fraction(text)
    return number, number


def _day_ends(text: str) -> tuple[Number, Number] | None:
    unit = calendar_days(text)
    if unit is None:
        return None
    first, after = (int(day.astype("datetime64[D]").astype(np.int64)) for day in unit)
    return first, after - 1


def _moment_ends(text: str, unit: str) -> tuple[Number, Number] | None:
    found = _MOMENT.fullmatch(_OFFSET.sub("", text))
    try:
        if found:
            moment = int(np.datetime64(f"{found[1]}T{found[2]}").astype(f"datetime64[{unit}]").astype(np.int64))
            return moment, moment
    except (ValueError, OverflowError):
        return None
    days = calendar_days(text)
    if days is None:
        return None
    # A moment may be any of its last day: the unit ends where the next begins.
    first, after = (int(day.astype(f"datetime64[{unit}]").astype(np.int64)) for day in days)
    return first, after


DIGITS = 12
"""Decimal places of a published loss: labels tell the rest anyway, and the order in which records are added up is no figure."""


@dataclass(frozen=True)
class ColumnLoss:
    """The information loss of a quasi-identifier in the data files.

    Attributes:
        penalty: Sum over the records of NCP, 1 for each ``*``.
        leaves: The same with a value that is published as it is costing one of those that are listed, as taxonomies are counted.
    """

    penalty: float
    leaves: float
    numeric: bool


@dataclass(frozen=True)
class LabelForm:
    """The type, hierarchy and form by which the labels of a quasi-identifier are read.

    Attributes:
        kind: The type of the source's values.
        rows: The rows of its hierarchy, where values are listed: each value, then its groups.
        ranges: Whether numbers and dates are published in ranges whatever the hierarchy is.
        mask: The character in the place of one that is not published, where labels are prefixes; empty where they are not.
        sparse: The group of sparse beginnings; empty where there is none.
        sets: Whether labels are sets of values.
    """

    kind: pa.DataType
    rows: Sequence[Row] = ()
    ranges: bool = False
    mask: str = ""
    sparse: str = ""
    sets: bool = False


def column_loss(label_form: LabelForm, labels: Sequence[str | None], record_counts: NDArray[np.int64]) -> ColumnLoss:
    """Return a column's information loss, summed over records, from labels and their record counts.

    Args:
        labels: The different labels as text, None for a null.
        record_counts: Shape (labels,), records with each.
    """
    named, beside = _without_null(label_form, labels)
    share = Fraction(1, max(sum(label is not None for label in labels), 1))
    # One more where a label covers the null.
    listed = len(label_form.rows) + (any(beside) or None in labels)
    one = Fraction(1, listed) if label_form.rows else share
    price = _pricer(label_form, named, share, one)
    prices = [_priced(label, with_null, price, one) for label, with_null in zip(named, beside, strict=True)]
    counts = record_counts.tolist()
    penalty = fsum(float(cost) * many for cost, many in zip(prices, counts, strict=True))
    leaves = fsum(float(max(cost, one)) * many for cost, many in zip(prices, counts, strict=True))
    return ColumnLoss(penalty, leaves, is_scale_type(label_form.kind))


def exact_column_loss(label_form: LabelForm, records: NDArray[np.int64]) -> ColumnLoss:
    """Return the loss of an exact column with records, shape (values,): penalty 0, a leaf for each."""
    return ColumnLoss(0.0, int(records.sum()) / max(len(label_form.rows) or len(records), 1), is_scale_type(label_form.kind))


Price = Callable[[str], Fraction]


def _priced(label: str | None, with_null: bool, price: Price, one: Fraction) -> Fraction:
    if label is None:
        return Fraction(0)
    if label == MASK:
        return Fraction(1)
    cost = price(label)
    return min(max(cost, one) + one, Fraction(1)) if with_null else cost


def _without_null(reading: LabelForm, labels: Sequence[str | None]) -> tuple[list[str | None], list[bool]]:
    """Return labels without the null in ``{…, null}``, and whether each label had one."""
    names = frozenset(name for row in reading.rows for name in row)

    def inner(label: str | None) -> str | None:
        if label is None or not (label.startswith("{") and label.endswith(WITH_NULL)):
            return label
        one = unquoted_member(label[1 : -len(WITH_NULL)])
        # What is one value in spite of its commas is listed, or a beginning.
        return f"{{{one}}}" if ", " in one and one not in names and not reading.mask else one

    named = [inner(label) for label in labels]
    return named, [one != other for one, other in zip(named, labels, strict=True)]


def _pricer(reading: LabelForm, labels: Sequence[str | None], share: Fraction, one: Fraction) -> Price:
    """Return the function that computes the penalty of a label, other than ``*`` and the null in a set.

    Args:
        share: One over the number of labels.
        one: The penalty of one listed value.
    """
    told = list(dict.fromkeys(label for label in labels if label is not None and label != MASK))
    if reading.mask:
        return _of_beginnings(reading, told)
    if is_scale_type(reading.kind) and (reading.ranges or not reading.rows):
        single = _of_ranges(reading, told, share)
    elif reading.rows:
        single = _of_groups(reading, [label for label in told if not _is_set(label)], one)
    else:
        # Without a readable hierarchy a value of a column of sets costs nothing, and any other label its share of the labels.
        single = (lambda label: Fraction(0)) if reading.sets else (lambda label: share)
    sets = _of_sets(reading, told, one) if any(map(_is_set, told)) else None
    return single if sets is None else lambda label: sets(label) if _is_set(label) else single(label)


def _is_set(label: str) -> bool:
    return label.startswith("{") and label.endswith("}") and ", " in label


def _of_ranges(reading: LabelForm, labels: Sequence[str], share: Fraction) -> Price:
    number = bounds_reader(reading.kind)
    found = {label: range_of(label, number) for label in labels}
    ends = [end for pair in found.values() if pair for end in pair if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0, 0)
    length = high - low

    def price(label: str) -> Fraction:
        pair = found[label]
        if pair is None:
            # A value that has no place, or a name, which tells no ends.
            return Fraction(0) if label in NO_NUMBERS else share
        first, last = pair
        cost = _ratio((high if last is None else last) - (low if first is None else first), length)
        return max(cost, share) if None in pair else cost

    return price


def _ratio(part: Number, whole: Number) -> Fraction:
    # Moments that a unit cannot hold wrap around: no cost lies outside of nothing and all.
    return min(max(Fraction(part) / Fraction(whole), Fraction(0)), Fraction(1)) if whole else Fraction(0)


def _of_groups(reading: LabelForm, labels: Sequence[str], one: Fraction) -> Price:
    """Return the penalty function for listed groups.

    Labels are read at the finest level that has all of them or, where they are of several levels, as the largest group of that name.
    """
    values = frozenset(row[0] for row in reading.rows)
    levels = _levels(reading)
    finest = next((level for level, groups in enumerate(levels) if all(label in groups for label in labels)), None)
    here = levels[1:] if finest is None else levels[finest : finest + 1]
    number = bounds_reader(reading.kind) if is_scale_type(reading.kind) else None
    if number and (lengths := _lengths(here, labels, number)):
        return lambda label: lengths.get(label, Fraction(0))

    def price(label: str) -> Fraction:
        most = max((len(groups.get(label, ())) for groups in here), default=0)
        # A group of one value is that value, unless it has another name.
        is_value = label in values or (number is not None and number(label) is not None)
        return most * one if most > 1 else Fraction(0) if is_value else one

    return price


def _levels(reading: LabelForm) -> list[dict[str, list[str]]]:
    """Return the listed values of each group by its name, level by level."""
    levels: list[dict[str, list[str]]] = [{} for _ in reading.rows[0]]
    for row in reading.rows:
        for level, name in enumerate(row):
            levels[level].setdefault(name, []).append(row[0])
    return levels


def _lengths(levels: Sequence[Mapping[str, Sequence[str]]], labels: Sequence[str], number: Ends) -> dict[str, Fraction]:
    """Return each group's length over that of all published values; empty if any label is no number."""
    reaches: dict[str, tuple[Number, Number]] = {}
    for label in labels:
        listed = max((groups.get(label, ()) for groups in levels), key=len, default=()) or (label,)
        found = [ends for value in listed if (ends := number(value))]
        if len(found) < len(listed):
            return {}
        reaches[label] = min(low for low, _ in found), max(high for _, high in found)
    if not reaches:
        return {}
    length = max(high for _, high in reaches.values()) - min(low for low, _ in reaches.values())
    return {label: _ratio(high - low, length) for label, (low, high) in reaches.items()}


def _of_sets(reading: LabelForm, labels: Sequence[str], one: Fraction) -> Price:
    """Return the penalty function for sets of values such as ``{a, b}``."""
    values = frozenset(row[0] for row in reading.rows if ", " in row[0])
    members = {label: _members(label, values) for label in labels if _is_set(label)}
    named = {each for found in members.values() for each in found} | {label for label in labels if label not in members}
    each = one if reading.rows else Fraction(1, len(named))
    return lambda label: min(len(members[label]) * each, Fraction(1))


def _members(label: str, values: frozenset[str]) -> list[str]:
    """Return the values of a set label, where values may contain commas.

    The longest listed values are taken, from the first piece on.
    """
    pieces = label[1:-1].split(", ")
    found, first = [], 0
    while first < len(pieces):
        last = len(pieces) if values else first + 1
        while last > first + 1 and ", ".join(pieces[first:last]) not in values:
            last -= 1
        found.append(", ".join(pieces[first:last]))
        first = last
    return found


def _of_beginnings(reading: LabelForm, labels: Sequence[str]) -> Price:
    """Return the penalty function for common prefixes such as ``12***``: the share of labels below them."""
    stems = sorted({label.rstrip(reading.mask) for label in labels})
    # In order, a stem has another below it if the next one begins with it.
    following = [*stems[1:], ""]
    ends = [stem for stem, other in zip(stems, following, strict=False) if other == stem or not other.startswith(stem)]
    size = max(len(ends), 1)

    def price(label: str) -> Fraction:
        stem = label.rstrip(reading.mask)
        if stem == label and label != reading.sparse:
            return Fraction(0)
        below = bisect_left(ends, stem + LAST_CHARACTER) - bisect_left(ends, stem)
        return Fraction(max(below, 1), size)

    return price
