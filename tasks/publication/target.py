"""Targets of jobs: folders, published by one rename, and buckets, published by their manifest.

In a folder ``<release>/`` exists if and only if the release was verified; ``CURRENT`` names the newest.

In a bucket tasks put the data files of a release under its own name, and they are recounted as they are read back from there. Readers take
for a release what has a manifest. The manifest is put last, only if there is none, and then ``CURRENT``; an old release is never changed. A
run that dies before leaves no manifest, so no release. The next run goes on with its files, or removes them where the data changed. A run
that is refused removes its own.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TypeVar

from schemas.errors.base import SkaldError, StorageError
from schemas.errors.storage import AfterPublicationError, ObjectStoreError, PointerError
from schemas.job.job import Job
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import MANIFEST, SIGNATURE, PublishedFile, has_valid_digest
from schemas.release.manifest import FORMAT, Manifest
from tasks.engine.runs import Run
from tasks.publication.disclosures import check_recalled
from tasks.publication.outputs import bucket_without_release, csv_layout, deliver_files, number_output_files, stage_output
from tasks.release.files import Csv
from tasks.release.manifest import MOST_BYTES, any_manifest_of, manifest_content, manifest_of, read_manifest
from tasks.store.files import USER_UMASK, apply_user_umask, file_digest, flush, open_folder, private_folder, write_atomically
from tasks.store.keys import fingerprint_of
from tasks.store.place import Bucket, target_of, work_of
from tasks.store.store import Artifact
from tasks.store.work import HeldWork
from tasks.store.work_folder import CURRENT, clear_staging, staging_prefix

Published = TypeVar("Published", Manifest, TablesManifest)

TRIES, MOST_OF_MARK = 100, 100
"""How often the pointer is put over what was read, while others put theirs; and bytes of a mark."""
DIGITS = "[0-9a-f]" * 16


@dataclass(frozen=True)
class Target:
    """A job's target in a folder, where publication renames a complete staging folder."""

    job: Job

    def may_hold_release(self) -> bool:
        """Return whether the target has a manifest under a name that this job's releases can have."""
        return bool(target_of(self.job).matching(f"{self.job.name}-{DIGITS}/{MANIFEST}"))

    def is_published(self, release: str) -> bool:
        """Return whether the target has a folder of a release's name."""
        return (self.job.target_path / release).is_dir()

    def recall(self, release: str, run: Run) -> Manifest | None:
        """Return a published release's manifest and name it in ``CURRENT``, None if absent; raise if altered.

        Args:
            run: The run, which raises too if its job or policy would refuse to publish the release now.
        """
        return self.recall_by(release, run, manifest_of, unaltered_manifest)

    def recall_by(
        self, release: str, run: Run, read: Callable[[bytes, str], Published], here: Callable[[Path], Published]
    ) -> Published | None:
        """Return a published manifest and name it in ``CURRENT``; None if absent; raise if files are missing.

        Args:
            run: The run, which raises too if its job or policy would refuse to publish the release now.
            read: Reads the manifest that a store has; the address is for messages.
            here: Reads that of a release in a folder.
        """
        folder = self.job.target_path / release
        if not folder.is_dir():
            return None
        manifest = here(folder)
        if lost := _count_altered_files(folder, manifest):
            raise StorageError.altered(release, lost)
        check_recalled(run, manifest)
        self._point(release)
        return manifest

    def remove_unfinished(self, work: HeldWork, *, but: str = "") -> None:
        """Do nothing: staging goes at each start; a bucket's target removes what killed runs left.

        Args:
            work: The work, while it is held.
            but: The release that the run goes on with.
        """

    def staging_folder(self, release: str) -> Path:
        """Remove the job's old staging folders; create a new one with ``data/`` in the target; return it.

        Nobody but its owner can look into it: what it holds may be refused yet.
        """
        job = self.job
        staging = job.target_path / f"{staging_prefix(job)}{release}"
        clear_staging(job)
        self._make_folder(job.target_path)
        try:
            # Each made by itself, so that a folder or a link that others laid there meanwhile is refused.
            staging.mkdir()
            (staging / "data").mkdir()
            apply_user_umask(staging / "data")
        except OSError as error:
            raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
        return staging

    def _make_folder(self, path: Path) -> None:
        open_folder(path)

    def write_data(self, run: Run, files: Sequence[Artifact], release: str, staging: Path) -> tuple[list[PublishedFile], Csv]:
        """Write a release's data files into staging in the job's format; return entries and CSV layout."""
        return stage_output(run.job, number_output_files(files), run.store, staging, run.spill), csv_layout(run.job, files, run.store)

    def folder_of_data(self, staging: Path) -> Path | None:
        """Return the folder of the written data files; None where they are in a bucket."""
        return staging

    def publish(self, staging: Path, release: str, work: HeldWork, files: Sequence[PublishedFile] = ()) -> None:
        """Rename the staging folder to the release, never over another; name the release in ``CURRENT``.

        Args:
            staging: Has report, manifest and, where there is a key, signature.
            work: The work, while it is held; asked whether it is before the manifest is put.
            files: Data files that were recounted in staging; those of ``write_data`` are in their place.
        """
        target = self.job.target_path
        try:
            apply_user_umask(staging)
            # rename() refuses a folder that is there and not empty, so an old release is never written over.
            staging.rename(target / release)
        except OSError as error:
            raise StorageError.not_writable(str(target / release), error.strerror or "unknown reason") from None
        try:
            flush(target)
            # Killed before this, the release is there and the next run of the job, which finds it, names it.
            self._point(release)
        except (OSError, StorageError):
            raise PointerError.not_named(release, str(target)) from None

    def _point(self, release: str) -> None:
        def write(part: Path) -> int:
            written = part.write_text(f"{release}\n")
            # Unlike an artefact it has no digest by which a power cut that emptied it would be noticed.
            flush(part)
            return written

        write_atomically(self.job.target_path / CURRENT, write, 0o666 & ~USER_UMASK, staging_prefix(self.job))

    @contextmanager
    def withdrawn_if_refused(self, release: str, work: HeldWork) -> Iterator[None]:
        """Do nothing around the block: staging goes at the run's end; a bucket's target removes files.

        Args:
            work: The work, while it is held. Where another run has taken over, these may be its files by now: they stay.
        """
        # In a folder, each run removes its staging folder at its end.
        yield


class BucketTarget(Target):
    """A job's target in a bucket, where publication uploads data files first and the manifest last."""

    @property
    def bucket(self) -> Bucket:
        """The bucket, or the prefix in it, that the job publishes in."""
        return Bucket(str(self.job.target))

    def recall_by(
        self, release: str, run: Run, read: Callable[[bytes, str], Published], here: Callable[[Path], Published]
    ) -> Published | None:
        """Return a published manifest and name it in ``CURRENT``; None if absent; raise if files are missing."""
        content = self._manifest_content(release)
        if content is None:
            return None
        manifest, there = read(content, self.bucket.location_of(release)), set(self.bucket.names(release))
        if lost := sum(f"{release}/{name}" not in there for name in manifest.listed):
            raise StorageError.altered(release, lost)
        check_recalled(run, manifest)
        self._finish(release, run.work)
        return manifest

    def is_published(self, release: str) -> bool:
        """Return whether the bucket has a release's manifest; raise if that is invalid."""
        content = self._manifest_content(release)
        return content is not None and bool(any_manifest_of(content, self.bucket.location_of(release)))

    def _manifest_content(self, release: str) -> bytes | None:
        return self.bucket.read(f"{release}/{MANIFEST}", MOST_BYTES)

    def write_data(self, run: Run, files: Sequence[Artifact], release: str, staging: Path) -> tuple[list[PublishedFile], Csv]:
        """Upload a release's data files to the bucket in tasks; return their entries and CSV layout."""
        self._lay_mark(release, run.work)
        return deliver_files(run, files, release)

    def folder_of_data(self, staging: Path) -> Path | None:
        """Return None: the data files are in the bucket."""
        return None

    @contextmanager
    def withdrawn_if_refused(self, release: str, work: HeldWork) -> Iterator[None]:
        """Remove a release's unverified files from the bucket if the block raises a refusal.

        After an interruption, such as a full disk or a network that is down, they stay for the run that goes on.
        """
        try:
            yield
        except StorageError:
            # Interrupted, by a full disk or a network that is down: they stay for the run that goes on.
            raise
        except SkaldError:
            # What the release was refused for is to be told; what is left here carries the mark.
            with suppress(StorageError):
                self._withdraw(release, work)
            raise

    def publish(self, staging: Path, release: str, work: HeldWork, files: Sequence[PublishedFile] = ()) -> None:
        """Upload data files from staging, documents, then the manifest, which publishes; never over another."""
        bucket = self.bucket
        if files:
            self._lay_mark(release, work)
        digests = {file.path: file.sha256 for file in files}
        self._put(staging, release, digests)
        documents = [path for path in sorted(staging.iterdir()) if path.is_file() and path.name != MANIFEST]
        self._put(staging, release, {path.name: file_digest(path) for path in documents})
        work.check()
        try:
            bucket.create_from(staging / MANIFEST, f"{release}/{MANIFEST}")
        except FileExistsError:
            raise ObjectStoreError.exists(bucket.location_of(release)) from None
        self._finish(release, work)

    def _put(self, staging: Path, release: str, digests: Mapping[str, str]) -> None:
        for name, digest in digests.items():
            self.bucket.upload(staging / name, f"{release}/{name}", digest)
        # Read back whole: what a store says it has taken is not yet what it gives.
        if wrong := sum(self.bucket.digest(f"{release}/{name}") != digest for name, digest in digests.items()):
            raise ObjectStoreError.differs(self.bucket.location_of(release), wrong)

    def _make_folder(self, path: Path) -> None:
        # What goes to a bucket is made in the work folder, which is for nobody else.
        private_folder(path)

    def _lay_mark(self, release: str, work: HeldWork) -> None:
        """Mark a release's files as this job's, with the work's generation, for their later removal."""
        bucket_without_release(self.job, release).write(f"{release}/{self._mark}", str(work.generation).encode())

    def _withdraw(self, release: str, work: HeldWork) -> None:
        work.check()
        if not self.bucket.exists(f"{release}/{MANIFEST}") and self._generation(f"{release}/{self._mark}") <= work.generation:
            self._remove(release)

    def _finish(self, release: str, work: HeldWork) -> None:
        """Name the release in ``CURRENT``, and remove leftovers of this job's runs, local copies too."""
        bucket = self.bucket
        work.check()
        for _ in range(TRIES):
            if bucket.update(CURRENT, f"{release}\n".encode()):
                break
            # Another run named its own meanwhile: that of another job, or one that has taken over, and then this one names none.
            work.check()
        else:
            raise PointerError.not_named(release, bucket.location)
        self.remove_unfinished(work)
        for folder in self.job.target_path.glob(f"{self.job.name}-{DIGITS}"):
            shutil.rmtree(folder, ignore_errors=True)

    def remove_unfinished(self, work: HeldWork, *, but: str = "") -> None:
        """Remove releases without a manifest that this job's killed runs left, and marks of published ones."""
        bucket = self.bucket
        for mark in bucket.matching(f"{self.job.name}-{DIGITS}/{self._mark}"):
            left = mark.rsplit("/", 1)[0]
            if left == but:
                continue
            if bucket.exists(f"{left}/{MANIFEST}"):
                bucket.remove([mark])
            elif self._generation(mark) <= work.generation:
                # What another run is putting there by now has no manifest yet, either.
                work.check()
                self._remove(left)

    def _remove(self, release: str) -> None:
        # The mark last, so that what a kill leaves can be removed by the next run.
        self.bucket.remove(sorted(self.bucket.names(release), key=lambda name: name.endswith(self._mark)))

    def _generation(self, mark: str) -> float:
        """Return the generation of the work in a mark; infinity for a missing or unreadable mark."""
        content = self.bucket.read(mark, MOST_OF_MARK)
        try:
            # One that is empty is of before marks said so.
            return inf if content is None else int(content or 0)
        except ValueError:
            return inf

    @property
    def _mark(self) -> str:
        # Of this machine's run folder, or of work in a bucket, which is locked: what carries it is nobody else's.
        machine = [] if work_of(self.job).folder is None else [socket.gethostname()]
        return f".staging-{fingerprint_of(*machine, self.job.work_location)[:8]}"


def job_target(job: Job) -> Target:
    """Return the target of a job, in a folder or in a bucket."""
    return Target(job) if target_of(job).folder else BucketTarget(job)


def unaltered_manifest(folder: Path) -> Manifest:
    """Return the manifest of a release folder; raise ``StorageError`` if it is missing or altered."""
    manifest = read_manifest(folder)
    # Manifests of earlier formats had no seal.
    if manifest is None or (manifest.format >= FORMAT and not has_valid_digest(manifest_content(folder))):
        raise StorageError.altered(folder.name, 1)
    return manifest


def _count_altered_files(folder: Path, manifest: Manifest | TablesManifest) -> int:
    """Return how many listed files, the signature included, are missing or of another size."""
    sizes = dict.fromkeys((*manifest.listed, *([SIGNATURE] if manifest.signed_by else []))) | {
        one.path: one.bytes for one in manifest.files
    }
    there = {name: (folder / name).stat().st_size for name in sizes if (folder / name).is_file()}
    return sum(name not in there or size not in (None, there[name]) for name, size in sizes.items())


@dataclass
class Publication:
    """What is left undone if publication fails now, in words; empty before the release is there.

    Attributes:
        undone: What is left undone if the run fails now, as the end of a sentence; empty as long as the release is not there.
    """

    undone: str = ""


@contextmanager
def publication_errors(release: str) -> Iterator[Publication]:
    """Yield a ``Publication``; once its ``undone`` is set, raise errors as ``AfterPublicationError``."""
    publication = Publication()
    try:
        yield publication
    except Exception as error:
        if not publication.undone or os.environ.get("SKALD_DEBUG"):
            raise
        raise AfterPublicationError.of_release(release, publication.undone, _reason(error)) from None


def _reason(error: BaseException) -> str:
    """Return the system's message for an error, or the error's kind: its own text may hold a cell."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


LEFTOVER_NAMES = "artefacts that it needs no more could not be removed, which the same command does"
NOT_IN_REGISTRY = "the registry of the folder of jobs could not be written, so that others know of it only while it is there"
SERVER_NOT_TOLD = "Prefect's server could not be told of it"
