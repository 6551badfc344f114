"""Which state a vault is in: its id, its generation, and a digest of its rows; and which it was in when it was used last.

A vault counts how often it grew and carries a digest of what it holds, so that a flipped bit or two exchanged tokens are noticed before
anything is looked up. What no file can tell of itself, that a newer one was there, is remembered beside it and in the work folder: an older
vault, another one, or none in its place is refused, where it would have been given new tokens without a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors.signals import RefusedError
from schemas.job.job import Job
from tasks.source.object_store import Stat
from tasks.source.stable_files import file_stat
from tasks.store.files import private_folder, write_whole
from tasks.store.sealed import seal, unsealed

SCHEMA = pa.schema([("value", pa.large_string()), ("token", pa.large_string())])
MARK, GENERATION, DIGEST = b"skald.vault", b"skald.vault.generation", b"skald.vault.digest"
RESTORE = "restore it from a copy, or name another file if new tokens for all values are meant"


class VaultState(NamedTuple):
    """What tells one state of a vault from all others; generation 0 and no digest where an earlier version wrote it."""

    identity: str
    generation: int
    digest: str


class RowDigest:
    """The digest of a vault's rows, however they are cut into batches."""

    def __init__(self, identity: str, generation: int) -> None:
        self._begin = f"{identity} {generation}"
        self._streams = [hashlib.sha256() for _ in range(2 * len(SCHEMA))]

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows of the columns of ``SCHEMA``."""
        for number, column in enumerate(batch.columns):
            lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False)
            self._streams[2 * number].update(np.ascontiguousarray(lengths, "<i8").data)
            if len(column):
                ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
                self._streams[2 * number + 1].update((column.buffers()[2] or pa.py_buffer(b"")).slice(ends[0], ends[-1] - ends[0]))

    def result(self) -> str:
        """Returns the digest in hex."""
        return hashlib.sha256(" ".join([self._begin, *(stream.hexdigest() for stream in self._streams)]).encode()).hexdigest()


_verified: dict[Path, tuple[Stat, VaultState]] = {}


def state_of(path: Path) -> VaultState:
    """Returns the state of a vault that is there, after reading all of it, unless this process did so since it last changed.

    Raises:
        RefusedError: it is no vault, or damaged.
    """
    stat = file_stat(path)
    if path in _verified and _verified[path][0] == stat:
        return _verified[path][1]
    try:
        with pq.ParquetFile(path) as file:
            schema, written = file.schema_arrow, file.metadata.metadata or {}
            if MARK not in (schema.metadata or {}) or schema.remove_metadata() != SCHEMA:
                raise RefusedError("the file is no vault, or a damaged one; name another, or restore it")
            identity = schema.metadata[MARK].decode()
            state = VaultState(identity, int(written.get(GENERATION, b"0")), written.get(DIGEST, b"").decode())
            found = RowDigest(state.identity, state.generation)
            for batch in file.iter_batches():
                found.add(batch.cast(SCHEMA))
    except (OSError, ValueError, pa.ArrowException):
        raise RefusedError("the file is no vault, or a damaged one; name another, or restore it") from None
    # Vaults of earlier versions carry no digest; they get one when they grow.
    if state != (state.identity, 0, "") and found.result() != state.digest:
        raise RefusedError(f"the vault is damaged: what it holds is not what was written; {RESTORE}")
    _verified[path] = stat, state
    return state


def checked_state(job: Job, path: Path) -> VaultState | None:
    """Returns the state of a vault, if it is not behind the one that it was last used in; None where there never was one.

    Raises:
        RefusedError: it is gone, damaged, older, altered or another one.
    """
    # First: what is remembered is written after the vault, so that another run that makes it grow meanwhile is no older vault.
    known = list(_remembered(job, path))
    if not path.exists():
        if known:
            raise RefusedError(f"the vault is gone that was used here before; {RESTORE}")
        return None
    state = state_of(path)
    for before in known:
        if state.identity != before.identity:
            raise RefusedError(f"another vault is in the place of the one that was used here before; {RESTORE}")
        if state.generation < before.generation:
            raise RefusedError(
                f"the vault is older than the one that was used here before (generation {state.generation:,} of {before.generation:,}), "
                f"and values would get other tokens than they have; {RESTORE}"
            )
        if state.generation == before.generation and state.digest != before.digest:
            raise RefusedError(f"the vault is not the one that was used here before, though of the same generation; {RESTORE}")
    return state


def remember(job: Job, path: Path, state: VaultState) -> None:
    """Keeps in which state a vault was used, beside it and in the work folder.

    Raises:
        StorageError: the disk is full or a folder cannot be written.
    """
    beside, within = _memories(job, path)
    if job.work_path.is_dir():
        private_folder(within.parent)
    for memory in (beside, within):
        if memory.parent.is_dir() and unsealed(memory) != list(state):
            write_whole(memory, lambda part: part.write_text(seal(state)))


def _remembered(job: Job, path: Path) -> Iterator[VaultState]:
    for memory in _memories(job, path):
        kept = unsealed(memory)
        if isinstance(kept, list) and len(kept) == len(VaultState._fields):
            yield VaultState(*kept)


def _memories(job: Job, path: Path) -> tuple[Path, Path]:
    # The second because a vault's folder may be lost as a whole.
    named = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    return path.with_name(f".{path.name}.state"), job.work_path / "vaults" / f"{named}.json"
