"""Vaults: which value has which random token. One Parquet file (0600) that grows by one atomic rename and belongs to no release.

Tokens say nothing of values and do not depend on them, on chunks or on the order of the source. They are given out once, before any chunk
is read for the release, under a lock that the system drops when the process ends. Looked up are the values of one chunk at a time, in one
scan of the vault, so that memory depends on the chunk; the distinct values of a source are sorted out of core.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.pseudonyms.keyed_hash import fixed_width
from schemas.errors.signals import RefusedError
from schemas.job.job import Job
from schemas.pseudonyms.secret_places import Secret
from schemas.pseudonyms.treatments import TOKEN_DIGITS
from tasks.pseudonyms.keys import apart, only_its_owners, text_of
from tasks.pseudonyms.vault_states import DIGEST, GENERATION, MARK, SCHEMA, RowDigest, checked_state, remember, state_of
from tasks.store.database import connect, literal
from tasks.store.files import locked, write_whole

MISSING = "new"
"""What stands for the id of a vault that is not there yet."""


def vault_path(job: Job, place: Secret) -> Path:
    """Returns where a vault lies or will lie.

    Raises:
        RefusedError: inside target or work folder, in no folder, or readable by others.
    """
    named = place.file if place.file is not None else Path(text_of(place))
    path = apart(job, job.resolve(named), place)
    if not path.parent.is_dir():
        raise RefusedError(f"the {place.words} names a vault in a folder that does not exist; make the folder")
    if path.exists():
        only_its_owners(path, place)
    return path


def vault_id(job: Job, path: Path) -> str:
    """Returns what tells this vault from every other; it stays while tokens are added.

    Raises:
        RefusedError: the file is no vault, a damaged one, or behind the one that was used before, which may be gone, too.
    """
    state = checked_state(job, path)
    return MISSING if state is None else state.identity


def issue(job: Job, path: Path, values: Iterable[pa.Array], spill: Path) -> int:
    """Gives a token to every value that has none yet; makes the vault where there is none.

    Args:
        job: Gives the memory.
        path: The vault.
        values: Large text without nulls, piece by piece.
        spill: For what does not fit the memory.

    Returns:
        How many tokens are new.

    Raises:
        RefusedError: the vault is not what it was, or gone.
        StorageError: the disk is full or the folder cannot be written.
    """
    with _locked(path), connect(job, spill) as connection:
        state = checked_state(job, path)
        connection.execute("CREATE TEMP TABLE seen (value VARCHAR)")
        for piece in values:
            connection.register("piece", pa.table({"value": piece}))
            connection.execute("INSERT INTO seen SELECT value FROM piece")
            connection.unregister("piece")
        known = f"ANTI JOIN read_parquet({literal(str(path))}) USING (value)" if path.exists() else ""
        connection.execute(f"CREATE TEMP TABLE unknown AS SELECT DISTINCT value FROM seen {known}")
        [(count,)] = connection.execute("SELECT count(*) FROM unknown").fetchall()
        if count or not path.exists():
            generation = state.generation + 1 if state else 1
            write_whole(path, lambda part: _grown(part, path, generation, connection))
            _flush(path)
        remember(job, path, state_of(path))
        return int(count)


def _grown(part: Path, path: Path, generation: int, connection: duckdb.DuckDBPyConnection) -> int:
    """Writes the old vault and the new tokens behind it, as the next generation."""
    # The writer would make it with whatever mode the process has; so it is there and private when it opens it.
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW, 0o600))
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
    with locked(path.with_name(f".{path.name}.lock"), how):
        if how == fcntl.LOCK_EX:
            for left in path.parent.glob(f".{escape(path.name)}.*.part"):
                left.unlink(missing_ok=True)
        yield


def tokens_of(job: Job, path: Path, values: pa.Array, spill: Path) -> pa.Array:
    """Returns the token of each value, null where it has none.

    Raises:
        StorageError: the disk is full, or more memory is needed than there is.
    """
    return _looked_up(job, path, values, ("value", "token"), spill)


def values_of(job: Job, path: Path, tokens: pa.Array, spill: Path) -> pa.Array:
    """Returns the value of each token, null where there is none.

    Raises:
        StorageError: the disk is full, or more memory is needed than there is.
    """
    return _looked_up(job, path, tokens, ("token", "value"), spill)


def _looked_up(job: Job, path: Path, wanted: pa.Array, columns: tuple[str, str], spill: Path) -> pa.Array:
    given, sought = columns
    # DuckDB opens the file more than once, and another run may put a longer one in its place meanwhile.
    with _locked(path, fcntl.LOCK_SH), connect(job, spill) as connection:
        connection.register("wanted", pa.table({"given": wanted, "place": np.arange(len(wanted))}))
        statement = (
            f"SELECT wanted.place, vault.{sought} AS sought FROM read_parquet({literal(str(path))}) AS vault "
            f"JOIN wanted ON vault.{given} = wanted.given"
        )
        found = connection.sql(statement).to_arrow_table()
        connection.unregister("wanted")
    rows = np.full(len(wanted), -1, np.int64)
    rows[found["place"].to_numpy()] = np.arange(len(found))
    return found["sought"].combine_chunks().cast(pa.large_string()).take(pc.if_else(pa.array(rows >= 0), pa.array(rows), None))
