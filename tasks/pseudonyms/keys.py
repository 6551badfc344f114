"""Keys and vault paths of pseudonym treatments: reading, and checks of strength and location.

A key is read where it is used, and no artefact holds it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from schemas.errors.signals import RefusedError
from schemas.job.job import Job
from schemas.pseudonyms.treatments import LEAST_BITS, Secret, is_strong
from schemas.reading.regular_files import content_of
from tasks.store.files import real_path

MOST_BYTES = 1_000_000

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_key(job: Job, place: Secret) -> bytes:
    """Read a key from its file, environment variable or Prefect block; raise ``RefusedError`` if weak.

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
    """Return the secret text of an environment variable or of a Prefect block."""
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
