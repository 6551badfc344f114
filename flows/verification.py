"""Verification of a release with job, source and run folder, for the command and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from core.recount.classes import population_risk_of_files
from core.recount.people import share_at_most
from schemas.errors.refusals import OverlapError
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.reading.job_files import is_of_tables
from schemas.reading.regular_files import GivenJob
from schemas.release.figures import KINDS
from schemas.release.increments import joint_warnings
from tasks.composition.release_history import people_of_release, seal_of_release
from tasks.publication.manifests import risk_after
from tasks.recount.original import Original
from tasks.release.manifest import is_of_tables_as_its_job
from tasks.release.signatures import read_public_key
from tasks.store.store import Store
from tasks.store.work import read_only_store
from tasks.verification.published_releases import is_address_of_tables, newer_releases, release_folder
from tasks.verification.release import VerificationContext, Verified, verify_published

if TYPE_CHECKING:
    from schemas.relational.tables_job import TablesJob
    from tasks.relational.verified import VerifiedTables

NOT_RECOUNTED = "What releases disclose together was counted when this one was made, and is not counted again: others may have come since."


NOT_PLAIN = {"sizes", "persons", "linked", "population", "together", "losses", "passed", "published"}
"""What of a recount is no figure by itself."""


def verified_release(job: Job | None, release: str, key: Path | None, original: Original | None = None) -> Verified:
    """Verify a release and return the findings; raise if its files differ or its promise is not kept.

    Args:
        job: The job whose promise is checked, if it is at hand.
        release: Folder, or address in an object store.
        key: File of the public key that must have signed it.
        original: The source, where the caller has opened it already.

    Raises:
        OverlapError: it puts somebody at risk together with an earlier one, or was not compared, and the job says to refuse that.
        SkaldError: anything is not as it was published, or cannot be read.
    """
    trusted = read_public_key(key) if key else None
    with release_folder(release) as folder, read_only_store(job) if job else nullcontext() as store:
        verified = verify_published(job, folder, replace(_known(store, release, folder, trusted), original=original))
    told = joint_warnings(verified.manifest) if verified.manifest else ()
    if job is not None and job.overlaps == "refuse" and told:
        raise OverlapError.published(told)
    return replace(verified, notes=(*verified.notes, *([NOT_RECOUNTED] if told else [])))


def is_about_tables(release: str, job: Path | GivenJob | None, settings: Sequence[str]) -> bool:
    """Return whether a release is of several tables; raise ``StorageError`` for a job of the other kind.

    If there is no release, the job decides, and its verification reports the missing release.

    Raises:
        StorageError: the job is of the other kind.
    """
    if is_address_of_tables(release) if is_address(release) else is_of_tables_as_its_job(Path(release), job, settings):
        return True
    return job is not None and (is_address(release) or not Path(release).is_dir()) and is_of_tables(job, settings)


def verified_release_of_tables(release: str, job: Path | GivenJob | None, settings: Sequence[str], key: Path | None) -> VerifiedTables:
    """Verify a release of several tables at a folder or address; return the findings, or raise.

    Args:
        release: Folder, or address in an object store.
        job: The job whose promise is checked, if it is at hand.
        settings: What replaced settings of it.
        key: File of the public key that must have signed it.

    Raises:
        SkaldError: anything is not as it was published, or cannot be read.
    """
    from schemas.relational.tables_job import load_tables_job  # noqa: PLC0415 - what releases of one table do without

    loaded = load_tables_job(job, settings) if job is not None else None
    trusted = read_public_key(key) if key else None
    with release_folder(release) as folder:
        return verified_tables(loaded, folder, trusted, release)


def verified_tables(job: TablesJob | None, release: Path, key: bytes | None = None, location: str = "") -> VerifiedTables:
    """Verify a release of several tables in a folder; return the findings, or raise.

    Args:
        job: The job whose promise is checked, if it is at hand.
        key: The public key that must have signed it.
        location: Folder or address as it was given; empty for the folder itself.

    Raises:
        OverlapError: it puts somebody at risk together with an earlier one, or was not compared, and the job says to refuse that.
        SkaldError: anything is not as it was published, or cannot be read.
    """
    from schemas.relational.table_jobs import unit_job  # noqa: PLC0415 - what releases of one table do without
    from tasks.relational.verified import verify_tables  # noqa: PLC0415 - as above

    with read_only_store(unit_job(job)) if job else nullcontext() as store:
        verified = verify_tables(job, release, key, seal_of_release(release.resolve().name, store) if store else "")
    told = joint_warnings(verified.manifest)
    if job is not None and job.overlaps == "refuse" and told:
        raise OverlapError.published(told)
    newer = newer_releases(location or str(release), release, verified.manifest)
    return verified._replace(notes=(*verified.notes, *([NOT_RECOUNTED] if told else [])), newer=newer)


def _known(store: Store | None, place: str, folder: Path, key: bytes | None) -> VerificationContext:
    """Return what the run folder knows about a release: its persons and its manifest's digest."""
    if store is None:
        return VerificationContext(place, key=key)
    name = folder.resolve().name
    return VerificationContext(place, people_of_release(name, store), seal_of_release(name, store), key)


def figures_of(verified: Verified) -> dict[str, Any]:
    """Return the counts and findings of a verification as JSON data."""
    recount, manifest = verified.recount, verified.manifest
    suppressed, masked = (manifest.suppressed, manifest.masked) if manifest else (0, 0)
    figures = {name: value for name, value in vars(recount).items() if name not in NOT_PLAIN}
    persons = {name: value for name, value in vars(recount.persons).items() if name != "sizes"} if recount.persons else None
    if persons and recount.persons:
        persons["largest_share"] = share_at_most(recount.persons.largest_share)
    linked = [vars(one) for one in recount.linked]
    population = population_risk_of_files(*recount.population) if recount.population else None
    evidence = {
        "signed_by": manifest.signed_by if manifest else None,
        "notes": verified.notes,
        "newer": verified.newer,
        "unverified": verified.unverified,
        "on_trust": verified.on_trust,
    }
    # As the manifest has it: it says nothing of fewer than k.
    together = {kind: one.model_dump() for kind in KINDS if manifest and (one := manifest.together(kind))}
    found: dict[str, Any] = to_jsonable_python(
        figures
        | {
            "together": together,
            "population": population,
            "persons": persons,
            "linked": linked,
            "published": {name: loss.model_dump() for name, loss in recount.published.items()},
            "risk": risk_after(recount, suppressed, masked),
        }
        | evidence
    )
    return found
