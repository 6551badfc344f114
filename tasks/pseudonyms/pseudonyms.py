"""Pseudonyms in place of identifiers, made wherever the published columns of a chunk are read.

A key is read where a chunk is read, and must be the key that the run began with. The job, which goes to tasks, holds only its location.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from core.columns.column_types import plain_type
from core.pseudonyms.keyed_hash import TreatmentInputs, fingerprint
from core.pseudonyms.treatments import texts
from schemas.errors.base import listed
from schemas.errors.pseudonyms import PseudonymError
from schemas.errors.signals import RefusedError, UnfitError
from schemas.job.job import Job
from schemas.pseudonyms.identifiers import Identifier
from schemas.pseudonyms.kinds import treatment_kind
from schemas.pseudonyms.treatments import Secret, TreatmentSpec
from tasks.pseudonyms.keys import read_key
from tasks.pseudonyms.vaults import issue_tokens, tokens_of_values, vault_id, vault_path
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import BATCH_ROWS, read_chunk


def prefect_stores_secrets(job: Job) -> bool:
    """Return whether Prefect stores a key or the path of a vault of the job."""
    secrets = (one.treatment.secret for one in job.columns.pseudonyms)
    return any(secret is not None and secret.prefect_block is not None for secret in secrets)


def key_fingerprints(job: Job) -> dict[str, str]:
    """Return the fingerprint of each treated column's key or vault, by column.

    Columns that need none are left out. A fingerprint does not reveal the key.
    """
    found, faults = {}, []
    for one in job.columns.pseudonyms:
        try:
            if (secret := one.treatment.secret) is not None:
                found[one.name] = _fingerprint(job, one.treatment, secret)
        except RefusedError as error:
            faults.append(f"column '{one.name}': {error}")
    if faults:
        raise PseudonymError.refused(faults)
    return found


def _fingerprint(job: Job, treatment: TreatmentSpec, secret: Secret) -> str:
    if treatment_kind(treatment).vaulted:
        return vault_id(job, vault_path(job, secret))
    return fingerprint(read_key(job, secret))


def with_keys(job: Job, source: ChunkedSource) -> ChunkedSource:
    """Return the source with the fingerprints of the job's keys."""
    return source.model_copy(update={"keys": key_fingerprints(job)}) if job.columns.pseudonyms else source


def give_tokens(job: Job, source: ChunkedSource, spill: Path) -> ChunkedSource:
    """Give tokens to all values without one, and return the source with the ids of the vaults."""
    if not job.columns.pseudonyms:
        return source
    key_fingerprints(job)
    # All keys have been looked at by now: a token that is given stays given, even if the run ends for the want of another key.
    vaults: dict[Path, list[str]] = {}
    for one in job.columns.pseudonyms:
        if (secret := one.treatment.secret) is not None and treatment_kind(one.treatment).vaulted:
            vaults.setdefault(vault_path(job, secret), []).append(one.name)
    for path, names in vaults.items():
        try:
            issue_tokens(job, path, _values(source, names), spill)
        except RefusedError as error:
            raise PseudonymError.refused([f"{listed(names)}: {error}"]) from None
    return with_keys(job, source)


def _values(source: ChunkedSource, names: Sequence[str]) -> Iterator[pa.Array]:
    """Yield the distinct values of some columns as texts, batch by batch; nulls are left out."""
    for chunk in source.chunks:
        for batch in read_chunk(chunk, names):
            for column in batch.columns:
                yield texts(pc.unique(_plain(column).drop_null()))


def read_published(
    job: Job, source: ChunkedSource, chunk: Chunk, columns: Sequence[str], plain: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk as ``read_chunk`` does, with pseudonyms in place of identifiers.

    Args:
        job: Gives the treatments of identifiers.
        source: Holds the fingerprints of the keys.
        chunk: The chunk to read.
        columns: The columns to read.
        plain: Columns whose text is not dictionary-encoded.
    """
    treated = [one for one in job.columns.pseudonyms if one.name in columns]
    if not treated:
        yield from read_chunk(chunk, columns, plain=plain)
        return
    made = _pseudonyms(job, source, chunk, treated)
    others = [name for name in columns if name not in made]
    first = 0
    for rows, batch in _others(chunk, others, plain):
        arrays = [made[name].slice(first, rows) if name in made else batch.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
        first += rows


def _others(chunk: Chunk, names: Sequence[str], plain: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    if names:
        yield from ((batch.num_rows, batch) for batch in read_chunk(chunk, names, plain=plain))
        return
    empty = pa.RecordBatch.from_arrays([], names=[])
    yield from ((min(BATCH_ROWS, chunk.rows - first), empty) for first in range(0, chunk.rows, BATCH_ROWS))


def _pseudonyms(job: Job, source: ChunkedSource, chunk: Chunk, treated: Sequence[Identifier]) -> Mapping[str, pa.Array]:
    """Return the pseudonyms of a chunk's records by column, each of shape (rows,)."""
    subjects = [subject for one in treated if (subject := one.treatment.subject) is not None]
    wanted = list(dict.fromkeys([*(one.name for one in treated), *subjects]))
    table = pa.Table.from_batches([_plain_batch(batch) for batch in read_chunk(chunk, wanted)])
    made = {}
    for one in treated:
        try:
            if one.treatment.subject is not None:
                made[one.name] = _of_records(job, source, one, table, chunk)
            else:
                values, places = _distinct(table, one.name)
                made[one.name] = _made(one, values, _means(job, source, one)).take(places)
        except UnfitError as error:
            raise PseudonymError.unfit(one.name, chunk.name, error.count, error.reason) from None
    return made


def _plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], names=batch.schema.names)


def _plain(column: pa.Array) -> pa.Array:
    dtype = plain_type(column.type)
    return column.cast(pa.large_string() if pa.types.is_string(dtype) else dtype)


def _distinct(table: pa.Table, name: str) -> tuple[pa.Array, pa.Array]:
    """Return the distinct values of a column, and each record's position among them, null for a null."""
    coded = table[name].dictionary_encode().combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    return coded.dictionary, coded.indices


def _of_records(job: Job, source: ChunkedSource, one: Identifier, table: pa.Table, chunk: Chunk) -> pa.Array:
    """Return the pseudonyms of all records for a treatment that needs their subjects too."""
    assert one.treatment.subject is not None
    subjects, values = (table[name].combine_chunks() for name in (one.treatment.subject, one.name))
    if lacking := pc.sum(pc.and_(subjects.is_null(), values.is_valid())).as_py():
        raise PseudonymError.no_subject(one.name, one.treatment.subject, chunk.name, lacking)
    return _made(one, values, replace(_means(job, source, one), subjects=subjects))


def pseudonyms_of_key(job: Job, source: ChunkedSource, identifier: Identifier, values: pa.Array) -> pa.Array:
    """Return the pseudonym of each value of a table's key column, shape (n,), as large text.

    Args:
        job: Gives the locations of keys and vaults.
        source: Holds their fingerprints.
        identifier: The column and its treatment.
        values: Shape (n,).
    """
    try:
        return _made(identifier, _plain(values), _means(job, source, identifier))
    except UnfitError as error:
        raise PseudonymError.unfit(identifier.name, "its source", error.count, error.reason) from None


def _made(one: Identifier, values: pa.Array, means: TreatmentInputs) -> pa.Array:
    made: pa.Array = treatment_kind(one.treatment).pseudonyms(one.treatment, values, means)
    return made


def _means(job: Job, source: ChunkedSource, one: Identifier) -> TreatmentInputs:
    """Return the key of a treatment, or the function that looks up its vault."""
    secret = one.treatment.secret
    if secret is None:
        return TreatmentInputs()
    if not treatment_kind(one.treatment).vaulted:
        return TreatmentInputs(_key(job, source, one.name, secret))
    path = _vault(job, source, one.name, secret)

    def look_up(values: pa.Array) -> pa.Array:
        tokens = tokens_of_values(job, path, values, job.work_path / "spill")
        if tokens.null_count:
            raise PseudonymError.not_in_vault(one.name, tokens.null_count)
        return tokens

    return TreatmentInputs(find_pseudonyms=look_up)


def _key(job: Job, source: ChunkedSource, column: str, secret: Secret) -> bytes:
    """Read a key again; raise ``PseudonymError`` unless it is the one that the run began with."""
    try:
        key = read_key(job, secret)
    except RefusedError as error:
        raise PseudonymError.refused([f"column '{column}': {error}"]) from None
    if fingerprint(key) != source.keys.get(column):
        raise PseudonymError.another_key(column)
    return key


def _vault(job: Job, source: ChunkedSource, column: str, secret: Secret) -> Path:
    try:
        path = vault_path(job, secret)
        found = vault_id(job, path)
    except RefusedError as error:
        raise PseudonymError.refused([f"column '{column}': {error}"]) from None
    if found != source.keys.get(column):
        raise PseudonymError.another_key(column)
    return path
