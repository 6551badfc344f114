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
    from tasks.relational.making.writing import ReleasedTables


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
    below: dict[str, dict[str, dict[str, Digests]]] = {table: {} for table in given.job.tree.tables}
    whole: dict[str, list[Digests]] = {kind: [] for kind in ARRANGEMENTS}
    for table in reversed(given.job.tree.tables):
        columns = {kind: _columns(rows, table, names) for kind, names in ((ARRANGED_VALUES, by.shown), (ARRANGED_LABELS, by.labels))}
        columns[ARRANGED] = columns[ARRANGED_LABELS] + columns[ARRANGED_VALUES]
        children, chain = below.pop(table), given.chain(table)
        if chain and not columns[ARRANGED] and not children:
            continue
        for parent in chain:
            below[parent][table] = {kind: np.zeros(given.tables[parent].rows, np.uint64) for kind in ARRANGEMENTS}
        for batch in rows.rows_of(table, columns[ARRANGED], published=True):
            known = dict(zip(columns[ARRANGED], batch.digests, strict=True))
            these = slice(batch.first, batch.first + len(batch.whose))
            hanging = [_hanging(given, table, depth, these, withheld[table]) for depth in range(len(chain))]
            for kind in ARRANGEMENTS:
                digests = row_digests([known[column] for column in columns[kind]], len(batch.whose))
                for child in sorted(children):
                    combine(digests, children[child][kind][these])
                if not chain:
                    whole[kind].append(digests)
                for parent, (mine, above) in zip(chain, hanging, strict=True):
                    np.add.at(below[parent][table][kind], above, digests[mine])
    return {kind: np.concatenate(digests) for kind, digests in whole.items()}


def _hanging(
    given: ReleasedTables, table: str, depth: int, rows: slice, withheld: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return which published rows of a batch reference the table at a depth of the chain, and the rows there."""
    depths, above = given.numbers(table)[:2]
    mine = np.flatnonzero((depths[rows] == depth) & ~withheld[rows])
    return mine, above[rows][mine]


def _columns(rows: PersonRows, table: str, names: Sequence[str]) -> list[str]:
    """Return those columns of a table that are called so in the job joined by person, in the order of these names."""
    found = [rows.columns[name] for name in sorted(names)]
    return [one.column for one in found if one.table == table]
