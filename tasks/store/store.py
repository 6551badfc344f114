"""The artefact store: what each step left behind, in files that are whole if they exist and checked before they are believed.

A run folder holds ``artifacts/<step>/<key>.<suffix>`` and beside it ``<key>.record``, with size and SHA-256. The same key means the same
content (``tasks.store.keys``).
Artefacts hold raw values: folders are 0700 and files 0600.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.store.files import file_digest, private_folder, write_whole
from tasks.store.keys import Key


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


class Store:
    """Finds, makes and checks artefacts in one folder."""

    def __init__(self, folder: Path, watch: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self.folder = folder
        self._believed: dict[Path, tuple[int, int]] = {}
        self._watch = watch

    def watching(self, watch: Callable[[], AbstractContextManager[None]]) -> Store:
        """Returns a view of the store that makes artefacts inside a block only: what the block ends with an error of is not kept."""

        @contextmanager
        def both() -> Iterator[None]:
            with self._watch(), watch():
                yield

        return Store(self.folder, both)

    def path(self, artifact: Artifact) -> Path:
        """Returns where an artefact lies."""
        return self.folder / artifact.file

    def find(self, step: str, key: Key) -> Artifact | None:
        """Returns the artefact of a step if it is there and whole."""
        record = self.folder / step / f"{key}.record"
        try:
            artifact = Artifact.model_validate_json(record.read_bytes())
        except (OSError, ValidationError):
            return None
        return artifact if self.whole(artifact) else None

    def whole(self, artifact: Artifact) -> bool:
        """Tells whether the file is as it was when it was made, reading all of it unless this store did so before."""
        path = self.path(artifact)
        try:
            stat = path.stat()
            state = (stat.st_size, stat.st_mtime_ns)
            # Several steps read the same artefact; hashing it each time would cost as much as reading it.
            if self._believed.get(path) == state:
                return True
            if stat.st_size != artifact.size or file_digest(path) != artifact.sha256:
                return False
        except OSError:
            return False
        self._believed[path] = state
        return True

    def make(self, step: str, key: Key, suffix: str, write: Callable[[Path], int]) -> Artifact:
        """Returns the artefact of a step, made by ``write`` unless it is there and whole.

        Args:
            step: Names the folder.
            key: Of all that the content depends on.
            suffix: Of the file, with its dot.
            write: Writes the file at the path it is given and returns its number of rows.

        Raises:
            StorageError: a folder cannot be made.
        """
        if found := self.find(step, key):
            return found
        path = private_folder(self.folder / step) / f"{key}{suffix}"

        def watched(part: Path) -> int:
            with self._watch():
                return write(part)

        rows = write_whole(path, watched)
        stat = path.stat()
        artifact = Artifact(step=step, key=key, file=f"{step}/{path.name}", rows=rows, size=stat.st_size, sha256=file_digest(path))
        # The record goes last: killed between the two, a file is left that nothing names, and it is written once more.
        write_whole(path.with_suffix(".record"), lambda record: record.write_text(artifact.model_dump_json()))
        self._believed[path] = (stat.st_size, stat.st_mtime_ns)
        return artifact

    def discard(self, artifacts: Sequence[Artifact]) -> None:
        """Removes single artefacts."""
        for artifact in artifacts:
            path = self.path(artifact)
            # The record goes first, so that a kill leaves no record of what is gone.
            path.with_suffix(".record").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            self._believed.pop(path, None)

    def remove(self, *steps: str) -> None:
        """Removes all artefacts of the given steps."""
        for step in steps:
            shutil.rmtree(self.folder / step, ignore_errors=True)
        self._believed.clear()

    @classmethod
    def at(cls, work: Path) -> Self:
        """Returns the store of a run folder.

        Raises:
            StorageError: a folder cannot be made.
        """
        return cls(private_folder(work / "artifacts"))
