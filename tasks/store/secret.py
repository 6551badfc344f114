"""The secret of a work folder, which keys all digests that leave the folder.

A digest of something that can be guessed confirms the guess: of a file with one unknown record there are as many candidates as values, and
all of them are tried in a second. Within the work folder digests are plain, so that equal content is known again, whoever made it. What a
release or Prefect's server is told is keyed: it is the same for the same content and the same secret, and tells nobody else anything.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schemas.errors.values import SecretError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.registry.treatments import is_strong
from tasks.store.files import flush, write_atomically

VARIABLE = "SKALD_SECRET"
"""The variable that holds the secret where ids must agree between machines; it goes before the file."""
FILE = "secret"
DIGITS = 64


class FolderSecret:
    """Key of the keyed digests of a work folder."""

    def __init__(self, text: bytes) -> None:
        # Set apart, so that a secret which is also the key of pseudonyms shares nothing with them.
        self._key = hmac.digest(text, b"\xffskald digests of releases", "sha256")

    def keyed(self, *parts: object) -> str:
        """Return the HMAC-SHA-256 of JSON values, as 64 hexadecimal digits."""
        return hmac.digest(self._key, json.dumps(parts, sort_keys=True).encode(), "sha256").hex()

    def keyed_numbers(self, kind: str, numbers: Sequence[int]) -> list[int]:
        """Return the first 64 bits of the HMAC-SHA-256 of each of some 64-bit numbers."""
        before = f"\xff{kind}\xff".encode()
        return [int.from_bytes(hmac.digest(self._key, before + one.to_bytes(8, "big"), "sha256")[:8], "big") for one in numbers]


def secret_of(job: Job) -> FolderSecret:
    """Return the secret from the environment or the job's locked work folder, created if missing."""
    return read_secret(job) or create_secret(job.work_path / FILE)


def create_secret(path: Path) -> FolderSecret:
    """Return the secret in a file, created if missing; raise ``SecretError`` if it is damaged."""
    if os.path.lexists(path):
        return _read(path)

    def write(part: Path) -> int:
        part.write_text(f"{secrets.token_hex(DIGITS // 2)}\n")
        # Without it the same job on the same data would be another release, so it is on the disk before anything is made with it.
        flush(part)
        return 0

    write_atomically(path, write)
    return _read(path)


def read_secret(job: Job) -> FolderSecret | None:
    """Return the secret from environment or work folder, None if absent; raise ``SecretError`` if unfit."""
    if (text := os.environ.get(VARIABLE)) is not None:
        secret = text.strip().encode()
        if not is_strong(secret):
            raise SecretError.weak(VARIABLE)
        return FolderSecret(secret)
    path = job.work_path / FILE
    return _read(path) if os.path.lexists(path) else None


def read_secrets(job: Job) -> list[FolderSecret]:
    """Return the secrets of a job and of other jobs beside it; skip damaged ones of others."""
    own, others = read_secret(job), []
    for path in sorted((job.folder / ".skald").glob(f"*/{FILE}")):
        try:
            others.append(_read(path))
        except SecretError:
            continue
    return [*([own] if own else []), *others]


def _read(path: Path) -> FolderSecret:
    try:
        text = content_of(path, DIGITS + 1).removesuffix(b"\n")
    except OSError:
        raise SecretError.damaged(str(path)) from None
    # A power cut may have left an empty file, with which everybody could make the same digests.
    if len(text) != DIGITS or not is_strong(text):
        raise SecretError.damaged(str(path))
    return FolderSecret(text)


def seal(content: Any) -> str:
    """Return JSON text of a value with its SHA-256, to be read by ``unsealed``."""
    return json.dumps([content, _digest(content)])


def unsealed(path: Path) -> Any:
    """Return the JSON values of a file made by ``seal``; None if it is gone, cut off or altered."""
    try:
        return unsealed_text(content_of(path, may_be_link=False))
    except OSError:
        return None


def unsealed_text(text: bytes) -> Any:
    """Return the JSON values of a text made by ``seal``; None if it is cut off or altered."""
    try:
        content, digest = json.loads(text)
    except (ValueError, TypeError):
        return None
    return content if digest == _digest(content) else None


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
