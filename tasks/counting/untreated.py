"""Phase that inspects untreated columns, before anything else of the source is counted."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.refusals import PassthroughError, PolicyError
from schemas.job.columns import REST, Columns
from schemas.job.policy import banned_faults
from schemas.release.figures import PassedColumn, Passthrough
from tasks.counting.untreated_figures import FIGURES, VALUES, ColumnInspection, FigureReading, ValueReading, read_figures
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, run_for_item, run_for_items
from tasks.source.chunks import ChunkedSource

OWN = 4
"""How often a value of a text occurs on average, at most, where a dictionary costs more than it saves."""


def check_published(run: Run, source: ChunkedSource) -> None:
    """Raise ``PolicyError`` if the release would publish columns that the policy forbids.

    The columns of ``insensitive: rest`` are known by now.
    """
    policy = run.policy
    if policy and (faults := banned_faults(policy, source.payload)):
        raise PolicyError.below(run.job.name, policy.path, faults)


def measure_untreated_columns(run: Run, source: ChunkedSource) -> tuple[dict[str, PassedColumn], ChunkedSource]:
    """Return untreated columns' figures and the source with text lengths; raise for identifying columns.

    Returns:
        Figures by column, in the order of the release; and the source with the lengths of its texts.
    """
    columns = run.job.columns
    untreated = [name for name in source.payload if name not in source.treatments]
    person = columns.person[0] if len(columns.person) == 1 else None
    names = [*untreated, *([person] if untreated and person is not None and person not in untreated else [])]
    if not untreated:
        return {}, source

    figures = inspect_columns(run, source, names, person=person)
    found = {name: figures.columns[name] for name in untreated}
    if refused := refused_columns(columns, found):
        raise PassthroughError.identifying_columns(refused)
    # Of all records, published or not, so that the files of a release are cut alike whatever is suppressed.
    lengths = {name: -(-figures.bytes[name] // source.records) for name in untreated}
    own = tuple(name for name in untreated if lengths[name] and OWN * found[name].distinct >= found[name].values)
    return found, source.model_copy(update={"text_bytes": lengths, "own_texts": own})


def refused_columns(columns: Columns, found: Passthrough) -> dict[str, tuple[str, ...]]:
    """Return by name the reasons of identifying columns under ``insensitive: rest``; else empty."""
    if columns.insensitive != REST:
        return {}
    return {name: one.reasons for name, one in found.items() if one.reasons and name not in columns.sensitive}


def inspect_columns(
    run: Run, source: ChunkedSource, names: Sequence[str], *, person: str | None = None, people: int | None = None
) -> ColumnInspection:
    """Return figures of columns: values counted over the complete source, patterns found in a sample.

    Args:
        names: The columns.
        person: The column among them that tells persons apart.
        people: How many persons there are, if no column tells.
    """
    parts = run_for_items(run, VALUES, ValueReading(source.columns, tuple(names), run.store), source.chunks)
    elsewhere = count_remote_workers() > 0
    given = FigureReading(run.job.with_task_memory() if elsewhere else run.job, tuple(names), person, run.store, people)
    return read_figures(run_for_item(run, FIGURES, given, parts, "look at columns", elsewhere=elsewhere), run.store)
