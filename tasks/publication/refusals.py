"""What a release discloses that its job or the policy does not accept: refused after the recount, before anything is published."""

from __future__ import annotations

from core.recount.classes import Recount
from core.recount.linked import exposing
from schemas.errors.linked import LinkedError
from schemas.errors.passthrough import UntreatedError
from schemas.job.job import Job
from schemas.release.counts import reported_in_words
from tasks.engine.runs import Run


def check_linked(job: Job, counted: Recount) -> None:
    """Refuses pseudonyms by which fewer than k people share the set of combinations that their records are in, unless the job accepts it.

    Raises:
        LinkedError: some do.
    """
    for one in exposing(job, counted.linked):
        unit = "person" if job.columns.person else "pseudonym"
        keep = "method.linked: keep" if one.columns == tuple(job.columns.person) and getattr(job.method, "linked", None) == "tell" else ""
        raise LinkedError.below_k(one.columns, one.below_k, one.people, one.smallest, job.privacy.k, unit, keep)


def check_untreated(run: Run, found: Recount) -> None:
    """Refuses untreated columns that tell fewer than k apart together, where the policy forbids to accept it.

    Raises:
        UntreatedError: they do.
    """
    policy, together, k = run.policy, found.together.get("insensitive"), run.job.privacy.k
    if policy and not policy.accept_untreated and together and together.below_k:
        raise UntreatedError.below_k(reported_in_words(together.below_k, k), found.units, found.unit, k, policy.path)
