"""Recovery of originals from pseudonyms, for holders of the key or the vault.

Encryption, tokens and shifted dates can be undone.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from core.pseudonyms.treatments import TreatmentInputs
from schemas.errors.base import nearest
from schemas.errors.pseudonyms import PseudonymError
from schemas.errors.signals import RefusedError
from schemas.job.identifiers import Identifier
from schemas.job.job import Job
from schemas.registry.treatment_kinds import treatment_kind
from tasks.pseudonyms.vaults import MISSING, read_key, values_of, vault_id, vault_path
from tasks.store.files import PRIVATE_FILE, real_path
from tasks.store.work_folder import temporary_folder_of


def reveal(job: Job, column: str, pseudonyms: Sequence[str], subjects: Sequence[str] | None = None) -> list[str | None]:
    """Return the original of each pseudonym as text, None where there is none.

    Args:
        job: Gives the column's treatment and the location of key or vault.
        column: A column of pseudonyms.
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
    try:
        originals = _originals(job, one, pa.array(pseudonyms, pa.large_string()), subjects)
    except RefusedError as error:
        raise PseudonymError.refused([f"column '{column}': {error}"]) from None
    found: list[str | None] = originals.to_pylist()
    return found


def needs_subjects(job: Job, column: str) -> bool:
    """Return whether a column's pseudonyms can be undone only with their subjects."""
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
    """Read pseudonyms from CSV lines, one per line, each after its subject if ``with_subjects``."""
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
    """Create a private CSV file of pseudonyms, originals and any subjects.

    It never lies in the target of the job, which is handed on, and never replaces a file.
    """
    if real_path(path).is_relative_to(real_path(job.target_path)):
        raise PseudonymError.originals_not_writable(str(path), "it lies inside the target, which is handed on")
    try:
        # Private before there is a byte in it; a mode that is set afterwards leaves a moment for others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        raise PseudonymError.originals_not_writable(str(path), "it exists and stays as it is; name another file") from None
    except OSError as error:
        raise PseudonymError.originals_not_writable(str(path), error.strerror or "unknown reason") from None
    before = [subjects] if subjects is not None else []
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject"] * len(before) + ["pseudonym", "original"])
        writer.writerows(zip(*before, pseudonyms, originals, strict=True))
