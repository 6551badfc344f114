"""Release history of a run folder: the files, classes and recoding of each release.

It is removed with the artefacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from schemas.job.job import Job, hierarchy_digests, privacy_content
from schemas.reading.model import FrozenModel
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.counting.chunk_counts import axis_names
from tasks.counting.contents import DigestedColumns
from tasks.engine.calls import artifacts_of
from tasks.engine.runs import Run
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.source.chunks import ChunkedSource, PieceKey
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import StepCode, fingerprint_of, json_with_digest, values_with_digest
from tasks.store.place import target_of
from tasks.store.store import RELEASES, Artifact, Store
from tasks.writing.people import KeptRecords, WrittenPersons

FOLDER = RELEASES
MOST_RELEASES = 10
"""Releases that something is kept of, the newest: each costs as much as its recoding, and three at most are compared with."""
# Of the code that reads recodings and not of this module: only by that could an old one be misread.
STEP = StepCode("release", "tasks.lattice.kept_recodings")


Kinds = tuple[tuple[str, str], ...]
"""Names of columns, each with the kind of its values."""


class Recoded(FrozenModel):
    """Artefacts of a release's recoding: its domain table and its recoding of cells."""

    domain: Artifact
    recoding: RecodingArtifacts
    intervals: Literal["text", "bounds"]


class Entry(FrozenModel):
    """History entry of one release: source files, recoding, persons, record digests, promises and seal.

    Attributes:
        release: Its id.
        files: Name, digest and records of each file of the source.
        chunks: Of each chunk that was counted, digest, first row and rows of its pieces.
        names: Columns whose values were counted: the QIDs, then those of privacy models.
        hierarchies: Digest of each QID's hierarchy, in job order.
        settings: Fingerprint of its privacy requirements and the method's settings.
        recoded: Its recoding; None for methods that recode single records.
        code: Key of the code that reads its recoding.
        people: The persons of each class; empty where the job named no person.
        classes: The values that these classes publish.
        parts: The records of its source with their classes, compared with other releases.
        digested: Columns whose digests ``parts`` hold, as ``DigestedColumns`` has them, with the kind of values; None in older entries.
        promised: The l and t requirements of its job, by section (``l``, ``t``) and column; None in older entries.
        means: Columns of which means of groups are published; None in older entries.
        by_column: How many digests of single untreated columns ``parts`` hold.
        ways: How each column is published that is not published as it is; None in older entries.
        untold: Why its persons cannot be compared with those of others, as the end of a sentence; empty where they can.
        seal: The seal of its manifest, its SHA-256; a release that was changed or made anew no longer matches it.
    """

    release: str
    files: tuple[tuple[str, str, int], ...]
    chunks: tuple[tuple[PieceKey, ...], ...]
    names: tuple[str, ...]
    hierarchies: dict[str, str]
    settings: str
    recoded: Recoded | None
    code: str = ""
    people: tuple[Artifact, ...] = ()
    classes: tuple[Artifact, ...] = ()
    parts: tuple[KeptRecords, ...] = ()
    digested: tuple[Kinds, Kinds, Kinds] | None = None
    promised: dict[str, dict[str, Any]] | None = None
    means: tuple[str, ...] | None = None
    by_column: int = 0
    ways: dict[str, Any] | None = None
    untold: str = ""
    seal: str = ""

    @property
    def is_readable(self) -> bool:
        """Return whether the current code can read the recoding; other versions might misread it."""
        return self.code == STEP.key()


def settings_of(job: Job) -> str:
    """Return the fingerprint of a job's privacy requirements, method settings and person columns."""
    return fingerprint_of(privacy_content(job), job.method.canonical(), *([job.columns.person] if job.columns.person else []))


def promises_by_column(job: Job) -> dict[str, dict[str, Any]]:
    """Return a job's l and t requirements by section and column, as JSON-compatible values."""
    content = privacy_content(job)
    return {section: content[section] for section in ("l", "t") if content.get(section)}


def ways_of_columns(job: Job) -> dict[str, Any]:
    """Return how each column is published that is not published as it is, as JSON data."""
    ways, spelled = job.columns.canonical_ways, job.columns.normalised
    return {name: [ways.get(name), sorted(spelled.get(name, ()))] for name in ways.keys() | spelled.keys()}


def write_entry(
    run: Run,
    manifest: Manifest,
    source: ChunkedSource,
    persons: WrittenPersons,
    parts: Sequence[KeptRecords],
    digested: Sequence[Kinds] | None,
) -> None:
    """Write a release's history entry into the run folder, before publication, for later comparison."""
    job, recoded = run.job, run.recoded
    entry = Entry(
        release=manifest.release,
        parts=tuple(parts),
        digested=(digested[0], digested[1], digested[2]) if digested else None,
        promised=promises_by_column(job),
        means=job.columns.means,
        by_column=len(DigestedColumns((), tuple(name for name, _ in digested[1])).single_columns) if digested else 0,
        ways=ways_of_columns(job),
        seal=manifest.seal,
        files=tuple((file.name, file.digest, file.rows) for file in source.files),
        chunks=tuple(chunk.key for chunk in source.chunks),
        names=tuple(axis_names(job)),
        hierarchies=hierarchy_digests(job),
        settings=settings_of(job),
        recoded=Recoded(domain=recoded[0], recoding=recoded[1], intervals=job.intervals) if recoded else None,
        code=STEP.key(),
        people=persons.people,
        classes=persons.classes,
    )
    save_entry(entry, run.store)


def save_entry(entry: Entry, store: Store) -> None:
    """Write a release's history entry into the run folder of the store, replacing an earlier one."""
    path = private_folder(store.folder / FOLDER) / f"{entry.release}.record"
    write_atomically(path, lambda part: part.write_text(json_with_digest(entry.model_dump(mode="json"))))


def read_entry(release: str, store: Store) -> Entry | None:
    """Return the history entry of a release; None if it is missing or invalid."""
    try:
        entry = Entry.model_validate(values_with_digest(store.folder / FOLDER / f"{release}.record"))
    except ValidationError:
        return None
    # One that was put there from another release speaks of that one.
    return entry if entry.release == release else None


def last_entry(job: Job, store: Store) -> Entry | None:
    """Return the entry of this run folder's newest release that is still in the target, None if none."""
    # An entry is written before its release is published: without the manifest a kill came between, or somebody removed it.
    published = (one.stem for one in _newest_first(store) if target_of(job).exists(f"{one.stem}/{MANIFEST}"))
    return next(filter(None, (read_entry(release, store) for release in published)), None)


def forget_older(store: Store, most_releases: int = MOST_RELEASES) -> set[tuple[str, str]]:
    """Delete all but the newest history entries; return (step, key) of each artefact still needed."""
    records = _newest_first(store)
    for record in records[most_releases:]:
        record.unlink(missing_ok=True)
    entries = [entry for record in records[:most_releases] if (entry := read_entry(record.stem, store))]
    return {(artifact.step, artifact.key) for entry in entries for artifact in artifacts_of(entry)}


def oldest_release_kept(store: Store, most_releases: int = MOST_RELEASES) -> int | None:
    """Return when the oldest of the ``most_releases`` newest was made, in ns; None if there are fewer."""
    records = _newest_first(store)
    return records[most_releases - 1].stat().st_mtime_ns if len(records) >= most_releases else None


def count_releases_since(store: Store, moment: int) -> int:
    """Return how many releases of the run folder's history were made since a moment, in ns."""
    return sum(record.stat().st_mtime_ns >= moment for record in _newest_first(store))


def _newest_first(store: Store) -> list[Path]:
    """Return the paths of history entries, newest first."""
    return sorted((store.folder / FOLDER).glob("*.record"), key=lambda path: path.stat().st_mtime_ns, reverse=True)


def seal_of_release(release: str, store: Store) -> str:
    """Return the manifest seal that the run folder recorded for a release; empty if it has none."""
    entry = read_entry(release, store)
    return entry.seal if entry else ""


def people_of_release(release: str, store: Store) -> tuple[list[Path], list[Path]] | None:
    """Return the files of a release's persons and classes, by the history; None if any is gone or unknown."""
    entry = read_entry(release, store)
    if entry is None or not entry.people or not all(map(store.is_complete, (*entry.people, *entry.classes))):
        return None
    return list(map(store.path, entry.people)), list(map(store.path, entry.classes))
