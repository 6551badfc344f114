"""The phases of Mondrian as its flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from core.mondrian.fragments import Group, Tree, merge_thin
from schemas.errors.base import PrivacyError
from schemas.job.job import Job
from tasks.counting.coding import Coding, load_coding
from tasks.counting.phases import count_histograms, count_sizes, merge_histograms
from tasks.counting.source_sizes import sizes_together
from tasks.engine.calls import Call
from tasks.engine.peak_memory import give_back
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups, map_step, run_step
from tasks.mondrian import cells as mondrian
from tasks.mondrian import fragments, workers
from tasks.records.recodings import LocalOutcome, read_local_outcome
from tasks.source.chunks import Chunk, Source
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table
from tasks.writing.phases import rewrite, write_files

Artifacts = list[Artifact]
ATTEMPTS = 4


def anonymise_cells(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome]:
    """Cuts the cells of the whole source; chunks are counted and rewritten as for the lattice.

    Returns:
        The files of the release, and what it cost.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    with run.phase("histogram"):
        parts = count_histograms(run, source)
        histogram = merge_histograms(run, domain, coding.finest, parts)
        sizes = count_sizes(run, domain, coding.finest, histogram, parts)
    with run.phase("mondrian"):
        key = mondrian.cuts_key(run.job, coding, histogram, sizes)
        recoding = run_step(run, "cuts", mondrian.cut_all_cells, Call(key, "cut cells", (run.job, domain, histogram, sizes, run.store)))
    with run.phase("rewrite"):
        files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
    return files, read_local_outcome(recoding, run.store)


def anonymise_fragments(run: Run, source: Source, domain: Artifact) -> tuple[Artifacts, LocalOutcome]:
    """Shares the records out and lets workers anonymise a fragment each, as they become free (Fig. 3).

    Returns:
        The files of the release, fragment after fragment, and what it cost: the sum of what the fragments cost.

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
        done = map_step(run, "fragments", workers.anonymise, calls)
    # The recount has memory of its own; what fragments took is given back first.
    give_back()
    losses = [workers.read_losses(fragment.losses, store) for fragment in done]
    figures = {"fragments": len(made.groups), "merged": made.leaves - len(made.groups), "sampled": made.sampled}
    outcome = mondrian.outcome_of(job, coding, losses, figures, sizes_together([part.before for part in losses]))
    return [file for fragment in done for file in fragment.files], outcome


class Fragments(NamedTuple):
    """Which leaves make a fragment, and its runs in lots that fit the memory; how many leaves there are and records in the sample."""

    groups: list[Group]
    lots: list[list[Artifacts]]
    leaves: int
    sampled: int


def _fragments(run: Run, source: Source, domain: Artifact) -> Fragments:
    """Cuts a sample and shares out all records; where a fragment comes out too large, once more with a larger sample and finer cuts."""
    coding = load_coding(run.job, domain, run.store)
    most = fragments.most_records(run.job, coding, source)
    for attempt in range(ATTEMPTS):
        share = fragments.sample_share(run.job, coding, attempt)
        samples = draw_samples(run, source, domain, share)
        tree = fragments.plant(run.job, coding, samples, share, attempt, most, run.store)
        known = fragments.known_censuses(coding, source, tree, run.store)
        last = attempt == ATTEMPTS - 1
        # A run that goes on where another was killed does not set records apart again by cuts that were given up.
        if known and not last and _census(run, coding, tree, known).records.max() > most:
            continue
        key = partial(fragments.part_key, coding, source, tree)
        parts = map_groups(run, "part", _part, source.chunks, key, run.job, domain, source, tree, run.store)
        census = _census(run, coding, tree, parts[1::2])
        if last or census.records.max() <= most:
            break
        # The records go, the counts stay: by them the next run knows that these cuts were given up.
        run.store.discard(parts[::2])
    groups = merge_thin(tree, census.keeps(run.job, coding))
    largest = max(int(census.records[list(group)].sum()) for group in groups)
    if not mondrian.on_cells(run.job) and mondrian.bytes_of_rows(coding, largest) > run.job.memory:
        raise PrivacyError.fragment_too_large(run.job.method.name, largest, mondrian.bytes_of_rows(coding, largest))
    sampled = sum(int(read_table(run.store, sample)["count"].to_numpy().sum()) for sample in samples)
    counted = [read_table(run.store, table) for table in parts[1::2]]
    limit = most if mondrian.on_cells(run.job) else largest
    return Fragments(groups, [fragments.lots(parts[::2], counted, group, limit) for group in groups], tree.leaves, sampled)


def draw_samples(run: Run, source: Source, domain: Artifact, share: float) -> Artifacts:
    """The sample of every chunk.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    key = partial(fragments.sample_key, run.job, load_coding(run.job, domain, run.store), share)
    return map_groups(run, "sample", _sample, source.chunks, key, run.job, domain, share, run.store)


def _census(run: Run, coding: Coding, tree: Tree, counted: Sequence[Artifact]) -> fragments.Census:
    return fragments.Census.of(coding, tree.leaves, [read_table(run.store, part) for part in counted])


def _sample(job: Job, domain: Artifact, share: float, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [fragments.sample_chunk(job, coding, share, chunk, store) for chunk in chunks]


def _part(job: Job, domain: Artifact, source: Source, tree: Tree, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [artifact for chunk in chunks for artifact in fragments.part_chunk(job, coding, source, tree, chunk, store)]
