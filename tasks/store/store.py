"""Artefact store: files that steps left behind, each with a sealed record, checked before use.

A store keeps ``<step>/<key>.<suffix>`` and beside it ``<key>.record``, sealed, with step, key, size and SHA-256. The same key means the
same content (``tasks.store.keys``). Artefacts hold raw values: folders are 0700 and files 0600.

In a bucket the object of an artefact also bears its digest, so that its content never changes, and the record bears its tag. What this
process made or read is in a folder of this machine too. There an artefact is believed by size and tag when it is found, and by its digest
when it is fetched.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, ValidationError

from schemas.errors.folders import WorkError
from schemas.reading.model import FrozenModel
from tasks.store.files import clear_partial_files, file_digest, private_folder, write_atomically
from tasks.store.keys import Key, json_with_digest, key_in_name, unsealed_text
from tasks.store.place import Bucket, FolderPlace

Loaded = TypeVar("Loaded")
Model = TypeVar("Model", bound=FrozenModel)
RELEASES, RECORD = "releases", ".record"
"""The folder beside those of steps in which it is noted what each release was made of, and the suffix of records."""


class Artifact(FrozenModel):
    """A reference to one file of the store: step, key, relative path, rows, size and SHA-256.

    Attributes:
        step: The step that made it.
        file: Path relative to the store.
        size: Bytes.
        sha256: Digest of the file, in hex.
    """

    model_config = ConfigDict(extra="forbid")

    step: str
    key: Key
    file: str
    rows: int
    size: int
    sha256: str

    def is_of(self, step: str, key: Key) -> bool:
        """Return whether the artefact's step, key and file name are those given.

        A record may have been put in another's place.
        """
        named = self.file.startswith(f"{step}/{key}.") and "/" not in self.file.removeprefix(f"{step}/")
        return named and (self.step, self.key) == (step, key)


class Store:
    """A store of artefacts by step and key, in a folder or in a bucket with local copies.

    Args:
        folder: Where they lie on this machine.
        bucket: The prefix of a bucket that keeps them; None where the folder does.
        watch: The block in which artefacts are made.

    Attributes:
        folder: As above.
        used: Step and key of each that was made or found whole.
    """

    def __init__(self, folder: Path, bucket: Bucket | None = None, watch: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        # What is fetched from a bucket lies in a folder of its own.
        self.folder = private_folder(folder) if bucket else folder
        self.used: set[tuple[str, Key]] = set()
        self._bucket, self._place = bucket, bucket or FolderPlace(str(folder))
        self._believed: dict[Path, tuple[int | str, ...]] = {}
        self._tags: dict[Artifact, str] = {}
        self._found: set[Artifact] = set()
        self._loaded: dict[str, tuple[Hashable, Any]] = {}
        self._loading = RLock()
        self._watch = watch

    def remove_partial_files(self) -> None:
        """Remove half-written files of killed processes; hold the lock of the work meanwhile."""
        clear_partial_files(self.folder, recursive=True)

    def watching(self, watch: Callable[[], AbstractContextManager[None]]) -> Store:
        """Return a store of the same folder that makes artefacts within a block, none if the block raises."""

        @contextmanager
        def both() -> Iterator[None]:
            with self._watch(), watch():
                yield

        store = Store(self.folder, self._bucket, both)
        store.used, store._believed = self.used, self._believed
        return store

    def path(self, artifact: Artifact) -> Path:
        """Return the local path of an artefact, downloaded from the bucket if needed; raise if damaged."""
        path = self._path(artifact)
        if not self._is_here(artifact):
            if not self._bucket:
                raise WorkError.damaged(str(path))
            private_folder(path.parent)
            write_atomically(path, lambda part: self._fetch(artifact, part))
        return path

    def _fetch(self, artifact: Artifact, part: Path) -> int:
        if self._bucket and not self._bucket.download(_object(artifact), part, artifact.sha256):
            self.discard([artifact])
            raise WorkError.damaged(self._place.location_of(_object(artifact)))
        return artifact.rows

    def read_model(self, artifact: Artifact, model: type[Model]) -> Model:
        """Return what an artefact says in JSON, as a model."""
        return model.model_validate_json(self.path(artifact).read_bytes())

    def path_named(self, file: str) -> Path:
        """Return the local path of an artefact by its relative path; raise ``WorkError`` without a record."""
        step, _, name = file.partition("/")
        artifact = self._recorded(step, key_in_name(name))
        if artifact is None or artifact.file != file:
            raise WorkError.damaged(self._place.location_of(file))
        return self.path(artifact)

    def load(self, kind: str, key: Hashable, read: Callable[[], Loaded]) -> Loaded:
        """Return a cached object of a kind and key, read on the first call; only the last of a kind is kept.

        Args:
            kind: One of a kind is held, because tables of a large source are large.
            key: Of all that it is read from.
            read: Reads it; one thread at a time.
        """
        with self._loading:
            if kind not in self._loaded or self._loaded[kind][0] != key:
                self._loaded.pop(kind, None)
                self._loaded[kind] = key, read()
            loaded: Loaded = self._loaded[kind][1]
            return loaded

    def unload(self, kind: str, of: Callable[[Any], bool]) -> None:
        """Drop the cached object of a kind from memory if a condition holds for it."""
        with self._loading:
            if kind in self._loaded and of(self._loaded[kind][1]):
                del self._loaded[kind]

    def _path(self, artifact: Artifact) -> Path:
        return self.folder / artifact.file

    def find(self, step: str, key: Key) -> Artifact | None:
        """Return the artefact of a step and key if its file is undamaged, else None."""
        artifact = self._recorded(step, key)
        return artifact if artifact and self._is_whole(artifact) else None

    def recorded(self, step: str, keys: Sequence[Key]) -> list[bool]:
        """Return for each key of a step whether it has a record; the files are not checked."""
        there = set(self._place.names(step)) if keys else set()
        return [_record(step, key) in there for key in keys]

    def is_complete(self, artifact: Artifact) -> bool:
        """Return whether an artefact's record and file, or object, are there and undamaged.

        A file on this machine is read whole unless this store did so before; an object is compared by size and tag.
        """
        return artifact in self._found or (self._recorded(artifact.step, artifact.key) == artifact and self._is_whole(artifact))

    def _recorded(self, step: str, key: Key) -> Artifact | None:
        """Return the artefact that a key's record describes; None if the record is altered or another's."""
        try:
            said = unsealed_text(self._place.read(_record(step, key)) or b"")
            model, tag = said if isinstance(said, list) else (said, "")
            artifact = Artifact.model_validate(model)
        except (ValidationError, ValueError):
            return None
        if not artifact.is_of(step, key):
            return None
        self._tags[artifact] = str(tag)
        return artifact

    def _is_whole(self, artifact: Artifact) -> bool:
        if not (self._is_there(artifact, self._bucket) if self._bucket else self._is_here(artifact)):
            return False
        self.used.add((artifact.step, artifact.key))
        return True

    def _is_there(self, artifact: Artifact, bucket: Bucket) -> bool:
        # Looked at once: what is altered later is noticed when it is fetched.
        if artifact not in self._found:
            if bucket.entry(_object(artifact)) != (artifact.size, self._tags.get(artifact)):
                return False
            self._found.add(artifact)
        return True

    def _is_here(self, artifact: Artifact) -> bool:
        path = self._path(artifact)
        try:
            state = _state(path)
            # Several steps read the same artefact; hashing it each time would cost as much as reading it.
            if self._believed.get(path) != (*state, artifact.sha256):
                if state[0] != artifact.size or file_digest(path) != artifact.sha256:
                    return False
                self._believed[path] = *state, artifact.sha256
        except OSError:
            return False
        return True

    def make(self, step: str, key: Key, suffix: str, write: Callable[[Path], int]) -> Artifact:
        """Return the artefact of a step and key; if missing or damaged, write and record it by ``write``.

        Args:
            step: Names the folder.
            key: Of all that the content depends on.
            suffix: Of the file, with its dot.
            write: Writes the file at the path it is given and returns its number of rows.
        """
        if found := self.find(step, key):
            return found
        path = private_folder(self.folder / step) / f"{key}{suffix}"
        for taken in (path, self.folder / _record(step, key)):
            if taken.is_dir() and not taken.is_symlink():
                # No file can be renamed to where a folder is.
                shutil.rmtree(taken)

        def watched(part: Path) -> int:
            with self._watch():
                try:
                    return write(part)
                except Exception:
                    self._raise_if_damaged()
                    raise

        rows = write_atomically(path, watched)
        state = _state(path)
        artifact = Artifact(step=step, key=key, file=f"{step}/{path.name}", rows=rows, size=state[0], sha256=file_digest(path))
        self._keep(artifact)
        self._believed[path] = *state, artifact.sha256
        self.used.add((step, key))
        return artifact

    def _raise_if_damaged(self) -> None:
        """Raise ``WorkError`` if a file that was whole when it was found is gone or was written to since then."""
        for path, (size, changed, *_) in tuple(self._believed.items()):
            try:
                there = _state(path)[:2]
            except OSError:
                there = (-1, -1)
            if there != (size, changed):
                raise WorkError.damaged(str(path)) from None

    def _keep(self, artifact: Artifact) -> None:
        record: Any = artifact.model_dump()
        if self._bucket:
            record = [record, self._uploaded(artifact, self._bucket)]
        # The record goes last: killed between the two, a file is left that nothing names, and it is written once more. Two that are made
        # at once are of the same content, and the later one stands.
        self._place.write(_record(artifact.step, artifact.key), json_with_digest(record).encode())

    def _uploaded(self, artifact: Artifact, bucket: Bucket) -> str:
        """Put an artefact into the bucket, and return its tag."""
        name = _object(artifact)
        bucket.upload(self._path(artifact), name, artifact.sha256)
        there = bucket.entry(name)
        if there is None or there.size != artifact.size:
            raise WorkError.damaged(bucket.location_of(name))
        self._tags[artifact] = there.tag
        self._found.add(artifact)
        return there.tag

    def discard(self, artifacts: Iterable[Artifact]) -> None:
        """Remove the records, files and objects of some artefacts."""
        for artifact in artifacts:
            self._remove([_record(artifact.step, artifact.key), _object(artifact) if self._bucket else artifact.file])
            path = self._path(artifact)
            path.unlink(missing_ok=True)
            self._believed.pop(path, None)
            self._found.discard(artifact)

    def remove(self, *steps: str) -> None:
        """Remove all artefacts of the given steps."""
        for step in steps:
            self._remove_folder(step)
        self._believed.clear()
        self._found = {artifact for artifact in self._found if artifact.step not in steps}

    def clear(self) -> None:
        """Remove everything that the store holds, on disk and in the bucket."""
        self._remove_folder("")
        self._believed.clear()
        self._found.clear()

    def prune(self, steps: Sequence[str], needed: Container[tuple[str, str]]) -> None:
        """Remove the artefacts of given steps that are neither used by this store nor in ``needed``.

        Args:
            steps: Their steps.
            needed: Step and key of those that stay.
        """
        for step in steps:
            keys = {name: _key(name) for name in self._place.names(step)}
            self._remove(name for name, key in keys.items() if (step, key) not in self.used and (step, key) not in needed)

    def mark_used(self) -> None:
        """Update the access times of the local records of all artefacts that this store used."""
        for step, key in self.used:
            with suppress(FileNotFoundError):
                record = self.folder / _record(step, key)
                os.utime(record, ns=(time.time_ns(), record.stat().st_mtime_ns))

    def prune_unused(self, since: int, needed: Container[tuple[str, str]]) -> None:
        """Remove local artefacts that no run has used since ``since``, except those in ``needed``.

        Args:
            since: In nanoseconds since the epoch.
            needed: Step and key of those that stay.
        """
        for record in self.folder.glob(f"*/*{RECORD}"):
            step = record.parent.name
            if step != RELEASES and record.stat().st_atime_ns < since and (step, record.stem) not in needed:
                self._remove(f"{step}/{path.name}" for path in record.parent.glob(f"{record.stem}.*"))

    def _remove_folder(self, step: str) -> None:
        if self._bucket:
            self._remove(self._bucket.names(step))
        shutil.rmtree(self.folder / step, ignore_errors=True)

    def _remove(self, names: Iterable[str]) -> None:
        # Records first, so that a kill leaves none of what is gone.
        self._place.remove(sorted(names, key=lambda name: (not name.endswith(RECORD), name)))

    @classmethod
    def at(cls, work: Path) -> Self:
        """Return the store in a work folder's ``artifacts``, a private folder created if missing."""
        return cls(private_folder(work / "artifacts"))


def _record(step: str, key: Key) -> str:
    return f"{step}/{key}{RECORD}"


def _object(artifact: Artifact) -> str:
    """Return the name of an artefact's object, which bears its digest."""
    name = PurePosixPath(artifact.file).name
    return f"{artifact.step}/{artifact.key}.{artifact.sha256[:32]}{name.removeprefix(artifact.key)}"


def _key(name: str) -> Key:
    return key_in_name(PurePosixPath(name).name)


def _state(path: Path) -> tuple[int, int, int]:
    """Return size and both times of a file; the time of change cannot be set back."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
