"""Labels of classes by ancestor, prefix, set or interval, and their prices as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import is_numerical, number_line
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.recoding.classes import QidLabels, Sets, text_ranks
from core.recoding.ends import Ends, observed_ends
from core.recoding.labels import (
    SUPPRESSED_VALUE,
    can_name_nulls,
    label_by_ancestor,
    label_by_range,
    label_by_set,
    labels_with_null,
    penalties_with_null,
)
from core.recoding.price_kernels import ALONE, FIRST, LEVELS, RANGE, SECOND, SET, TABLE, UNIT, Numbers, Prices, RankPositions
from core.recoding.recoding import Intervals
from core.units.losses import group_penalties
from schemas.job.record_methods import Generalisation


def generalise(
    way: Generalisation | None,
    codes: NDArray[np.integer],
    sets: Sets,
    domain: Domain,
    hierarchy: Hierarchy,
    intervals: Intervals,
    ends: Ends | None = None,
    least: NDArray[np.int64] | None = None,
) -> QidLabels:
    """Label classes for one QID by its way of generalisation; raise ValueError if no interval is possible.

    A single value is published as it is. A class with values and nulls is published as a set.

    Args:
        way: Left out, numbers and dates become intervals and all else goes by its hierarchy, as does what may not be published exactly.
        codes: Shape (n,), the code of each row.
        sets: The rows of each class.
        intervals: ``text``, or ``bounds`` for two columns where the hierarchy has bounds.
        ends: Where intervals may end; at the values of the class if left out.
        least: Shape (classes,), the finest level that may be published for a categorical QID, -1 for any; any if left out.
    """
    match way or usual_way(domain, hierarchy):
        case "interval":
            if not is_numerical(domain):
                raise ValueError(domain.qid)
            return label_by_range(codes, sets, domain, hierarchy, intervals, ends)
        case "set":
            return label_by_set(codes, sets, domain, hierarchy)
        case "prefix":
            return label_by_prefix(codes, sets, domain, hierarchy)
        case _:
            return label_by_ancestor(codes, sets, domain, hierarchy, None if is_numerical(domain) else least)


def usual_way(domain: Domain, hierarchy: Hierarchy) -> Generalisation:
    """Return the default generalisation of a QID: intervals for numbers and dates, else its hierarchy.

    Numbers and dates that may not be published exactly are generalised by their hierarchy, too.
    """
    return "interval" if is_numerical(domain) and not hierarchy.least else "hierarchy"


def label_by_prefix(codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy) -> QidLabels:
    """Label classes by the common prefix of their values: ``1*`` for 1 and 10.

    The order of records is irrelevant. As many ``*`` follow as the longest value has further characters, or one where no prefix is common.
    The penalty counts the observed values that begin with the prefix.

    Args:
        codes: Shape (n,), the code of each row.
        sets: The rows of each class.
        domain: Of the QID; its values are compared as text, in Unicode code points.
        hierarchy: Of the QID; its labels are possible labels, too.
    """
    texts = as_text(domain.values)
    words = np.array(texts.to_pylist(), np.str_)
    order = np.argsort(words)
    null = len(words)
    place, lengths = np.full(null + 1, null), np.zeros(null + 1, np.int64)
    place[order], lengths[:null] = np.arange(null), np.char.str_len(words)
    low, high, mixed = sets.code_bounds(place[codes], null)
    missing, ordered = low == null, words[order]
    # The first and the last of sorted words share what all of them share.
    first, last = np.where(missing, 0, low), np.where(missing, 0, high)
    shared = np.where(missing, 0, _shared(ordered, first, last)) if null else np.zeros(len(low), np.int64)
    longest = sets.extremes(lengths[codes])[1]
    stems = _cut(texts.take(pa.array(order)).take(pa.array(first, mask=missing)), shared)
    stars = pc.binary_repeat(pa.scalar(SUPPRESSED_VALUE), pa.array(np.where(shared > 0, longest - shared, 0)))
    named = mixed & (bool(mixed.any()) and can_name_nulls(domain, hierarchy))
    # Of one value that is empty nothing is common with others, but it is told all the same.
    apart = ~missing & (low != high) & (shared == 0) | (mixed & ~named)
    labels = pc.if_else(pa.array(apart), pa.scalar(SUPPRESSED_VALUE), pc.binary_join_element_wise(stems, stars, ""))
    alike = _beginning(ordered, first, shared) if null else np.zeros(len(low), np.int64)
    size = max(domain.size, 1)
    penalties = np.where(apart, 1.0, np.where(low != high, alike / size, 0.0))
    penalties = np.where(named & ~apart, penalties_with_null(penalties, size), penalties)
    distinct = sets.distinct(codes, domain.size)
    texts = labels_with_null(labels, named & ~apart)
    return QidLabels({domain.qid: texts}, text_ranks(texts), penalties, np.where(distinct > 1, distinct / size, 0.0))


def _shared(words: NDArray[np.str_], first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the length of the common prefix of two words, for pairs of positions."""
    # NumPy holds a character in four bytes, so that texts are compared without a loop over them.
    letters = words.view(np.uint32).reshape(len(words), -1)
    same = letters[first] == letters[last]
    # Words of one length are padded by the same zeros.
    count: NDArray[np.int64] = np.minimum(np.cumprod(same, axis=1).sum(axis=1), np.char.str_len(words)[first])
    return count


def _cut(texts: pa.Array, lengths: NDArray[np.int64]) -> pa.Array:
    """Return the first characters of each text, as many as ``lengths`` says.

    It loops over the distinct lengths, which are few.
    """
    cut = texts
    for length in np.unique(lengths).tolist():
        here = pa.array(lengths == length)
        cut = pc.if_else(here, pc.utf8_slice_codeunits(texts, 0, length) if length else pc.if_else(texts.is_null(), None, ""), cut)
    return cut


def _beginning(words: NDArray[np.str_], first: NDArray[np.intp], shared: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of sorted words that share a prefix with a given word.

    ``first`` has the positions of the given words, ``shared`` the lengths of prefixes.
    """
    counts = np.zeros(len(first), np.int64)
    for length in np.unique(shared).tolist():
        here = shared == length
        stems = words.astype(f"U{length}") if length else np.zeros(len(words), "U1")
        wanted = stems[first[here]]
        counts[here] = np.searchsorted(stems, wanted, "right") - np.searchsorted(stems, wanted, "left")
    return counts


PUBLISHED, HELD = 4, 1
"""What the penalty of a label weighs beside that of the values held. With 8 parts up to 1 % less is published, and up to 3 % more held."""
MOST_IN_TABLE = 512
"""Values of a column whose pairs are priced one by one; 1 MB."""


@dataclass(frozen=True, eq=False)
class LabelPrices:
    """Generalisation, domain, hierarchy and range ends that determine the label prices of one QID.

    Attributes:
        way: How; None for the usual way.
        ends: Where ranges may end; None for the values of a class.
    """

    way: Generalisation | None
    domain: Domain
    hierarchy: Hierarchy
    ends: Ends | None = None


class _Column(NamedTuple):
    """One column of `Prices`.

    Attributes:
        positions: Shape (size, 1): the place of each code. Shape (size, 2) of a pair, for labels that name nulls.
        kind: RANGE, TABLE, LEVELS or SET.
        levels: Of LEVELS.
        numbers: As `Prices` has them, over the places of values.
        size: Places.
        counted: Whether values that are held are counted.
    """

    positions: NDArray[np.int64]
    kind: int
    levels: int
    numbers: NDArray[np.int64]
    size: int
    counted: bool


def label_prices(
    labels: Sequence[LabelPrices], label_weight: int = PUBLISHED, class_value_weight: int = HELD
) -> tuple[Prices, list[RankPositions], NDArray[np.bool_]]:
    """Return label prices for kernels, positions of QIDs' codes, and a mask of columns of counted values.

    Args:
        labels: One per QID.
        label_weight: What the penalty of a label is multiplied by.
        class_value_weight: What the penalty of the values held is multiplied by.

    Returns:
        The prices; by QID the places of its codes, shape (size, columns), which are two where labels name nulls; whose values are counted,
        shape (columns,).
    """
    found = [(label, _column(label)) for label in labels]
    sides = np.concatenate([_sides(column) for _, column in found])
    numbers = [part for _, column in found for part in ([np.empty(0, np.int64)] * (column.positions.shape[1] - 1) + [column.numbers])]
    whole = np.array([max(label.domain.size, 1) for label, column in found for _ in _sides(column)])
    units = np.rint(UNIT / whole).astype(np.int64)
    kinds, counted = _each(found, "kind"), _each(found, "counted").astype(np.bool_)
    sets = kinds == SET
    # Of a column whose values are not counted, the label stands for what is held too.
    weights = np.where(counted & ~sets, label_weight, label_weight + class_value_weight)
    each = np.where(sets, label_weight + class_value_weight, class_value_weight) * units * counted
    starts = np.cumsum([0, *(len(part) for part in numbers[:-1])])
    terms = (kinds, sides, starts, _each(found, "size"), _each(found, "levels"), weights, each, units * (sides == SECOND))
    made = Prices(np.column_stack(terms).astype(np.int64), np.concatenate(numbers).astype(np.int32))
    # The values of a pair are counted once.
    return made, [column.positions.astype(np.int32) for _, column in found], counted & (sides != SECOND)


def _sides(column: _Column) -> NDArray[np.int64]:
    """Return the sides of a column's entries in the prices: ALONE, or FIRST and SECOND."""
    return np.array([ALONE] if column.positions.shape[1] == 1 else [FIRST, SECOND])


def _each(found: Sequence[tuple[LabelPrices, _Column]], name: str) -> NDArray[np.int64]:
    """Return one attribute of all columns, twice for columns that are pairs."""
    return np.array([getattr(column, name) for _, column in found for _ in _sides(column)], np.int64)


def _column(label: LabelPrices) -> _Column:
    """Return the positions and penalties of one QID as a column of prices."""
    domain, hierarchy = label.domain, label.hierarchy
    way, named = label.way or usual_way(domain, hierarchy), bool(domain.nulls) and can_name_nulls(domain, hierarchy)
    size = len(domain.values)
    match way:
        case "interval":
            numbers = _ends(domain, label.ends or observed_ends(domain), named=named)
            places = _of_pair(np.arange(size)) if named else np.arange(domain.size)[:, None]
            return _Column(places, RANGE, 0, numbers, size if named else domain.size, False)
        case "set":
            # The place of a null that cannot be named stands for the levels that a set has none of.
            return _Column(np.arange(domain.size)[:, None], SET, -1 if named else size, np.empty(0, np.int64), domain.size, True)
        case "prefix":
            groups, penalties = _prefixes(domain)
            return _by_levels(groups, penalties, counted=True, named=size if named else None)
        case _:
            named = named and hierarchy.has_null_group
            groups, penalties = _groups(label)
            alone = int(named and is_numerical(domain) and not hierarchy.least)
            return _by_levels(groups, penalties, counted=not is_numerical(domain), named=size if named else None, alone=alone)


def _of_pair(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the two positions of every value, and last of the null: the highest, then the lowest."""
    return np.column_stack([np.append(places, len(places)), np.append(places + 1, 0)])


def _ends(domain: Domain, ends: Ends, *, named: bool) -> Numbers:
    """Return the published begin, then the published end, of ranges at each code.

    They are in 2^-20ths of the domain.
    """
    line, size = number_line(domain), len(domain.values)
    assert line is not None
    numbers = line.of(domain.values)
    found = np.zeros((2, size if named else domain.size), np.int64)
    # Of one value nothing is lost, whatever the ends are.
    for side, (steps, open_end) in enumerate(((ends.low, 0), (ends.high, -1)) if size > 1 else ()):
        # An open end is where the domain ends.
        shown = line.of(pc.fill_null(steps, domain.values[open_end]))
        found[side, :size] = np.rint((shown[ends.steps] - numbers[0]) / (numbers[-1] - numbers[0]) * UNIT)
    # A range that reaches a null that cannot be named is all there is.
    found[1, size:] = found[1, :size].max(initial=0) + 2 * UNIT
    return found.ravel()


def _groups(label: LabelPrices) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Return the group of each code at every level that may be published, and each group's penalty."""
    hierarchy, levels = label.hierarchy, range(label.hierarchy.least, label.hierarchy.levels)
    groups = [hierarchy.groups[level].astype(np.int64) for level in levels]
    return groups, [group_penalties(hierarchy, label.domain, level) for level in levels]


def _prefixes(domain: Domain) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Return groups of codes with equal prefixes, longest prefix first, and each group's penalty."""
    words = np.array(as_text(domain.values).to_pylist(), np.str_)
    size, nulls = max(domain.size, 1), domain.size - len(words)
    groups, penalties = [], []
    for length in range(int(np.char.str_len(words).max(initial=0)), 0, -1):
        stems, numbers, counts = np.unique(words.astype(f"U{length}"), return_inverse=True, return_counts=True)
        groups.append(np.append(numbers, np.full(nulls, len(stems))).astype(np.int64))
        # A null begins like nothing else.
        penalties.append(np.append(np.where(counts > 1, counts / size, 0.0), 0.0))
    # Where nothing is common, * is published.
    return [*groups, np.zeros(domain.size, np.int64)], [*penalties, np.array([float(domain.size > 1)])]


def _by_levels(
    groups: Sequence[NDArray[np.int64]], penalties: Sequence[NDArray[np.float64]], *, counted: bool, named: int | None, alone: int = 0
) -> _Column:
    """Return a column of prices whose positions keep each group of every level together.

    Args:
        groups: By level, shape (codes,).
        penalties: By level, shape (groups,).
        counted: Whether values that are held are counted.
        named: How many codes are values, where labels name the null behind them.
        alone: The finest level at which one value stands beside the null.
    """
    groups = [level[:named] for level in groups]
    # The last key, which is the coarsest level, sorts first.
    order = np.lexsort(groups)
    size = len(order)
    places = np.empty(size, np.int64)
    places[order] = np.arange(size)
    runs = np.array([level[order] for level in groups])
    costs = np.array([np.rint(cost * UNIT)[run] for cost, run in zip(penalties, runs, strict=True)]).astype(np.int64)
    beside = costs[alone] if named is not None else np.empty(0, np.int64)
    # One value is published as it is, if that may be; for that a level is wanted that tells all values apart.
    if len(np.unique(runs[0])) < size:
        runs, costs = np.insert(runs, 0, np.arange(size), axis=0), np.insert(costs, 0, costs[0], axis=0)
    pair = places[:, None] if named is None else _of_pair(places)
    if size > MOST_IN_TABLE:
        return _Column(pair, LEVELS, len(runs), np.concatenate([runs.ravel(), costs.ravel(), beside]), size, counted)
    table = np.zeros((size, size), np.int64)
    for run, cost in zip(runs[::-1], costs[::-1], strict=True):
        table = np.where(run[:, None] == run, cost[:, None], table)
    return _Column(pair, TABLE, 0, np.append(table.ravel(), beside), size, counted)
