"""The flows of Mondrian: on all cells, by the cuts of an earlier release, or fragment by fragment.

Earlier cuts are rebuilt from the earlier release's counts, and applied to the cells of this source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.fragments import CutTree, Group, tree_of
from core.mondrian.ranks import axis_of
from core.mondrian.replay import leaves_of, ranks_of_new_values, replay_cells, union_of_domains
from schemas.errors.base import PrivacyError
from schemas.errors.methods import FragmentsError, ReplayError
from schemas.job.job import Job
from tasks.composition.release_history import Entry, read_entry, settings_of
from tasks.counting.chunk_counts import HISTOGRAMS, PAIRS, ChunkReading, count_histograms, count_pairs
from tasks.counting.coding import CellCoder, Coding, DomainTable, load_coding
from tasks.counting.histograms import HISTOGRAM, RootTable, fingerprints, load_histogram
from tasks.counting.source_sizes import count_sizes, merge_histograms, read_sizes, summed_sizes
from tasks.engine.calls import Call
from tasks.engine.progress import release_memory
from tasks.engine.runs import Run
from tasks.engine.steps import (
    Merge,
    count_remote_workers,
    remote_takes_all_chunks,
    run_for_each_item,
    run_for_item,
    run_for_items,
    run_step,
)
from tasks.lattice.kept_recodings import (
    OF_CELLS,
    RecodingArtifacts,
    read_recoding_artifacts,
    write_recoding_of_cells,
)
from tasks.lattice.optimum import replayed_manifest
from tasks.lattice.promises import class_settings, most_suppressed
from tasks.mondrian import fragments
from tasks.mondrian.cells import (
    CUTS,
    CutCells,
    FragmentLosses,
    bytes_of_people,
    bytes_of_rows,
    cutting_by,
    cutting_of,
    in_fragments,
    method_of,
    order_of,
    orders_learnt,
    outcome_of,
    rows_of_cells,
    works_on_cells,
)
from tasks.mondrian.fragments import PARTED, SAMPLES, FragmentCuts, Parted, PartReading, SampleReading
from tasks.mondrian.leaf_statistics import MERGED, LeafStatistics, merge_leaves
from tasks.mondrian.workers import FRAGMENT, FragmentReading, FragmentShare
from tasks.records.outcomes import LocalOutcome
from tasks.source.chunks import ChunkedSource
from tasks.source.published_columns import shared_columns
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table
from tasks.writing.cells import rewrite_cells
from tasks.writing.people import KeptRecords, WrittenPersons

ATTEMPTS = 4


def anonymise_cells(run: Run, source: ChunkedSource, domain: Artifact) -> tuple[list[Artifact], LocalOutcome, WrittenPersons]:
    """Cut all cells of a source at once, or as a replayed release did; return files, outcome and persons.

    Returns:
        The files of the release, its losses, and the persons of its classes.
    """
    job, table = run.job, DomainTable.of(run, domain)
    if job.replay is not None and in_fragments(job, table.coding):
        raise ReplayError.in_fragments(replayed_manifest(job).release)
    with run.phase("histogram"):
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = merge_histograms(run, domain, table.coding.finest, parts)
        cells = CutCells(histogram, count_sizes(run, domain, table.coding.finest, histogram, parts, pairs), parts, pairs)
    with run.phase("mondrian"):
        if job.replay is not None:
            earlier, before = _earlier(job, source, run.store)
            assert earlier.recoded is not None
            recoding = run_for_item(run, REPLAYED, table, ReplayedCells(cells, earlier.recoded.domain, before), "apply earlier cuts")
        else:
            # Whose the cells are is as much as there are records.
            recoding = run_for_item(run, CUTS, table, cells, "cut cells", elsewhere=bool(pairs) and remote_takes_all_chunks(run))
    with run.phase("rewrite"):
        files, people = rewrite_cells(run, source, domain, recoding)
    return files, run.store.read_model(recoding.outcome, LocalOutcome), people


def anonymise_fragments(run: Run, source: ChunkedSource, domain: Artifact) -> tuple[list[Artifact], LocalOutcome, WrittenPersons]:
    """Anonymise a source by fragments; set ``run.members``; return files, outcome and persons of classes.

    Returns:
        The files of the release, fragment after fragment, the sum of the fragments' losses, and the persons of the classes.
    """
    job, store, table = run.job, run.store, DomainTable.of(run, domain)
    if shared_columns(job):
        raise FragmentsError.of_shared_values(job.method.name)
    with run.phase("fragments"):
        made = _fragments(run, source, table)
    with run.phase(job.method.name):
        given, shares = FragmentReading(job, domain, store, run.spill, source), list(map(FragmentShare, made.groups, made.batches_of_runs))
        done = run_for_each_item(run, FRAGMENT, given, shares, "fragment", min(run.workers, made.at_a_time))
    # The recount has memory of its own; what fragments took is given back first.
    release_memory()
    losses = [store.read_model(fragment.losses, FragmentLosses) for fragment in done]
    figures = {"fragments": len(made.groups), "merged": made.leaves - len(made.groups), "sampled": made.sampled}
    outcome = outcome_of(job, table.coding, losses, figures, summed_sizes([part.before for part in losses]), made.people)
    run.members = [KeptRecords(files=(), members=fragment.members) for fragment in done]
    people = WrittenPersons(tuple(part.people for part in done if part.people), tuple(part.classes for part in done if part.classes))
    return [file for fragment in done for file in fragment.files], outcome, people


class FragmentBatches(NamedTuple):
    """The leaves and run batches of each fragment, and how many fragments fit the memory at a time.

    ``leaves`` counts all leaves and ``sampled`` the sampled records. ``people`` are the persons of the source, and the records of the one
    who has most; None where the job has no person column.
    """

    groups: list[Group]
    batches_of_runs: list[list[list[Artifact]]]
    at_a_time: int
    leaves: int
    sampled: int
    people: tuple[int, int] | None


def _fragments(run: Run, source: ChunkedSource, table: DomainTable) -> FragmentBatches:
    """Divide all records into fragments by cuts from a sample; retry with finer cuts if one is too large."""
    coding = table.coding
    most = fragments.most_records(run.job, coding, source)
    for attempt in range(ATTEMPTS):
        share = fragments.sample_share(run.job, coding, attempt)
        samples = draw_samples(run, source, table.domain, share)
        cuts = _planted(run, table, samples, share, attempt, most)
        tree, given = cuts.tree, PartReading(run.job, table.domain, run.store, run.spill, source, cuts.tree)
        known = fragments.known_leaf_counts(given)
        last = attempt == ATTEMPTS - 1
        # A run that goes on where another was killed does not set records apart again by cuts that were given up.
        if known and not last and _census(run, coding, tree, known).records.max() > most:
            continue
        parts = run_for_items(run, PARTED, given, source.chunks)
        # Fragments are of cells, and ask for no value's code any more.
        coding.drop_cached((CellCoder, coding.finest))
        census = _census(run, coding, tree, [part.leaf_counts for part in parts])
        if last or census.records.max() <= most:
            break
        # The records go, the counts stay: by them the next run knows that these cuts were given up.
        run.store.discard([part.run for part in parts])
    return _grouped(run, table, cuts, census, parts, most)


def draw_samples(run: Run, source: ChunkedSource, domain: Artifact, share: float) -> list[Artifact]:
    """Return each chunk's artefact of sampled cells with a share of the records, drawn if missing."""
    return run_for_items(run, SAMPLES, SampleReading(run.job, domain, run.store, run.spill, share), source.chunks)


def _planted(run: Run, table: DomainTable, samples: Sequence[Artifact], share: float, attempt: int, most: int) -> FragmentCuts:
    """Choose the cuts between fragments; on a cluster a task does it, because samples hold records."""
    arguments = (table, samples, share, attempt, most)
    if not count_remote_workers():
        return fragments.choose_fragment_cuts(*arguments)
    # A few numbers, which no later run need find.
    return run_step(run, "plant", fragments.choose_fragment_cuts, Call.once(fragments.PLANTED, "cuts between fragments", arguments))


def _grouped(
    run: Run, table: DomainTable, cuts: FragmentCuts, census: LeafStatistics, parts: Sequence[Parted], most: int
) -> FragmentBatches:
    """Merge thin leaves to fragments and group the fragments' runs in batches that fit the memory."""
    job, store = run.job, run.store
    groups, people = _merged(run, table.domain, cuts.tree, parts)
    largest = max(int(census.records[list(group)].sum()) for group in groups)
    needed = bytes_of_rows(table.coding, largest) + bytes_of_people(job, largest)
    if not works_on_cells(job) and needed > job.memory:
        raise PrivacyError.fragment_too_large(job.method.name, largest, needed)
    counted, runs = [read_table(store, part.leaf_counts) for part in parts], [part.run for part in parts]
    limit = most if works_on_cells(job) else largest
    batches_of_runs = [fragments.batches_of_runs(runs, counted, group, limit) for group in groups]
    at_a_time = max(fragments.AT_A_TIME * most // max(largest, 1), 1)
    return FragmentBatches(groups, batches_of_runs, at_a_time, cuts.tree.leaves, cuts.sampled, people)


def _merged(run: Run, domain: Artifact, tree: CutTree, parts: Sequence[Parted]) -> tuple[list[Group], tuple[int, int] | None]:
    """Merge thin leaves; on a cluster a task does it where persons are named.

    Their pairs with leaves are as many as records.
    """
    pairs = [part.pairs for part in parts if part.pairs]
    arguments = (domain, tree, [part.leaf_counts for part in parts], pairs, run.store)
    if not pairs or not count_remote_workers():
        made = merge_leaves(run.job, *arguments)
    else:
        made = run_step(run, "merge", merge_leaves, Call.once(MERGED, "merge thin leaves", (run.job.with_task_memory(), *arguments)))
    return [tuple(group) for group in made.groups], made.people


def _census(run: Run, coding: Coding, tree: CutTree, counted: Sequence[Artifact]) -> LeafStatistics:
    return LeafStatistics.of(coding, tree.leaves, [read_table(run.store, part) for part in counted])


class CountedChunks(NamedTuple):
    """Histograms of a release's chunks, and their person–cell pairs, empty without a person column."""

    parts: Sequence[Artifact]
    pairs: Sequence[Artifact]


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
    return coding, tree_of(cutting, rows.codes, rows.weights, rows.unit)


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
