"""Replay of a Mondrian partition: the cuts of an earlier release applied to the cells of this source.

The cuts are rebuilt from the earlier release's counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.fragments import CutTree
from core.mondrian.ranks import axis_of
from core.mondrian.replay import leaves_of, ranks_of_new_values, replay_cells, tree_of, union_of_domains
from schemas.errors.base import PrivacyError
from schemas.errors.methods import ReplayError
from schemas.job.job import Job
from tasks.composition.release_history import Entry, read_entry, settings_of
from tasks.counting.chunk_histograms import HISTOGRAMS, PAIRS, count_histograms, count_pairs
from tasks.counting.coding import Coding, DomainTable, load_coding
from tasks.counting.domains import ChunkReading
from tasks.counting.histograms import HISTOGRAM, RootTable, fingerprints, load_histogram
from tasks.counting.source_sizes import count_sizes, merge_histograms, read_sizes
from tasks.engine.runs import Run
from tasks.engine.steps import Merge, run_for_item
from tasks.lattice.kept_recodings import (
    OF_CELLS,
    LocalOutcome,
    RecodingArtifacts,
    read_recoding_artifacts,
    write_recoding_of_cells,
)
from tasks.lattice.promises import class_settings, most_suppressed
from tasks.lattice.replay import replayed_manifest
from tasks.mondrian.cells import (
    CUTS,
    CutCells,
    cutting_by,
    cutting_of,
    in_fragments,
    method_of,
    order_of,
    orders_learnt,
    rows_of_cells,
)
from tasks.source.chunks import ChunkedSource
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.writing.cells import rewrite_cells
from tasks.writing.people import WrittenPersons


class CountedChunks(NamedTuple):
    """Histograms of a release's chunks, and their person–cell pairs, empty without a person column."""

    parts: Sequence[Artifact]
    pairs: Sequence[Artifact]


def anonymise_replayed(run: Run, source: ChunkedSource, domain: Artifact) -> tuple[Sequence[Artifact], LocalOutcome, WrittenPersons]:
    """Anonymise a source by a replayed release's cuts; return files, outcome and persons of classes.

    Returns:
        The files of the release, its losses, and the persons of its classes.
    """
    job, store = run.job, run.store
    coding = load_coding(job, domain, store)
    if in_fragments(job, coding):
        raise ReplayError.in_fragments(replayed_manifest(job).release)
    with run.phase("histogram"):
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = merge_histograms(run, domain, coding.finest, parts)
        sizes = count_sizes(run, domain, coding.finest, histogram, parts, pairs)
    with run.phase("mondrian"):
        earlier, before = _earlier(job, source, store)
        assert earlier.recoded is not None
        cells = ReplayedCells(CutCells(histogram, sizes, parts, pairs), earlier.recoded.domain, before)
        recoding = run_for_item(run, REPLAYED, DomainTable.of(run, domain), cells, "apply earlier cuts")
    with run.phase("rewrite"):
        files, people = rewrite_cells(run, source, domain, recoding)
    return files, store.read_model(recoding.outcome, LocalOutcome), people


def _earlier(job: Job, source: ChunkedSource, store: Store) -> tuple[Entry, CountedChunks]:
    """Return the history entry of the replayed release and the stored counts of its chunks."""
    release = replayed_manifest(job).release
    entry = read_entry(release, store)
    if entry is None or not entry.is_readable:
        raise ReplayError.without_counts(release)
    if entry.settings != settings_of(job):
        raise ReplayError.other_cuts(release)
    if entry.recoded is None:
        raise ReplayError.in_fragments(release)
    # Its cuts are made again, which another way of cutting would make otherwise.
    if not CUTS.keys.made_by_this_code(entry.recoded.recoding.outcome.key):
        raise ReplayError.without_counts(release)
    reading = ChunkReading(job, source.columns, store)
    found = [HISTOGRAMS.find_by(reading, chunk) for chunk in entry.chunks]
    if job.columns.person:
        found += [PAIRS.find_by(reading, chunk) for chunk in entry.chunks]
    kept = [part for part in found if part is not None]
    if len(kept) < len(found) or not store.is_complete(entry.recoded.domain):
        raise ReplayError.without_counts(release)
    return entry, CountedChunks(kept[: len(entry.chunks)], kept[len(entry.chunks) :])


class ReplayedCells(NamedTuple):
    """The cells of this source, and the counts of the earlier release.

    Attributes:
        domain: The domain table of the earlier release.
    """

    now: CutCells
    domain: Artifact
    before: CountedChunks


def _recode(given: DomainTable, cells: ReplayedCells) -> RecodingArtifacts:
    """Rebuild the earlier cuts, apply them to the cells of this source, and make their recoding."""
    job, store, key, now = given.job, given.store, REPLAYED.key(given, cells), cells.now
    if kept := read_recoding_artifacts(store, key, OF_CELLS):
        return kept
    before, tree = _tree(replace(given, domain=cells.domain), cells.before)
    coding = load_coding(job, given.domain, store)
    counted = load_histogram(now.histogram, coding, coding.finest, store)
    rows = rows_of_cells(job, coding, counted, now.parts, now.pairs, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    leaves = leaves_of(tree, counted.codes, _places(job, before, coding))
    made = replay_cells(cutting, counted, leaves, job.suppression.treatment, rows.unit)
    most = most_suppressed(job, coding.records)
    if made.suppressed > most:
        raise PrivacyError.replay_fails(replayed_manifest(job).release, made.suppressed, coding.records, most)
    search = {"partitions": made.partitions, "cells": counted.cells, "fragments": 1, "failing": made.failing} | orders_learnt(job, before)
    outcome = LocalOutcome(
        suppressed=made.suppressed,
        masked=made.masked,
        loss=dict(made.loss),
        ncp=dict(made.penalties),
        search=search,
        before=read_sizes(now.sizes, store),
        people=rows.unit.figures(),
    )
    return write_recoding_of_cells(store, key, made.recoding, outcome)


REPLAYED = FilesStep(
    "replayed cuts",
    make=_recode,
    reads=lambda _given, cells: [
        *cells.now.inputs,
        cells.domain.sha256,
        fingerprints(cells.before.parts),
        fingerprints(cells.before.pairs),
    ],
    settings=lambda given: class_settings(given.job, given.coding),
    phase="cuts",
)
"""The cuts of an earlier release applied to the cells of this source, and the recoding by them."""


def _tree(table: DomainTable, counted: CountedChunks) -> tuple[Coding, CutTree]:
    """Rebuild the coding and the cut tree of the earlier release from the counts of its chunks."""
    job, store, coding = table.job, table.store, table.coding
    cells = load_histogram(HISTOGRAM.result(RootTable.at(table, coding.finest), Merge(counted.parts)), coding, coding.finest, store)
    rows = rows_of_cells(job, coding, cells, *counted, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    return coding, tree_of(cutting, rows)


def _places(job: Job, old: Coding, coding: Coding) -> list[NDArray[np.int64]]:
    """Return the rank of each value of this source in the earlier release's order, per QID."""
    places, order = [], order_of(method_of(job))
    qids = job.columns.quasi_identifiers
    for qid, before, hierarchy, now in zip(qids, old.domains, old.hierarchies, coding.domains, strict=True):
        if before.values.type != now.values.type:
            raise ReplayError.levels_differ(replayed_manifest(job).release, [qid.name])
        both = union_of_domains(before, now)
        axis = axis_of(qid, both, build_hierarchy(qid, both, job.folder), job.folder, order)
        places.append(ranks_of_new_values(before, axis_of(qid, before, hierarchy, job.folder, order), now, both, axis))
    return places
