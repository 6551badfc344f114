"""Begin and end of every flow: read the source, recount the written files, publish the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.recount.classes import Recount
from schemas.errors.storage import PeopleLostError
from schemas.release.evidence import PublishedFile
from schemas.release.figures import RepeatedColumn
from schemas.release.manifest import ClaimedLevels, Manifest
from schemas.release.report import Example
from schemas.release.terms import Unreported
from tasks.composition.earlier import KnownRecords
from tasks.composition.overlaps import ComparedRecords, compared_records
from tasks.composition.release_history import forget_older, oldest_release_kept, write_entry
from tasks.counting.coding import forget_large_coding
from tasks.counting.repeats import find_repeating_identifiers, note_spellings_of_persons
from tasks.counting.untreated_figures import check_published, measure_untreated_columns
from tasks.engine.calls import workers_of
from tasks.engine.flows import in_flow_run
from tasks.engine.lineage import lineage_of
from tasks.engine.runs import Run
from tasks.engine.steps import step_here
from tasks.lattice.optimum import replayed_manifest
from tasks.publication.disclosures import attack_fields, attack_written, check_linked, check_untreated, disclosed_by
from tasks.publication.outputs import check_output, examples_delivered
from tasks.publication.recount_calls import Written
from tasks.publication.recounts import recount_written
from tasks.publication.reported_figures import increment_of, source_digests
from tasks.publication.staging import complete_staging, release_id, signer_of
from tasks.publication.target import (
    LEFTOVER_NAMES,
    NOT_IN_REGISTRY,
    SERVER_NOT_TOLD,
    Publication,
    Target,
    job_target,
    publication_errors,
)
from tasks.release.examples import examples_of
from tasks.release.files import data_files
from tasks.release.manifest import keyed_hierarchies
from tasks.source.chunks import ChunkedSource
from tasks.source.sources import read_source, unchanged_sources
from tasks.store.files import write_atomically
from tasks.store.place import target_of
from tasks.store.store import Artifact
from tasks.store.work_folder import UNTOLD
from tasks.writing.people import WrittenPersons
from tasks.writing.pseudonyms import give_tokens, with_key_fingerprints


@dataclass(frozen=True)
class PublishedRelease:
    """A published release: manifest, folder, whether this run made it, and its unreported figures."""

    manifest: Manifest
    folder: Path
    new: bool
    untold: Unreported | None = None


def read_or_recall(run: Run) -> tuple[ChunkedSource, PublishedRelease | None]:
    """Read and check the source; return it, and the release already made of it or None; prepare the run."""
    if run.job.replay is not None:
        replayed_manifest(run.job)
    # A key that cannot be used is told of before hours are spent on what it was to sign.
    signer_of(run.job)
    with run.phase("source"):
        source = with_key_fingerprints(run.job, read_source(run))
        check_published(run, source)
        check_output(run.job, source)
        release = release_id(run.job, source)
        manifest = job_target(run.job).recall(release, run)
        if manifest is None:
            job_target(run.job).remove_unfinished(run.work, but=release)
            run.increment = increment_of(run, source)
        else:
            with publication_errors(release) as publication:
                publication.undone = LEFTOVER_NAMES
                run.remove_unneeded_artifacts()
    if manifest is None:
        with run.phase("columns"):
            run.passthrough, source = measure_untreated_columns(run, source)
    if manifest is None and run.job.columns.pseudonyms:
        with run.phase("pseudonyms"):
            source = give_tokens(run.job, source, run.spill)
    run.workers = workers_of(run.job, source.task_bytes(run.job))
    return source, _told(run, PublishedRelease(manifest, run.job.target_path / release, new=False)) if manifest else None


def verify_and_publish(
    run: Run,
    source: ChunkedSource,
    files: Sequence[Artifact],
    describe: Callable[[Sequence[PublishedFile], Recount], Manifest],
    people: WrittenPersons,
    claim: ClaimedLevels | None = None,
) -> PublishedRelease:
    """Write data files, recount and publish them; return the release; raise and withdraw if refused.

    Args:
        source: What they were made of; it must be unchanged.
        files: Data files in the order of the release.
        describe: Makes the manifest of the staged files and their recount.
        people: Who is in which class; nothing where the job names no person.
        claim: The levels that labels are said to be of; None where classes have labels of their own.
    """
    release = release_id(run.job, source)
    with job_target(run.job).withdrawn_if_refused(release, run.work), publication_errors(release) as publication:
        return _verified_and_published(run, source, files, describe, people, claim, publication)


def _verified_and_published(
    run: Run,
    source: ChunkedSource,
    files: Sequence[Artifact],
    describe: Callable[[Sequence[PublishedFile], Recount], Manifest],
    people: WrittenPersons,
    claim: ClaimedLevels | None,
    publication: Publication,
) -> PublishedRelease:
    job, release, target = run.job, release_id(run.job, source), job_target(run.job)
    # What follows knows only the job.
    forget_large_coding(job, run.store)
    with run.phase("identifiers"):
        repeats = find_repeating_identifiers(run, source)
        note_spellings_of_persons(run, source)
        known = KnownRecords(run, source)
        known.compute_sketches()
    with run.phase("verify"):
        staging = target.staging_folder(release)
        with unchanged_sources(source):
            written, counted = _written(run, source, files, target, staging, people, claim)
    check_linked(job, counted)
    check_untreated(run, counted)
    # Of attacks and later releases, that the levels are claimed is no concern.
    written = written._replace(claim=None)
    played = attack_written(run, written, source)
    own = {
        "sources": source_digests(job, source, run.secret),
        "hierarchies": keyed_hierarchies(job, run.secret),
        "evolved": source.evolved,
        "increment": run.increment,
        "columns": dict(written.layout.types),
        # By name alone: the most records of a value would be the count of one person.
        "repeats": dict.fromkeys(repeats, RepeatedColumn()),
        "policy": run.policy.digest if run.policy else None,
        "replay_of": job.replay.name if job.replay else None,
    }
    with compared_records(known, release, lambda: disclosed_by(run, written, source.payload, people)) as compared:
        manifest = describe(written.files, counted).model_copy(update=own | compared.reported)
        manifest = manifest.model_copy(update=attack_fields(manifest, played, refused=job.overlaps == "refuse"))
        if run.untold:
            source_attacks = played.source if played else ()
            others = {"repeats": repeats, "overlaps": compared.figures["overlaps"] or (), "attacks": source_attacks}
            run.untold = run.untold.model_copy(update=others)
        manifest = _finished(compared, target, staging, manifest, counted, people, written, publication)
    publication.undone = LEFTOVER_NAMES
    run.remove_unneeded_artifacts(forget_older(run.store), oldest_release_kept(run.store))
    publication.undone = SERVER_NOT_TOLD
    return _told(run, PublishedRelease(manifest, job.target_path / release, new=True, untold=run.untold))


def _written(
    run: Run,
    source: ChunkedSource,
    files: Sequence[Artifact],
    target: Target,
    staging: Path,
    people: WrittenPersons,
    claim: ClaimedLevels | None,
) -> tuple[Written, Recount]:
    """Write the data files to the target, and recount them there."""
    release = release_id(run.job, source)
    staged, layout = target.write_data(run, files, release, staging)
    written = Written(release, tuple(staged), layout, target.folder_of_data(staging), claim)
    # Records in the place of people would be a promise that nobody asked for.
    if lost := sum(not run.store.is_complete(one) for one in (*people.people, *people.classes)):
        raise PeopleLostError.of_run(lost)
    return written, recount_written(run, written, source, people)


def _finished(
    compared: ComparedRecords,
    target: Target,
    staging: Path,
    manifest: Manifest,
    counted: Recount,
    people: WrittenPersons,
    written: Written,
    publication: Publication,
) -> Manifest:
    """Write report and manifest, and publish the release; return the published manifest."""
    known, run, source = compared.known, compared.known.run, compared.known.source
    job = run.job

    def examples(manifest: Manifest) -> tuple[Example, ...]:
        if written.staging is None:
            return examples_delivered(run, written.files, manifest)
        return examples_of(f"release '{manifest.release}'", data_files(staging), manifest)

    def finish() -> Manifest:
        whole = complete_staging(job, staging, manifest, counted, examples)
        # Before the release: the other way round, a kill between the two would leave one that later runs cannot be compared with.
        parts, digested = (known.parts(known.digested), known.digested_kinds) if compared.registry else ((), None)
        write_entry(run, whole, source, people, parts, digested)
        entry = compared.register(whole.release)
        # So that whoever goes on from here on another machine knows of it, and nothing is published by a run that was taken over.
        run.work.keep()
        run.work.check()
        # Before the release too: a run that finds it has nothing to measure.
        _keep_untold(run)
        target.publish(staging, whole.release, run.work)
        publication.undone = NOT_IN_REGISTRY
        compared.record_publication(entry)
        publication.undone = "its run could not be ended"
        return whole

    # The rename happened or did not, and the next run sees which.
    return step_here("publish", "publish", finish, lineage_of(job, manifest), once=True)


def _keep_untold(run: Run) -> None:
    """Write the figures that a release does not report into the work folder, if artefacts are kept."""
    if run.untold and run.job.artifacts == "keep":
        content = run.untold.model_dump_json(indent=2)
        write_atomically(run.job.work_path / UNTOLD, lambda part: part.write_text(content))


def _told(run: Run, done: PublishedRelease) -> PublishedRelease:
    """Announce a release on Prefect's server in a flow run; return the release."""
    if in_flow_run():
        from tasks.engine.prefect_pages import announce  # noqa: PLC0415

        announce(done.manifest, target_of(run.job).below(done.manifest.release), new=done.new)
    return done
