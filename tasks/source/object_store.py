"""Sources in object stores: files are listed, looked at and fetched."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from schemas.errors.storage import ObjectStoreError
from tasks.store.object_stores import file_system, told

Stat = tuple[int, ...]
"""What changes when a file or an object does; its first number is the size."""


def matching(address: str) -> list[str]:
    """Returns the addresses that a pattern matches, or the one that it is, in the order of their names.

    Raises:
        ObjectStoreError: the store cannot be listed.
    """
    system, path = file_system(address)
    scheme = address.split("://", 1)[0]
    with told(address):
        try:
            found = system.glob(path, detail=True) if any(mark in path for mark in "*?[") else {path: system.info(path)}
        except FileNotFoundError:
            found = {}
        return sorted(f"{scheme}://{name}" for name, info in found.items() if info["type"] == "file")


def remote_stat(address: str) -> Stat:
    """Returns size, time in ns and a number made of the ETag: what changes when the object does.

    Raises:
        ObjectStoreError: it is not there or cannot be read.
    """
    system, path = file_system(address)
    with told(address):
        info = system.info(path)
    changed = next((info[key] for key in ("LastModified", "last_modified", "updated", "mtime") if info.get(key)), None)
    tag = next((str(info[key]) for key in ("ETag", "etag", "md5Hash", "content_settings") if info.get(key)), "")
    moment = int(changed.timestamp() * 1_000_000_000) if isinstance(changed, datetime) else 0
    mark = hashlib.sha256(f"{changed if not moment else ''}{tag}".encode()).digest()[:6]
    return int(info["size"]), moment, int.from_bytes(mark, "big")


def fetch(address: str, path: Path, stat: Stat) -> int:
    """Copies an object to a path, piece by piece, and returns its size.

    Raises:
        ObjectStoreError: it cannot be read, or is not what it was.
    """
    system, remote = file_system(address)
    with told(address):
        system.get_file(remote, str(path))
    if path.stat().st_size != stat[0] or remote_stat(address) != stat:
        raise ObjectStoreError.failed(address, "it changed while it was being read")
    return stat[0]
