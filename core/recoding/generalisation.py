"""Labels of classes by ancestor, prefix, set or interval (papers/distributed-mondrian.txt, 5)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.recoding.classes import QidLabels, Sets, text_ranks
from core.recoding.ends import Ends
from core.recoding.labels import (
    SUPPRESSED_VALUE,
    can_name_nulls,
    label_by_ancestor,
    label_by_range,
    label_by_set,
    labels_with_null,
    penalties_with_null,
)
from core.recoding.recoding import Intervals
from schemas.job.record_methods import Generalisation


def generalise(
    way: Generalisation | None,
    codes: NDArray[np.integer],
    sets: Sets,
    domain: Domain,
    hierarchy: Hierarchy,
    intervals: Intervals,
    ends: Ends | None = None,
) -> QidLabels:
    """Label classes for one QID by its way of generalisation; raise ValueError if no interval is possible.

    A single value is published as it is. A class with values and nulls is published as a set.

    Args:
        way: Left out, numbers and dates become intervals and all else goes by its hierarchy, as does what may not be published exactly.
        codes: Shape (n,), the code of each row.
        sets: The rows of each class.
        intervals: ``text``, or ``bounds`` for two columns where the hierarchy has bounds.
        ends: Where intervals may end; at the values of the class if left out.
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
            return label_by_ancestor(codes, sets, domain, hierarchy, None)


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
