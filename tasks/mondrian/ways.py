"""The two flows of Mondrian: on all cells at once, or fragment by fragment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.mondrian.fragments import CutTree, Group
from schemas.errors.base import PrivacyError
from schemas.errors.methods import FragmentsError
from tasks.counting.chunk_histograms import count_histograms, count_pairs
from tasks.counting.coding import CellCoder, Coding, DomainTable
from tasks.counting.source_sizes import count_sizes, merge_histograms, summed_sizes
from tasks.engine.calls import Call
from tasks.engine.progress import release_memory
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, remote_takes_all_chunks, run_for_each_item, run_for_item, run_for_items, run_step
from tasks.lattice.kept_recodings import LocalOutcome
from tasks.mondrian import fragments
from tasks.mondrian.cells import CUTS, CutCells, bytes_of_people, bytes_of_rows, outcome_of, works_on_cells
from tasks.mondrian.fragments import PARTED, SAMPLES, Parted, PartReading, SampleReading
from tasks.mondrian.leaf_statistics import MERGED, LeafStatistics, merge_leaves
from tasks.mondrian.workers import FRAGMENT, FragmentLosses, FragmentReading, FragmentShare
from tasks.source.chunks import ChunkedSource
from tasks.source.published_columns import shared_columns
from tasks.store.store import Artifact
from tasks.store.tables import read_table
from tasks.writing.cells import rewrite_cells
from tasks.writing.people import KeptRecords, WrittenPersons

ATTEMPTS = 4


def anonymise_cells(run: Run, source: ChunkedSource, domain: Artifact) -> tuple[list[Artifact], LocalOutcome, WrittenPersons]:
    """Anonymise a source by cutting all its cells at once; return files, outcome and persons of classes.

    Returns:
        The files of the release, its losses, and the persons of its classes.
    """
    table = DomainTable.of(run, domain)
    with run.phase("histogram"):
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = merge_histograms(run, domain, table.coding.finest, parts)
        sizes = count_sizes(run, domain, table.coding.finest, histogram, parts, pairs)
    with run.phase("mondrian"):
        # Whose the cells are is as much as there are records.
        elsewhere = bool(pairs) and remote_takes_all_chunks(run)
        recoding = run_for_item(run, CUTS, table, CutCells(histogram, sizes, parts, pairs), "cut cells", elsewhere=elsewhere)
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
        tree, sampled = _planted(run, table, samples, share, attempt, most)
        given = PartReading(run.job, table.domain, run.store, run.spill, source, tree)
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
    return _grouped(run, table, tree, census, parts, most, sampled)


def draw_samples(run: Run, source: ChunkedSource, domain: Artifact, share: float) -> list[Artifact]:
    """Return each chunk's artefact of sampled cells with a share of the records, drawn if missing."""
    return run_for_items(run, SAMPLES, SampleReading(run.job, domain, run.store, run.spill, share), source.chunks)


def _planted(run: Run, table: DomainTable, samples: Sequence[Artifact], share: float, attempt: int, most: int) -> tuple[CutTree, int]:
    """Choose the cuts between fragments and return them with the number of sampled records.

    On a cluster a task does it, because samples hold records.
    """
    if not count_remote_workers():
        return fragments.choose_fragment_cuts(run.job, table.coding, samples, share, attempt, most, run.store)
    # A few numbers, which no later run need find.
    call = Call.once(fragments.PLANTED, "cuts between fragments", (table, samples, share, attempt, most))
    qids, ranks, lefts, [sampled] = run_step(run, "plant", fragments.choose_fragment_cuts_on_worker, call)
    return CutTree(tuple(qids), tuple(ranks), tuple(lefts)), sampled


def _grouped(
    run: Run, table: DomainTable, tree: CutTree, census: LeafStatistics, parts: Sequence[Parted], most: int, sampled: int
) -> FragmentBatches:
    """Merge thin leaves to fragments and group the fragments' runs in batches that fit the memory."""
    job, store = run.job, run.store
    groups, people = _merged(run, table.domain, tree, parts)
    largest = max(int(census.records[list(group)].sum()) for group in groups)
    needed = bytes_of_rows(table.coding, largest) + bytes_of_people(job, largest)
    if not works_on_cells(job) and needed > job.memory:
        raise PrivacyError.fragment_too_large(job.method.name, largest, needed)
    counted, runs = [read_table(store, part.leaf_counts) for part in parts], [part.run for part in parts]
    limit = most if works_on_cells(job) else largest
    batches_of_runs = [fragments.batches_of_runs(runs, counted, group, limit) for group in groups]
    at_a_time = max(fragments.AT_A_TIME * most // max(largest, 1), 1)
    return FragmentBatches(groups, batches_of_runs, at_a_time, tree.leaves, sampled, people)


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
