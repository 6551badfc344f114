"""Digests of how the published values of a person stand together over tables, kept for comparisons and never published.

Whose values are all the same may still publish another history: where two visits exchange their nights, or a condition is another
visit's. Whoever has both releases finds one history gone and one that is new, as if a value had changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.composition.contents import row_digests
from core.composition.joint_classes import ARRANGED, ARRANGED_LABELS, ARRANGED_VALUES, ARRANGEMENTS
from core.units.digests import Digests, combine
from tasks.counting.contents import Digested

if TYPE_CHECKING:
    from tasks.relational.contents import PersonRows


def arrangements(rows: PersonRows, by: Digested, withheld: Mapping[str, NDArray[np.bool_]]) -> dict[str, Digests]:
    """Return three digests of each person's rows as they hang together, by kind, each of shape (persons,).

    It is right because the digest of a row is made of its own values and of the sums of those below it, table by table, and a sum is a
    multiset's whatever the order of rows. Rows that are not published do not count.

    Args:
        rows: The persons.
        by: The columns: ``shown`` of published values, and ``labels`` of quasi-identifiers.
        withheld: Which rows of each table are not published, shape (rows,).
    """
    given = rows.given
    below = dict[str, dict[str, dict[str, Digests]]]()
    for table in reversed(given.job.tree.tables):
        columns = {kind: _columns(rows, table, names) for kind, names in ((ARRANGED_VALUES, by.shown), (ARRANGED_LABELS, by.labels))}
        columns[ARRANGED] = columns[ARRANGED_LABELS] + columns[ARRANGED_VALUES]
        read = list(dict.fromkeys(columns[ARRANGED]))
        mine = below.pop(table, {})
        if not read and not mine and given.chain(table):
            continue
        parts: dict[str, list[Digests]] = {kind: [] for kind in ARRANGEMENTS}
        for batch in rows.rows_of(table, read, published=True):
            known = dict(zip(read, batch.digests, strict=True))
            for kind in ARRANGEMENTS:
                parts[kind].append(row_digests([known[column] for column in columns[kind]], len(batch.whose)))
        made = {kind: np.concatenate(digests) if digests else np.empty(0, np.uint64) for kind, digests in parts.items()}
        for child in sorted(mine):
            for kind in ARRANGEMENTS:
                combine(made[kind], mine[child][kind])
        chain = given.chain(table)
        if not chain:
            return made
        depths, above = given.numbers(table)[:2]
        for depth, parent in enumerate(chain):
            hanging = np.flatnonzero((depths == depth) & ~withheld[table])
            sums = {kind: np.zeros(given.tables[parent].rows, np.uint64) for kind in ARRANGEMENTS}
            for kind in ARRANGEMENTS:
                np.add.at(sums[kind], above[hanging], made[kind][hanging])
            below.setdefault(parent, {})[table] = sums
    raise AssertionError("the unit's table comes first")


def _columns(rows: PersonRows, table: str, names: Sequence[str]) -> list[str]:
    """Return those columns of a table that are called so in the job joined by person, in the order of these names."""
    found = [rows.columns[name] for name in sorted(names)]
    return [one.column for one in found if one.table == table]
