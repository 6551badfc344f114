"""A partition of Mondrian replayed: the cuts of the earlier release, found again from its counts, applied to the cells of this source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.axes import axis_of
from core.mondrian.replay import leaves_of, places_of, replay_cells, together, tree_of
from core.recoding.recoding import recoding_tables
from schemas.errors.base import PrivacyError
from schemas.errors.methods import ReplayError
from schemas.job.job import Job
from tasks.counting.chunk_histograms import OF_CHUNK
from tasks.counting.coding import Coding, load_coding
from tasks.counting.domains import chunk_key
from tasks.counting.histograms import add_histograms, fingerprints, load_histogram
from tasks.counting.phases import Artifacts, count_histograms, count_sizes
from tasks.counting.phases import merge_histograms as merged_histogram
from tasks.counting.source_sizes import read_sizes
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.lattice.promises import asked, most_suppressed
from tasks.lattice.replay import replayed
from tasks.mondrian.cells import CUTS, cutting_of, in_fragments, write_plain
from tasks.publication.ledger import Entry, read_entry, settings_of
from tasks.records.recodings import LocalOutcome, read_local_outcome
from tasks.source.chunks import Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.writing.phases import rewrite, write_files

STEP = Step("replayed cuts", __name__)


def anonymise_replayed(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome]:
    """Applies the cuts of the release that the job replays.

    Returns:
        The files of the release, and what it cost.

    Raises:
        ReplayError: its cuts cannot be found again, or do not fit these data.
        PrivacyError: more records than the limit allows are in classes that fail.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: the folder is not a release.
        SkaldError: whatever a step raises.
    """
    job, store = run.job, run.store
    coding = load_coding(job, domain, store)
    if in_fragments(job, coding):
        raise ReplayError.in_fragments(replayed(job).release)
    with run.phase("histogram"):
        parts = count_histograms(run, source)
        histogram = merged_histogram(run, domain, coding.finest, parts)
        sizes = count_sizes(run, domain, coding.finest, histogram, parts)
    with run.phase("mondrian"):
        earlier, before = _earlier(job, store)
        assert earlier.recoded is not None
        read = histogram.sha256, sizes and sizes.sha256, earlier.recoded.domain.sha256, fingerprints(before)
        key = STEP.key(*read, *asked(job, coding))
        arguments = (job, domain, histogram, sizes, earlier.recoded.domain, before, key, store, run.spill)
        recoding = run_step(run, "cuts", recode_by_replayed_cuts, Call(key, "apply earlier cuts", arguments))
    with run.phase("rewrite"):
        files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
    return files, read_local_outcome(recoding, store)


def _earlier(job: Job, store: Store) -> tuple[Entry, Artifacts]:
    """Returns what is kept of the release that is replayed, and the histograms of its chunks."""
    release = replayed(job).release
    entry = read_entry(release, store)
    if entry is None or not entry.is_readable:
        raise ReplayError.not_kept(release)
    if entry.settings != settings_of(job):
        raise ReplayError.other_cuts(release)
    if entry.recoded is None:
        raise ReplayError.in_fragments(release)
    # Its cuts are made again, which another way of cutting would make otherwise.
    if not CUTS.made(entry.recoded.recoding.outcome.key):
        raise ReplayError.not_kept(release)
    found = [store.find(OF_CHUNK, chunk_key(job, chunk)) for chunk in entry.chunks]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found) or not store.whole(entry.recoded.domain):
        raise ReplayError.not_kept(release)
    return entry, parts


def recode_by_replayed_cuts(
    job: Job,
    domain: Artifact,
    histogram: Artifact,
    sizes: Artifact | None,
    old_domain: Artifact,
    old_parts: Sequence[Artifact],
    key: Key,
    store: Store,
    spill: Path,
) -> RecodingArtifacts:
    """Cuts the cells of the earlier release again, leads those of this source through the same cuts, and makes their recoding.

    Args:
        job: The job.
        domain: The domain table.
        histogram: The cells at full resolution.
        sizes: How many of them there are by their records.
        old_domain: The domain table of the earlier release.
        old_parts: The histograms of its chunks.
        key: Of all that.
        store: Gets the recoding.
        spill: Folder for what does not fit into memory.

    Raises:
        PrivacyError: more records than the limit allows are in classes that fail.
        SkaldError: whatever is wrong with job, source, store or release, in one sentence.
    """
    kept = {step: store.find(step, key) for step in ("outcome", "cells", "classes")}
    if None not in kept.values():
        return RecodingArtifacts.model_validate(kept)
    old = load_coding(job, old_domain, store)
    old_cells = load_histogram(add_histograms(job, old_domain, old.finest, old_parts, store, spill), old, old.finest, store)
    old_cutting = cutting_of(job, old)
    tree = tree_of(old_cutting, old_cells.codes, old_cells.counts)
    coding = load_coding(job, domain, store)
    cells = load_histogram(histogram, coding, coding.finest, store)
    made = replay_cells(cutting_of(job, coding), cells, leaves_of(tree, cells.codes, _places(job, old, coding)), job.suppression.treatment)
    most = most_suppressed(job, coding.records)
    if made.suppressed > most:
        raise PrivacyError.replay_fails(replayed(job).release, made.suppressed, coding.records, most)
    search = {"partitions": made.partitions, "cells": cells.cells, "fragments": 1, "failing": made.failing}
    outcome = LocalOutcome(
        suppressed=made.suppressed,
        masked=made.masked,
        loss=dict(made.loss),
        ncp=dict(made.penalties),
        search=search,
        before=read_sizes(sizes, store),
    )
    recoded, classes = recoding_tables(made.recoding)
    return RecodingArtifacts(
        outcome=store.make("outcome", key, ".json", lambda path: path.write_text(outcome.model_dump_json())),
        cells=store.make("cells", key, ".parquet", lambda path: write_plain(path, recoded)),
        classes=store.make("classes", key, ".parquet", lambda path: write_plain(path, classes)),
    )


def _places(job: Job, old: Coding, coding: Coding) -> list[NDArray[np.int64]]:
    """Returns where the values of each QID stand in the order in which the earlier release was cut."""
    places = []
    qids = job.columns.quasi_identifiers
    for qid, before, hierarchy, now in zip(qids, old.domains, old.hierarchies, coding.domains, strict=True):
        if before.values.type != now.values.type:
            raise ReplayError.levels_differ(replayed(job).release, [qid.name])
        both = together(before, now)
        axis = axis_of(qid, both, build_hierarchy(qid, both, job.folder), job.folder)
        places.append(places_of(before, axis_of(qid, before, hierarchy, job.folder), now, both, axis))
    return places
