"""Verification and simulated attacks of a published release, for the command and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from flows.verification import verified_release
from schemas.errors.refusals import AttackError
from schemas.job.job import Job
from schemas.job.privacy import AttackBasis, AttackFigures, AttackSettings, attacks_sentence, broken_attacks
from schemas.relational.manifest import files_by_table
from schemas.relational.table_jobs import unit_job
from schemas.relational.tables_job import TablesJob
from schemas.release.manifest import Manifest
from tasks.attacks.joined_tables import attack_tables, basis_of_tables
from tasks.attacks.release_attack import AttackedFiles, PlayedAttacks, attack_release, earlier_attacks
from tasks.engine.runs import policy_in_force
from tasks.publication.disclosures import refusal_words
from tasks.recount.original import Original, source_at_hand, unproved_reason
from tasks.relational.verified import verify_tables
from tasks.release.files import data_files, layout_of
from tasks.release.manifest import manifest_content, read_manifest
from tasks.store.work import read_only_store
from tasks.store.work_folder import temporary_folder_of
from tasks.verification.published_releases import release_folder


class AttackOutcome(NamedTuple):
    """Results of all attacks on one verified release, with the sample and seed.

    Attributes:
        release: Its name.
        attacks: All attacks: against people of the source where that is at hand, else as labels show them; and earlier releases.
        basis: What they were played with.
    """

    release: str
    attacks: tuple[AttackFigures, ...]
    basis: AttackBasis

    @property
    def broken(self) -> list[AttackFigures]:
        """Attacks that succeed more than the job accepts."""
        return broken_attacks(self.attacks)

    def content(self) -> dict[str, Any]:
        """Return the results as JSON data."""
        return {
            "release": self.release,
            "attacks": [one.model_dump(mode="json") for one in self.attacks],
            **self.basis.model_dump(mode="json"),
        }


def attacked_release(job: Job, release: str, *, everybody: bool = False) -> AttackOutcome:
    """Verify a release or raise; attack it, also together with earlier ones, and return the results.

    Args:
        job: The job that made it.
        release: Folder, or address in an object store.
        everybody: Whether attacks are played against all people and not a sample.

    Raises:
        SkaldError: the release does not verify, or something cannot be read.
    """
    settings = job.attacks or AttackSettings()
    if everybody:
        settings = settings.model_copy(update={"sample": "all"})
    with (
        source_at_hand(job) as original,
        release_folder(release) as folder,
        read_only_store(job),
        temporary_folder_of(job, "verify") as spill,
    ):
        verified_release(job, release, None, original)
        manifest = read_manifest(folder)
        attacked, reason = _attacked(job, folder, manifest, original)
        played = attack_release(job, settings, attacked, spill)
    earlier = earlier_attacks(manifest.overlaps or (), manifest.joined or (), refused=job.overlaps == "refuse") if manifest else ()
    basis = played.basis.model_copy(update={"unplayed": (reason,)}) if reason else played.basis
    return AttackOutcome(manifest.release if manifest else folder.name, (*_together(played), *earlier), basis)


def _attacked(job: Job, folder: Path, manifest: Manifest | None, original: Original | None) -> tuple[AttackedFiles, str]:
    """Return the attacked files of a release, and why persons of the source are not attacked.

    The reason is a sentence; empty where the source is attacked.
    """
    reason = unproved_reason(job, manifest, original)
    files = data_files(folder)
    layout = layout_of(files, manifest.columns if manifest else {}, job.output.delimiter)
    text = manifest_content(folder).decode("utf-8", "replace") if manifest else ""
    records = manifest.records if manifest else 0
    said = f"Only what labels show was attacked: {reason}." if reason else ""
    return AttackedFiles(files, layout, None if reason else original, text, records), said


def _together(played: PlayedAttacks) -> tuple[AttackFigures, ...]:
    """Return the attacks on the source and on the labels as one list.

    Of an attack that was run on both, the one on the source stays, and the one on labels too where it breaks the release.
    """
    known = {(one.name, one.target, one.knows) for one in played.source}
    others = [one for one in played.labels if (one.name, one.target, one.knows) not in known or one.verdict == "broken"]
    return (*played.source, *others)


def attacked_tables(job: TablesJob, release: Path) -> AttackOutcome:
    """Verify a release of several tables or raise; attack it by joins, and return the results.

    Args:
        job: The job that made it.

    Raises:
        SkaldError: the release does not verify, or something cannot be read.
    """
    unit = unit_job(job)
    with read_only_store(unit):
        manifest = verify_tables(job, release).manifest
        files = files_by_table(manifest.files, release, job.tables)
        with temporary_folder_of(unit, "verify") as spill:
            played = attack_tables(job, files, spill, f"'{release}'")
    earlier = earlier_attacks(manifest.overlaps or (), manifest.joined or (), refused=job.overlaps == "refuse")
    return AttackOutcome(manifest.release, (*played, *earlier), basis_of_tables(job.attacks or AttackSettings()))


def check_attacked(job: Job, attacked: AttackOutcome) -> None:
    """Raise ``AttackError`` if attacks break a published release and the job or the policy refuses that.

    Raises:
        AttackError: they do.
        PolicyError: the job stands below the policy, or that cannot be read.
    """
    if (by := refusal_words(job.attacks, policy_in_force(job))) and attacked.broken:
        raise AttackError.published(attacked.release, [attacks_sentence(one) for one in attacked.broken], by)
