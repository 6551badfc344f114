"""Note on a job that a release was not made of, for verification with the job file alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from schemas.errors.base import JobError, counted
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.registry.privacy_kinds import DISTANCES
from schemas.relational.manifest import TablesManifest
from schemas.relational.table_jobs import table_job, tables_digest, tables_promise
from schemas.relational.tables_job import TablesJob
from schemas.release.manifest import Manifest
from tasks.release.manifest import is_of_job
from tasks.store.secret import FolderSecret, read_secrets

_MOST = 3
_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")
_WORDS = {"all", *METHODS, *DISTANCES}
OTHER = "The job given is not the one that the release was made of"
DIGESTS_DIFFER = "their keyed digests differ"
SET = "If the release was made with --set, give the same settings with --set here"


def other_job_note(job: Job, manifest: Manifest) -> str:
    """Return a sentence if a job is not the one of the manifest; empty if it is or may be."""
    known = read_secrets(job)
    return _job_note(job, manifest, job.privacy.summary(), known, lambda: is_of_job(manifest, job, known))


def other_tables_job_note(job: TablesJob, manifest: TablesManifest) -> str:
    """Return a sentence if a job of several tables is not the manifest's; empty if it may be."""
    known = read_secrets(table_job(job, job.tree.unit))

    def is_its_job() -> bool:
        return any(secret.keyed("job", tables_digest(job)) == manifest.job for secret in known)

    return _job_note(job, manifest, tables_promise(job), known, is_its_job)


def _job_note(
    job: Job | TablesJob,
    manifest: Manifest | TablesManifest,
    promise: Mapping[str, Any],
    known: Sequence[FolderSecret],
    is_its_job: Callable[[], bool],
) -> str:
    keyed = bool(known)
    try:
        if is_its_job():
            return ""
    except JobError:
        # Its hierarchy files cannot be read, without which it has no digest.
        keyed = False
    asked = {"method": {"name": job.method.name}, "privacy": to_jsonable_python(promise)}
    return _note({"method": {"name": manifest.method}, "privacy": manifest.privacy}, asked, keyed=keyed)


def _note(stated: Mapping[str, Any], asked: Mapping[str, Any], *, keyed: bool) -> str:
    """Return the sentence with what differs between release and job; empty if nothing does.

    A keyed digest that differs counts too.

    A manifest that somebody changed looks the same, so that the sentence says so.
    """
    theirs, mine = dict(_leaves(stated)), dict(_leaves(asked))
    both = {name: f"{_shown(theirs[name])} in the release and {_shown(mine[name])} in the job" for name in mine if name in theirs}
    apart = [f"{name} is {both.get(name, 'in the job alone')}" for name in mine if name not in both or theirs[name] != mine[name]]
    # Their names are not repeated: in a manifest that somebody changed they may be anything.
    if alone := len(theirs.keys() - mine.keys()):
        apart.append(f"{counted(alone, 'setting')} of privacy in the release alone")
    if not (apart or keyed):
        return ""
    return f"{OTHER}, or the manifest was changed: {'; '.join(apart[:_MOST]) or DIGESTS_DIFFER}. {SET}."


def _leaves(said: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the settings of a promise by dotted name."""
    for key, value in said.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(value: object) -> str:
    """Return a number or known word of a promise, and ``something else`` for any other value.

    A manifest that somebody changed may hold anything.
    """
    return str(value) if _NUMBER.fullmatch(str(value)) or str(value) in _WORDS else "something else"
