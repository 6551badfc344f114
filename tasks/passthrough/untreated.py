"""The phase that looks at what a release would publish untreated, before anything else of the source is counted."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.passthrough import PassthroughError
from schemas.errors.policy import PolicyError
from schemas.job.columns import REST
from schemas.policy.policy import banned_faults
from schemas.release.passthrough import PassedColumn
from tasks.engine.runs import Run
from tasks.engine.steps import each, one, workers_elsewhere
from tasks.passthrough.chunks import VALUES, ValueReading
from tasks.passthrough.figures import FIGURES, CountedValues, FigureReading, read_figures
from tasks.passthrough.shares import sum_in_shares
from tasks.source.chunks import Source
from tasks.store.store import Artifact

FEW = 8
"""Chunks whose values one task of a cluster sums up."""
OWN = 4
"""How often a value of a text occurs on average, at most, where a dictionary costs more than it saves."""


def check_published(run: Run, source: Source) -> None:
    """Refuses a release of columns that the policy never lets out; what ``insensitive: rest`` takes in is known from here on.

    Raises:
        PolicyError: there are such columns.
    """
    policy = run.policy
    if policy and (faults := banned_faults(policy, source.payload)):
        raise PolicyError.below(run.job.name, policy.path, faults)


def look_through(run: Run, source: Source) -> tuple[dict[str, PassedColumn], Source]:
    """Measures every column that is published as it is, and looks at what its values are.

    Returns:
        Figures by column, in the order of the release; and the source, which knows how long its texts are.

    Raises:
        PassthroughError: ``insensitive: rest`` would take in a column that may tell who people are.
        SkaldError: whatever a step raises.
    """
    columns = run.job.columns
    untreated = untreated_columns(run, source)
    person = columns.person[0] if len(columns.person) == 1 else None
    names = [*untreated, *([person] if untreated and person is not None and person not in untreated else [])]
    if not untreated:
        return {}, source

    parts = each(run, VALUES, ValueReading(source.columns, tuple(names), run.store), source.chunks)
    figures = read_figures(_figures(run, names, person, parts), run.store)
    found = {name: figures.columns[name] for name in untreated}
    if columns.insensitive == REST:
        refused = {name: one.reasons for name, one in found.items() if one.reasons and name not in columns.sensitive}
        if refused:
            raise PassthroughError.not_of_the_rest(refused)
    # Of all records, published or not, so that the files of a release are cut alike whatever is suppressed.
    lengths = {name: -(-figures.bytes[name] // source.records) for name in untreated}
    own = tuple(name for name in untreated if lengths[name] and OWN * found[name].distinct >= found[name].values)
    return found, source.model_copy(update={"text_bytes": lengths, "own_texts": own})


def _figures(run: Run, names: Sequence[str], person: str | None, parts: Sequence[Artifact]) -> Artifact:
    """Adds the values of all chunks up; on a cluster tasks do it, and the flow gets the figures."""
    elsewhere, values = workers_elsewhere() > 0, CountedValues(parts)
    given = FigureReading(run.job.in_task() if elsewhere else run.job, tuple(names), person, run.store, run.spill)
    if elsewhere and len(parts) > FEW and FIGURES.find(given, values) is None:
        values = CountedValues(parts, sum_in_shares(run, len(names), parts))
    return one(run, FIGURES, given, values, "look at columns", elsewhere=elsewhere)


def untreated_columns(run: Run, source: Source) -> list[str]:
    """Returns the columns that are published as they are in the source, in the order of the release."""
    return [name for name in source.payload if name not in source.treatments]
