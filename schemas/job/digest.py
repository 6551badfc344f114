"""The digest of a job: equal for jobs that make equal releases from equal data."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from schemas.errors.base import JobError
from schemas.hierarchies.kinds import Hierarchy
from schemas.job.job import Job


def job_digest(job: Job) -> str:
    """Returns the SHA-256, in hex, of all that determines a release's content.

    That is ``job.canonical()`` and the bytes of the hierarchy files. How the job is written down, where source, target and
    hierarchy files lie, and what only concerns the work (chunks, threads, artefacts) does not matter.
    """
    content = job.canonical()
    content["columns"]["quasi_identifiers"] = quasi_identifiers_content(job)
    content["privacy"] = privacy_content(job)
    return digest_of(content)


def quasi_identifiers_digest(job: Job) -> str:
    """Returns the SHA-256, in hex, of the quasi-identifiers and their hierarchies alone, the bytes of hierarchy files included."""
    return digest_of(quasi_identifiers_content(job))


def hierarchies_of(job: Job) -> dict[str, str]:
    """Returns the digest of each quasi-identifier with its hierarchy, in job order: where they are equal, levels mean the same."""
    qids = job.columns.quasi_identifiers
    return {qid.name: digest_of(content)[:32] for qid, content in zip(qids, quasi_identifiers_content(job), strict=True)}


def quasi_identifiers_content(job: Job) -> list[dict[str, Any]]:
    """Returns the quasi-identifiers in canonical form, with the digest of a hierarchy file in the place of its path."""
    contents, faults = [], []
    for position, qid in enumerate(job.columns.quasi_identifiers):
        content = qid.canonical()
        faults += _digested(job, qid.hierarchy, content, f"quasi_identifiers[{position}] '{qid.name}'")
        contents.append(content)
    if faults:
        raise JobError(str(job.folder), faults)
    return contents


def privacy_content(job: Job) -> dict[str, Any]:
    """Returns the privacy models in canonical form, with the digest of a hierarchy file in the place of its path."""
    content, faults = job.privacy.canonical(), []
    for column, closeness in job.privacy.t.items():
        faults += _digested(job, closeness.hierarchy, content["t"][column], f"privacy.t '{column}'")
    if faults:
        raise JobError(str(job.folder), faults)
    return content


def _digested(job: Job, hierarchy: Hierarchy | None, content: dict[str, Any], place: str) -> list[str]:
    """Puts the digest of a hierarchy's file in the place of its path; returns what is wrong with the file."""
    if hierarchy is None or hierarchy.listed_in is None:
        return []
    file: Path = getattr(hierarchy, hierarchy.listed_in)
    try:
        content["hierarchy"][hierarchy.listed_in] = hashlib.sha256(hierarchy.content(job.folder)).hexdigest()
    except OSError as error:
        return [f"{place}: hierarchy file '{file}': {error.strerror or 'it cannot be read'}; check the path"]
    return []


def digest_of(content: object) -> str:
    """Returns the SHA-256, in hex, of JSON-able data, whatever the order of its keys."""
    # Escaped, without blanks, keys sorted: one spelling for the same data on every machine.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
