"""Choice of a release of several tables: one level per column, or classes with their own labels."""

from __future__ import annotations

from tasks.relational.making.chosen_classes import choose_classes
from tasks.relational.making.levels import TablesOutcome
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.withholding import choose_levels
from tasks.relational.making.writing import ReleasedTables


def choose_release(given: HistoryTables, release: str) -> tuple[TablesOutcome, ReleasedTables]:
    """Run the job's method; return the outcome and the tables to release.

    Args:
        given: The tables.
        release: The id of the release.
    """
    if given.job.is_local:
        chosen = choose_classes(given)
        return chosen.outcome, ReleasedTables.of(given, (), chosen.published, release, chosen.matched)
    outcome, published = choose_levels(given)
    return outcome, ReleasedTables.of(given, outcome.node, published, release, {})
