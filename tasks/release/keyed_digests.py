"""The digests that a manifest bears of job and source: keyed, so that whoever guesses either cannot confirm the guess.

Manifests of versions before bear plain ones, and are known by those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.job.digest import hierarchies_of, job_digest
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from tasks.store.secret import FolderSecret

OF_HIERARCHY = 32
"""Digits that tell a hierarchy."""


def keyed_job(job: Job, secret: FolderSecret) -> str:
    """Returns the digest of a job as a manifest bears it."""
    return secret.keyed("job", job_digest(job))


def keyed_file(digest: str, secret: FolderSecret) -> str:
    """Returns the digest of a file of the source as a manifest bears it."""
    return secret.keyed("file", digest)


def keyed_hierarchies(job: Job, secret: FolderSecret) -> dict[str, str]:
    """Returns the digest of each quasi-identifier with its hierarchy, in job order, as a manifest bears it."""
    return {name: secret.keyed("hierarchy", name, digest)[:OF_HIERARCHY] for name, digest in hierarchies_of(job).items()}


def is_of_job(manifest: Manifest, job: Job, known: Iterable[FolderSecret]) -> bool:
    """Tells whether a manifest is of this job, as far as secrets that are known can tell."""
    return manifest.job in {job_digest(job), *(keyed_job(job, secret) for secret in known)}


def hierarchies_as_in(manifest: Manifest, job: Job, known: Iterable[FolderSecret]) -> Mapping[str, str]:
    """Returns the job's hierarchies as a manifest would bear them: keyed with the secret by which most are alike."""
    mine = [hierarchies_of(job), *(keyed_hierarchies(job, secret) for secret in known)]
    return max(mine, key=lambda one: len(one.items() & manifest.hierarchies.items()))


def files_in(manifest: Manifest, digests: Iterable[str], known: Iterable[FolderSecret]) -> set[str]:
    """Returns those of some plain digests whose files a release is made of, as far as secrets that are known can tell."""
    theirs, secrets = {file.digest for file in manifest.sources}, list(known)
    return {one for one in digests if not theirs.isdisjoint({one, *(keyed_file(one, secret) for secret in secrets)})}


def is_of_files(manifest: Manifest, digests: Iterable[str], known: Iterable[FolderSecret]) -> bool:
    """Tells whether a manifest is of files of these plain digests, as far as secrets that are known can tell."""
    plain, theirs = list(digests), sorted(file.digest for file in manifest.sources)
    return any(sorted(mine) == theirs for mine in (plain, *([keyed_file(one, secret) for one in plain] for secret in known)))
