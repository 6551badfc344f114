"""Holds labels that overlap against the source: beside the other columns one by one, and all together in some classes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.coverage import unmatched
from core.recount.groups import Groups
from core.recount.sampled_classes import (
    MOST,
    covered_groups,
    least_digests,
    masked_sql,
    masks_sql,
    numbers_sql,
    sample_faults,
    sample_groups,
    sample_sql,
)
from core.recount.truth import label_combination_faults, part_of, released_parts, released_parts_sql, source_parts, source_parts_sql
from tasks.recount.original import fetched
from tasks.recount.published_labels import PublishedLabels
from tasks.recount.release_and_source import ReleaseAndSource
from tasks.store.database import quote

PARTS, MOST_COUNTS = 64, 1 << 20
"""By how many numbers of a digest records are looked at apart, where as many counts fit."""
JOINS = 16
"""Quasi-identifiers that one statement looks up: each join wants memory for every thread, and there may be hundreds of them."""


def label_overlap_faults(sides: ReleaseAndSource, some: Sequence[PublishedLabels]) -> list[str]:
    """Returns whether labels of quasi-identifiers cover their values in the records with equal values in the other columns."""
    looked = [(one, parts) for one in some if (parts := _parts_of(one)) >= 2 and sides.names]
    sides.rows.expect("release", [_released(sides, one, parts) for one, parts in looked])
    sides.rows.expect("source", [_valued(sides, one, parts) for one, parts in looked])
    return [fault for one, parts in looked for fault in _faults_beside(sides, one, parts)]


def _parts_of(one: PublishedLabels) -> int:
    parts = PARTS
    # Fewer parts tell less, but the table of counts must not grow with the source.
    while parts * (len(one.source) + len(one.released) + one.spans.members) > MOST_COUNTS:
        parts //= 2
    return parts


def _released(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> Groups:
    return released_parts(sides.unmasked, one.columns, parts, sides.untreated_parts)


def _valued(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> Groups:
    return source_parts(sides.source, quote(one.name), parts, sides.untreated_parts)


def _faults_beside(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> list[str]:
    labelled = sides.rows.grouped("release", _released(sides, one, parts))
    found = _numbers(sides, released_parts_sql(labelled, len(one.columns), one.labels_table))
    valued = sides.rows.grouped("source", _valued(sides, one, parts))
    given = _numbers(sides, source_parts_sql(valued, one.values_table))
    released, source = np.zeros((parts, len(one.released)), np.int64), np.zeros((parts, len(one.source)), np.int64)
    released[found["part"], found["place"]] = found["records"]
    source[given["part"], one.order[given["place"]]] = given["records"]
    return label_combination_faults(one.name, unmatched(one.spans, released, source), sides.names)


def faults_of_sample(sides: ReleaseAndSource, labels: Sequence[PublishedLabels]) -> tuple[list[str], int]:
    """Returns whether the labels of some classes stand together as values of the source do, and how many classes these are.

    Args:
        sides: Release and source.
        labels: Of all quasi-identifiers.
    """
    columns, rows, drawn = [one.columns for one in labels], sides.rows, drawn_number()
    [(most,)] = sides.connection.execute(
        f"SELECT coalesce(max(digest), 0) FROM {rows.grouped('release', least_digests(sides.unmasked, columns, drawn))}"
    ).fetchall()
    sample = sample_groups(sides.unmasked, columns, PARTS, sides.untreated_parts, most, drawn)
    sides.connection.execute(sample_sql(rows.grouped("release", sample), "sampled"))
    of_labels = [fetched(sides.connection, numbers_sql("sampled", *_named(one))) for one in labels]
    numbers = np.stack([found["number"].to_numpy() for found in of_labels], axis=1).astype(np.int64)
    sampled, of_class = np.unique(numbers, axis=0, return_inverse=True)
    sampled, found = sampled[:MOST], _numbers(sides, "SELECT part, records FROM sampled ORDER BY row")
    released, covered = np.zeros((MOST, PARTS), np.int64), np.zeros((MOST, PARTS), np.int64)
    taken = of_class < MOST
    np.add.at(released, (of_class[taken], found["part"][taken]), found["records"][taken])
    given = fetched(sides.connection, f"FROM {rows.grouped('source', _covered(sides, labels, sampled))}")
    mask, part, records = (given[name].to_numpy() for name in ("mask", "part", "records"))
    for number in range(len(sampled)):
        here = (mask >> np.uint64(number)) & np.uint64(1) == 1
        # A part comes once for every mask that has the bit.
        np.add.at(covered[number], part[here], records[here])
    wrong = np.maximum(released - covered, 0).sum(axis=1)
    return sample_faults(int(wrong.sum()), int(np.count_nonzero(wrong)), len(sampled)), len(sampled)


def drawn_number() -> int:
    """Returns the number by which a recount chooses classes: one for all its parts, and another for the next recount."""
    return secrets.randbits(64)


def _named(one: PublishedLabels) -> tuple[int, int, str]:
    return one.number, len(one.columns), one.labels_table


def _covered(sides: ReleaseAndSource, labels: Sequence[PublishedLabels], sampled: NDArray[np.int64]) -> Groups:
    """Returns how the source's records are counted by the bits of the classes that cover them, looked up some columns at a time."""
    masks = [_masks(sides, one, sampled[:, number]) for number, one in enumerate(labels)]
    columns, source = [quote(one.name) for one in labels], sides.source
    known, before = [part_of([one.source for one in sides.untreated_parts], PARTS)], []
    for first in range(0, len(labels), JOINS):
        here, later = columns[:JOINS], columns[JOINS:]
        table = f"covered_{first}"
        before.append(masked_sql(source, here, masks[first : first + JOINS], known, later, table))
        before += [f"DROP TABLE {source}"] if first else []
        columns, source, known = [f"later_{number}" for number in range(len(later))], table, ["s.part", "s.mask"]
    # Each of the joins wants memory for every thread.
    return replace(covered_groups(source), tables=tuple(masks), before=tuple(before), alone=True)


def _masks(sides: ReleaseAndSource, one: PublishedLabels, sampled: NDArray[np.int64]) -> str:
    """Makes the table of values with the bits of the classes whose label covers them; returns its name."""
    masks = np.zeros(len(one.source), np.uint64)
    for number, label in enumerate(sampled.tolist()):
        masks[one.spans.covered(label)] |= np.uint64(1) << np.uint64(number)
    mine = masks[one.order]
    places = np.flatnonzero(mine)
    table = f"masks_{one.number}"
    sides.connection.register("place_masks", pa.table({"place": places, "mask": mine[places]}))
    sides.connection.execute(masks_sql("place_masks", one.values_table, table))
    sides.connection.unregister("place_masks")
    return table


def _numbers(sides: ReleaseAndSource, statement: str) -> dict[str, NDArray[np.int64]]:
    return {name: column.to_numpy().astype(np.int64) for name, column in fetched(sides.connection, statement).items()}
