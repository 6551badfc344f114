"""Checks whether published labels disclose values that a job hides.

Such values are those of quasi-identifiers that may not be published exactly. Only labels are looked at, with no more knowledge than the
job's. ``*`` and null disclose nothing.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.hierarchies.levels import LabelTable
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
    """Return a mask of prefix labels that disclose values that the job hides, shape (m,).

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
