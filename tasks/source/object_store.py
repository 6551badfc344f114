"""Sources in object stores: objects are listed and looked at."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from schemas.errors.tables import FileError
from tasks.store.bucket import file_system, sanitised_errors

_WILD = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[[*?[]\]")
"""A mark of a pattern that stands for itself."""


def is_hidden(name: str, pattern: str) -> bool:
    """Tell whether a name that a pattern matches is no data: below what the pattern spells out, a part begins with ``_`` or ``.``.

    A folder such as ``_region=North`` is a partition. A part of the pattern that itself begins with ``_`` or ``.`` asks for such names.

    Args:
        name: Path or address.
        pattern: What matched it, written the same way.
    """
    parts, asked = name.split("/"), pattern.split("/")
    fixed = next((place for place, part in enumerate(asked) if _WILD.search(_ESCAPED.sub("", part))), len(asked))
    spelled = [part for part in asked[fixed:] if part.startswith(("_", "."))]
    return any(_is_aside(part) and not any(fnmatchcase(part, one) for one in spelled) for part in parts[fixed:])


def _is_aside(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")


TABLE_FORMAT_FOLDERS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi", "metadata": "Iceberg"}
"""The folder that lies in the table's own, and what the table is then; that of Iceberg may be anybody's, and is looked into."""
_ICEBERG = (".metadata.json", ".gz.metadata.json", "version-hint.text")
_DEEPEST = 64
"""Folders that are looked at in a store, which answers slowly."""

Names = Callable[[str], list[str]]
"""Gives the names of what lies in a folder; none where there is no such folder."""


def table_format(files: Iterable[str], names_in: Names, *, most: int | None = None) -> tuple[str, str] | None:
    """Return the folder of a table that files belong to, and its format; None if they belong to none.

    Args:
        files: Paths or addresses, without patterns.
        names_in: Lists a folder.
        most: Folders to look at.
    """
    folders = dict.fromkeys(folder for file in files for folder in _above(file))
    for folder in list(folders)[:most]:
        for mark, words in TABLE_FORMAT_FOLDERS.items():
            found = names_in(f"{folder}/{mark}")
            if any(name.endswith(_ICEBERG) for name in found) if words == "Iceberg" else found:
                return folder, words
    return None


def table_format_here(files: Iterable[str]) -> tuple[str, str] | None:
    """Return the same of files of this machine."""

    def names_in(folder: str) -> list[str]:
        try:
            return [path.name for path in Path(folder).iterdir()]
        except OSError:
            return []

    return table_format(files, names_in)


def table_format_there(files: Iterable[str], names_in: Names) -> tuple[str, str] | None:
    """Return the same of objects of a store."""
    return table_format(files, names_in, most=_DEEPEST)


def _above(file: str) -> list[str]:
    """Return the folders that a file lies in, from the innermost; those of partitions are no tables."""
    parts = file.split("/")
    ends = range(len(parts) - 1, 0, -1)
    return ["/".join(parts[:end]) for end in ends if parts[end - 1] and "=" not in parts[end - 1]]


Stat = tuple[int, ...]
"""What changes when a file or an object does; its first number is the size."""

PINNED = "pinned"
"""What the places of objects begin with, as DuckDB reads them."""


def matching(address: str) -> dict[str, Stat]:
    """Return the addresses that a pattern matches, or the one that it is, in the order of their names; each with what changes with it."""
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
    """Return size, time in ns and a number made of the ETag: what changes when the object does."""
    system, path = file_system(address)
    with sanitised_errors(address):
        return stat_of_info(system.info(path))


def remote_stats(folder: str) -> dict[str, Stat]:
    """Return the same of all objects right below a folder, by address."""
    system, path = file_system(folder)
    scheme = folder.split("://", 1)[0]
    with sanitised_errors(folder):
        return {f"{scheme}://{info['name']}": stat_of_info(info) for info in system.ls(path, detail=True) if info["type"] == "file"}


def stat_of_info(info: Mapping[str, Any]) -> Stat:
    """Return the same of what a store says of an object."""
    changed = next((info[key] for key in ("LastModified", "last_modified", "updated", "mtime") if info.get(key)), None)
    tag = next((str(info[key]) for key in ("ETag", "etag", "md5Hash", "content_settings") if info.get(key)), "").strip('"')
    moment = int(changed.timestamp() * 1_000_000_000) if isinstance(changed, datetime) else 0
    if tag:
        # A listing may tell parts of a second that the head of an object does not.
        moment -= moment % 1_000_000_000
    return int(info["size"]), moment, mark_of(f"{changed if not moment else ''}{tag}")


def mark_of(tag: str) -> int:
    """Return a number of 48 bits made of an ETag."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:6], "big")


def scan_address(address: str, stat: Stat) -> str:
    """Return what DuckDB reads an object as: its address, and what was listed of it, so that no other one is read in its place."""
    return f"{PINNED}://{'-'.join(map(str, stat))}/{address.replace('://', '/', 1)}"


def object_at(place: str) -> tuple[str, Stat]:
    """Inverse of ``scan_address``."""
    marks, scheme, path = place.removeprefix(f"{PINNED}://").split("/", 2)
    return f"{scheme}://{path}", tuple(map(int, marks.split("-")))
