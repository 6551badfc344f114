"""Pseudonyms in place of identifiers, made wherever published columns are read, and their originals.

A key is read where a chunk is read, and must be the key that the run began with. The job, which goes to tasks, holds only its location.

Encryption, tokens and shifted dates can be undone.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from core.columns.column_types import plain_type
from core.privacy.pseudonyms import TreatmentInputs, fingerprint, texts
from schemas.errors.base import listed, nearest
from schemas.errors.folders import FolderError
from schemas.errors.signals import RefusedError, UnfitError
from schemas.errors.values import PseudonymError
from schemas.job.identifiers import Identifier
from schemas.job.job import Job
from schemas.registry.treatment_kinds import treatment_kind
from schemas.registry.treatments import Secret, TreatmentSpec
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import BATCH_ROWS, read_chunk
from tasks.store.files import HANDED_ON, PRIVATE_FILE, check_private, real_path
from tasks.store.work_folder import temporary_folder_of
from tasks.writing.vaults import MISSING, issue_tokens, read_key, tokens_of_values, values_of, vault_id, vault_path


def prefect_stores_secrets(job: Job) -> bool:
    """Return whether a key or a vault's path of the job comes from a Prefect block."""
    secrets = (one.treatment.secret for one in job.columns.pseudonyms)
    return any(secret is not None and secret.prefect_block is not None for secret in secrets)


def key_fingerprints(job: Job) -> dict[str, str]:
    """Return by treated column the fingerprint of its key, or its vault's id; raise if one is unusable.

    Columns that need none are left out. A fingerprint does not reveal the key.
    """
    found, faults = {}, []
    for one in job.columns.pseudonyms:
        try:
            if (secret := one.treatment.secret) is not None:
                found[one.name] = _fingerprint(job, one.treatment, secret)
        except RefusedError as error:
            faults.append(f"column '{one.name}': {error}")
    if faults := faults or _renamed_key_faults(job, found):
        raise PseudonymError.refused(faults)
    return found


def _renamed_key_faults(job: Job, fingerprints: Mapping[str, str]) -> list[str]:
    """Return a message for each two encrypted columns whose keys are equal and are named by two places.

    The recount knows the places only. It counts such columns together where they name one place.
    """
    encrypted = [one for one in job.columns.pseudonyms if one.name in fingerprints and treatment_kind(one.treatment).meets == "by chance"]
    return [
        f"columns '{one.name}' and '{other.name}': their keys are equal; name one place in both, or give them keys that differ"
        for one, other in combinations(encrypted, 2)
        if fingerprints[one.name] == fingerprints[other.name] and one.treatment.secret != other.treatment.secret
    ]


def _fingerprint(job: Job, treatment: TreatmentSpec, secret: Secret) -> str:
    if treatment_kind(treatment).vaulted:
        return vault_id(job, vault_path(job, secret))
    return fingerprint(read_key(job, secret))


def with_key_fingerprints(job: Job, source: ChunkedSource) -> ChunkedSource:
    """Return a copy of the source with fingerprints of keys and vaults; raise if one is unusable."""
    return source.model_copy(update={"keys": key_fingerprints(job)}) if job.columns.pseudonyms else source


def lacks_vault(source: ChunkedSource) -> bool:
    """Return whether a vault of the job does not exist yet, by the source's key fingerprints.

    A run makes it, and the release's id follows from that of the vault.
    """
    return MISSING in source.keys.values()


def give_tokens(job: Job, source: ChunkedSource, spill: Path) -> ChunkedSource:
    """Write tokens to vaults for values without one; return the source with vault ids, or raise."""
    if not job.columns.pseudonyms:
        return source
    key_fingerprints(job)
    # All keys have been looked at by now: a token that is given stays given, even if the run ends for the want of another key.
    vaults: dict[Path, list[str]] = {}
    for one in job.columns.pseudonyms:
        if (secret := one.treatment.secret) is not None and treatment_kind(one.treatment).vaulted:
            vaults.setdefault(vault_path(job, secret), []).append(one.name)
    for path, names in vaults.items():
        with _refused(listed(names)):
            issue_tokens(job, path, _values(source, names), spill)
    return with_key_fingerprints(job, source)


@contextmanager
def _refused(whose: str) -> Iterator[None]:
    """Raise a ``PseudonymError`` of the named columns in place of a ``RefusedError``."""
    try:
        yield
    except RefusedError as error:
        raise PseudonymError.refused([f"{whose}: {error}"]) from None


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
        plain: Columns whose text is not dictionary-encoded.
    """
    treated = [one for one in job.columns.pseudonyms if one.name in columns]
    if not treated:
        yield from read_chunk(chunk, columns, plain=plain)
        return
    made = _pseudonyms(job, source, chunk, treated)
    others = [name for name in columns if name not in made]
    if not others:
        yield from pa.table([made[name] for name in columns], names=list(columns)).to_batches(max_chunksize=BATCH_ROWS)
        return
    first = 0
    for batch in read_chunk(chunk, others, plain=plain):
        arrays = [made[name].slice(first, batch.num_rows) if name in made else batch.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
        first += batch.num_rows


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
    """Return the key of a treatment, or the function that looks up its vault.

    Both are read again; ``PseudonymError`` is raised unless they are those that the run began with.
    """
    secret = one.treatment.secret
    if secret is None:
        return TreatmentInputs()
    with _refused(f"column '{one.name}'"):
        if treatment_kind(one.treatment).vaulted:
            path = vault_path(job, secret)
            found, means = vault_id(job, path), TreatmentInputs(find_pseudonyms=partial(_look_up, job, one.name, path))
        else:
            key = read_key(job, secret)
            found, means = fingerprint(key), TreatmentInputs(key)
    if found != source.keys.get(one.name):
        raise PseudonymError.another_key(one.name)
    return means


def _look_up(job: Job, column: str, vault: Path, values: pa.Array) -> pa.Array:
    """Return the tokens of a column's values in a vault; raise ``PseudonymError`` if it lacks any."""
    tokens = tokens_of_values(job, vault, values, job.work_path / "spill")
    if tokens.null_count:
        raise PseudonymError.not_in_vault(column, tokens.null_count)
    return tokens


def reveal(job: Job, column: str, pseudonyms: Sequence[str], subjects: Sequence[str] | None = None) -> list[str | None]:
    """Return the original of each pseudonym by key or vault, None if unknown; raise if unfit.

    Args:
        job: Gives the column's treatment and the location of key or vault.
        pseudonyms: As text; dates as 2020-01-31 or 2020-01-31 12:00:00.
        subjects: The subjects of the dates, original values as text; for shifted dates only.
    """
    known = {one.name: one for one in job.columns.pseudonyms}
    if column not in known:
        raise PseudonymError.no_pseudonyms(column, nearest(column, known))
    one = known[column]
    if (one.treatment.subject is not None) != (subjects is not None):
        wanted = "a subject and a date" if subjects is None else "one pseudonym"
        raise PseudonymError.unreadable_list(f"'{column}' needs {wanted} in each line")
    with _refused(f"column '{column}'"):
        originals = _originals(job, one, pa.array(pseudonyms, pa.large_string()), subjects)
    found: list[str | None] = originals.to_pylist()
    return found


def needs_subjects(job: Job, column: str) -> bool:
    """Return whether reversing a column's pseudonyms requires the subject of each, as for shifted dates."""
    return any(one.name == column and one.treatment.subject is not None for one in job.columns.pseudonyms)


def _originals(job: Job, one: Identifier, pseudonyms: pa.Array, subjects: Sequence[str] | None) -> pa.Array:
    entry, secret = treatment_kind(one.treatment), one.treatment.secret
    if entry.originals is None:
        raise PseudonymError.irreversible(one.name, entry.words)
    means = TreatmentInputs(subjects=pa.array(subjects, pa.large_string()) if subjects is not None else None)
    if secret is None or not entry.vaulted:
        key = read_key(job, secret) if secret is not None else b""
        found: pa.Array = entry.originals(one.treatment, pseudonyms, replace(means, key=key))
        return found
    path = vault_path(job, secret)
    if vault_id(job, path) == MISSING:
        raise RefusedError(f"the {secret.words} names a vault that does not exist")
    with temporary_folder_of(job, "reveal") as spill:
        found = entry.originals(
            one.treatment, pseudonyms, replace(means, find_pseudonyms=lambda tokens: values_of(job, path, tokens, spill))
        )
        return found


def read_list(lines: Iterable[str], with_subjects: bool) -> tuple[list[str], list[str] | None]:
    """Parse CSV lines into pseudonyms, and subjects if ``with_subjects``; raise for odd lines."""
    fields = 2 if with_subjects else 1
    try:
        rows = [row for row in csv.reader(lines, strict=True) if row]
    except (csv.Error, UnicodeDecodeError):
        raise PseudonymError.unreadable_list("it is not CSV in UTF-8") from None
    if odd := next((number for number, row in enumerate(rows, 1) if len(row) != fields), None):
        needed = "a subject and a date" if with_subjects else "one pseudonym"
        raise PseudonymError.unreadable_list(f"entry {odd:,} is not {needed}")
    return [row[-1] for row in rows], [row[0] for row in rows] if with_subjects else None


def write_originals(
    job: Job, path: Path, pseudonyms: Sequence[str], originals: Sequence[str | None], subjects: Sequence[str] | None
) -> None:
    """Write a new private CSV of pseudonyms and originals; raise if it exists or is in the target.

    It never lies in the target of the job, which is handed on, and never replaces a file.
    """
    if real_path(path).is_relative_to(real_path(job.target_path)):
        raise PseudonymError.originals_not_writable(str(path), HANDED_ON)
    try:
        # Private before there is a byte in it; a mode that is set afterwards leaves a moment for others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            check_private(descriptor, path.parent)
        except FolderError:
            path.unlink()
            raise
    except FileExistsError:
        raise PseudonymError.originals_not_writable(str(path), "it exists and stays as it is; name another file") from None
    except OSError as error:
        raise PseudonymError.originals_not_writable(str(path), error.strerror or "unknown reason") from None
    before = [subjects] if subjects is not None else []
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject"] * len(before) + ["pseudonym", "original"])
        writer.writerows(zip(*before, pseudonyms, originals, strict=True))
