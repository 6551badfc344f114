"""Objects of a store, read in ranges and only as they were listed; a changed object is refused.

Every read carries the object's ETag on condition (``If-Match``) where the store's library knows how, as S3's does; where it does not, the
object is looked at once more after its last byte. Either way what was read counts only if all of it is of the object that was listed.
"""

from __future__ import annotations

import io
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from hashlib import md5
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

from blake3 import blake3

from schemas.errors.base import SourceError
from schemas.errors.storage import ObjectStoreError
from tasks.source.listing import Stat, etag_number, remote_stat, remote_stats, stat_of_info
from tasks.source.locations import Located
from tasks.store.keys import StepCode
from tasks.store.place import file_system, sanitised_errors
from tasks.store.store import Store

BLOCK = 8_000_000
"""Bytes that are asked for at a time where all of an object is read; an object of fewer is read in one go, whatever is wanted of it."""
ASKED_AT_ONCE, LISTED_AGAIN = 16, 16
"""Objects that a store is asked about at a time, and how many of one folder are listed rather than asked for."""
SMALL, STRETCH, HELD = 1_000_000, 250_000, 48_000_000
"""Bytes of an object that is held whole after it was read, of a held stretch of a larger one, and of all that is held.

Every phase of a run reads the source, and DuckDB asks for the end, the footer and each page of a column by itself. A request costs more
than the bytes of a page do.
"""


class PinnedFile(io.RawIOBase):
    """An object as a read-only file; a read raises an error if the object changed since it was opened.

    Args:
        address: What messages call it.
        opened: A file of fsspec.
    """

    def __init__(self, address: str, opened: Any) -> None:
        super().__init__()
        self._address, self._opened = address, opened

    @property
    def is_conditional(self) -> bool:
        """Whether each read makes the store check the object's tag."""
        return bool(getattr(self._opened, "read_kw", {}).get("IfMatch"))

    def close(self) -> None:
        """Close the object."""
        self._opened.close()
        super().close()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position without reading; return the position."""
        return int(self._opened.seek(offset, whence))

    def tell(self) -> int:
        """Return the position."""
        return int(self._opened.tell())

    def read(self, size: int | None = -1) -> bytes:
        """Read ``size`` bytes, or all, by one request; raise ``SourceError`` if the object changed."""
        with _as_listed(self._address):
            return bytes(self._opened.read(-1 if size is None else size))

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def open_pinned(address: str, stat: Stat) -> PinnedFile:
    """Open an object as a file; raise ``SourceError`` if it is not as it was listed."""
    system, path = file_system(address)
    with _as_listed(address):
        # Nothing is read ahead: what reads Parquet knows the ranges that it wants, and asks for neighbours together.
        opened = system.open(path, "rb", cache_type="none")
        if stat_of_info(opened.details) != stat:
            raise SourceError.changed(address)
    return PinnedFile(address, opened)


@contextmanager
def open_as_listed(address: str, stat: Stat) -> Iterator[io.RawIOBase | io.BytesIO]:
    """Yield an object as a file, from memory if small; raise ``SourceError`` if it has changed."""
    if stat[0] <= SMALL:
        yield io.BytesIO(content_of(address, stat))
        return
    with _pinned(address, stat) as file:
        yield file


def content_of(address: str, stat: Stat) -> bytes:
    """Return all bytes of a small object, cached if read before; raise ``SourceError`` if it has changed."""
    return _HELD.bytes_of(address, stat, 0, lambda: _read_small(address, stat))


def read_stretches(address: str, stat: Stat, at: int, size: int, read: Callable[[int, int], bytes]) -> bytes:
    """Read bytes of an object by its stretches, each cached if read before; long ones by themselves.

    Args:
        at: Where they begin.
        size: How many are wanted; at the end there are fewer.
        read: Returns so many bytes of the object from a position on.
    """
    if size >= STRETCH:
        return read(at, size)
    begins = range(at - at % STRETCH, min(at + size, stat[0]), STRETCH)
    found = b"".join(_HELD.bytes_of(address, stat, begin, partial(read, begin, STRETCH)) for begin in begins)
    return found[at % STRETCH :][:size]


def _read_small(address: str, stat: Stat) -> bytes:
    """Read an object in one request, and check it against its listing by the ETag or by another look."""
    if not stat[0]:
        with _pinned(address, stat) as file:
            return file.read()
    system, path = file_system(address)
    try:
        with _as_listed(address):
            # One byte more than was listed tells that there is more.
            content = bytes(system.cat_file(path, start=0, end=stat[0] + 1))
    except ObjectStoreError:
        # A store refuses a range of an object that is empty by now.
        check_as_listed(address, stat)
        raise
    if len(content) != stat[0]:
        raise SourceError.changed(address)
    if etag_number(md5(content, usedforsecurity=False).hexdigest()) != stat[-1]:
        check_as_listed(address, stat)
    return content


class _HeldBytes:
    """A cache of stretches of objects by where they begin, least recently used first out."""

    def __init__(self) -> None:
        self._contents: OrderedDict[tuple[str, Stat, int], bytes] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def bytes_of(self, address: str, stat: Stat, begin: int, read: Callable[[], bytes]) -> bytes:
        """Return the bytes of a stretch, read and cached if they are not yet."""
        key = address, stat, begin
        with self._lock:
            if key in self._contents:
                self._contents.move_to_end(key)
                return self._contents[key]
        content = read()
        with self._lock:
            self._bytes += len(content) - len(self._contents.pop(key, b""))
            self._contents[key] = content
            while self._bytes > HELD:
                self._bytes -= len(self._contents.popitem(last=False)[1])
        return content


_HELD = _HeldBytes()


@contextmanager
def _pinned(address: str, stat: Stat) -> Iterator[io.RawIOBase | io.BytesIO]:
    with open_pinned(address, stat) as file:
        try:
            yield io.BytesIO(file.read()) if stat[0] <= BLOCK else file
        except Exception:
            check_as_listed(address, stat)
            raise
        if not file.is_conditional:
            check_as_listed(address, stat)


def check_as_listed(address: str, stat: Stat) -> None:
    """Raise ``SourceError`` if an object changed since it was listed."""
    with _as_listed(address):
        if remote_stat(address) != stat:
            raise SourceError.changed(address) from None


def check_all_as_listed(objects: Mapping[str, Stat]) -> None:
    """Raise ``SourceError`` if any of some objects changed since it was listed; asks in parallel.

    Args:
        objects: What the listing said of each address.
    """
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for address in objects:
        folders[address.rpartition("/")[0]].append(address)
    alone = [address for members in folders.values() if len(members) < LISTED_AGAIN for address in members]
    for folder, members in folders.items():
        if len(members) >= LISTED_AGAIN:
            with _as_listed(members[0]):
                found = remote_stats(folder)
            for address in members:
                if found.get(address) != objects[address]:
                    raise SourceError.changed(address)
    # Each answer is waited for longer than it takes to make.
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        for future in [pool.submit(check_as_listed, address, objects[address]) for address in alone]:
            future.result()


def copy_object(address: str, stat: Stat, path: Path | None = None) -> str:
    """Copy an object to a path, if given, and return its BLAKE3 in hex; raise if it has changed.

    Args:
        path: Where its bytes are to be written; nowhere if left out.
    """
    digest = blake3()
    with open_as_listed(address, stat) as file, path.open("wb") if path else nullcontext() as copied:
        while block := file.read(BLOCK):
            digest.update(block)
            if copied:
                copied.write(block)
    return digest.hexdigest()


@contextmanager
def _as_listed(address: str) -> Iterator[None]:
    """Replace a store's error on a changed or missing object by the one for changed files."""
    try:
        with sanitised_errors(address):
            yield
    except ObjectStoreError as error:
        # `told` says the rest; the kind of what was raised tells these two from a network that is down.
        if isinstance(error.__context__, FileNotFoundError) or type(error.__context__).__name__ == "FileExpired":
            raise SourceError.changed(address) from None
        raise


FETCHED = StepCode("fetched", __name__)


def local_source_file(source_file: Located, store: Store) -> Located:
    """Return a source file on this machine's disk; an object is copied into the store if need be."""
    if source_file.path is not None or source_file.stat is None:
        return source_file
    name, stat = source_file.name, source_file.stat

    def write(part: Path) -> int:
        copy_object(name, stat, part)
        return 1

    made = store.make(FETCHED.name, FETCHED.key(name, stat), "".join(PurePosixPath(name).suffixes[-2:]), write)
    return source_file._replace(path=store.path(made), digest=made.sha256, stat=None)
