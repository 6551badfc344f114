"""A source at rest: what is read of a file counts only if the file is, before and after, what its digest was taken of.

Two times tell that: the one of the content, which anybody can put back, and the one of the inode (ctime), which nobody can. Nothing of a
source is mapped into memory: a file that is cut short while it is read is then an error of reading, and not the end of the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from schemas.errors.base import SourceError
from tasks.source.object_store import Stat

BLOCK = 1 << 20
TICK, SECOND = 20_000_000, 1_000_000_000
"""Within how many ns a system may give two changes of a file the same time: two of its coarsest ticks."""


def file_stat(path: Path) -> Stat:
    """Return size, both times in ns and inode of a file: what changes when the file does."""
    stat = path.stat()
    # The inode too: a file that is put in another's place may have its size and time.
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def stat_of(name: str) -> Stat | None:
    """Return what tells whether a file is as it was; None if it is gone."""
    try:
        return file_stat(Path(name))
    except OSError:
        return None


def source_digest(path: Path) -> str:
    """Return the BLAKE3 of a file, in hex; a source is far larger than what is written, and SHA-256 takes four times as long."""
    digest, block = blake3(), memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            digest.update(block[:size])
    return digest.hexdigest()


def digest_while_stable(path: Path, name: str, stat: Stat) -> str:
    """Return the digest of a file that had a stat before, and has it afterwards."""
    with while_stable(path, name, stat):
        _settle(path)
        return source_digest(path)


def _settle(path: Path) -> None:
    """Wait until a change of the file would be given another time than it has now."""
    changed = path.stat().st_ctime_ns
    # Some file systems know whole seconds only, or two of them.
    most = TICK if changed % SECOND else 2 * SECOND
    age = time.time_ns() - changed
    if age < most:
        # A clock of another machine may be ahead; it is waited for once.
        time.sleep((most - max(age, 0)) / SECOND)


@contextmanager
def while_stable(path: Path | None, name: str, stat: Stat | None) -> Iterator[None]:
    """Let what is read of a file inside the block count only if it has a given stat before and after; copies in the store are our own."""
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
