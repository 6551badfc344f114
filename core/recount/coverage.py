"""Lower bounds of the released records whose labels cover no source record, from cumulated counts.

A release is true if each of its records can be matched with a source record of its own: the labels cover that record's values, and the
other columns are equal. That is a matching of intervals. The conditions checked here are necessary for it, and quick to check on
cumulated counts. Records are split into parts by a digest of what they publish besides the labels, so that a label next to the wrong
value is noticed too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.recount.labels.label_spans import Spans

Counts = NDArray[np.int64]
BLOCK = 1 << 14
"""Rows that are looked at together, so that a byte for each of them and each label takes little room."""


def unmatched_records(spans: Spans, released: Counts, source: Counts) -> int:
    """Return a lower bound of the released records whose labels cover no unused record of the source.

    Args:
        spans: The positions that each label covers.
        released: Shape (parts, labels): records with each label.
        source: Shape (parts, positions): records with each value, those with a null at the last position.
    """
    # Of ten million values each array beside this one would be as long: what follows is done in place.
    before = np.zeros((len(source), source.shape[1] + 1), np.int64)
    source.cumsum(axis=1, out=before[:, 1:])
    covered = before[:, spans.high] - before[:, spans.low]
    covered[:, spans.nulls] += source[:, -1:]
    for label, members in spans.sets.items():
        covered[:, label] = source[:, members].sum(axis=1)
    lacking = np.maximum(released - covered, 0).sum(axis=1)
    looks = [_up_to(spans, released, before), _from(spans, released, before)]
    # What ends before a value and what begins after it says all about the labels that leave it out, but for sets and labels with nulls.
    looks += [_left_over(spans, released, source)] if spans.sets or len(spans.nulls) else []
    return int(np.maximum.reduce([lacking, *looks]).sum())


def _summed(places: Counts, counts: Counts, size: int) -> Counts:
    """Sum the record counts of labels by position; return shape (parts, size)."""
    sums = np.zeros((size, len(counts)), np.int64)
    # sums[places] += would count a place that comes twice once.
    np.add.at(sums, places, counts.T)
    return sums.T


def _up_to(spans: Spans, released: Counts, before: Counts) -> Counts:
    """Return the largest excess of records whose labels end at or before one position, shape (parts,)."""
    ended = _summed(spans.ends, released, before.shape[1])
    ended.cumsum(axis=1, out=ended)
    ended -= before
    return _most(ended)


def _from(spans: Spans, released: Counts, before: Counts) -> Counts:
    """Return the largest excess of records whose labels begin at or after one position, shape (parts,)."""
    begun = _summed(spans.low, released, before.shape[1])
    from_here = begun[:, ::-1]
    from_here.cumsum(axis=1, out=from_here)
    begun += before
    begun -= before[:, -1:]
    return _most(begun)


def _left_over(spans: Spans, released: Counts, source: Counts) -> Counts:
    """Return the excess source records of one value that no label covers, shape (parts,).

    More of them than there are missing records is an excess.
    """
    size = source.shape[1]
    is_range = np.ones(len(spans.low), np.bool_)
    is_range[list(spans.sets)] = False
    low, high, ranged = spans.low[is_range], spans.high[is_range], released[:, is_range]
    covering = (_summed(low, ranged, size + 1) - _summed(high, ranged, size + 1)).cumsum(axis=1)[:, :size]
    for label, members in spans.sets.items():
        covering[:, members] += released[:, label, None]
    covering[:, -1] += released[:, spans.nulls].sum(axis=1)
    missing = source.sum(axis=1, keepdims=True) - released.sum(axis=1, keepdims=True)
    return _most(source - missing - covering)


def count_covered_rows(spans: Sequence[Spans], labels: Counts, positions: Counts, weights: Counts) -> Counts:
    """Count the population rows whose values the labels of each class cover in all columns.

    Args:
        spans: The positions that the labels of each column cover.
        labels: Shape (classes, columns): the label of each class.
        positions: Shape (rows, columns): the position of each row's value.
        weights: Shape (rows,): how often each row is there.

    Returns:
        Shape (classes,).
    """
    fitting = np.zeros(len(labels), np.int64)
    for first in range(0, len(positions), BLOCK):
        mine, heavy = positions[first : first + BLOCK], weights[first : first + BLOCK]
        covered = [_bits(one, mine[:, column]) for column, one in enumerate(spans)]
        for number, row in enumerate(labels):
            inside = covered[0][row[0]]
            for bits, label in zip(covered[1:], row[1:], strict=True):
                inside = inside & bits[label]
            fitting[number] += int(heavy[np.unpackbits(inside, count=len(mine)).view(np.bool_)].sum())
    return fitting


def _bits(spans: Spans, places: Counts) -> NDArray[np.uint8]:
    """Return a bit mask of the rows that each label covers, eight rows to a byte."""
    inside = (places >= spans.low[:, None]) & (places < spans.high[:, None])
    for label, members in spans.sets.items():
        inside[label] = np.isin(places, members)
    inside[spans.nulls] |= places == spans.null
    return np.packbits(inside, axis=1)


def _most(excess: Counts) -> Counts:
    """Return the greatest excess of each part, at least 0, shape (parts,)."""
    most: Counts = np.maximum(excess.max(axis=1), 0)
    return most
