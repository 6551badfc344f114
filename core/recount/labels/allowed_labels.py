"""The check for labels that disclose values which the job hides.

A label is allowed if it has a form that the hierarchy publishes and is not finer than the job permits; any other label discloses a value.
``*`` and null disclose nothing. A release has few different labels, so that reading them one at a time is quick enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from math import ceil
from pathlib import Path

import numpy as np

from core.recount.labels.group_levels import rows_of_lists
from core.recount.labels.value_scales import calendar_days
from schemas.job.columns import QuasiIdentifier
from schemas.registry.hierarchies import CsvHierarchy, DateHierarchy, PrefixHierarchy, WidthsHierarchy
from schemas.registry.hierarchy_kinds import TreeHierarchy, hierarchy_kind
from schemas.release.manifest import MASK, NULL_MEMBER

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
_RANGE = re.compile(rf"\[{_NUMBER} - {_NUMBER}([\])])")
_BEYOND = re.compile(rf"(<=|<|>=) {_NUMBER}")
_BESIDE_NULL = re.compile(rf"(?s)\{{(.+), {NULL_MEMBER}\}}")
_UNITS = {
    "day": r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}",
    "month": r"-?[0-9]{4,}-[0-9]{2}",
    "quarter": r"-?[0-9]{4,}-Q[1-4]",
    "year": r"-?[0-9]{4,}",
    "decade": r"-?[0-9]{3,}0s",
}

Bound = Decimal | float | int | None
Rule = Callable[[str], bool]


def count_disallowed_labels(qid: QuasiIdentifier, labels: Iterable[object], folder: Path) -> int:
    """Count the labels of a release that disclose a value which the job hides.

    Args:
        qid: A quasi-identifier some of whose values may not be published as they are.
        labels: The different labels of a release. What is no text is a value as it is.
        folder: Where the job file lies.
    """
    rule = hierarchy_kind(qid.hierarchy).recount_rule
    # Nothing is known of another kind that could excuse a label.
    allows: Rule = rule(qid, folder) if rule else lambda label: False

    def is_allowed(label: object) -> bool:
        if label is None or label == MASK:
            return True
        if not isinstance(label, str):
            return False
        beside = _BESIDE_NULL.fullmatch(label)
        return allows(label) or (beside is not None and allows(beside[1]))

    return sum(not is_allowed(label) for label in labels)


def count_disallowed_bounds(qid: QuasiIdentifier, pairs: Iterable[tuple[Bound, Bound]]) -> int:
    """Count the pairs of bounds that disclose a value which the job hides.

    None is an open end; two of them are ``*`` or null.
    """
    spec = qid.hierarchy
    assert isinstance(spec, WidthsHierarchy)
    return sum(not _allowed_pair(spec, low, high, exact=qid.exact) for low, high in pairs)


def bins_rule(qid: QuasiIdentifier, folder: Path) -> Rule:
    """Return a function that permits labels of bins within the ends, or open beyond an end.

    A single number is permitted only where exact values are.
    """
    spec = qid.hierarchy
    assert isinstance(spec, WidthsHierarchy)
    return lambda label: _allowed_bin(spec, label, exact=qid.exact)


def prefixes_rule(qid: QuasiIdentifier, folder: Path) -> Rule:
    """Return a function that permits prefix labels of at most as many characters as the finest level.

    All characters are permitted only with ``exact``, and no sparse prefix is.
    """
    spec = qid.hierarchy
    assert isinstance(spec, PrefixHierarchy)

    def rule(label: str) -> bool:
        if spec.sparse_values and label == "0" * len(spec.sparse_values[0]):
            return True
        kept = label.rstrip(spec.mask)
        return len(kept) <= spec.prefix[0] and (qid.exact or len(kept) < len(label)) and not label.startswith(spec.sparse_values)

    return rule


def units_rule(qid: QuasiIdentifier, folder: Path) -> Rule:
    """Return a function that permits labels of the hierarchy's calendar units, or open beyond an end.

    A unit all of whose days lie beyond an end is not permitted.
    """
    spec = qid.hierarchy
    assert isinstance(spec, DateHierarchy)
    forms = re.compile("|".join(_UNITS[unit] for unit in spec.date))
    return lambda label: label in spec.end_labels or (forms.fullmatch(label) is not None and _reaches_between(spec, label))


def _reaches_between(spec: DateHierarchy, label: str) -> bool:
    """Return whether a calendar unit has a day between the ends."""
    edges = calendar_days(label)
    if edges is None:
        return False
    first, following = (edge.astype("datetime64[D]") for edge in edges)
    after_bottom = spec.last_below is None or following - 1 > np.datetime64(spec.last_below, "D")
    return bool(after_bottom and (spec.first_above is None or first < np.datetime64(spec.first_above, "D")))


def lists_rule(qid: QuasiIdentifier, folder: Path) -> Rule:
    """Return a function that permits labels of listed groups, unless one is also the name of a value."""
    assert isinstance(qid.hierarchy, CsvHierarchy | TreeHierarchy)
    rows = rows_of_lists(qid.name, qid.hierarchy, folder)
    # A group with the name of a value could be that value.
    groups = {group for row in rows for group in row[1:]} - {row[0] for row in rows}
    return groups.__contains__


def _allowed_bin(spec: WidthsHierarchy, label: str, *, exact: bool) -> bool:
    # The whole label: behind a harmless beginning there could stand the value itself.
    if found := _BEYOND.fullmatch(label):
        sign, end = found[1], Decimal(found[2])
        if sign == ">=":
            return spec.top is not None and _begins(spec.top, end)
        return spec.bottom is not None and end == (spec.bottom if sign == "<" else ceil(spec.bottom) - 1)
    if found := _RANGE.fullmatch(label):
        low, high = Decimal(found[1]), Decimal(found[2])
        closed = found[3] == "]"
        return (low < high or (low == high and closed and exact)) and _within(spec, low, high, closed=closed)
    if exact and re.fullmatch(_NUMBER, label):
        return _within(spec, Decimal(label), Decimal(label), closed=True)
    return False


def _allowed_pair(spec: WidthsHierarchy, low: Bound, high: Bound, *, exact: bool) -> bool:
    if low is None and high is None:
        return True
    if high is None:
        return spec.top is not None and _begins(spec.top, _decimal(low))
    if low is None:
        return spec.bottom is not None and _decimal(high) in (spec.bottom, ceil(spec.bottom) - 1)
    least, greatest = _decimal(low), _decimal(high)
    # The high end of fractions lies outside, so that top itself may stand there.
    return (least < greatest or (least == greatest and exact)) and _within(
        spec, least, greatest, closed=least == greatest or isinstance(high, int)
    )


def _begins(top: Decimal, end: Decimal) -> bool:
    """Return whether a number is the first value from ``top`` on; for integers that is ``top`` rounded up."""
    return end in (top, ceil(top))


def _within(spec: WidthsHierarchy, low: Decimal, high: Decimal, *, closed: bool) -> bool:
    """Return whether a range, with or without its high end, contains no value beyond bottom or top."""
    if spec.bottom is not None and low < spec.bottom:
        return False
    return spec.top is None or high < spec.top or (high == spec.top and not closed)


def _decimal(number: Bound) -> Decimal:
    return Decimal(str(number))
