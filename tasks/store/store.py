"""The artefact store: what each step left behind, in files that are whole if they exist and checked before they are believed.

A run folder holds ``artifacts/<step>/<key>.<suffix>`` and beside it ``<key>.record``, sealed, with step, key, size and
SHA-256. The same key means the same content (``tasks.store.keys``).
Artefacts hold raw values: folders are 0700 and files 0600.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.store.files import clear_parts, file_digest, private_folder, write_atomically
from tasks.store.keys import Key
from tasks.store.secret import seal, unsealed

Loaded = TypeVar("Loaded")
RELEASES = "releases"
"""The folder beside those of steps in which it is noted what each release was made of."""


class Artifact(BaseModel):
    """A reference to one file of the store; what passes between steps instead of a table.

    Attributes:
        step: The step that made it.
        key: Of its step.
        file: Path relative to the store.
        rows: Number of rows.
        size: Bytes.
        sha256: Digest of the file, in hex.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: str
    key: Key
    file: str
    rows: int
    size: int
    sha256: str

    def is_of(self, step: str, key: Key) -> bool:
        """Return whether it is the artefact of a key, by all its names: a record may have been put in another's place."""
        named = self.file.startswith(f"{step}/{key}.") and "/" not in self.file.removeprefix(f"{step}/")
        return named and (self.step, self.key) == (step, key)


class Store:
    """Finds, makes and checks artefacts in one folder.

    Attributes:
        folder: Where they lie.
        used: Step and key of each that was made or found whole.
    """

    def __init__(self, folder: Path, watch: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self.folder = folder
        self.used: set[tuple[str, Key]] = set()
        self._believed: dict[Path, tuple[int | str, ...]] = {}
        self._loaded: dict[str, tuple[Hashable, Any]] = {}
        self._loading = RLock()
        self._watch = watch

    def begin(self) -> None:
        """Clear away what a killed process was writing; under the lock nobody is."""
        clear_parts(self.folder, below=True)

    def watching(self, watch: Callable[[], AbstractContextManager[None]]) -> Store:
        """Return a view of the store that makes artefacts inside a block only: what the block ends with an error of is not kept."""

        @contextmanager
        def both() -> Iterator[None]:
            with self._watch(), watch():
                yield

        return Store(self.folder, both)

    def path(self, artifact: Artifact) -> Path:
        """Return where an artefact lies."""
        return self._place(artifact)

    def load(self, kind: str, key: Hashable, read: Callable[[], Loaded]) -> Loaded:
        """Return what is read of artefacts, which threads that ask for the same share.

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
        """Let go of what was read of a kind, if a condition holds for it."""
        with self._loading:
            if kind in self._loaded and of(self._loaded[kind][1]):
                del self._loaded[kind]

    def _place(self, artifact: Artifact) -> Path:
        return self.folder / artifact.file

    def find(self, step: str, key: Key) -> Artifact | None:
        """Return the artefact of a step if it is there and whole."""
        artifact = self._recorded(step, key)
        return artifact if artifact and self._is_whole(artifact) else None

    def recorded(self, step: str, keys: Sequence[Key]) -> list[bool]:
        """Tells of each key whether there is a record of it; whether its artefact is whole is not looked at."""
        return [self._record(step, key).is_file() for key in keys]

    def is_complete(self, artifact: Artifact) -> bool:
        """Return whether an artefact is what its record says, and its file as it was when it was made.

        All of the file is read unless this store did so before.
        """
        return self._recorded(artifact.step, artifact.key) == artifact and self._is_whole(artifact)

    def _recorded(self, step: str, key: Key) -> Artifact | None:
        """Return what the record of a key says, if it is its own: one that was put there from another key, or altered, is none."""
        try:
            artifact = Artifact.model_validate(unsealed(self._record(step, key)))
        except ValidationError:
            return None
        return artifact if artifact.is_of(step, key) else None

    def _record(self, step: str, key: Key) -> Path:
        return self.folder / step / f"{key}.record"

    def _is_whole(self, artifact: Artifact) -> bool:
        if not self._is_here(artifact):
            return False
        self.used.add((artifact.step, artifact.key))
        return True

    def _is_here(self, artifact: Artifact) -> bool:
        path = self._place(artifact)
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
        """Return the artefact of a step, made by ``write`` unless it is there and whole.

        Args:
            step: Names the folder.
            key: Of all that the content depends on.
            suffix: Of the file, with its dot.
            write: Writes the file at the path it is given and returns its number of rows.
        """
        if found := self.find(step, key):
            return found
        path = private_folder(self.folder / step) / f"{key}{suffix}"

        def watched(part: Path) -> int:
            with self._watch():
                return write(part)

        rows = write_atomically(path, watched)
        state = _state(path)
        artifact = Artifact(step=step, key=key, file=f"{step}/{path.name}", rows=rows, size=state[0], sha256=file_digest(path))
        self._keep(artifact)
        self._believed[path] = *state, artifact.sha256
        self.used.add((step, key))
        return artifact

    def _keep(self, artifact: Artifact) -> None:
        # The record goes last: killed between the two, a file is left that nothing names, and it is written once more.
        write_atomically(self._record(artifact.step, artifact.key), lambda record: record.write_text(seal(artifact.model_dump())))

    def discard(self, artifacts: Sequence[Artifact]) -> None:
        """Remove single artefacts."""
        for artifact in artifacts:
            path = self.path(artifact)
            # The record goes first, so that a kill leaves no record of what is gone.
            self._record(artifact.step, artifact.key).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            self._believed.pop(path, None)

    def remove(self, *steps: str) -> None:
        """Remove all artefacts of the given steps."""
        for step in steps:
            shutil.rmtree(self.folder / step, ignore_errors=True)
        self._believed.clear()

    def keep_only(self, artifact: Artifact) -> None:
        """Remove all other artefacts of an artefact's step."""
        kept = self.path(artifact)
        for left in kept.parent.iterdir():
            if left.stem != kept.stem:
                left.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove everything that the store holds."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._believed.clear()

    def prune(self, steps: Sequence[str], kept: Container[tuple[str, str]]) -> None:
        """Remove the artefacts of the given steps that this store had no use for, but for the given ones.

        Args:
            steps: Their steps.
            kept: Step and key of those that stay.
        """
        for step in steps:
            for record in (self.folder / step).glob("*.record"):
                if (step, record.stem) in self.used or (step, record.stem) in kept:
                    continue
                self._remove_kept(record)

    def mark_used(self) -> None:
        """Notes at the records of all artefacts that this store had a use for that they were read now; when they were made stays."""
        for step, key in self.used:
            with suppress(FileNotFoundError):
                record = self._record(step, key)
                os.utime(record, ns=(time.time_ns(), record.stat().st_mtime_ns))

    def prune_unused(self, since: int, kept: Container[tuple[str, str]]) -> None:
        """Remove the artefacts that no run had a use for since a moment, but for the given ones.

        Args:
            since: In nanoseconds since the epoch.
            kept: Step and key of those that stay.
        """
        for folder in self.folder.iterdir():
            if folder.is_dir() and folder.name != RELEASES:
                for record in folder.glob("*.record"):
                    if record.stat().st_atime_ns < since and (folder.name, record.stem) not in kept:
                        self._remove_kept(record)

    def _remove_kept(self, record: Path) -> None:
        # The record goes first here too.
        record.unlink(missing_ok=True)
        for path in record.parent.glob(f"{record.stem}.*"):
            path.unlink(missing_ok=True)
            self._believed.pop(path, None)

    @classmethod
    def at(cls, work: Path) -> Self:
        """Return the store of a run folder."""
        return cls(private_folder(work / "artifacts"))


def _state(path: Path) -> tuple[int, int, int]:
    """Return size and both times of a file; the second time is not for anybody to put back."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
