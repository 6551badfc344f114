"""What a run of several tables would publish, by the choice of its method."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.reading.model import FrozenModel
from tasks.relational.contents import PersonRows
from tasks.relational.making.chosen_classes import choose_classes, level_tables_of_table
from tasks.relational.making.levels import NodeCosts, TablesOutcome
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.withholding import choose_levels
from tasks.relational.making.writing import ReleasedTables


class ExpectedTable(FrozenModel):
    """What a run would publish of one table.

    Attributes:
        released: Rows that would be published.
        withheld: Rows that would not, though their persons are.
        bounded: How many of these are beyond ``rows: {most: n}``, with what hangs from them.
        suppressed: Rows of persons who would be left out.
        levels: By quasi-identifier; null where rows have levels of their own.
        loss: Mean certainty penalty of a value, 1 for one that is not published; null without quasi-identifiers.
    """

    released: int
    withheld: int
    bounded: int
    suppressed: int
    levels: dict[str, int | None]
    loss: float | None


class ExpectedTables(FrozenModel):
    """What a run would publish.

    Attributes:
        left_out: Persons who would be left out.
        loss: Mean certainty penalty of a value, over all tables.
        tables: By name.
    """

    left_out: int
    loss: float
    tables: dict[str, ExpectedTable]


def choose_release(given: HistoryTables, release: str) -> tuple[TablesOutcome, ReleasedTables]:
    """Run the job's method; return the outcome and the tables to release."""
    if given.job.is_local:
        chosen = choose_classes(given)
        return chosen.outcome, ReleasedTables.of(given, (), chosen.published, release, chosen.matched)
    outcome, published = choose_levels(given)
    return outcome, ReleasedTables.of(given, outcome.node, published, release, {})


def expected_tables(given: HistoryTables, release: str) -> ExpectedTables:
    """Return what a run would publish. Its choice is kept, so that the run does not make it again.

    Args:
        given: The tables.
        release: The id that the release would have.
    """
    released, lost, values = choose_release(given, release)[1], 0.0, 0
    people, published = PersonRows(released), np.zeros(given.persons + 1, np.bool_)
    published[released.persons_kept()] = True
    gone, found = people.withheld(), {}
    for name in given.job.tables:
        # Rows of nobody look at the last place, which is nobody's.
        whose = np.concatenate([np.zeros(0, np.int64), *(batch.whose for batch in people.rows_of(name, []))])
        kept, rows, qids = published[whose], int((whose >= 0).sum()), len(given.tables[name].qids)
        out = kept & ~gone[name]
        here = float(_penalties(released, name)[out].sum()) + qids * (rows - int(out.sum()))
        found[name] = ExpectedTable(
            released=int(out.sum()),
            withheld=int((kept & ~out).sum()),
            bounded=people.count_beyond_bounds(name, kept),
            suppressed=rows - int(kept.sum()),
            levels=released.published_levels(name),
            loss=here / (rows * qids) if rows * qids else None,
        )
        lost, values = lost + here, values + rows * qids
    return ExpectedTables(left_out=given.persons - int(published.sum()), loss=lost / max(values, 1), tables=found)


def _penalties(released: ReleasedTables, table: str) -> NDArray[np.float64]:
    """Return the sum of the penalties of each row's values, as they would be published, shape (rows,)."""
    numbers, total = released.numbers(table), np.zeros(released.tables[table].rows)
    if released.node:
        of_nodes = NodeCosts(released).penalties
        for axis in released.axes_of([table]):
            total += of_nodes[axis][released.node[axis]][numbers[3 + released.lattice_axes[axis].place]]
        return total
    ladders = level_tables_of_table(released, table)
    matched = pq.read_table(released.store.path(released.matched[table]))
    for place in range(len(numbers) - 3):
        level = matched[f"level_{place}"].to_numpy().astype(np.int64)
        total += ladders.penalties[ladders.starts[place] + level * ladders.sizes[place] + numbers[3 + place]]
    return total
