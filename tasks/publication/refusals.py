"""What a release discloses that its job or the policy does not accept: refused after the recount, before anything is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.recount.classes import Recount
from core.recount.linked import exposing_links
from schemas.attacks.figures import AttackBasis, AttackSettings, attacks_sentence
from schemas.errors.refusals import AttackError, LinkedError, UntreatedError
from schemas.job.job import Job
from schemas.policy.policy import Policy
from schemas.release.figures import reported_sentence
from schemas.release.manifest import Manifest
from tasks.engine.runs import Run
from tasks.engine.steps import step_here
from tasks.publication.recount_calls import Written, written_at_hand
from tasks.recount.original import Original, normalised_relation
from tasks.source.chunks import ChunkedSource

if TYPE_CHECKING:
    from tasks.attacks.release_attack import PlayedAttacks

MOST_FETCHED = 64_000_000
"""Bytes of data files that are read back from a store to attack them."""
IN_A_STORE = "The files lie in a store and are large, and were not read back to attack them."


def check_linked(job: Job, counted: Recount) -> None:
    """Refuse pseudonyms by which fewer than k people share their combinations, unless the job accepts it."""
    for one in exposing_links(job, counted.linked):
        unit = "person" if job.columns.person else "pseudonym"
        keep = "method.linked: keep" if one.columns == tuple(job.columns.person) and getattr(job.method, "linked", None) == "tell" else ""
        raise LinkedError.below_k(one.columns, one.below_k, one.people, one.smallest, job.privacy.k, unit, keep)


def check_untreated(run: Run, found: Recount) -> None:
    """Refuse untreated columns that tell fewer than k apart together, where the policy forbids to accept it."""
    policy, together, k = run.policy, found.together.get("insensitive"), run.job.privacy.k
    if policy and not policy.accept_untreated and together and together.below_k:
        raise UntreatedError.below_k(reported_sentence(together.below_k, k), found.units, found.unit, k, policy.path)


def attack_written(run: Run, written: Written, source: ChunkedSource) -> PlayedAttacks | None:
    """Attack data files that were written; None where the job turned attacks off.

    Args:
        run: The run.
        written: The files.
        source: What they were made of.
    """
    settings = run.job.attacks
    if settings is None:
        return None
    with run.phase("attacks"):
        played = step_here("attacks", "attack", lambda: _played(run, settings, written, source))
    if by := refusing(settings, run.policy):
        if played.broken:
            raise AttackError.broken([attacks_sentence(one) for one in played.broken], by)
        if played.basis.unplayed:
            raise AttackError.unplayed(played.basis.unplayed, by)
    return played


def refusing(settings: AttackSettings | None, policy: Policy | None) -> str:
    """Return what asks to refuse releases that attacks break, in words; empty where nothing does."""
    if policy and policy.attacks:
        return f"the policy '{policy.path}'"
    return "the job (attacks.refuse)" if settings and settings.refuse else ""


def with_attacks(manifest: Manifest, played: PlayedAttacks | None, *, refused: bool) -> Manifest:
    """Return a manifest with what attacks came to that a release may say: figures of labels, and of earlier releases.

    Args:
        manifest: Says what earlier releases tell together with this one.
        played: The attacks; None where none were played.
        refused: Whether the job refuses releases that tell more together with earlier ones.
    """
    if played is None:
        return manifest
    from tasks.attacks.release_attack import earlier_attacks  # noqa: PLC0415

    earlier = earlier_attacks(manifest.overlaps or (), manifest.joined or (), refused=refused)
    return manifest.model_copy(update={"attacks": (*played.published, *earlier), "attacked": played.basis})


def _played(run: Run, settings: AttackSettings, written: Written, source: ChunkedSource) -> PlayedAttacks:
    # Loads what no run needs whose job turned attacks off.
    from tasks.attacks.release_attack import AttackedFiles, PlayedAttacks, attack_code, attack_release  # noqa: PLC0415

    if written.staging is None and sum(file.bytes or 0 for file in written.files) > MOST_FETCHED:
        sample = None if settings.sample == "all" else settings.sample
        return PlayedAttacks((), (), AttackBasis(sample=sample, seed=settings.seed, code=attack_code(), unplayed=(IN_A_STORE,)))
    with written_at_hand(run.job, written, run.store) as (spill, files):
        original = Original(normalised_relation(run.job, source.relation), source.columns)
        attacked = AttackedFiles(files, written.layout, original, records=source.records)
        return attack_release(run.job, settings, attacked, spill)
