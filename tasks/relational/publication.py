"""Publication of several tables: staging, recount of the staged files, then one rename."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.recount.histories import TablesRecount
from schemas.errors.refusals import AttackError
from schemas.job.privacy import attacks_sentence, broken_attacks
from schemas.relational.manifest import ReleasedPersons, TablesManifest, files_by_table
from schemas.relational.table_jobs import lasting_key, tables_digest, tables_promise, unit_key_words
from schemas.relational.tables_job import TablesJob
from schemas.release.evidence import PublishedFile
from schemas.release.increments import composition_warning
from schemas.release.terms import NOT_FOR_NODES
from tasks.composition.overlaps import compared_records
from tasks.composition.release_history import forget_older, oldest_release_kept
from tasks.engine.flows import in_flow_run
from tasks.engine.progress import peak_rss, release_memory
from tasks.engine.runs import Run, versions
from tasks.engine.steps import step_here
from tasks.publication.disclosures import attack_fields, check_untreated_tables, refusal_words
from tasks.publication.outputs import stage_files
from tasks.publication.staging import signer_of, write_signed_documents
from tasks.publication.target import LEFTOVER_NAMES, NOT_IN_REGISTRY, SERVER_NOT_TOLD, Publication, job_target, publication_errors
from tasks.recount.original import Original, normalised_relation
from tasks.recount.tables import WrittenTables, recount_tables
from tasks.relational.contents import NumberedHistories
from tasks.relational.earlier_releases import ComparablePersons, ShownTables, disclosed_by_tables
from tasks.relational.making.levels import TablesOutcome
from tasks.relational.making.reading import TableSource
from tasks.relational.making.writing import ReleasedTables
from tasks.relational.report import report_code_of_tables, report_content, report_texts
from tasks.relational.stated_figures import loss_of_tables, rows_beyond_bounds, table_entries
from tasks.relational.verified import read_tables_manifest, written_manifest
from tasks.source.sources import unchanged_sources
from tasks.store.keys import secret_of
from tasks.store.place import target_of
from tasks.store.store import Artifact

if TYPE_CHECKING:
    from tasks.attacks.release_attack import PlayedAttacks


@dataclass(frozen=True)
class PublishedTables:
    """A published release of several tables: manifest, folder, columns, and whether it is new.

    Attributes:
        manifest: Of the release.
        folder: Its folder in the target.
        columns: Published columns of each table, in their order.
        new: Whether this run made it.
        bounded: Rows of published persons beyond ``rows: {most: n}``, by table with any; empty where it was published already.
    """

    manifest: TablesManifest
    folder: Path
    columns: Mapping[str, tuple[str, ...]]
    new: bool
    bounded: Mapping[str, int] = field(default_factory=dict)


def tables_release_id(run: Run, job: TablesJob, tables: Mapping[str, TableSource]) -> str:
    """Return the release id of a job and its sources: the job's name and 16 keyed hexadecimal digits."""
    digests = {name: table.source.digest for name, table in tables.items()}
    keys = [tables[job.tree.unit].source.keys] if lasting_key(job) else []
    return f"{job.name}-{secret_of(run.job).keyed('release of tables', tables_digest(job), digests, *keys)[:16]}"


def recall_tables(run: Run, release: str, tables: Mapping[str, TableSource]) -> PublishedTables | None:
    """Return a published release, made current, and prune artefacts; None if absent; raise if altered."""
    # A key that cannot be used is told of before the work.
    signer_of(run.job)
    manifest = job_target(run.job).recall_by(release, run, written_manifest, read_tables_manifest)
    if manifest is None:
        job_target(run.job).remove_unfinished(run.work, but=release)
        return None
    with publication_errors(release) as publication:
        publication.undone = LEFTOVER_NAMES
        run.remove_unneeded_artifacts()
        publication.undone = SERVER_NOT_TOLD
        return _told(run, PublishedTables(manifest, run.job.target_path / release, _published_columns(tables), new=False))


def publish_tables(given: ReleasedTables, outcome: TablesOutcome, written: Mapping[str, Artifact]) -> PublishedTables:
    """Stage tables, recount them by job and sources, publish; return the release, raise if refused.

    What is for an object store is staged and recounted in the run folder, and put there with its manifest last.
    """
    job, release = given.run.job, given.release
    with job_target(job).withdrawn_if_refused(release, given.run.work), publication_errors(release) as publication:
        return _published(given, outcome, written, publication)


def _told(run: Run, done: PublishedTables) -> PublishedTables:
    """Announce a release on Prefect's server in a flow run; return the release."""
    if in_flow_run():
        from tasks.engine.prefect_pages import announce_tables  # noqa: PLC0415

        warning = composition_warning(done.manifest)
        sentences = [*([f"Warning: {warning}"] if warning else []), *report_content(done.manifest)["sentences"]]
        announce_tables(done.manifest, sentences, target_of(run.job).below(done.manifest.release), new=done.new)
    return done


def _published(given: ReleasedTables, outcome: TablesOutcome, written: Mapping[str, Artifact], publication: Publication) -> PublishedTables:
    run, numbered = given.run, given.run.spill / "histories.parquet"
    with run.phase("verify"):
        release_memory()
        staging = job_target(run.job).staging_folder(given.release)
        staged = stage_files({f"data/{table}/part-00001.parquet": file for table, file in written.items()}, run.store, staging)
        with unchanged_sources(*(table.table.source for table in given.tables.values())):
            counted = step_here("verify", "recount written tables", lambda: _recounted(given, staged, staging, numbered))
    check_untreated_tables(run, counted)
    played = _attacked(given, staged, staging)
    digests = tuple(file.sha256 for file in staged)
    known = ComparablePersons.of(given, counted.persons, NumberedHistories(numbered, digests))
    shown = ShownTables(known.run, given.job, files_by_table(staged, staging, given.job.tables), digests, given.release)
    with compared_records(known, given.release, lambda: disclosed_by_tables(shown)) as compared:
        manifest = _manifest(given, outcome, staged, counted).model_copy(update=compared.reported)
        manifest = manifest.model_copy(update=attack_fields(manifest, played, refused=given.job.overlaps == "refuse"))

        def finish() -> TablesManifest:
            made = manifest.model_copy(update={"created": datetime.now(UTC).isoformat(timespec="microseconds")})
            whole = write_signed_documents(run.job, staging, made, report_texts(made), report_code_of_tables())
            if compared.registry:
                known.write_entry(whole)
            entry = compared.register(whole.release)
            run.work.keep()
            run.work.check()
            job_target(run.job).publish(staging, given.release, run.work, staged)
            publication.undone = NOT_IN_REGISTRY
            compared.record_publication(entry)
            publication.undone = "its run could not be ended"
            return whole

        # Before it is published and artefacts go.
        bounded = rows_beyond_bounds(given)
        # The rename happened or did not, and the next run sees which.
        whole = step_here("publish", "publish", finish, once=True)
    publication.undone = LEFTOVER_NAMES
    run.remove_unneeded_artifacts(forget_older(run.store), oldest_release_kept(run.store))
    publication.undone = SERVER_NOT_TOLD
    columns = _published_columns({name: table.table for name, table in given.tables.items()})
    return _told(run, PublishedTables(whole, run.job.target_path / whole.release, columns, new=True, bounded=bounded))


def _published_columns(tables: Mapping[str, TableSource]) -> dict[str, tuple[str, ...]]:
    return {name: table.published_columns for name, table in tables.items()}


def _recounted(given: ReleasedTables, staged: list[PublishedFile], staging: Path, histories: Path) -> TablesRecount:
    originals: dict[str, Original | None] = {}
    for name, table in given.tables.items():
        source = table.table.source
        originals[name] = Original(normalised_relation(table.table.job, source.relation), source.columns)
    files = files_by_table(staged, staging, given.job.tables)
    levels = {table: given.published_levels(table) for table in given.tables}
    written = WrittenTables(given.job, files, originals, levels)
    return recount_tables(written, given.run.spill, f"release '{given.release}'", histories)


def _attacked(given: ReleasedTables, staged: list[PublishedFile], staging: Path) -> PlayedAttacks | None:
    """Attack the staged tables and return the figures; None if the job turned attacks off."""
    run, settings = given.run, given.job.attacks
    if settings is None:
        return None
    # Loads what no run needs whose job turned attacks off.
    from tasks.attacks.joined_tables import attack_tables, basis_of_tables  # noqa: PLC0415
    from tasks.attacks.release_attack import PlayedAttacks  # noqa: PLC0415

    files = files_by_table(staged, staging, given.job.tables)
    with run.phase("attacks"):
        played = step_here("attacks", "attack", lambda: attack_tables(given.job, files, run.spill, f"release '{given.release}'"))
    if (by := refusal_words(settings, run.policy)) and (broken := broken_attacks(played)):
        raise AttackError.broken([attacks_sentence(one) for one in broken], by)
    return PlayedAttacks(labels=played, source=(), basis=basis_of_tables(settings))


def _manifest(given: ReleasedTables, outcome: TablesOutcome, staged: list[PublishedFile], counted: TablesRecount) -> TablesManifest:
    run, job = given.run, given.job
    tables = table_entries(given, counted)
    return TablesManifest(
        release=given.release,
        name=job.name,
        job=run.secret.keyed("job", tables_digest(job)),
        inputs=run.secret.keyed("inputs", {name: table.table.source.digest for name, table in given.tables.items()}),
        method=job.method.name,
        privacy=tables_promise(job),
        unit=job.tree.unit,
        key_columns={name: spec.key for name, spec in job.tables.items() if spec.key},
        references={name: spec.references for name, spec in job.tables.items() if spec.references},
        persons=ReleasedPersons(source=tables[job.tree.unit].records, released=counted.persons, smallest_class=counted.smallest),
        histories=counted.histories,
        min_class=counted.smallest,
        tables=tables,
        loss=loss_of_tables(tables, counted.penalties),
        pseudonyms=unit_key_words(job),
        published={name: dict(columns) for name, columns in counted.published.items()},
        passthrough_together=counted.persons_together,
        sensitive_together=counted.persons_sensitive_together,
        optimal=NOT_FOR_NODES if job.is_local else "certified",
        search={} if job.is_local else {"nodes": outcome.nodes},
        files=tuple(staged),
        versions=versions(),
        seconds={phase: round(spent, 3) for phase, spent in run.seconds.items()},
        peak_rss=peak_rss(),
        policy=run.policy.digest if run.policy else None,
        run_by=job.run_by,
    )
