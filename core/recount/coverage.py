"""Checks of a release against its source where labels overlap: bounds and samples of classes.

Each quasi-identifier by itself says nothing of a label in combination with the record's other labels. Where labels are disjoint, digests
of whole records decide that. Where they overlap, a value may have any of several labels. Then the source records under all labels of a
class are counted for a few classes instead; each class is one bit of a mask that every value has. The classes are chosen by a digest of
their labels and of a number drawn for each recount, so that neither the order of the records nor the writer of the files can influence
the choice. A fault in a class outside the sample is not found, which is why a recount reports how many classes it checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.recount.groups import Groups
from core.recount.labels.label_spans import Spans
from core.recount.truth import DigestPart, part_number_sql
from schemas.errors.base import counted

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
    """Count population rows whose values the labels of each class cover in all columns, shape (classes,).

    Args:
        spans: The positions that the labels of each column cover.
        labels: Shape (classes, columns): the label of each class.
        positions: Shape (rows, columns): the position of each row's value.
        weights: Shape (rows,): how often each row is there.
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


MOST = 64
"""Classes that are looked at: the bits of a mask."""


def least_digests(release: str, columns: Sequence[Sequence[str]], salt: int) -> Groups:
    """Return the GROUP BY query that finds the ``MOST`` least digests of class labels: column ``digest``.

    Args:
        columns: By quasi-identifier, the quoted names of the columns under which it is published.
        salt: The number of this recount, from 0 to 2⁶⁴ - 1.
    """
    return Groups(f"{release} AS r", ((_digest(columns, salt), "digest"),), (), first=MOST)


def sample_groups(
    release: str, columns: Sequence[Sequence[str]], part_count: int, other_columns: Sequence[DigestPart], greatest_digest: int, salt: int
) -> Groups:
    """Return the GROUP BY query that counts the records of the sampled classes by labels and part.

    Its columns are ``label_0_0`` … (the columns of each quasi-identifier), ``part``, ``records``. A part is a group of records by what is
    published besides the labels. Two classes of the same digest are taken both or neither, so there may be one class more.

    Args:
        columns: By quasi-identifier, the quoted names of the columns under which it is published.
        salt: The number that the digests were made with.
    """
    names = [(f"r.{column}", f"label_{qid}_{number}") for qid, those in enumerate(columns) for number, column in enumerate(those)]
    part = part_number_sql([one.released for one in other_columns], part_count)
    return Groups(f"{release} AS r WHERE {_digest(columns, salt)} <= {greatest_digest:d}", (*names, (part, "part")))


def _digest(columns: Sequence[Sequence[str]], drawn: int) -> str:
    # The number first and the whole once more: digests that differ by a constant are in nobody's order but that of the labels.
    return f"hash(hash({drawn:d}::UBIGINT, {', '.join(f'r.{column}' for those in columns for column in those)}))"


def numbers_sql(sampled: str, qid: int, label_column_count: int, label_table: str) -> str:
    """Return SQL that yields one quasi-identifier's label ``number`` of each row of a sample, in order.

    One statement for each: a join wants memory of its own, and there may be hundreds of quasi-identifiers.

    Args:
        sampled: The sampled classes' rows, counted and numbered.
        qid: Position of the quasi-identifier.
        label_column_count: How many columns it is published under.
        label_table: The table of its labels, as ``numbered_sql`` makes it.
    """
    same = " AND ".join(f"g.label_{qid}_{number} IS NOT DISTINCT FROM l.label_{number}" for number in range(label_column_count))
    return f"SELECT l.number FROM {sampled} AS g JOIN {label_table} AS l ON {same} ORDER BY g.number"


def masks_sql(mask_table: str, value_table: str, table: str) -> str:
    """Return SQL that makes a table of source values with a bit for each sampled class that covers them.

    Values that no sampled class covers are left out.

    Args:
        mask_table: The table ``place``, ``mask``.
        value_table: As ``values_sql`` makes it.
    """
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT v.value, m.mask FROM {mask_table} AS m JOIN {value_table} AS v USING (place)"


def candidate_records_sql(
    source: str, columns: Sequence[str], masks: Sequence[str], part_and_mask: Sequence[str], later_columns: Sequence[str], table: str
) -> str:
    """Return SQL that makes a table of the source records whose looked-up values fit a sampled class.

    Only the given quasi-identifiers are looked at; others may follow.

    Args:
        columns: Quoted names of these quasi-identifiers.
        masks: The table of the masks of each, as ``masks_sql`` makes it.
        part_and_mask: Expressions for a record's part and, if other quasi-identifiers were looked at before, for the mask that they left.
        later_columns: Quoted names of the quasi-identifiers that are looked at after these; they become ``later_0`` ….
    """
    part, *before = part_and_mask
    joins = " ".join(f"JOIN {one} ON s.{column} IS NOT DISTINCT FROM {one}.value" for column, one in zip(columns, masks, strict=True))
    kept = "".join(f", s.{column} AS later_{number}" for number, column in enumerate(later_columns))
    mask = " & ".join([*before, *(f"{one}.mask" for one in masks)])
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT * FROM (SELECT {mask} AS mask, {part} AS part{kept} FROM {source} AS s {joins}) WHERE mask <> 0
    """


def sample_faults(unmatched_records: int, faulty_classes: int, sampled_classes: int) -> list[str]:
    """Return a message if sampled classes hold records that the source cannot have."""
    if not unmatched_records:
        return []
    where = f"in {faulty_classes:,} of the {sampled_classes:,} classes that were looked at"
    return [f"at least {counted(unmatched_records, 'record')} {where} with labels that together cover too few records of the source"]
