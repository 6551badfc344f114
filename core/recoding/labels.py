"""Labels of classes: ranges of numerical QIDs, ancestors or sets of others (papers/rayden.txt).

A class here is any set of records. Its label is no coarser than needed. Where all records have one value, the label is that value. Where
values and nulls meet, it is a set of the null and the label of the values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import Packing, single_word
from core.columns.column_types import is_text
from core.columns.data_parallel import each_in_parallel, parts_in_parallel
from core.columns.domains import Domain
from core.columns.numbers import NumberLine, is_numerical, null_mask, number_line
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.histograms.cells import positions_of_finer_cells
from core.histograms.histogram import Histogram
from core.recoding.classes import QidLabels, Sets, dense_ranks, text_ranks
from core.recoding.ends import Ends, observed_ends
from core.recoding.recoding import SUPPRESSED, Intervals, label_columns
from core.units.losses import group_penalties
from schemas.release.manifest import NULL_MEMBER

NULL_SET_END = f", {NULL_MEMBER}}}"
"""How a set with a null ends."""
_LOOKS_NULL = rf'(?s)^(?:"*|.*, ){NULL_MEMBER}"*$'
_LOOKS_LIKE_A_SET = rf"(?s)^\{{.*, {NULL_MEMBER}\}}$"

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def as_members(texts: pa.Array) -> pa.Array:
    """Quote texts that would look like a null inside a set; shape (m,), nulls stay."""
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(texts, _LOOKS_NULL), False), quoted, texts)


def as_value(member: str) -> str:
    """Return the text that `as_members` turned into a set member."""
    within = member[1:-1] if len(member) > 1 and member[0] == member[-1] == '"' else None
    return within if within is not None and re.search(_LOOKS_NULL, within) else member


def labels_with_null(labels: pa.Array, mixed: Flags) -> pa.Array:
    """Return the labels of classes; one with nulls becomes a set of label and null, unless it is ``*``.

    Args:
        labels: Shape (classes,), text: what the values of each class publish by themselves; ``*`` stays, because it covers nulls.
        mixed: Shape (classes,).
    """
    wanted = pc.and_(pa.array(mixed), pc.fill_null(pc.not_equal(labels, pa.scalar("*", labels.type)), False))
    return pc.if_else(wanted, pc.binary_join_element_wise("{", as_members(labels), NULL_SET_END, ""), labels)


def can_name_nulls(domain: Domain, hierarchy: Hierarchy) -> bool:
    """Return whether labels may say ``null`` in a set: no value or group of the column looks like one.

    Where they are not, a class with nulls is published as ``*``.
    """
    if not domain.nulls:
        return True
    values = as_text(domain.values)
    texts = [values, *(labels for labels in hierarchy.labels[1:] if is_text(labels.type))]
    return not any(pc.any(pc.match_substring_regex(text, _LOOKS_LIKE_A_SET), min_count=0).as_py() for text in texts)


def penalties_with_null(penalties: Floats, size: int) -> Floats:
    """Return the NCP of labels after the null is added to the values that they cover.

    The null counts as one of ``size`` values; a single value counts too.
    """
    return np.minimum(np.maximum(penalties, 1 / size) + 1 / size, 1.0)


SUPPRESSED_VALUE = "*"


def label_by_range(
    codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy, intervals: Intervals, ends: Ends | None
) -> QidLabels:
    """Label classes of a numerical QID by the range of their values; a single value stands alone.

    Arguments are those of ``core.recoding.prices.generalise``.

    Where all records of a class have one value, that value is published: at least k persons have it.
    """
    ends = ends or observed_ends(domain)
    null, values = len(domain.values), domain.values
    known = low, high, mixed = sets.code_bounds(codes, null)
    missing = low == null
    bounds = intervals == "bounds" and hierarchy.bounds[0] is not None
    # Two bounds have no room for a null beside them.
    named = mixed & (not bounds and bool(mixed.any()) and can_name_nulls(domain, hierarchy))
    absent = missing | (mixed & ~named)
    first, last = (_steps_at(ends.steps, found, absent) for found in (low, high))
    # Beside nulls fewer than k people may have the one value there is, so that it is told as an end of a range may be.
    exact = (low == high) & ~mixed
    one, alone = pa.array(low, mask=absent), pa.array(exact)
    starts = pc.if_else(alone, values.take(one), ends.low.take(pa.array(first, mask=absent)))
    stops = pc.if_else(alone, values.take(one), ends.high.take(pa.array(last, mask=absent)))
    starred = ~missing & null_mask(starts) & null_mask(stops)
    single = pc.fill_null(pc.equal(starts, stops), False)
    texts = pc.if_else(pa.array(starred), pa.scalar(SUPPRESSED_VALUE), _range_texts(starts, stops, single))
    columns = [starts, stops] if bounds else [labels_with_null(texts, named)]
    if null:
        low, high = (np.where(exact, own, step) for own, step in ((low, ends.firsts[first]), (high, ends.lasts[last])))
    # A number above every pair of codes: all classes of * publish the same, whatever they hold.
    pairs = np.where(starred, 2 * (null + 1) * (null + 2), 2 * (low * (null + 1) + high) + named)
    reach = np.where(exact, 0.0, _reach(domain, starts, stops))
    penalties = np.where(starred, 1.0, np.where(named, penalties_with_null(reach, max(domain.size, 1)), reach))
    names = label_columns(hierarchy.qid, bounds)
    return QidLabels(dict(zip(names, columns, strict=True)), dense_ranks(pairs), penalties, _member_spans(domain, *known))


def _range_texts(starts: pa.Array, stops: pa.Array, single: pa.Array) -> pa.Array:
    """Write ranges as text: ``[20 - 29]``, a single value, or ``>= 20`` or ``<= 29`` with an open end."""
    low, high = as_text(starts), as_text(stops)
    both = pc.if_else(single, low, pc.binary_join_element_wise("[", low, " - ", high, "]", ""))
    above, below = pc.binary_join_element_wise(">= ", low, ""), pc.binary_join_element_wise("<= ", high, "")
    return pc.coalesce(both, above, below)


def _steps_at(steps: NDArray[np.int64], codes: NDArray[np.int64], absent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the step of each class's code, shape (classes,); 0 where a class has no code.

    Only the codes of classes are looked up: a domain may be much longer.
    """
    found = np.zeros(len(codes), steps.dtype)
    found[~absent] = steps[codes[~absent]]
    return found


def _width(domain: Domain, line: NumberLine) -> float:
    """Return the range, max - min, of a numerical QID with two or more values."""
    first, last = line.at(domain.values, np.array([0, len(domain.values) - 1]))
    return float(last - first)


def _line(domain: Domain) -> NumberLine:
    """Return the number line of a numerical domain."""
    line = number_line(domain)
    assert line is not None
    return line


def _reach(domain: Domain, starts: pa.Array, stops: pa.Array) -> NDArray[np.float64]:
    """Return the NCP of ranges, shape (classes,); an open end counts as the domain's end."""
    if len(domain.values) < 2:
        return np.zeros(len(starts))
    line = _line(domain)
    low, high = (line.of(pc.fill_null(found, domain.values[at])) for found, at in ((starts, 0), (stops, -1)))
    reach: NDArray[np.float64] = (high - low) / _width(domain, line)
    return reach


def _spans(domain: Domain, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the NCP of the ranges between two codes, shape (classes,)."""
    if len(domain.values) < 2:
        return np.zeros(len(low))
    # The null's code has a place too; what is worked out for it is replaced by the caller.
    last = len(domain.values) - 1
    line = _line(domain)
    begin, end = (line.at(domain.values, np.minimum(codes, last)) for codes in (low, high))
    spans: NDArray[np.float64] = (end - begin) / _width(domain, line)
    return np.where(low == high, 0.0, spans)


def label_by_ancestor(
    codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy, least: NDArray[np.int64] | None
) -> QidLabels:
    """Label classes by the lowest common ancestor of their values, no finer than the least level.

    Arguments are those of ``core.recoding.prices.generalise``.
    """
    low, _, mixed = sets.code_bounds(codes, len(domain.values))
    apart = mixed & (hierarchy.has_null_group and bool(mixed.any()) and can_name_nulls(domain, hierarchy))
    found = common_levels(codes, sets, hierarchy)
    if apart.any():
        found = np.where(apart, _levels_with_null(codes, sets, hierarchy), found)
    found = np.maximum(found, hierarchy.least)
    if least is not None:
        found = np.maximum(found, np.minimum(least, hierarchy.top))
    if is_numerical(domain):
        # Beside nulls fewer than k people may have the one number there is.
        found = np.maximum(found, apart)
    # All labels of all levels in a row, so that a class is a position in it.
    labels = pa.concat_arrays([level if pa.types.is_string(level.type) else as_text(level) for level in hierarchy.labels])
    offsets = np.cumsum([0, *(len(level) for level in hierarchy.labels)])
    penalties = np.concatenate([group_penalties(hierarchy, domain, level) for level in range(hierarchy.levels)])
    # The least code of a class is the null's only where it holds nothing else.
    places = offsets[found] + np.stack(hierarchy.groups)[found, low]
    apart &= found < hierarchy.top
    texts = labels_with_null(labels.take(pa.array(places)), apart)
    lost = np.where(apart, penalties_with_null(penalties[places], max(domain.size, 1)), penalties[places])
    if is_numerical(domain):
        return QidLabels({hierarchy.qid: texts}, text_ranks(texts), lost, lost)
    distinct = sets.distinct(codes, domain.size)
    covered = np.where(distinct > 1, distinct / max(domain.size, 1), 0.0)
    return QidLabels({hierarchy.qid: texts}, text_ranks(texts), lost, covered)


def label_by_set(codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy) -> QidLabels:
    """Label classes by the set of their values, ``{a, b}`` or ``{a, null}``.

    Arguments are those of ``core.recoding.prices.generalise``.
    """
    numbers, values = sets.pairs(codes, domain.size)
    null, classes = len(domain.values), len(sets.starts)
    known = values < null
    distinct = np.bincount(numbers[known], minlength=classes)
    low, _, mixed = sets.code_bounds(codes, null)
    listed = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(distinct)).astype(np.int32)), as_members(as_text(domain.values).take(pa.array(values[known])))
    )
    named = mixed & (bool(mixed.any()) and can_name_nulls(domain, hierarchy))
    ends = pc.if_else(pa.array(named), NULL_SET_END, "}")
    joined = pc.binary_join_element_wise("{", pc.binary_join(listed, ", "), ends, "")
    one = as_text(domain.values).take(pa.array(np.where(low == null, 0, low), mask=low == null))
    texts = pc.if_else(pa.array((distinct > 1) | mixed), joined, one)
    texts = pc.if_else(pa.array(mixed & ~named), pa.scalar(SUPPRESSED_VALUE), texts)
    held = (distinct + mixed) / max(domain.size, 1)
    covered = np.where(distinct + mixed > 1, np.where(mixed & ~named, 1.0, held), 0.0)
    return QidLabels({hierarchy.qid: texts}, text_ranks(texts), covered, covered)


def penalties_of_members(codes: NDArray[np.integer], sets: Sets, domain: Domain) -> NDArray[np.float64]:
    """Return the NCP of each class as if it published its own values, shape (classes,).

    Arguments are those of ``core.recoding.prices.generalise``.
    """
    if not is_numerical(domain):
        distinct = sets.distinct(codes, domain.size)
        return np.where(distinct > 1, distinct / max(domain.size, 1), 0.0)
    return _member_spans(domain, *sets.code_bounds(codes, len(domain.values)))


def _member_spans(domain: Domain, low: NDArray[np.int64], high: NDArray[np.int64], mixed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the NCP of a numerical QID by the least and greatest code of each class.

    Arguments are the result of ``Sets.code_bounds``.
    """
    spans = _spans(domain, low, high)
    return np.where(mixed, penalties_with_null(spans, max(domain.size, 1)), spans)


def _levels_with_null(codes: NDArray[np.integer], sets: Sets, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Return each class's finest level with one group for its values without nulls, shape (classes,)."""
    null, levels = len(hierarchy.groups[0]) - 1, np.zeros(len(sets.starts), np.int64)
    for groups in hierarchy.groups[:-1]:
        low, high, _ = sets.code_bounds(groups[codes].astype(np.int64), int(groups[null]))
        levels += low != high
    return levels


def common_levels(codes: NDArray[np.integer], sets: Sets, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Return the level of the lowest common ancestor of each class, shape (classes,).

    It is the finest level at which all records of the class share a group.

    Args:
        codes: Shape (n,), the code of each record.
        sets: The records of each class.
    """
    levels = np.zeros(len(sets.starts), np.int64)
    for groups in hierarchy.groups[:-1]:
        low, high = sets.extremes(groups[codes])
        # Levels nest, so that groups that have met never part: the levels at which they differ are those below the common one.
        levels += low != high
    return levels


def same_labels(labels: Sequence[QidLabels]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number per class, equal for equal labels in all QIDs, and one class of each number.

    Readers see one class there.

    Returns:
        The number of each class among the different ones, in the order of what they publish, shape (classes,), and a class of each
        number, shape (different ones,).
    """
    packing = Packing(tuple(int(label.numbers.max(initial=0)) + 1 for label in labels))
    key = single_word(packing.pack([label.numbers for label in labels]))
    _, firsts, numbers = np.unique(key, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), firsts.astype(np.int64)


def gcp_of_class_values(
    cells: Histogram, chosen: Histogram, failing: NDArray[np.bool_], domains: Sequence[Domain], hierarchies: Sequence[Hierarchy]
) -> float:
    """Return the mean penalty of class values over records and QIDs; a suppressed record counts as 1.

    The penalty is that of the values in a record's class, not of its label.

    Args:
        cells: Of the QIDs at the finest node.
        chosen: The same at the released node.
        failing: Shape (cells of ``chosen``,), which of them are suppressed.
        domains: One per QID.
        hierarchies: One per QID.
    """
    # Every class has cells, so that those that are left are numbered without gaps.
    classes = np.where(failing, SUPPRESSED, np.cumsum(~failing) - 1).astype(np.int32)

    def numbered(rows: slice) -> NDArray[np.int32]:
        mine: NDArray[np.int32] = classes[positions_of_finer_cells(chosen, cells.node, cells.codes[rows], hierarchies)]
        return mine

    sets = Sets.of(np.concatenate(parts_in_parallel(numbered, cells.cells)))

    suppressed, sizes = int(chosen.counts[failing].sum()), chosen.counts[~failing]
    held = each_in_parallel(lambda qid: penalties_of_members(qid[0], sets, qid[1]), list(zip(cells.groups, domains, strict=True)))
    lost = sum(float(np.dot(penalty, sizes)) for penalty in held)
    return (lost / len(domains) + suppressed) / int(chosen.counts.sum())
