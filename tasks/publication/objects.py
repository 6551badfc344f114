"""Objects of a release in a store: written only where there are none, and read back whole."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tasks.store.files import file_digest

BLOCK = 1 << 22


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
