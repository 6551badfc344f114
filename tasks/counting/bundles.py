"""Counts of chunks merged as a tree on the workers of a cluster, so that the flow merges a few tables, however many chunks there are.

Sums of counts are the same whoever adds what first, so the result and its key are those of all parts merged in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from core.columns.node import Node
from core.histograms.domain_counts import add_up
from schemas.job.job import Job
from schemas.tables import chunk_domain_types
from tasks.counting.chunk_histograms import OF_CHUNK
from tasks.counting.coding import Coding, load_coding
from tasks.counting.domains import axis_types, value_columns
from tasks.counting.histograms import bundle_histograms, fingerprints
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, workers_elsewhere
from tasks.source.chunks import Source
from tasks.store.domain_tables import write_domains
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table

STEP = Step("bundles", __name__)
FAN = 8
"""How many tables a task merges, and how many are left to the flow at most."""


def bundled_domains(run: Run, source: Source, parts: Sequence[Artifact]) -> Sequence[Artifact]:
    """Merges the domain tables of chunks until there are few; those that are there where no cluster would do it.

    Raises:
        SkaldError: whatever a step raises.
    """
    return bundled(run, "bundle domains", add_domains, parts, domains_key, run.job, source.columns, run.store)


def bundled_histograms(run: Run, domain: Artifact, coding: Coding, root: Node, parts: Sequence[Artifact]) -> Sequence[Artifact]:
    """Merges the histograms of chunks at a root until there are few; those that are there where no cluster would do it.

    Args:
        run: The run.
        domain: The domain table.
        coding: That is made of it.
        root: The root.
        parts: Histograms at the finest node.

    Raises:
        SkaldError: whatever a step raises.
    """

    def key(bundle: Sequence[Artifact]) -> Key:
        return STEP.key(coding.key, root, fingerprints(bundle))

    return bundled(run, "bundle histograms", add_at_root, parts, key, run.job, domain, root, run.store, raw=OF_CHUNK)


def bundled(
    run: Run,
    phase: str,
    function: Callable[..., Artifact],
    parts: Sequence[Artifact],
    key: Callable[[Sequence[Artifact]], Key],
    *given: object,
    raw: str | None = None,
) -> Sequence[Artifact]:
    """Merges tables of chunks until there are few; those that are there where no cluster would do it.

    Args:
        run: The run.
        phase: Names the step.
        function: Called as ``function(*given, key, bundle)``; merges some tables into one.
        parts: The tables, of chunks or bundles.
        key: Returns the key of a bundle.
        *given: What every call gets.
        raw: The step of tables that are merged however few there are, because they hold what the flow does not read.

    Raises:
        SkaldError: whatever a step raises.
    """
    while workers_elsewhere() and (len(parts) > FAN or (raw and parts and parts[0].step == raw)):
        bundles = [parts[first : first + FAN] for first in range(0, len(parts), FAN)]
        calls = [
            Call(key(bundle), f"{phase} {number} of {len(bundles)}", (*given, key(bundle), bundle), elsewhere=True)
            for number, bundle in enumerate(bundles, start=1)
        ]
        parts = map_step(run, phase, function, calls)
    return parts


def domains_key(parts: Sequence[Artifact]) -> Key:
    """Returns the key of domain tables that are merged."""
    return STEP.key([part.sha256 for part in parts])


def add_domains(job: Job, columns: pa.Schema, store: Store, key: Key, parts: Sequence[Artifact]) -> Artifact:
    """Sums domain tables into one of the same form.

    Raises:
        StorageError: a table is not what its step promises.
    """
    types = axis_types(job, columns)
    promised = chunk_domain_types(value_columns(job), types)

    def write(path: Path) -> int:
        counter = add_up((read_table(store, part) for part in parts), types)
        return write_domains(path, counter.blocks(), promised, "bundles")

    return store.make("bundles", key, ".parquet", write)


def add_at_root(job: Job, domain: Artifact, root: Node, store: Store, key: Key, parts: Sequence[Artifact]) -> Artifact:
    """Sums histograms, of chunks at the finest node or all of a root, into one of the root.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: a table is not what its step promises.
        HierarchyError: a hierarchy does not nest, does not cover the domain, or does not fit its type.
    """
    task = job.in_task()
    return bundle_histograms(task, load_coding(task, domain, store), root, parts, store, key)
