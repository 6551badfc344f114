"""The phases of a run that recodes single records, as its flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from schemas.job.job import Job
from tasks.counting.coding import load_coding
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups, run_step, takes_wholes
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.records import coding as records
from tasks.records import recodings as record_recodings
from tasks.records import rewriting as record_releases
from tasks.records.rewriting import Place
from tasks.source.chunks import Chunk, Source
from tasks.store.store import Artifact, Store
from tasks.writing.classes import file_keys, write_file
from tasks.writing.lost import make_lost
from tasks.writing.people import NONE_KEPT, KeptPeople, people_key
from tasks.writing.shelves import Shelves, set_on_shelves

Artifacts = list[Artifact]


def code_records(run: Run, source: Source, domain: Artifact) -> Artifacts:
    """The records of all chunks as codes.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    key = partial(records.coded_key, run.job, load_coding(run.job, domain, run.store), source)
    return map_groups(run, "coded", _code_records, source.chunks, key, run.job, domain, source, run.store)


def _code_records(job: Job, domain: Artifact, source: Source, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [records.code_chunk(job, coding, source, chunk, store) for chunk in chunks]


def recode_records(run: Run, domain: Artifact, parts: Artifacts) -> RecodingArtifacts:
    """The job's algorithm on all records.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    key = record_recodings.recoding_key(run.job, load_coding(run.job, domain, run.store), parts)
    arguments = (run.job, domain, parts, run.store)
    call = Call(key, run.job.method.name, arguments, elsewhere=takes_wholes(run), whole=True)
    return run_step(run, "recode", record_recodings.recode_all, call)


def rewrite_records(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts) -> Artifacts:
    """Every chunk joined to the classes of its records.

    Raises:
        SkaldError: whatever a step raises.
    """
    key = partial(record_releases.record_run_key, run.job, source, recoding)
    runs = map_groups(run, "rewrite", _rewrite, _places(source), key, run.job, domain, recoding, source, run.store)
    arguments = (run.job, domain, recoding, source, run.store)
    make_lost(run, "members", _members_again, _places(source), partial(record_releases.record_members_key, recoding), *arguments)
    run.members = [record_releases.members_of_place(recoding, place, run.store) for place in _places(source)]
    return runs


def _places(source: Source) -> list[Place]:
    return [Place(chunk=chunk, number=number) for number, chunk in enumerate(source.chunks)]


def keep_record_people(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts) -> KeptPeople:
    """Who is in which class of the records of every chunk, for the recount; nothing where the job names no person.

    Raises:
        HierarchyError: a hierarchy does not fit its column.
        JobError: hierarchy files that cannot be read, all at once.
        SourceError: a file changed since it was coded.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever else a step raises.
    """
    if not run.job.columns.person:
        return NONE_KEPT
    coding = load_coding(run.job, domain, run.store)
    key = partial(record_releases.record_run_key, run.job, source, recoding)
    arguments = (run.job, domain, recoding, source, run.store)
    make_lost(run, "people", _people_again, _places(source), lambda place: people_key(run.job, key(place)), *arguments)
    kept = [record_releases.people_of_place(run.job, coding, recoding, source, place, run.store) for place in _places(source)]
    return KeptPeople(tuple(kept), (recoding.classes,))


def _members_again(
    job: Job, _domain: Artifact, recoding: RecodingArtifacts, _source: Source, store: Store, places: Sequence[Place]
) -> Artifacts:
    return [record_releases.members_of_place(recoding, place, store).members for place in places]


def _people_again(
    job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, places: Sequence[Place]
) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [record_releases.people_of_place(job, coding, recoding, source, place, store) for place in places]


def _rewrite(job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, places: Sequence[Place]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [record_releases.rewrite_records_of(job, coding, recoding, source, place, store) for place in places]


def write_record_files(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts, runs: Artifacts) -> Artifacts:
    """The files of the release.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    count = record_releases.record_output_files(run.job, load_coding(run.job, domain, run.store), recoding, source, run.store)
    key = file_keys(record_releases.FILES, recoding, source, runs)
    shelves = set_on_shelves(run, runs, count, len(source.payload))
    return map_groups(run, "files", _write_files, range(count), key, run.job, domain, recoding, source, runs, shelves, run.store)


def _write_files(
    job: Job,
    domain: Artifact,
    recoding: RecodingArtifacts,
    source: Source,
    runs: Artifacts,
    shelves: Shelves,
    store: Store,
    numbers: Sequence[int],
) -> Artifacts:
    labels = record_recodings.load_classes(job, load_coding(job, domain, store), recoding, store).labels
    key = file_keys(record_releases.FILES, recoding, source, runs)
    return [write_file(labels, source, *shelves.of(number), key(number), store) for number in numbers]
