"""A partition of Mondrian replayed: the cuts of the earlier release, found again from its counts, applied to the cells of this source."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.axes import axis_of
from core.mondrian.fragments import Tree
from core.mondrian.replay import leaves_of, places_of, replay_cells, together, tree_of
from core.recoding.recoding import recoding_tables
from schemas.errors.base import PrivacyError
from schemas.errors.methods import ReplayError
from schemas.job.job import Job
from tasks.composition.ledger import Entry, read_entry, settings_of
from tasks.counting.chunk_histograms import OF_CHUNK
from tasks.counting.chunk_people import OF_PERSONS, pairs_key
from tasks.counting.coding import Coding, load_coding
from tasks.counting.domains import chunk_key
from tasks.counting.histograms import add_histograms, fingerprints, load_histogram
from tasks.counting.phases import Artifacts, count_histograms, count_pairs, count_sizes
from tasks.counting.phases import merge_histograms as merged_histogram
from tasks.counting.source_sizes import read_sizes
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.lattice.promises import asked, most_suppressed
from tasks.lattice.replay import replayed
from tasks.mondrian.cells import (
    CUTS,
    cutting_by,
    cutting_of,
    in_fragments,
    method_of,
    order_of,
    orders_learnt,
    rows_of_cells,
    write_plain,
)
from tasks.records.outcomes import LocalOutcome, read_local_outcome
from tasks.source.chunks import Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.writing.people import KeptPeople
from tasks.writing.phases import people_kept, rewrite, write_files

STEP = Step("replayed cuts", __name__)


class CountedChunks(NamedTuple):
    """What was counted of the chunks of a release: their histograms, and pairs of person and cell, none where no person is named."""

    parts: Artifacts
    pairs: Artifacts


def anonymise_replayed(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome, KeptPeople]:
    """Applies the cuts of the release that the job replays.

    Returns:
        The files of the release, what it cost, and who is in which class.

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
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = merged_histogram(run, domain, coding.finest, parts)
        sizes = count_sizes(run, domain, coding.finest, histogram, parts, pairs)
    with run.phase("mondrian"):
        earlier, before = _earlier(job, source, store)
        assert earlier.recoded is not None
        read = histogram.sha256, sizes and sizes.sha256, earlier.recoded.domain.sha256, fingerprints(before.parts)
        key = STEP.key(*read, fingerprints(pairs), fingerprints(before.pairs), *asked(job, coding))
        arguments = (job, domain, histogram, sizes, CountedChunks(parts, pairs), earlier.recoded.domain, before, key, store, run.spill)
        recoding = run_step(run, "cuts", recode_by_replayed_cuts, Call(key, "apply earlier cuts", arguments))
    with run.phase("rewrite"):
        files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
        people = people_kept(run, source, domain, recoding)
    return files, read_local_outcome(recoding, store), people


def _earlier(job: Job, source: Source, store: Store) -> tuple[Entry, CountedChunks]:
    """Returns what is kept of the release that is replayed, and what was counted of its chunks."""
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
    if job.columns.person:
        found += [store.find(OF_PERSONS, pairs_key(job, source.columns, chunk)) for chunk in entry.chunks]
    kept = [part for part in found if part is not None]
    if len(kept) < len(found) or not store.whole(entry.recoded.domain):
        raise ReplayError.not_kept(release)
    return entry, CountedChunks(kept[: len(entry.chunks)], kept[len(entry.chunks) :])


def recode_by_replayed_cuts(
    job: Job,
    domain: Artifact,
    histogram: Artifact,
    sizes: Artifact | None,
    counted: CountedChunks,
    old_domain: Artifact,
    old: CountedChunks,
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
        counted: What was counted of its chunks.
        old_domain: The domain table of the earlier release.
        old: What was counted of its chunks.
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
    before, tree = _tree(job, old_domain, old, store, spill)
    coding = load_coding(job, domain, store)
    cells = load_histogram(histogram, coding, coding.finest, store)
    rows = rows_of_cells(job, coding, cells, *counted, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    leaves = leaves_of(tree, cells.codes, _places(job, before, coding))
    made = replay_cells(cutting, cells, leaves, job.suppression.treatment, rows.unit)
    most = most_suppressed(job, coding.records)
    if made.suppressed > most:
        raise PrivacyError.replay_fails(replayed(job).release, made.suppressed, coding.records, most)
    search = {"partitions": made.partitions, "cells": cells.cells, "fragments": 1, "failing": made.failing} | orders_learnt(job, before)
    outcome = LocalOutcome(
        suppressed=made.suppressed,
        masked=made.masked,
        loss=dict(made.loss),
        ncp=dict(made.penalties),
        search=search,
        before=read_sizes(sizes, store),
        people=rows.unit.figures(),
    )
    recoded, classes = recoding_tables(made.recoding)
    return RecodingArtifacts(
        outcome=store.make("outcome", key, ".json", lambda path: path.write_text(outcome.model_dump_json())),
        cells=store.make("cells", key, ".parquet", lambda path: write_plain(path, recoded)),
        classes=store.make("classes", key, ".parquet", lambda path: write_plain(path, classes)),
    )


def _tree(job: Job, domain: Artifact, counted: CountedChunks, store: Store, spill: Path) -> tuple[Coding, Tree]:
    """Returns the coding and the cuts of the earlier release, made again from what was counted of its chunks."""
    coding = load_coding(job, domain, store)
    cells = load_histogram(add_histograms(job, domain, coding.finest, counted.parts, store, spill), coding, coding.finest, store)
    rows = rows_of_cells(job, coding, cells, *counted, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    return coding, tree_of(cutting, rows)


def _places(job: Job, old: Coding, coding: Coding) -> list[NDArray[np.int64]]:
    """Returns where the values of each QID stand in the order in which the earlier release was cut."""
    places, order = [], order_of(method_of(job))
    qids = job.columns.quasi_identifiers
    for qid, before, hierarchy, now in zip(qids, old.domains, old.hierarchies, coding.domains, strict=True):
        if before.values.type != now.values.type:
            raise ReplayError.levels_differ(replayed(job).release, [qid.name])
        both = together(before, now)
        axis = axis_of(qid, both, build_hierarchy(qid, both, job.folder), job.folder, order)
        places.append(places_of(before, axis_of(qid, before, hierarchy, job.folder, order), now, both, axis))
    return places
