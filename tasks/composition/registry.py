"""The registry in the folder of jobs: which releases the jobs of one folder have made, and by what their sources are known again.

One job knows of another's releases by it, in whatever target. It holds digests, names and counts, no cell value, for its owner alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from core.composition.identities import Sample
from schemas.errors.base import StorageError
from schemas.job.job import Job
from tasks.composition.identities import identity_columns, read_sample, write_sample
from tasks.source.chunks import Source
from tasks.store.files import file_digest, private_folder, write_whole
from tasks.store.sealed import seal, unsealed

FOLDER, IN_WORK = ".releases", "registry"
MOST_KNOWN = 200
"""Releases that are known, the newest: each costs 300 kB."""


class Registered(BaseModel):
    """A release as other jobs know it.

    Attributes:
        release: Its id.
        place: The folder that it is in, empty for an address in an object store.
        work: The work folder of its job.
        k: What it promises.
        records: N of its source.
        files: Plain digest and records of each file of the source.
        columns: By which records of the source are known.
        qids: Names of the quasi-identifiers.
        sample: SHA-256 of the sample of its records.
    """

    model_config = ConfigDict(frozen=True)

    release: str
    place: str
    work: str
    k: int
    records: int
    files: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    qids: tuple[str, ...]
    sample: str

    @property
    def is_there(self) -> bool:
        """Whether it was published and is in its target still, as far as that can be seen here."""
        return not self.place or Path(self.place, self.release).is_dir()


def registry_folder(job: Job) -> Path:
    """Returns the folder of the registry, made if it is not there: beside the work folders, or in the job's where that cannot be written.

    Raises:
        StorageError: neither can be written.
    """
    try:
        return private_folder(job.folder / ".skald" / FOLDER)
    except StorageError:
        # A folder of jobs may be there for reading only; what other jobs release is then not known.
        return private_folder(job.work_path / IN_WORK)


def register(job: Job, release: str, source: Source, sample: Sample) -> None:
    """Enters a release, and forgets all but the newest; before it is published, and not believed unless it is.

    Raises:
        StorageError: the folder cannot be written.
    """
    folder = registry_folder(job)
    write_whole(folder / f"{release}.sample", lambda part: write_sample(part, sample))
    entry = Registered(
        release=release,
        place="" if job.target_address else str(job.target_path),
        work=str(job.work_path),
        k=job.privacy.k,
        records=source.records,
        files=tuple((file.digest, file.rows) for file in source.files),
        columns=tuple(identity_columns(source)),
        qids=tuple(qid.name for qid in job.columns.quasi_identifiers),
        sample=file_digest(folder / f"{release}.sample"),
    )
    # The entry goes last: what has none is not there.
    write_whole(folder / f"{release}.record", lambda part: part.write_text(seal(entry.model_dump(mode="json"))))
    for record in _records(folder)[MOST_KNOWN:]:
        record.unlink(missing_ok=True)
        record.with_suffix(".sample").unlink(missing_ok=True)


def registered(job: Job) -> Iterator[Registered]:
    """Yields the releases that are known and in their targets, the newest first.

    Raises:
        StorageError: the folder cannot be made.
    """
    for record in _records(registry_folder(job)):
        try:
            entry = Registered.model_validate(unsealed(record))
        except ValidationError:
            continue
        if entry.release == record.stem and entry.is_there:
            yield entry


def sample_kept(job: Job, entry: Registered) -> Sample | None:
    """Returns the sample of a release's records; None if it is gone or not what was written.

    Raises:
        StorageError: the folder cannot be made.
    """
    path = registry_folder(job) / f"{entry.release}.sample"
    try:
        return read_sample(path) if file_digest(path) == entry.sample else None
    except OSError:
        return None


def _records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.record"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
