"""The artefact store in a bucket: the same records and artefacts as in a folder, with a folder of this machine before them.

An object is named by step, key and digest, so what lies under a name never changes; the record, put last, says which object a key stands
for. What this process made or read is in its folder too and is read there. An artefact is believed by its size and tag when it is found,
and by its digest when it is fetched: an altered one is noticed before a byte of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from schemas.errors.folders import WorkError
from tasks.store.bucket import Bucket
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import Key, key_in_name
from tasks.store.secret import seal, unsealed_text
from tasks.store.store import Artifact, Store

BELOW, CALLS = "artifacts", "calls"
"""Where artefacts lie in a prefix, and calls that wait for a worker."""


class BucketStore(Store):
    """Finds, makes and checks artefacts below a prefix of a bucket.

    Args:
        folder: Where they are at hand on this machine.
        bucket: Where they lie.
        watch: As for a store in a folder.
    """

    def __init__(self, folder: Path, bucket: Bucket, watch: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        super().__init__(private_folder(folder), watch)
        self.bucket = bucket
        self._tags: dict[Artifact, str] = {}
        self._found: set[Artifact] = set()

    def begin(self) -> None:
        """Clear away the calls of a killed run; under the lease nobody takes them any more."""
        self.bucket.remove(list(self.bucket.sizes(CALLS)))

    def watching(self, watch: Callable[[], AbstractContextManager[None]]) -> BucketStore:
        """Return a view of the store that makes artefacts inside a block only."""

        @contextmanager
        def both() -> Iterator[None]:
            with self._watch(), watch():
                yield

        return BucketStore(self.folder, self.bucket, both)

    def path(self, artifact: Artifact) -> Path:
        """Return where an artefact is at hand; it is fetched if it is not."""
        path = self._place(artifact)
        if not self._is_here(artifact):
            private_folder(path.parent)
            write_atomically(path, lambda part: self._fetch(artifact, part))
        return path

    def _fetch(self, artifact: Artifact, part: Path) -> int:
        if not self.bucket.download(_object(artifact), part, artifact.sha256):
            self.discard([artifact])
            raise WorkError.damaged(self.bucket.object_address(_object(artifact)))
        return artifact.rows

    def at_hand(self, file: str) -> Path:
        """Return where the artefact of a name is at hand, as another process told of it by its path."""
        step, _, name = file.partition("/")
        artifact = self._recorded(step, key_in_name(name))
        if artifact is None or artifact.file != file:
            raise WorkError.damaged(self.bucket.object_address(f"{BELOW}/{file}"))
        return self.path(artifact)

    def recorded(self, step: str, keys: Sequence[Key]) -> list[bool]:
        """Tells of each key whether there is a record of it, as a listing tells."""
        there = self.bucket.sizes(f"{BELOW}/{step}") if keys else {}
        return [_record(step, key) in there for key in keys]

    def is_complete(self, artifact: Artifact) -> bool:
        """Return whether an artefact is what its record says, as far as can be told without fetching it."""
        return artifact in self._found or super().is_complete(artifact)

    def _recorded(self, step: str, key: Key) -> Artifact | None:
        try:
            said, tag = unsealed_text(self.bucket.read(_record(step, key)) or b"")
            artifact = Artifact.model_validate(said)
        except (ValidationError, TypeError, ValueError):
            return None
        if not artifact.is_of(step, key):
            return None
        self._tags[artifact] = str(tag)
        return artifact

    def _is_whole(self, artifact: Artifact) -> bool:
        # Looked at once: what is altered later is noticed when it is fetched.
        if artifact not in self._found:
            there = self.bucket.object_entry(_object(artifact))
            if there is None or there != (artifact.size, self._tags.get(artifact)):
                return False
            self._found.add(artifact)
        self.used.add((artifact.step, artifact.key))
        return True

    def _keep(self, artifact: Artifact) -> None:
        name = _object(artifact)
        self.bucket.upload(self._place(artifact), name, artifact.sha256)
        there = self.bucket.object_entry(name)
        if there is None or there.size != artifact.size:
            raise WorkError.damaged(self.bucket.object_address(name))
        # The record goes last here too. Two that are made at once are of the same content, and the later one stands.
        self.bucket.write(_record(artifact.step, artifact.key), seal([artifact.model_dump(), there.tag]).encode())
        self._tags[artifact] = there.tag
        self._found.add(artifact)

    def discard(self, artifacts: Sequence[Artifact]) -> None:
        """Remove single artefacts."""
        for artifact in artifacts:
            self.bucket.remove([_record(artifact.step, artifact.key), _object(artifact)])
            self._forget(artifact)

    def _forget(self, artifact: Artifact) -> None:
        path = self._place(artifact)
        path.unlink(missing_ok=True)
        self._believed.pop(path, None)
        self._found.discard(artifact)

    def remove(self, *steps: str) -> None:
        """Remove all artefacts of the given steps."""
        for step in steps:
            self._remove(self.bucket.sizes(f"{BELOW}/{step}"))
        super().remove(*steps)
        self._found = {artifact for artifact in self._found if artifact.step not in steps}

    def keep_only(self, artifact: Artifact) -> None:
        """Remove all other artefacts of an artefact's step."""
        kept = {_record(artifact.step, artifact.key), _object(artifact)}
        self._remove(name for name in self.bucket.sizes(f"{BELOW}/{artifact.step}") if name not in kept)

    def prune(self, steps: Sequence[str], kept: Container[tuple[str, str]]) -> None:
        """Remove the artefacts of the given steps that this store had no use for, but for the given ones."""
        for step in steps:
            there = self.bucket.sizes(f"{BELOW}/{step}")
            keys = {name: key_in_name(PurePosixPath(name).name) for name in there}
            self._remove(name for name, key in keys.items() if (step, key) not in self.used and (step, key) not in kept)

    def prune_unused(self, since: int, kept: Container[tuple[str, str]]) -> None:
        """Remove nothing: what is old in a bucket is a matter of the bucket's own rules of its life."""

    def clear(self) -> None:
        """Remove everything that the store holds."""
        self._remove(self.bucket.sizes(BELOW))
        super().clear()
        self._found.clear()

    def _remove(self, names: Iterable[str]) -> None:
        # Records first, so that a kill leaves none of what is gone.
        self.bucket.remove(sorted(names, key=lambda name: (not name.endswith(".record"), name)))


def _record(step: str, key: Key) -> str:
    return f"{BELOW}/{step}/{key}.record"


def _object(artifact: Artifact) -> str:
    name = PurePosixPath(artifact.file)
    return f"{BELOW}/{artifact.step}/{artifact.key}.{artifact.sha256[:32]}{name.name.removeprefix(artifact.key)}"
