"""What classes of records publish: least and greatest value of numerical QIDs, lowest common ancestor of all others (papers/rayden.txt).

A class here is any set of records. What is published is no coarser than needed: the value itself where all records have the same one, and
``*`` where values and nulls meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.arrays import is_null
from core.columns.coding import Packing, single_word
from core.columns.domains import Domain
from core.columns.numbers import as_numbers, is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.spelling import as_text
from core.losses.losses import group_penalties
from core.recoding.ends import Ends, observed_ends
from core.recoding.kernels import count_distinct
from core.recoding.members import members
from core.recoding.recoding import Intervals, published_columns

STAR = "*"
Groups = Literal["hierarchy", "set"]


@dataclass(frozen=True)
class Style:
    """How classes are written.

    Attributes:
        intervals: ``text``, or ``bounds`` for two columns where the hierarchy has bounds.
        groups: Categorical QIDs by the lowest common ancestor of their values, or as the set of them, ``{a, b}``.
    """

    intervals: Intervals = "text"
    groups: Groups = "hierarchy"


@dataclass(frozen=True, eq=False)
class QidLabels:
    """What every class publishes for one QID.

    Attributes:
        columns: Published columns by name, each of length (classes,).
        numbers: Shape (classes,), int64, dense from 0: equal where two classes publish the same; ascending with the values of numerical
            QIDs and with the text of others.
        penalties: Shape (classes,): NCP of what is published, from 0 (one value) to 1 (the whole domain).
        covered: Shape (classes,): NCP as if the set of the class's own values were published: of numerical QIDs the same.
    """

    columns: dict[str, pa.Array]
    numbers: NDArray[np.int64]
    penalties: NDArray[np.float64]
    covered: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sets:
    """The records of each class, for one look at a QID after the other.

    Attributes:
        order: Shape (records in a class,), the records class by class.
        starts: Shape (classes,), where each begins.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, classes: NDArray[np.int32]) -> Sets:
        """Gathers the records of each class; negative ones are in none."""
        order, ends = members(classes)
        return cls(order, ends[:-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.diff(np.append(self.starts, len(self.order)))

    def extremes(self, values: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Returns the least and the greatest of a value per record in each class."""
        mine = values[self.order]
        # reduceat gives an empty range the value at its start; no class is empty.
        return np.minimum.reduceat(mine, self.starts), np.maximum.reduceat(mine, self.starts)

    def pairs(self, codes: NDArray[np.integer], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the different codes below ``size`` of each class, both ascending: the number of the class, and the code."""
        numbers = np.repeat(np.arange(len(self.starts)), self.sizes)
        pairs = np.unique(numbers * size + codes[self.order])
        return pairs // size, pairs % size

    def distinct(self, codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
        """Returns how many different codes below ``size`` each class holds, shape (classes,)."""
        counts: NDArray[np.int64] = count_distinct(codes, self.order, self.starts, size)
        return counts


def label_qid(
    codes: NDArray[np.integer],
    sets: Sets,
    domain: Domain,
    hierarchy: Hierarchy,
    style: Style,
    least: NDArray[np.int64] | None = None,
    ends: Ends | None = None,
) -> QidLabels:
    """Labels the classes for one QID.

    Args:
        codes: Shape (n,), the code of each record.
        sets: The records of each class.
        domain: Of the QID.
        hierarchy: Of the QID.
        style: How ranges and groups are written.
        least: Shape (classes,), the finest level that may be published for a categorical QID, -1 for any; any if left out.
        ends: Where ranges may end; at the values of the class if left out.
    """
    if is_numerical(domain) and not hierarchy.least:
        return ranges(codes, sets, domain, hierarchy, style.intervals, ends)
    if style.groups == "set" and not hierarchy.least:
        return value_sets(codes, sets, domain, hierarchy)
    return ancestors(codes, sets, domain, hierarchy, None if is_numerical(domain) else least)


def ranges(
    codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy, intervals: Intervals, ends: Ends | None = None
) -> QidLabels:
    """Labels classes of a numerical QID by the range of their values; arguments as for ``label_qid``.

    Where all records of a class have one value it is published as it is: as many people as k have it.
    """
    ends = ends or observed_ends(domain)
    low, high = (found.astype(np.int64) for found in sets.extremes(codes))
    null, values = len(domain.values), domain.values
    mixed, missing = (high == null) & (low < null), low == null
    # The null's code has a place too; what is found there is replaced.
    first, last = (np.append(ends.steps, 0)[np.where(missing | mixed, null, found)] for found in (low, high))
    shown, one = pa.array(first, mask=missing | mixed), pa.array(low, mask=missing | mixed)
    exact = pa.array(low == high)
    starts = pc.if_else(exact, values.take(one), ends.low.take(shown))
    stops = pc.if_else(exact, values.take(one), ends.high.take(pa.array(last, mask=missing | mixed)))
    starred = mixed | (is_null(starts) & is_null(stops) & ~missing)
    bounds = intervals == "bounds" and hierarchy.bounds[0] is not None
    columns = [starts, stops] if bounds else [pc.if_else(pa.array(starred), pa.scalar(STAR), _range_texts(starts, stops, exact))]
    held = np.where(mixed, 1.0, _spans(domain, low, high))
    if null:
        low, high = (np.where(low == high, own, step) for own, step in ((low, ends.firsts[first]), (high, ends.lasts[last])))
    # A number above every pair of codes: all classes of * publish the same, whatever they hold.
    pairs = np.where(starred & ~missing, (null + 1) * (null + 2), low * (null + 1) + high)
    penalties = np.where(starred, 1.0, np.where(low == high, 0.0, _reach(domain, starts, stops)))
    names = published_columns(hierarchy.qid, bounds)
    return QidLabels(dict(zip(names, columns, strict=True)), _dense(pairs), penalties, held)


def _range_texts(starts: pa.Array, stops: pa.Array, exact: pa.Array) -> pa.Array:
    """Writes ranges: ``[20 - 29]``, the value alone where it is ``exact``, and ``>= 20`` or ``<= 29`` where an end is open."""
    low, high = as_text(starts), as_text(stops)
    both = pc.if_else(exact, low, pc.binary_join_element_wise("[", low, " - ", high, "]", ""))
    above, below = pc.binary_join_element_wise(">= ", low, ""), pc.binary_join_element_wise("<= ", high, "")
    return pc.coalesce(both, above, below)


def _reach(domain: Domain, starts: pa.Array, stops: pa.Array) -> NDArray[np.float64]:
    """Returns the NCP of ranges, shape (classes,); an open end is where the domain ends."""
    numbers = as_numbers(domain.values)
    assert numbers is not None
    if len(numbers) < 2:
        return np.zeros(len(starts))
    low, high = (as_numbers(pc.fill_null(found, domain.values[at])) for found, at in ((starts, 0), (stops, -1)))
    assert low is not None
    assert high is not None
    reach: NDArray[np.float64] = (high - low) / (numbers[-1] - numbers[0])
    return reach


def _spans(domain: Domain, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    numbers = as_numbers(domain.values)
    assert numbers is not None
    if len(numbers) < 2:
        return np.zeros(len(low))
    # The null's code has a place too; what is worked out for it is replaced by the caller.
    padded = np.append(numbers, numbers[-1])
    spans: NDArray[np.float64] = (padded[high] - padded[low]) / (numbers[-1] - numbers[0])
    return np.where(low == high, 0.0, spans)


def ancestors(codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy, least: NDArray[np.int64] | None) -> QidLabels:
    """Labels classes by the lowest common ancestor of their values; arguments as for ``label_qid``."""
    found = np.maximum(common_levels(codes, sets, hierarchy), hierarchy.least)
    if least is not None:
        found = np.maximum(found, np.minimum(least, hierarchy.top))
    # All labels of all levels in a row, so that a class is a position in it.
    labels = pa.concat_arrays([level if pa.types.is_string(level.type) else as_text(level) for level in hierarchy.labels])
    offsets = np.cumsum([0, *(len(level) for level in hierarchy.labels)])
    penalties = np.concatenate([group_penalties(hierarchy, domain, level) for level in range(hierarchy.levels)])
    a_record = codes[sets.order[sets.starts]]
    places = offsets[found] + np.stack(hierarchy.groups)[found, a_record]
    texts = labels.take(pa.array(places))
    if is_numerical(domain):
        return QidLabels({hierarchy.qid: texts}, text_ranks(texts), penalties[places], penalties[places])
    distinct = sets.distinct(codes, domain.size)
    covered = np.where(distinct > 1, distinct / max(domain.size, 1), 0.0)
    return QidLabels({hierarchy.qid: texts}, text_ranks(texts), penalties[places], covered)


def value_sets(codes: NDArray[np.integer], sets: Sets, domain: Domain, hierarchy: Hierarchy) -> QidLabels:
    """Labels classes by the set of their values, ``{a, b}``; arguments as for ``label_qid``."""
    numbers, values = sets.pairs(codes, domain.size)
    distinct = np.bincount(numbers, minlength=len(sets.starts))
    low, high = sets.extremes(codes)
    null = len(domain.values)
    mixed, missing = (high == null) & (low < null), low == null
    words = as_text(domain.values).take(pa.array(np.where(values == null, 0, values), mask=values == null))
    listed = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(distinct)).astype(np.int32)), words)
    joined = pc.binary_join_element_wise("{", pc.binary_join(listed, ", "), "}", "")
    texts = pc.if_else(pa.array(distinct == 1), as_text(domain.values).take(pa.array(np.where(missing, 0, low), mask=missing)), joined)
    texts = pc.if_else(pa.array(mixed), pa.scalar(STAR), texts)
    covered = np.where(distinct > 1, np.where(mixed, 1.0, distinct / max(domain.size, 1)), 0.0)
    return QidLabels({hierarchy.qid: texts}, text_ranks(texts), covered, covered)


def held_penalties(codes: NDArray[np.integer], sets: Sets, domain: Domain) -> NDArray[np.float64]:
    """Returns NCP of a QID as if each class published the values that it holds, shape (classes,); arguments as for ``label_qid``."""
    if not is_numerical(domain):
        distinct = sets.distinct(codes, domain.size)
        return np.where(distinct > 1, distinct / max(domain.size, 1), 0.0)
    low, high = (ends.astype(np.int64) for ends in sets.extremes(codes))
    null = len(domain.values)
    return np.where((high == null) & (low < null), 1.0, _spans(domain, low, high))


def common_levels(codes: NDArray[np.integer], sets: Sets, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Returns the finest level at which all records of each class share a group: that of their lowest common ancestor.

    Args:
        codes: Shape (n,), the code of each record.
        sets: The records of each class.
        hierarchy: Of the QID.

    Returns:
        Shape (classes,).
    """
    levels = np.zeros(len(sets.starts), np.int64)
    for groups in hierarchy.groups[:-1]:
        low, high = sets.extremes(groups[codes])
        # Levels nest, so that groups that have met never part: the levels at which they differ are those below the common one.
        levels += low != high
    return levels


def text_ranks(texts: pa.Array) -> NDArray[np.int64]:
    """Returns the rank of each text among the different ones, a null last."""
    # Else a null is no entry and its index is null, which no array of ranks can be asked for.
    coded = texts.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    found: NDArray[np.int64] = ranks[coded.indices.to_numpy()]
    return found


def _dense(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return found


def same_labels(labels: Sequence[QidLabels]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Finds the classes that publish the same for all QIDs: readers see one class there.

    Returns:
        The number of each class among the different ones, in the order of what they publish, shape (classes,), and a class of each
        number, shape (different ones,).
    """
    packing = Packing(tuple(int(label.numbers.max(initial=0)) + 1 for label in labels))
    key = single_word(packing.pack([label.numbers for label in labels]))
    _, firsts, numbers = np.unique(key, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), firsts.astype(np.int64)
