"""What a run says in a manifest, held against the recount and the job before it is published: what ``skald verify`` will look at again."""

from __future__ import annotations

from core.recount.classes import Recount, manifest_faults
from core.recount.figures import figure_faults
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from tasks.recount.recount import risk_faults
from tasks.verification.job_figures import job_faults


def stated_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Returns which figures of a manifest are not those of its job and of the recount of its files with the source.

    Raises:
        SecretError: that of the environment is weak, or the file holds none.
    """
    faults = manifest_faults(job, manifest, recount) + risk_faults(manifest, recount)
    return faults + job_faults(job, manifest)[0] + figure_faults(manifest, recount, proved=True)
