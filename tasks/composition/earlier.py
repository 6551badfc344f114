"""Which releases that are there already are made of some of the same records: by files, and by records where files do not tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.composition.identities import Sample, share_records
from schemas.errors.base import StorageError
from schemas.job.job import Job
from tasks.composition.identities import identity_columns
from tasks.composition.registry import Registered, registered, sample_kept
from tasks.release.keyed import files_in
from tasks.release.manifest import read_manifest
from tasks.source.chunks import Source
from tasks.store.secret import known_secrets


class Earlier(NamedTuple):
    """A release that is there already and shares records with the source, or may.

    Attributes:
        release: Its id.
        k: What it promises.
        records: N of its source.
        files: Plain digests of those files of the source that it is made of too.
        told: Whether these files hold all that both have in common.
        work: The work folder of its job; None where that is not known.
        untold: Why it cannot be compared, as the end of a sentence; empty if it can, as far as is known.
    """

    release: str
    k: int
    records: int
    files: frozenset[str]
    told: bool
    work: Path | None = None
    untold: str = ""


def earlier_releases(job: Job, source: Source, release: str, sample: Sample) -> Iterator[Earlier]:
    """Yields other releases that are made of some of the same records, or may be, the newest first of each kind.

    Args:
        job: The job.
        source: Its source.
        release: The id of its release.
        sample: Of the records of the source.

    Raises:
        StorageError: the registry cannot be made.
        SecretError: that of the environment is weak, or the file holds none.
    """
    known = [entry for entry in registered(job) if entry.release != release]
    for entry in known:
        if found := _related(job, source, sample, entry):
            yield found
    yield from _of_manifests(job, source, {release, *(entry.release for entry in known)})


def _related(job: Job, source: Source, sample: Sample, entry: Registered) -> Earlier | None:
    """Returns what a release has in common with the source; None where it has nothing."""
    theirs = {digest for digest, rows in entry.files if rows}
    files = frozenset(file.digest for file in source.files if file.rows and file.digest in theirs)
    found = Earlier(entry.release, entry.k, entry.records, files, told=True, work=Path(entry.work))
    if list(entry.columns) != identity_columns(source):
        if files:
            return found
        # A query for other columns, say. Records cannot be told to be the same ones, and neither to be others.
        qids = {qid.name for qid in job.columns.quasi_identifiers}
        alike = qids <= set(entry.qids) or set(entry.qids) <= qids
        return found._replace(untold="its source has other columns, so that its records are not known again") if alike else None
    other = sample_kept(job, entry)
    if other is None:
        return found if files else found._replace(untold="the sample of its records is gone")
    # Of the records of files that only one of them has.
    here = [number for number, file in enumerate(source.files) if file.digest not in files]
    there = [number for number, (digest, _) in enumerate(entry.files) if digest not in files]
    mine = sample.up_to(other.end).among(np.array(here, np.int32))
    if share_records(mine, other.up_to(sample.end).among(np.array(there, np.int32))):
        return found._replace(told=False)
    return found if files else None


def _of_manifests(job: Job, source: Source, known: set[str]) -> Iterator[Earlier]:
    """Yields the releases of the target that the registry does not know, such as those of other folders, if they share files."""
    # What begins with a dot is staging, and no release.
    found = [path.parent for path in job.target_path.glob("*/manifest.json") if not path.parent.name.startswith(".")]
    mine, secrets = {file.digest for file in source.files if file.rows}, known_secrets(job)
    for folder in sorted(found, key=lambda folder: (folder / "manifest.json").stat().st_mtime_ns, reverse=True):
        try:
            manifest = read_manifest(folder)
        except StorageError:
            continue
        if manifest and manifest.release not in known and (files := files_in(manifest, mine, secrets)):
            yield Earlier(manifest.release, int(manifest.privacy["k"]), manifest.records, frozenset(files), told=True)
