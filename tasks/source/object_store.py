"""Object stores through fsspec: files are listed, looked at, fetched and written; credentials come from the store's own chain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import fsspec

from schemas.errors.base import SkaldError
from schemas.errors.storage import ObjectStoreError

Stat = tuple[int, ...]
"""What changes when a file or an object does; its first number is the size."""


def file_system(address: str) -> tuple[Any, str]:
    """Returns fsspec's file system of an address, and the address as a path of it.

    Raises:
        ObjectStoreError: its package is not installed.
    """
    with told(address):
        try:
            # Listings of an earlier run, or of before a crash, would hide what is there now.
            system, path = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except ImportError:
            raise ObjectStoreError.not_installed(address.split("://", 1)[0]) from None
    return system, str(path)


@contextmanager
def told(address: str) -> Iterator[None]:
    """Turns whatever a store's library raises into one sentence; its own words may hold parts of a credential.

    Raises:
        ObjectStoreError: something was raised inside the block.
    """
    try:
        yield
    except (SkaldError, FileExistsError):
        raise
    except FileNotFoundError:
        raise ObjectStoreError.failed(address, "there is nothing of that name") from None
    except PermissionError:
        raise ObjectStoreError.failed(address, "access is denied") from None
    except Exception as error:  # botocore, aiohttp, gcsfs and adlfs have no base class in common
        raise ObjectStoreError.failed(address, type(error).__name__) from None


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
