"""Holds labels that overlap against the source: beside the other columns one by one, and all together in some classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.coverage import unmatched
from core.recount.sampled_classes import MOST, covered_sql, masked_sql, masks_sql, numbers_sql, sample_faults, sample_sql
from core.recount.truth import beside_faults, part_of, released_counts_sql, source_counts_sql
from tasks.recount.published_labels import Labels
from tasks.recount.reading import fetched
from tasks.recount.sides import Sides
from tasks.store.database import quote

PARTS, MOST_COUNTS = 64, 1 << 20
"""By how many numbers of a digest records are looked at apart, where as many counts fit."""
JOINS = 16
"""Quasi-identifiers that one statement looks up: each join wants memory for every thread, and there may be hundreds of them."""


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
    sides.connection.execute(sample_sql(sides.unmasked, [one.columns for one in labels], PARTS, sides.beside, "sampled"))
    of_labels = [fetched(sides.connection, numbers_sql("sampled", *_named(one))) for one in labels]
    numbers = np.stack([found["number"].to_numpy() for found in of_labels], axis=1).astype(np.int64)
    sampled, of_class = np.unique(numbers, axis=0, return_inverse=True)
    sampled, found = sampled[:MOST], _numbers(sides, "SELECT part, records FROM sampled ORDER BY row")
    released, covered = np.zeros((MOST, PARTS), np.int64), np.zeros((MOST, PARTS), np.int64)
    taken = of_class < MOST
    np.add.at(released, (of_class[taken], found["part"][taken]), found["records"][taken])
    given = fetched(sides.connection, covered_sql(_covered(sides, labels, sampled)))
    sides.connection.execute(f"SET threads = {threads:d}")
    mask, part, records = (given[name].to_numpy() for name in ("mask", "part", "records"))
    for number in range(len(sampled)):
        here = (mask >> np.uint64(number)) & np.uint64(1) == 1
        # A part comes once for every mask that has the bit.
        np.add.at(covered[number], part[here], records[here])
    wrong = np.maximum(released - covered, 0).sum(axis=1)
    return sample_faults(int(wrong.sum()), int(np.count_nonzero(wrong)), len(sampled))


def _named(one: Labels) -> tuple[int, int, str]:
    return one.number, len(one.columns), one.labels_table


def _covered(sides: Sides, labels: Sequence[Labels], sampled: NDArray[np.int64]) -> str:
    """Makes the table of the source's records with the bits of the classes that cover them, some columns at a time; returns its name."""
    masks = [_masks(sides, one, sampled[:, number]) for number, one in enumerate(labels)]
    columns, source = [quote(one.name) for one in labels], sides.source
    known = [part_of([one.source for one in sides.beside], PARTS)]
    for first in range(0, len(labels), JOINS):
        here, later = columns[:JOINS], columns[JOINS:]
        table = f"covered_{first}"
        sides.connection.execute(masked_sql(source, here, masks[first : first + JOINS], known, later, table))
        if first:
            sides.connection.execute(f"DROP TABLE {source}")
        columns, source, known = [f"later_{number}" for number in range(len(later))], table, ["s.part", "s.mask"]
    return source


def _masks(sides: Sides, one: Labels, sampled: NDArray[np.int64]) -> str:
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


def _numbers(sides: Sides, statement: str) -> dict[str, NDArray[np.int64]]:
    return {name: column.to_numpy().astype(np.int64) for name, column in fetched(sides.connection, statement).items()}
