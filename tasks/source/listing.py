"""Files and objects of a source as they are listed, with sizes, times and digests.

Here are also the names of data files and the table formats.

Size and times show whether a file changed. The time of its content can be set back by its owner, the time of its inode (ctime) cannot. A
file that is read counts only if it is the same before and after. Nothing of a source is mapped into memory: a file that is cut short while
it is read is then an error of reading, and not the end of the process.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from blake3 import blake3

from schemas.errors.base import SourceError
from schemas.errors.tables import FileError
from tasks.store.place import file_system, sanitised_errors

_WILD = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[[*?[]\]")
"""A mark of a pattern that stands for itself."""


def is_hidden(path: str, pattern: str) -> bool:
    """Return whether a part of a matched path begins with ``_`` or ``.`` and the pattern does not name it.

    A folder such as ``_region=North`` is a partition. A part of the pattern that itself begins with ``_`` or ``.`` asks for such names.

    Args:
        path: Path or address.
        pattern: What matched it, written the same way.
    """
    parts, asked = path.split("/"), pattern.split("/")
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


def table_format(files: Iterable[str], names_in: Names, *, most_folders: int | None = None) -> tuple[str, str] | None:
    """Return (folder, format) if files belong to a Delta, Hudi or Iceberg table; else None.

    Args:
        files: Paths or addresses, without patterns.
    """
    folders = dict.fromkeys(folder for file in files for folder in _above(file))
    for folder in list(folders)[:most_folders]:
        for mark, words in TABLE_FORMAT_FOLDERS.items():
            found = names_in(f"{folder}/{mark}")
            if any(name.endswith(_ICEBERG) for name in found) if words == "Iceberg" else found:
                return folder, words
    return None


def table_format_here(files: Iterable[str]) -> tuple[str, str] | None:
    """Return (folder, format) if local files belong to a Delta, Hudi or Iceberg table; else None."""

    def names_in(folder: str) -> list[str]:
        try:
            return [path.name for path in Path(folder).iterdir()]
        except OSError:
            return []

    return table_format(files, names_in)


def _above(file: str) -> list[str]:
    """Return the folders of a file from the innermost, without those of partitions."""
    parts = file.split("/")
    ends = range(len(parts) - 1, 0, -1)
    return ["/".join(parts[:end]) for end in ends if parts[end - 1] and "=" not in parts[end - 1]]


Stat = tuple[int, ...]
"""What changes when a file or an object does; its first number is the size."""

PINNED = "pinned"
"""What the places of objects begin with, as DuckDB reads them."""


def matching_objects(address: str) -> dict[str, Stat]:
    """Return by address the stats of objects that an address or pattern matches; raise if there are none."""
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
        if table := table_format(files, lambda folder: _names_in(system, folder), most_folders=_DEEPEST):
            raise FileError.table_of_files(f"{scheme}://{table[0]}", table[1])
        return {f"{scheme}://{name}": stat_of_info(info) for name, info in files.items()}


def _why_none(system: Any, path: str, address: str, *, folders: bool) -> FileError:
    if folders:
        return FileError.path_is_folder(address, "")
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
    """Ask the store for an object's size, time in ns and ETag number; return them."""
    system, path = file_system(address)
    with sanitised_errors(address):
        return stat_of_info(system.info(path))


def remote_stats(folder: str) -> dict[str, Stat]:
    """Return by address the stats of all objects right below a folder of an object store."""
    system, path = file_system(folder)
    scheme = folder.split("://", 1)[0]
    with sanitised_errors(folder):
        return {f"{scheme}://{info['name']}": stat_of_info(info) for info in system.ls(path, detail=True) if info["type"] == "file"}


def stat_of_info(info: Mapping[str, Any]) -> Stat:
    """Return size, time in ns and ETag number of an object from its file system's info mapping."""
    changed = next((info[key] for key in ("LastModified", "last_modified", "updated", "mtime") if info.get(key)), None)
    tag = next((str(info[key]) for key in ("ETag", "etag", "md5Hash", "content_settings") if info.get(key)), "").strip('"')
    moment = int(changed.timestamp() * 1_000_000_000) if isinstance(changed, datetime) else 0
    if tag:
        # A listing may tell parts of a second that the head of an object does not.
        moment -= moment % 1_000_000_000
    return int(info["size"]), moment, etag_number(f"{changed if not moment else ''}{tag}")


def etag_number(tag: str) -> int:
    """Return the first 48 bits of an ETag's SHA-256 as a number, which differs between versions."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:6], "big")


def scan_address(address: str, stat: Stat) -> str:
    """Return the text by which DuckDB reads an object as it was listed: its address and its stat."""
    return f"{PINNED}://{'-'.join(map(str, stat))}/{address.replace('://', '/', 1)}"


def parse_scan_address(scan_text: str) -> tuple[str, Stat]:
    """Return the object address and stat in a text made by ``scan_address``."""
    marks, scheme, path = scan_text.removeprefix(f"{PINNED}://").split("/", 2)
    return f"{scheme}://{path}", tuple(map(int, marks.split("-")))


BLOCK = 1 << 20
TICK, SECOND = 20_000_000, 1_000_000_000
"""Within how many ns a system may give two changes of a file the same time: two of its coarsest ticks."""


def file_stat(path: Path) -> Stat:
    """Return a file's size, times of change in ns and inode, one of which differs after a change."""
    stat = path.stat()
    # The inode too: a file that is put in another's place may have its size and time.
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def stat_of(name: str) -> Stat | None:
    """Return the stat of a file; None if the file is gone."""
    try:
        return file_stat(Path(name))
    except OSError:
        return None


def source_digest(path: Path) -> str:
    """Return the BLAKE3 of a file in hex."""
    digest, block = blake3(), memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            digest.update(block[:size])
    return digest.hexdigest()


def digest_while_stable(path: Path, name: str, stat: Stat) -> str:
    """Return a file's BLAKE3 in hex, after a short wait; raise ``SourceError`` if its stat changes."""
    with while_stable(path, name, stat):
        _settle(path)
        return source_digest(path)


def _settle(path: Path) -> None:
    """Wait until a further change of a file would give it another time."""
    changed = path.stat().st_ctime_ns
    # Some file systems know whole seconds only, or two of them.
    most = TICK if changed % SECOND else 2 * SECOND
    age = time.time_ns() - changed
    if age < most:
        # A clock of another machine may be ahead; it is waited for once.
        time.sleep((most - max(age, 0)) / SECOND)


@contextmanager
def while_stable(path: Path | None, name: str, stat: Stat | None) -> Iterator[None]:
    """Raise ``SourceError`` unless a file has the given stat before and after the block; skip copies.

    Copies in the store are our own, and are not checked.
    """
    if path is None or stat is None or str(path) != name:
        yield
        return
    _check(name, stat)
    try:
        yield
    except Exception:
        # What a reader says of a file that is half another one is true of neither.
        _check(name, stat)
        raise
    _check(name, stat)


def _check(name: str, stat: Stat) -> None:
    if stat_of(name) != stat:
        raise SourceError.changed(name) from None
