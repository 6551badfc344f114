"""Sources in object stores: objects are listed and looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from schemas.errors.tables import FileError
from tasks.source.listing import table_format_there
from tasks.store.object_stores import file_system, sanitised_errors

Stat = tuple[int, ...]
"""What changes when a file or an object does; its first number is the size."""

PINNED = "pinned"
"""What the places of objects begin with, as DuckDB reads them."""


def matching(address: str) -> dict[str, Stat]:
    """Returns the addresses that a pattern matches, or the one that it is, in the order of their names; each with what changes with it.

    Raises:
        FileError: there is no such bucket, nothing in it matches, or what matches is a folder or a part of a table with a log.
        ObjectStoreError: the store cannot be listed.
    """
    system, path = file_system(address)
    scheme = address.split("://", 1)[0]
    with sanitised_errors(address):
        try:
            found = system.glob(path, detail=True) if any(mark in path for mark in "*?[") else {path: system.info(path)}
        except FileNotFoundError:
            found = {}
        files = {name: info for name, info in sorted(found.items()) if info["type"] == "file"}
        if not files:
            raise _why_none(system, path, address, folders=bool(found))
        if table := table_format_there(files, lambda folder: _names_in(system, folder)):
            raise FileError.table_of_files(f"{scheme}://{table[0]}", table[1])
        return {f"{scheme}://{name}": stat_of_info(info) for name, info in files.items()}


def _why_none(system: Any, path: str, address: str, *, folders: bool) -> FileError:
    if folders:
        return FileError.folder(address, "")
    bucket = path.strip("/").split("/", 1)[0]
    if bucket and not system.exists(bucket):
        return FileError.no_bucket(address, bucket)
    return FileError.no_objects(address)


def _names_in(system: Any, folder: str) -> list[str]:
    try:
        return [str(name) for name in system.ls(folder, detail=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def remote_stat(address: str) -> Stat:
    """Returns size, time in ns and a number made of the ETag: what changes when the object does.

    Raises:
        ObjectStoreError: it is not there or cannot be read.
    """
    system, path = file_system(address)
    with sanitised_errors(address):
        return stat_of_info(system.info(path))


def remote_stats(folder: str) -> dict[str, Stat]:
    """Returns the same of all objects right below a folder, by address.

    Raises:
        ObjectStoreError: it is not there or cannot be listed.
    """
    system, path = file_system(folder)
    scheme = folder.split("://", 1)[0]
    with sanitised_errors(folder):
        return {f"{scheme}://{info['name']}": stat_of_info(info) for info in system.ls(path, detail=True) if info["type"] == "file"}


def stat_of_info(info: Mapping[str, Any]) -> Stat:
    """Returns the same of what a store says of an object."""
    changed = next((info[key] for key in ("LastModified", "last_modified", "updated", "mtime") if info.get(key)), None)
    tag = next((str(info[key]) for key in ("ETag", "etag", "md5Hash", "content_settings") if info.get(key)), "").strip('"')
    moment = int(changed.timestamp() * 1_000_000_000) if isinstance(changed, datetime) else 0
    if tag:
        # A listing may tell parts of a second that the head of an object does not.
        moment -= moment % 1_000_000_000
    return int(info["size"]), moment, mark_of(f"{changed if not moment else ''}{tag}")


def mark_of(tag: str) -> int:
    """Returns a number of 48 bits made of an ETag."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:6], "big")


def scan_address(address: str, stat: Stat) -> str:
    """Returns what DuckDB reads an object as: its address, and what was listed of it, so that no other one is read in its place."""
    return f"{PINNED}://{'-'.join(map(str, stat))}/{address.replace('://', '/', 1)}"


def object_at(place: str) -> tuple[str, Stat]:
    """Inverse of ``scan_address``."""
    marks, scheme, path = place.removeprefix(f"{PINNED}://").split("/", 2)
    return f"{scheme}://{path}", tuple(map(int, marks.split("-")))
