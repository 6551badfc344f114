"""Objects of a release in a store: written only where there are none, and read back whole."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from schemas.errors.storage import ObjectStoreError
from schemas.job.job import Job
from schemas.release.evidence import MANIFEST
from tasks.store.bucket import is_refusal, knows_no_condition
from tasks.store.files import file_digest
from tasks.store.object_stores import file_system, told

BLOCK = 1 << 22


def unpublished(job: Job, release: str) -> tuple[Any, str]:
    """Returns the store that a job publishes in, and where the target is in there, if it has no such release by now.

    A task that comes late, of a run that was taken over, must not put its files in the place of published ones.

    Raises:
        ObjectStoreError: it has, or cannot be asked.
    """
    system, root = file_system(str(job.target_address))
    with told(job.place_of(release)):
        if system.exists(f"{root}/{release}/{MANIFEST}"):
            raise ObjectStoreError.exists(job.place_of(release))
    return system, root


def replace_object(system: Any, remote: str, content: bytes) -> bool:
    """Writes a small object over the one that was read, or where there is none; tells whether it has the content then.

    Where the store knows conditions, as S3's do, another one that was put there meanwhile stays.
    """
    try:
        there = system.info(remote)
        if there["size"] == len(content) and system.cat_file(remote) == content:
            return True
    except FileNotFoundError:
        there = None
    condition: dict[str, str] = {}
    if "s3" in system.protocol:
        condition = {"IfMatch": str(there["ETag"])} if there else {"mode": "create"}
    try:
        system.pipe_file(remote, content, **condition)
    except OSError as error:
        if condition and knows_no_condition(error):
            system.pipe_file(remote, content)
            return True
        if not (condition and is_refusal(error)):
            raise
        # The library may have tried again, and met its own object.
        return bool(system.exists(remote) and system.cat_file(remote) == content)
    return True


def put_object(system: Any, path: Path, remote: str) -> None:
    """Writes a file where there is none; what a killed run left there stays if it is the same, and is replaced if not.

    Args:
        system: Of fsspec.
        path: The file.
        remote: Where it is to be.
    """
    try:
        create_object(system, path, remote)
    except FileExistsError:
        if fetch_object(system, remote) != file_digest(path):
            system.rm_file(remote)
            create_object(system, path, remote)


def create_object(system: Any, path: Path, remote: str) -> None:
    """Writes a file only if there is none of its name, in one step where the store knows how.

    Raises:
        FileExistsError: there is one.
    """
    # Stores that pass over the condition are asked first.
    if system.exists(remote):
        raise FileExistsError
    try:
        system.put_file(str(path), remote, mode="create")
    except NotImplementedError:
        system.put_file(str(path), remote)


def fetch_object(system: Any, remote: str, path: Path | None = None) -> str:
    """Reads an object whole, and returns its SHA-256, in hex.

    Args:
        system: Of fsspec.
        remote: Where it is.
        path: Where its bytes are to be written; nowhere if left out.
    """
    digest = hashlib.sha256()
    with system.open(remote, "rb", block_size=BLOCK) as file, path.open("wb") if path else nullcontext() as copied:
        while block := file.read(BLOCK):
            digest.update(block)
            if copied:
                copied.write(block)
    return digest.hexdigest()
