"""Release registry: the releases of all jobs in one folder, with keyed digests to re-link records.

A job finds another job's releases in it, whatever their targets. It holds names, counts and digests keyed with a secret of its own, but
no cell value and no path of a source. Only its owner can read it. Its lock is held from the first read until the release is published,
so that of two simultaneous runs the second one sees the first.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ConfigDict, Field, ValidationError

from core.units.source_digests import Sketch
from schemas.errors.base import StorageError
from schemas.errors.folders import FolderError
from schemas.errors.values import SecretError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.composition.release_history import MOST_RELEASES, count_releases_since, forget_older, oldest_release_kept
from tasks.counting.contents import Sketches
from tasks.release.manifest import read_manifest
from tasks.source.chunks import ChunkedSource
from tasks.store.files import clear_partial_files, file_digest, locked_file, private_folder, write_atomically
from tasks.store.keys import FolderSecret, create_secret, json_with_digest, values_with_digest
from tasks.store.place import work_of
from tasks.store.store import Store
from tasks.store.work import idle_folder

FOLDER, IN_WORK = ".releases", "registry"
LOCK, KEY = "lock", "key"
RECORD, SKETCH = ".record", ".sketch"
FORMAT = 1
"""Of entries and sketches; digests of another format mean something else."""
_DIGITS = 16


class Registered(FrozenModel):
    """A release's entry in the registry: id, place, k, keyed file digests, linkage key and families.

    Attributes:
        format: Of the entry and its sketch.
        release: Its id.
        place: The folder that it is in, empty for an address in an object store.
        work: The work folder of its job.
        k: The k that it promises.
        records: N of its source.
        most: At most how many units its source has by what the release states; None where it states ``records``.
        files: Keyed digest of each file of the source that holds records.
        linkage_key: Columns by which its records are re-linked, each with the kind of its values.
        person: Columns that name persons, in the same way; none where the job names none.
        tables_below: Names of its tables below the unit; none of one table, or in older entries.
        person_names: All names that these have in the job, which tables may call otherwise; none in older entries.
        columns: All columns of the source.
        qids: Names of the quasi-identifiers.
        exact: Names of the columns that it publishes as values; None in older entries.
        sketch: SHA-256 of the sketches of its records and persons.
        reach: Share of all digests that each sketch covers.
        key: Identifies the registry's secret that its digests were keyed with.
        made: When, in seconds.
        published: Whether it is known to have been published.
        key_families: Families of its pseudonyms, by key; None in older entries.
    """

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    format: int
    release: str
    place: str
    work: str
    k: int
    records: int
    files: tuple[str, ...]
    linkage_key: tuple[tuple[str, str], ...] = Field(alias="known_by")
    person: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    qids: tuple[str, ...]
    sketch: str
    reach: tuple[float, float]
    key: str
    made: float
    published: bool = False
    key_families: tuple[str, ...] | None = None
    most: int | None = None
    exact: tuple[str, ...] | None = None
    tables_below: tuple[str, ...] = ()
    person_names: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def pseudonyms_may_be_there(self) -> bool:
        """Return False only if the release's manifest can be read and lists no pseudonyms."""
        folder = Path(self.place, self.release)
        if not self.place or not folder.is_dir():
            return True
        try:
            manifest = read_manifest(folder)
        except StorageError:
            return True
        return manifest is None or bool(manifest.pseudonyms)

    @property
    def is_there(self) -> bool:
        """Return whether the release's folder still exists; True for a target in an object store."""
        return not self.place or Path(self.place, self.release).is_dir()


@dataclass(frozen=True)
class ReleaseRegistry:
    """The release registry of a folder of jobs, while its lock is held.

    Attributes:
        secret: The secret that its digests are keyed with.
    """

    folder: Path
    secret: FolderSecret

    @property
    def key(self) -> str:
        """Return a short digest that identifies the registry's secret."""
        return self.secret.keyed("registry")[:_DIGITS]

    def keyed_files(self, source: ChunkedSource) -> dict[str, str]:
        """Return by keyed digest the plain digest of each source file that holds records."""
        return {self.secret.keyed("file", file.digest): file.digest for file in source.files if file.rows}

    def keyed_file_digests(self, source: ChunkedSource) -> list[str]:
        """Return the keyed digests of the source files that hold records, sorted.

        The order of the files is not disclosed.
        """
        return sorted(self.secret.keyed("file", file.digest) for file in source.files if file.rows)

    def keyed_sketches(self, sketches: Sketches) -> Sketches:
        """Return sketches with keyed digests and counts cut to two, as the registry stores them.

        The digests are in the order of the plain ones. Of counts only whether there is a double is kept.
        """
        return Sketches(self._keyed("record", sketches.records), self._keyed("person", sketches.persons))

    def _keyed(self, kind: str, sketch: Sketch) -> Sketch:
        """Return a sketch with keyed digests and counts of at most two."""
        keyed = self.secret.keyed_numbers(kind, sketch.digests.tolist())
        return Sketch(np.array(keyed, np.uint64), np.minimum(sketch.counts, 2), sketch.is_complete)

    def entries(self) -> tuple[list[Registered], list[str]]:
        """Return the entries of published releases, newest first, and the ids of unreadable entries."""
        found, damaged = [], []
        for record in sorted(self.folder.glob(f"*{RECORD}")):
            entry = _read(record)
            if entry is None:
                damaged.append(record.stem)
            elif entry.published or entry.is_there:
                found.append(entry)
        return sorted(found, key=lambda entry: -entry.made), damaged

    def sketches_of(self, entry: Registered) -> Sketches | None:
        """Return the keyed sketches of a registered release; None if they are missing or damaged."""
        path = self.folder / f"{entry.release}{SKETCH}"
        try:
            if file_digest(path) != entry.sketch:
                return None
            table = pq.read_table(path)
        except (OSError, pa.ArrowException):
            return None
        found = []
        for person, reach in enumerate(entry.reach):
            mine = table.filter(pc.equal(table["person"], bool(person)))
            found.append(Sketch(mine["digest"].to_numpy(), mine["count"].to_numpy().astype(np.int64), reach >= 1))
        return Sketches(*found)

    def enter(self, entry: Registered, sketches: Sketches) -> Registered:
        """Write a release's entry and keyed sketches before publication; return the entry with key and time.

        The entry counts only once the release is published.
        """
        digests, counts = (np.concatenate([getattr(one, name) for one in sketches]) for name in ("digests", "counts"))
        person = np.arange(len(digests)) >= len(sketches.records.digests)
        table = pa.table({"person": person, "digest": digests, "count": counts.astype(np.uint8)})

        def write(part: Path) -> int:
            pq.write_table(table, part, compression="none", use_dictionary=False, write_statistics=False)
            return len(table)

        path = self.folder / f"{entry.release}{SKETCH}"
        write_atomically(path, write)
        whole = entry.model_copy(update={"sketch": file_digest(path), "key": self.key, "made": time.time()})
        self._write(whole)
        return whole

    def record_publication(self, entry: Registered) -> None:
        """Write into the registry that the release was published, and so may have been handed on."""
        self._write(entry.model_copy(update={"published": True}))

    def _write(self, entry: Registered) -> None:
        # The entry goes last: what has none is not there.
        path = self.folder / f"{entry.release}{RECORD}"
        write_atomically(path, lambda part: part.write_text(json_with_digest(entry.model_dump(mode="json"))))


def _read(record: Path) -> Registered | None:
    """Read a registry entry; None if it is invalid."""
    try:
        entry = Registered.model_validate(values_with_digest(record))
    except ValidationError:
        return None
    # One that was put there from another release speaks of that one.
    return entry if entry.release == record.stem and entry.format == FORMAT else None


@contextmanager
def open_registry(job: Job) -> Iterator[ReleaseRegistry | None]:
    """Yield the locked release registry of a job's folder, waiting if need be; None for a scratch job.

    The release of a scratch job is counted and removed again.
    """
    if job.is_scratch:
        yield None
        return
    folder = _folder(job)
    with locked_file(folder / LOCK, fcntl.LOCK_EX):
        clear_partial_files(folder)
        try:
            secret = create_secret(folder / KEY)
        except SecretError:
            # What was keyed with the lost one can be compared no more, and is named as such.
            (folder / KEY).unlink(missing_ok=True)
            secret = create_secret(folder / KEY)
        yield ReleaseRegistry(folder, secret)


def _folder(job: Job) -> Path:
    """Return the registry's folder, created if missing."""
    if work_of(job).folder is None:
        # Whoever goes on with the work elsewhere has another folder of jobs, or none.
        return private_folder(job.work_path / IN_WORK)
    beside = job.folder / ".skald" / FOLDER
    if beside.is_symlink():
        raise FolderError.registry_is_link(str(beside))
    try:
        return private_folder(beside)
    except StorageError:
        if beside.exists():
            raise
        # A folder of jobs may be there for reading only; what other jobs release is then not known.
        return private_folder(job.work_path / IN_WORK)


NS_OF_A_DAY = 24 * 60 * 60 * 10**9


def remove_unneeded(job: Job, last: int | None, days: float | None) -> int:
    """Remove artefacts that retention does not keep; return bytes freed; raise while a run uses them.

    The key of digests, the registry of releases and the newest release's artefacts always stay.

    Args:
        last: Keep what this many of the newest releases need, ten at most.
        days: Keep what a run has used within so many days. Where both are given, what either keeps stays.
    """
    with idle_folder(job) as work:
        if work is None:
            return 0
        before = _size(work)
        _prune(Store.at(work), last, days)
        return before - _size(work)


def _prune(store: Store, last: int | None, days: float | None) -> None:
    """Remove the artefacts of a store that neither recent releases nor recent runs need."""
    recent = None if days is None else time.time_ns() - int(days * NS_OF_A_DAY)
    most = max(1, min(last or 1, MOST_RELEASES), 0 if recent is None else count_releases_since(store, recent))
    oldest = oldest_release_kept(store, most)
    if oldest is None and last is not None:
        return  # there are no more releases than are to be kept
    kept = forget_older(store, most)
    store.prune_unused(min(moment for moment in (oldest, recent) if moment is not None), kept)


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
