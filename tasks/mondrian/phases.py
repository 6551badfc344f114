"""The phases of Mondrian as its flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from core.mondrian.fragments import Group, Tree
from schemas.errors.base import PrivacyError
from schemas.job.job import Job
from tasks.counting.coding import CellCoder, Coding, load_coding
from tasks.counting.phases import count_histograms, count_pairs, count_sizes, merge_histograms
from tasks.counting.source_sizes import sizes_together
from tasks.engine.calls import Call
from tasks.engine.peak_memory import give_back
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups, map_step, run_step, takes_wholes, workers_elsewhere
from tasks.mondrian import cells as mondrian
from tasks.mondrian import fragments, workers
from tasks.mondrian.census import Census, merge_leaves
from tasks.records.outcomes import LocalOutcome, read_local_outcome
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Step
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table
from tasks.writing.members import Part
from tasks.writing.people import KeptPeople
from tasks.writing.phases import people_kept, rewrite, write_files

Artifacts = list[Artifact]
ATTEMPTS = 4
MERGED = Step("merged leaves", "tasks.mondrian.census")


def anonymise_cells(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome, KeptPeople]:
    """Cuts the cells of the whole source; chunks are counted and rewritten as for the lattice.

    Returns:
        The files of the release, what it cost, and who is in which class.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    with run.phase("histogram"):
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = merge_histograms(run, domain, coding.finest, parts)
        sizes = count_sizes(run, domain, coding.finest, histogram, parts, pairs)
    with run.phase("mondrian"):
        key = mondrian.cuts_key(run.job, coding, histogram, sizes, pairs)
        arguments = (run.job, domain, histogram, sizes, parts, pairs, run.store)
        # Whose the cells are is as much as there are records.
        call = Call(key, "cut cells", arguments, elsewhere=bool(pairs) and takes_wholes(run), whole=True)
        recoding = run_step(run, "cuts", mondrian.cut_all_cells, call)
    with run.phase("rewrite"):
        files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
        people = people_kept(run, source, domain, recoding)
    return files, read_local_outcome(recoding, run.store), people


def anonymise_fragments(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome, KeptPeople]:
    """Shares the records out and lets workers anonymise a fragment each, as they become free (Fig. 3).

    Returns:
        The files of the release, fragment after fragment, what it cost, the sum of what the fragments cost, and who is in which class.

    Raises:
        SkaldError: whatever is wrong with job, source, store or release, in one sentence.
    """
    job, store = run.job, run.store
    coding = load_coding(job, domain, store)
    with run.phase("fragments"):
        made = _fragments(run, source, domain)
    with run.phase(job.method.name):
        calls = [
            Call(
                key=workers.fragment_key(job, coding, source, group, lots),
                label=f"fragment {number} of {len(made.groups)}",
                arguments=(job, domain, source, group, lots, store),
                elsewhere=True,
            )
            for number, (group, lots) in enumerate(zip(made.groups, made.lots, strict=True), start=1)
        ]
        done = map_step(run, "fragments", workers.anonymise, calls, min(run.workers, made.abreast))
    # The recount has memory of its own; what fragments took is given back first.
    give_back()
    losses = [workers.read_losses(fragment.losses, store) for fragment in done]
    figures = {"fragments": len(made.groups), "merged": made.leaves - len(made.groups), "sampled": made.sampled}
    outcome = mondrian.outcome_of(job, coding, losses, figures, sizes_together([part.before for part in losses]), made.people)
    run.members = [Part(files=(), members=fragment.members) for fragment in done]
    people = KeptPeople(tuple(part.people for part in done if part.people), tuple(part.classes for part in done if part.classes))
    return [file for fragment in done for file in fragment.files], outcome, people


class Fragments(NamedTuple):
    """Which leaves make a fragment, and its runs in lots that fit the memory; how many fragments fit it at a time, how many leaves there
    are and records in the sample.

    ``people`` are the persons of the source, and the records of the one who has most; None where no person is named.
    """

    groups: list[Group]
    lots: list[list[Artifacts]]
    abreast: int
    leaves: int
    sampled: int
    people: tuple[int, int] | None


def _fragments(run: Run, source: Source, domain: Artifact) -> Fragments:
    """Cuts a sample and shares out all records; where a fragment comes out too large, once more with a larger sample and finer cuts."""
    coding = load_coding(run.job, domain, run.store)
    most = fragments.most_records(run.job, coding, source)
    for attempt in range(ATTEMPTS):
        share = fragments.sample_share(run.job, coding, attempt)
        samples = draw_samples(run, source, domain, share)
        tree, sampled = _planted(run, coding, domain, samples, share, attempt, most)
        known = fragments.known_censuses(run.job, coding, source, tree, run.store)
        last = attempt == ATTEMPTS - 1
        # A run that goes on where another was killed does not set records apart again by cuts that were given up.
        if known and not last and _census(run, coding, tree, known).records.max() > most:
            continue
        key = partial(fragments.part_key, run.job, coding, source, tree)
        parts = fragments.parted(run.job, map_groups(run, "part", _part, source.chunks, key, run.job, domain, source, tree, run.store))
        # Fragments are of cells, and ask for no value's code any more.
        coding.let_go((CellCoder, coding.finest))
        census = _census(run, coding, tree, [part.census for part in parts])
        if last or census.records.max() <= most:
            break
        # The records go, the counts stay: by them the next run knows that these cuts were given up.
        run.store.discard([part.run for part in parts])
    return _grouped(run, coding, domain, tree, census, parts, most, sampled)


def _planted(run: Run, coding: Coding, domain: Artifact, samples: Artifacts, share: float, attempt: int, most: int) -> tuple[Tree, int]:
    """Returns the cuts between fragments, and the records of the sample; on a cluster a task reads that, because it is of records."""
    if not workers_elsewhere():
        return fragments.plant(run.job, coding, samples, share, attempt, most, run.store)
    # A few numbers, which no later run need find.
    call = Call.once(fragments.PLANTED, "cuts between fragments", (run.job, domain, samples, share, attempt, most, run.store))
    qids, ranks, lefts, [sampled] = run_step(run, "plant", fragments.plant_elsewhere, call)
    return Tree(tuple(qids), tuple(ranks), tuple(lefts)), sampled


def _grouped(
    run: Run, coding: Coding, domain: Artifact, tree: Tree, census: Census, parts: Sequence[fragments.Parted], most: int, sampled: int
) -> Fragments:
    """Merges leaves that are too thin to fragments."""
    job, store = run.job, run.store
    groups, people = _merged(run, domain, tree, parts)
    largest = max(int(census.records[list(group)].sum()) for group in groups)
    needed = mondrian.bytes_of_rows(coding, largest) + mondrian.bytes_of_people(job, largest)
    if not mondrian.on_cells(job) and needed > job.memory:
        raise PrivacyError.fragment_too_large(job.method.name, largest, needed)
    counted, runs = [read_table(store, part.census) for part in parts], [part.run for part in parts]
    limit = most if mondrian.on_cells(job) else largest
    lots = [fragments.lots(runs, counted, group, limit) for group in groups]
    abreast = max(fragments.ABREAST * most // max(largest, 1), 1)
    return Fragments(groups, lots, abreast, tree.leaves, sampled, people)


def _merged(run: Run, domain: Artifact, tree: Tree, parts: Sequence[fragments.Parted]) -> tuple[list[Group], tuple[int, int] | None]:
    """Merges thin leaves; on a cluster a task does it where persons are named, whose pairs with leaves are as many as records."""
    pairs = [part.pairs for part in parts if part.pairs]
    arguments = (domain, tree, [part.census for part in parts], pairs, run.store)
    if not pairs or not workers_elsewhere():
        made = merge_leaves(run.job, *arguments)
    else:
        call = Call.once(MERGED, "merge thin leaves", (run.job.in_task(), *arguments))
        made = run_step(run, "merge", merge_leaves, call)
    return [tuple(group) for group in made.groups], made.people


def draw_samples(run: Run, source: Source, domain: Artifact, share: float) -> Artifacts:
    """The sample of every chunk.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    key = partial(fragments.sample_key, run.job, load_coding(run.job, domain, run.store), share)
    return map_groups(run, "sample", _sample, source.chunks, key, run.job, domain, share, run.store)


def _census(run: Run, coding: Coding, tree: Tree, counted: Sequence[Artifact]) -> Census:
    return Census.of(coding, tree.leaves, [read_table(run.store, part) for part in counted])


def _sample(job: Job, domain: Artifact, share: float, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [fragments.sample_chunk(job, coding, share, chunk, store) for chunk in chunks]


def _part(job: Job, domain: Artifact, source: Source, tree: Tree, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [artifact for chunk in chunks for artifact in fragments.part_chunk(job, coding, source, tree, chunk, store).made]
