"""Rebuilding a release's report from its manifest and files, without job or source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from core.recount.classes import Recount, contradicted_counts
from core.recount.groups import RecordRelation
from schemas.errors.base import StorageError, VerificationError
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from schemas.release.report import Report
from schemas.release.terms import Terms
from tasks.recount.recount import count_classes, file_faults, risk_faults
from tasks.release.examples import examples_of
from tasks.release.files import data_files, file_error, layout_of, relation_of
from tasks.release.manifest import is_of_job, read_manifest
from tasks.report.report import make_report
from tasks.report.terms import terms_of
from tasks.store.database import database
from tasks.store.secret import read_secrets


def rebuild_report(release: Path, job: Job | None = None) -> Report:
    """Verify a release's files against its manifest, recount their classes, and rebuild its report.

    Args:
        release: The release folder.
        job: The job that made it; only needed for manifests of versions that did not keep its settings.
    """
    files, manifest = data_files(release), read_manifest(release)
    if manifest is None:
        raise StorageError.not_a_release(str(release), "it has no manifest.json")
    what, terms = f"'{release}'", _terms(release, manifest, job)
    # Digests first: what is counted in altered files says nothing of the release.
    if faults := file_faults(release, files, manifest):
        raise VerificationError(what, faults)
    found = recount_release_files(what, files, manifest, terms)
    if faults := rebuilt_report_faults(manifest, found):
        raise VerificationError(what, faults)
    return make_report(manifest, terms, found, examples_of(what, files, manifest, terms))


def recount_release_files(what: str, files: Sequence[Path], manifest: Manifest, terms: Terms) -> Recount:
    """Count the classes in a release's data files by its manifest, without the job.

    Args:
        what: How the release is called in a message.
        files: The data files.
        manifest: Gives k and the format of CSV files.
        terms: Give the columns under which the quasi-identifiers are published.
    """
    columns = [column for qid in terms.quasi_identifiers for column in qid.columns]
    layout = layout_of(files, manifest.columns)
    # Without a job there is no work folder; what is spilt here is of published files.
    with TemporaryDirectory(prefix="skald-report-") as spill, database(terms.memory, Path(spill)) as connection, file_error(what):
        relation = RecordRelation(relation_of(connection, files, layout))
        return count_classes(connection, relation, columns, manifest.privacy["k"], terms.sensitive)


def rebuilt_report_faults(manifest: Manifest, found: Recount) -> list[str]:
    """Return the differences between a manifest and the recount of its files, without the job."""
    thin = [f"{found.failing:,} of {found.classes:,} classes hold fewer than k records"] if found.failing else []
    return thin + contradicted_counts(manifest, found) + risk_faults(manifest, found)


def _terms(release: Path, manifest: Manifest, job: Job | None) -> Terms:
    """Return the terms of the job that made a release, from its manifest or else from the job."""
    # The hierarchies of another job would put the wrong words to levels.
    if job is not None and not is_of_job(manifest, job, read_secrets(job)):
        raise StorageError.other_job(str(release))
    if manifest.asked is not None:
        return manifest.asked
    if job is None:
        raise StorageError.no_job_settings(str(release))
    qids = [qid.name for qid in job.columns.quasi_identifiers]
    return terms_of(job, manifest.node, [manifest.tops[qid] for qid in qids] if manifest.tops else ())
