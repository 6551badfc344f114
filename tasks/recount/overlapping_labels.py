"""Holds labels that overlap against the source: beside the other columns one by one, and all together in some classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.coverage import unmatched
from core.recount.sampled_classes import MOST, covered_sql, masks_sql, sample_faults, sample_sql
from core.recount.truth import beside_faults, released_counts_sql, source_counts_sql
from tasks.recount.published_labels import Labels
from tasks.recount.reading import fetched
from tasks.recount.sides import Sides
from tasks.store.database import quote

PARTS, MOST_COUNTS = 64, 1 << 20
"""By how many numbers of a digest records are looked at apart, where as many counts fit."""


def faults_beside(sides: Sides, one: Labels) -> list[str]:
    """Returns whether the labels of a quasi-identifier cover its values in the records with equal values in the other columns."""
    parts = PARTS
    # Fewer parts tell less, but the table of counts must not grow with the source.
    while parts * (len(one.source) + len(one.released) + one.spans.members) > MOST_COUNTS:
        parts //= 2
    if parts < 2 or not sides.names:
        return []
    found = _numbers(sides, released_counts_sql(sides.unmasked, one.columns, one.labels_table, parts, sides.beside))
    given = _numbers(sides, source_counts_sql(sides.source, quote(one.name), one.values_table, parts, sides.beside))
    released, source = np.zeros((parts, len(one.released)), np.int64), np.zeros((parts, len(one.source)), np.int64)
    released[found["part"], found["place"]] = found["records"]
    source[given["part"], one.order[given["place"]]] = given["records"]
    return beside_faults(one.name, unmatched(one.spans, released, source), sides.names)


def faults_of_sample(sides: Sides, labels: Sequence[Labels]) -> list[str]:
    """Returns whether the labels of some classes stand together as values of the source do.

    Args:
        sides: Release and source.
        labels: Of all quasi-identifiers.
    """
    # Each of the joins wants memory for every thread; afterwards there are as many as the job asked for.
    [(threads,)] = sides.connection.execute("SELECT current_setting('threads')").fetchall()
    sides.connection.execute("SET threads = 1")
    columns, tables = [one.columns for one in labels], [one.labels_table for one in labels]
    found = _numbers(sides, sample_sql(sides.unmasked, columns, tables, PARTS, sides.beside))
    numbers = np.stack([found[f"number_{number}"] for number in range(len(labels))], axis=1)
    sampled, of_class = np.unique(numbers, axis=0, return_inverse=True)
    sampled = sampled[:MOST]
    released, covered = np.zeros((MOST, PARTS), np.int64), np.zeros((MOST, PARTS), np.int64)
    taken = of_class < MOST
    released[of_class[taken], found["part"][taken]] = found["records"][taken]
    masks = [_masks(sides, one, sampled[:, number]) for number, one in enumerate(labels)]
    given = fetched(sides.connection, covered_sql(sides.source, [quote(one.name) for one in labels], masks, PARTS, sides.beside))
    sides.connection.execute(f"SET threads = {threads:d}")
    mask, part, records = (given[name].to_numpy() for name in ("mask", "part", "records"))
    for number in range(len(sampled)):
        here = (mask >> np.uint64(number)) & np.uint64(1) == 1
        # A part comes once for every mask that has the bit.
        np.add.at(covered[number], part[here], records[here])
    wrong = np.maximum(released - covered, 0).sum(axis=1)
    return sample_faults(int(wrong.sum()), int(np.count_nonzero(wrong)), len(sampled))


def _masks(sides: Sides, one: Labels, sampled: NDArray[np.int64]) -> str:
    """Makes the table of values with the bits of the classes whose label covers them; returns its name."""
    masks = np.zeros(len(one.source), np.uint64)
    for number, label in enumerate(sampled.tolist()):
        members = one.spans.sets.get(label, slice(one.spans.low[label], one.spans.high[label]))
        masks[members] |= np.uint64(1) << np.uint64(number)
    mine = masks[one.order]
    places = np.flatnonzero(mine)
    table = f"masks_{one.number}"
    sides.connection.register("place_masks", pa.table({"place": places, "mask": mine[places]}))
    sides.connection.execute(masks_sql("place_masks", one.values_table, table))
    sides.connection.unregister("place_masks")
    return table


def _numbers(sides: Sides, statement: str) -> dict[str, NDArray[np.int64]]:
    return {name: column.to_numpy().astype(np.int64) for name, column in fetched(sides.connection, statement).items()}
