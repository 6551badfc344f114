"""Keys of pseudonym treatments, and vaults: Parquet files (0600) that map values to random tokens.

A vault grows by one atomic rename and belongs to no release. Tokens are independent of values, of chunks and of the order of the
source. They are given out once, before any chunk is read for the release, under a lock that the system drops when the process ends. The
values of one chunk are looked up at a time, in one scan of the vault, so that memory depends on the chunk. The distinct values of a
source are sorted out of core.

A key is read where it is used, and no artefact holds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.privacy.pseudonyms import fixed_width
from schemas.errors.signals import RefusedError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.registry.treatments import LEAST_BITS, TOKEN_DIGITS, Secret, is_strong
from tasks.source.listing import Stat, file_stat
from tasks.store.database import connect, parquet_sql
from tasks.store.files import check_private, locked_file, private_folder, real_path, write_atomically
from tasks.store.keys import json_with_digest, values_with_digest

MOST_BYTES = 1_000_000

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_key(job: Job, place: Secret) -> bytes:
    """Return a key's bytes from file, environment or Prefect; raise ``RefusedError`` if missing or weak.

    It is the bytes of the file but for one line end, or the text in UTF-8.
    """
    key = _file_of(job, place) if place.file is not None else secret_text(place).encode()
    if not key:
        raise RefusedError(f"the {place.words} holds no key; put one there")
    if not is_strong(key):
        raise RefusedError(
            f"the key of the {place.words} is too weak: {LEAST_BITS} random bits are needed, such as the 64 characters that "
            "'openssl rand -hex 32' prints"
        )
    return key


def _file_of(job: Job, place: Secret) -> bytes:
    """Read a key file that only its owner can read."""
    path = checked_secret_path(job, job.resolve(place.file or Path()), place)
    if not path.exists():
        raise RefusedError(f"the {place.words} does not exist; put the key there")
    check_only_owner_reads(path, place)
    try:
        content = content_of(path, MOST_BYTES)
    except OSError:
        raise RefusedError(f"the {place.words} cannot be read; check that it is a regular file, small and yours") from None
    # One line end and no more: random bytes may end in what looks like white space.
    return content.removesuffix(b"\n").removesuffix(b"\r")


def secret_text(place: Secret) -> str:
    """Return the text of an environment variable or Prefect block; raise ``RefusedError`` without one."""
    if place.env is not None:
        if not (found := os.environ.get(place.env, "")):
            raise RefusedError(f"the {place.words} is not set; set it where the run and its workers start")
        return found
    try:
        from prefect.blocks.system import Secret as Block  # noqa: PLC0415 - takes a second

        block: Any = Block.load(place.prefect_block or "")
        return str(block.get())
    except Exception:
        # Whatever Prefect says may show what the block holds.
        raise RefusedError(f"the {place.words} cannot be loaded; check its name, that it is a Secret, and PREFECT_API_URL") from None


def checked_secret_path(job: Job, path: Path, place: Secret) -> Path:
    """Return the real path of a key or vault; raise ``RefusedError`` inside target or work folder."""
    # Where it really is, because a link may lead into the folder that is handed on.
    real = real_path(path)
    for folder, name in ((job.target_path, "target"), (job.work_path, "work folder")):
        if real.is_relative_to(real_path(folder)):
            raise RefusedError(f"the {place.words} lies inside the {name}; keep it outside")
    return real


def check_only_owner_reads(path: Path, place: Secret) -> None:
    """Raise ``RefusedError`` if others than the owner may read or write a file."""
    if path.stat().st_mode & OTHERS:
        raise RefusedError(f"others may read the {place.words}; run chmod 600 on it")


SCHEMA = pa.schema([("value", pa.large_string()), ("token", pa.large_string())])
MARK, GENERATION, DIGEST = b"skald.vault", b"skald.vault.generation", b"skald.vault.digest"
RESTORE = "restore it from a copy, or name another file if new tokens for all values are meant"


class VaultState(NamedTuple):
    """Identity, generation and digest of a vault.

    A vault of an earlier version has generation 0 and no digest.
    """

    identity: str
    generation: int
    digest: str


class RowDigest:
    """Digest of a vault's rows, independent of how they are cut into batches."""

    def __init__(self, identity: str, generation: int) -> None:
        self._begin = f"{identity} {generation}"
        self._streams = [hashlib.sha256() for _ in range(2 * len(SCHEMA))]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows with the columns of ``SCHEMA`` to the digest."""
        for number, column in enumerate(batch.columns):
            lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False)
            self._streams[2 * number].update(np.ascontiguousarray(lengths, "<i8").data)
            if len(column):
                ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
                self._streams[2 * number + 1].update((column.buffers()[2] or pa.py_buffer(b"")).slice(ends[0], ends[-1] - ends[0]))

    def result(self) -> str:
        """Return the digest in hex."""
        return hashlib.sha256(" ".join([self._begin, *(stream.hexdigest() for stream in self._streams)]).encode()).hexdigest()


_verified: dict[Path, tuple[Stat, VaultState]] = {}


def state_of(path: Path) -> VaultState:
    """Return a vault's state, verified once per process; raise ``RefusedError`` if it is damaged."""
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


def checked_vault_state(job: Job, path: Path) -> VaultState | None:
    """Return a vault's state, None if there never was one; raise if not the one last used."""
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


def record_vault_state(job: Job, path: Path, state: VaultState) -> None:
    """Write a vault's state beside it and into the work folder, where it has changed."""
    beside, within = _memories(job, path)
    if job.work_path.is_dir():
        private_folder(within.parent)
    for memory in (beside, within):
        if memory.parent.is_dir() and values_with_digest(memory) != list(state):
            write_atomically(memory, lambda part: part.write_text(json_with_digest(state)))


def _remembered(job: Job, path: Path) -> Iterator[VaultState]:
    """Yield the recorded states of a vault."""
    for memory in _memories(job, path):
        kept = values_with_digest(memory)
        if isinstance(kept, list) and len(kept) == len(VaultState._fields):
            yield VaultState(*kept)


def _memories(job: Job, path: Path) -> tuple[Path, Path]:
    """Return the two files that record a vault's state."""
    # The second because a vault's folder may be lost as a whole.
    named = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    return path.with_name(f".{path.name}.state"), job.work_path / "vaults" / f"{named}.json"


MISSING = "new"
"""The id of a vault that does not exist yet."""


def vault_path(job: Job, place: Secret) -> Path:
    """Return the path of a vault; raise ``RefusedError`` if its folder is missing or others may read it."""
    named = place.file if place.file is not None else Path(secret_text(place))
    path = checked_secret_path(job, job.resolve(named), place)
    if not path.parent.is_dir():
        raise RefusedError(f"the {place.words} names a vault in a folder that does not exist; make the folder")
    if path.exists():
        check_only_owner_reads(path, place)
    return path


def vault_id(job: Job, path: Path) -> str:
    """Return a vault's identity, ``new`` if it does not exist; raise if it is not the one last used."""
    state = checked_vault_state(job, path)
    return MISSING if state is None else state.identity


def issue_tokens(job: Job, path: Path, values: Iterable[pa.Array], spill: Path) -> int:
    """Write a random token to the vault for every value without one; return how many were new.

    Args:
        job: Gives the memory.
        values: Large text without nulls, piece by piece.
        spill: Folder for data that do not fit the memory.
    """
    with _locked(path), connect(job, spill) as connection:
        state = checked_vault_state(job, path)
        connection.execute("CREATE TEMP TABLE seen (value VARCHAR)")
        for piece in values:
            connection.register("piece", pa.table({"value": piece}))
            connection.execute("INSERT INTO seen SELECT value FROM piece")
            connection.unregister("piece")
        known = f"ANTI JOIN {parquet_sql([path])} USING (value)" if path.exists() else ""
        connection.execute(f"CREATE TEMP TABLE unknown AS SELECT DISTINCT value FROM seen {known}")
        [(count,)] = connection.execute("SELECT count(*) FROM unknown").fetchall()
        if count or not path.exists():
            generation = state.generation + 1 if state else 1
            write_atomically(path, lambda part: _grown(part, path, generation, connection))
            _flush(path)
        record_vault_state(job, path, state_of(path))
        return int(count)


def _grown(part: Path, path: Path, generation: int, connection: duckdb.DuckDBPyConnection) -> int:
    """Write the old vault's rows followed by new tokens, as the next generation."""
    # The writer would make it with whatever mode the process has; so it is there and private when it opens it.
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    check_private(part, path.parent)
    old = pq.ParquetFile(path) if path.exists() else None
    identity = old.schema_arrow.metadata[MARK] if old else os.urandom(8).hex().encode()
    digest, rows = RowDigest(identity.decode(), generation), 0
    with pq.ParquetWriter(part, SCHEMA.with_metadata({MARK: identity}), compression="zstd", use_dictionary=False) as writer:

        def write(batch: pa.RecordBatch) -> None:
            nonlocal rows
            writer.write_batch(batch)
            digest.add(batch)
            rows += batch.num_rows

        for batch in old.iter_batches() if old else []:
            write(batch.cast(SCHEMA))
        # In the order of values, so that the vault keeps nothing of the order of the source.
        fresh = connection.sql("SELECT value FROM unknown ORDER BY value").to_arrow_reader(100_000)
        for batch in fresh:
            tokens = fixed_width(os.urandom(batch.num_rows * TOKEN_DIGITS // 2).hex(), TOKEN_DIGITS, TOKEN_DIGITS)
            write(pa.RecordBatch.from_arrays([batch.column(0).cast(pa.large_string()), tokens], schema=SCHEMA))
        writer.add_key_value_metadata({GENERATION: str(generation), DIGEST: digest.result()})
    if old:
        old.close()
    _flush(part)
    return rows


def _flush(path: Path) -> None:
    # A release that is published with tokens must not outlive them, whatever happens to the machine.
    for place in (path, path.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    with locked_file(path.with_name(f".{path.name}.lock"), how):
        if how == fcntl.LOCK_EX:
            for left in path.parent.glob(f".{escape(path.name)}.*.part"):
                left.unlink(missing_ok=True)
        yield


def tokens_of_values(job: Job, path: Path, values: pa.Array, spill: Path) -> pa.Array:
    """Return the token of each value from a vault file, null for a value without one."""
    return _looked_up(job, path, values, ("value", "token"), spill)


def values_of(job: Job, path: Path, tokens: pa.Array, spill: Path) -> pa.Array:
    """Return the value of each token from a vault file, null for an unknown token."""
    return _looked_up(job, path, tokens, ("token", "value"), spill)


def _looked_up(job: Job, path: Path, wanted: pa.Array, columns: tuple[str, str], spill: Path) -> pa.Array:
    """Look up values or tokens in a vault under a shared lock."""
    given, sought = columns
    # DuckDB opens the file more than once, and another run may put a longer one in its place meanwhile.
    with _locked(path, fcntl.LOCK_SH), connect(job, spill) as connection:
        connection.register("wanted", pa.table({"given": wanted, "place": np.arange(len(wanted))}))
        statement = (
            f"SELECT wanted.place, vault.{sought} AS sought FROM {parquet_sql([path])} AS vault JOIN wanted ON vault.{given} = wanted.given"
        )
        found = connection.sql(statement).to_arrow_table()
        connection.unregister("wanted")
    rows = np.full(len(wanted), -1, np.int64)
    rows[found["place"].to_numpy()] = np.arange(len(found))
    return found["sought"].combine_chunks().cast(pa.large_string()).take(pc.if_else(pa.array(rows >= 0), pa.array(rows), None))
