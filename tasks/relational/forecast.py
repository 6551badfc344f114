"""What a run of several tables would publish, counted before anything is written."""

from __future__ import annotations

from schemas.reading.model import FrozenModel
from tasks.relational.contents import PersonRows
from tasks.relational.making.chosen_release import choose_release, penalties_of_rows
from tasks.relational.making.profiles import HistoryTables


class ExpectedTable(FrozenModel):
    """Rows that a run would publish, withhold or suppress of one table, with levels and loss.

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
    """Persons that a run would leave out, its loss, and the expected figures of each table.

    Attributes:
        left_out: Persons who would be left out.
        loss: Mean certainty penalty of a value, over all tables.
        tables: By name.
    """

    left_out: int
    loss: float
    tables: dict[str, ExpectedTable]


def expected_tables(given: HistoryTables, release: str) -> ExpectedTables:
    """Choose a release and return its expected figures by table; the choice is stored for the run.

    Args:
        given: The tables.
        release: The id that the release would have.
    """
    released, lost, values = choose_release(given, release)[1], 0.0, 0
    people = PersonRows(released)
    published, gone, found = people.published, people.withheld(), {}
    for name in given.job.tables:
        whose = people.persons_of_rows(name)
        kept, rows, qids = published[whose], int((whose >= 0).sum()), len(given.tables[name].qids)
        out = kept & ~gone[name]
        here = float(penalties_of_rows(released, name)[out].sum()) + qids * (rows - int(out.sum()))
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
