"""The phases of a run that write a release by a recoding of cells, as its flow calls them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from schemas.job.job import Job
from tasks.counting.coding import load_coding
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups
from tasks.lattice.kept_recodings import RecodingArtifacts, load_recoding
from tasks.source.chunks import Chunk, Source
from tasks.store.store import Artifact, Store
from tasks.writing import classes as releases
from tasks.writing.lost import make_lost
from tasks.writing.people import NONE_KEPT, KeptPeople, people_key
from tasks.writing.shelves import Shelves, set_on_shelves


def rewrite(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts) -> list[Artifact]:
    """Phase 3: every chunk joined to the recoding.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    # All records of a combination share a class, with stars and rounds too: so releases can be compared by combinations.
    run.recoded = domain, recoding
    coding = load_coding(run.job, domain, run.store)
    key = partial(releases.run_key, run.job, coding, recoding, source)
    # Where there is room for one task only, its reader takes most of the room.
    most = run.job.task_memory // (releases.ROUND_SHARE * max(run.workers, 2))
    arguments = (run.job, domain, recoding, source, run.store)
    runs = map_groups(run, "rewrite", _rewrite, source.chunks, key, *arguments, most)
    make_lost(run, "members", _members_again, source.chunks, partial(releases.members_key, coding, recoding), *arguments)
    run.members = [releases.members_of_chunk(run.job, coding, recoding, source, chunk, run.store) for chunk in source.chunks]
    return runs


def _rewrite(
    job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, most: int, chunks: Sequence[Chunk]
) -> list[Artifact]:
    coding = load_coding(job, domain, store)
    return [releases.rewrite_chunk(job, coding, recoding, source, chunk, store, most) for chunk in chunks]


def _members_again(
    job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, chunks: Sequence[Chunk]
) -> list[Artifact]:
    coding = load_coding(job, domain, store)
    return [releases.members_of_chunk(job, coding, recoding, source, chunk, store).members for chunk in chunks]


def people_kept(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts) -> KeptPeople:
    """Who is in which class of the records of every chunk, for the recount; nothing where the job names no person.

    Raises:
        SkaldError: whatever is wrong with job, source, store or release, in one sentence.
    """
    job, store = run.job, run.store
    if not job.columns.person:
        return NONE_KEPT
    coding = load_coding(job, domain, store)
    key = partial(releases.run_key, job, coding, recoding, source)
    make_lost(run, "people", _people_again, source.chunks, lambda chunk: people_key(job, key(chunk)), job, domain, recoding, source, store)
    kept = (releases.people_of_chunk(job, coding, recoding, source, chunk, store) for chunk in source.chunks)
    return KeptPeople(tuple(kept), (recoding.classes,))


def _people_again(
    job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, chunks: Sequence[Chunk]
) -> list[Artifact]:
    coding = load_coding(job, domain, store)
    return [releases.people_of_chunk(job, coding, recoding, source, chunk, store) for chunk in chunks]


def write_files(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts, runs: list[Artifact]) -> list[Artifact]:
    """Phase 3: the files of the release.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    count = releases.output_files(load_recoding(run.job, coding, recoding, run.store), source.file_rows(run.job))
    key = releases.file_keys(releases.FILES, recoding, source, runs)
    shelves = set_on_shelves(run, runs, count, len(source.payload))
    arguments = (run.job, domain, recoding, source, runs, shelves, run.store)
    return map_groups(run, "files", _write_files, range(count), key, *arguments)


def _write_files(
    job: Job,
    domain: Artifact,
    recoding: RecodingArtifacts,
    source: Source,
    runs: list[Artifact],
    shelves: Shelves,
    store: Store,
    numbers: Sequence[int],
) -> list[Artifact]:
    labels = load_recoding(job, load_coding(job, domain, store), recoding, store).labels
    key = releases.file_keys(releases.FILES, recoding, source, runs)
    return [releases.write_file(labels, source, *shelves.of(number), key(number), store) for number in numbers]
