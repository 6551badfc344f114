"""The choice of what is published of several tables, by the job's method, and what it costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.relational.making.chosen_classes import choose_classes, penalties_of_aligned_rows
from tasks.relational.making.levels import NodeCosts, TablesOutcome
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.withholding import choose_levels
from tasks.relational.making.writing import ReleasedTables


def choose_release(given: HistoryTables, release: str) -> tuple[TablesOutcome, ReleasedTables]:
    """Run the job's method, by levels or by classes; return the outcome and the tables to release."""
    if given.job.is_local:
        chosen = choose_classes(given)
        return chosen.outcome, ReleasedTables.of(given, (), chosen.published, release, chosen.matched)
    outcome, published = choose_levels(given)
    return outcome, ReleasedTables.of(given, outcome.node, published, release, {})


def penalties_of_rows(released: ReleasedTables, table: str) -> NDArray[np.float64]:
    """Return the summed penalties of each row's values at their published levels, shape (rows,)."""
    if not released.node:
        return penalties_of_aligned_rows(released, table, released.matched[table])
    numbers, total = released.numbers(table), np.zeros(released.tables[table].rows)
    of_nodes = NodeCosts(released).penalties
    for axis in released.axes_of([table]):
        total += of_nodes[axis][released.node[axis]][numbers[3 + released.lattice_axes[axis].place]]
    return total
