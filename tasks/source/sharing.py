"""Chunks: large files are cut into ranges of rows, and small ones share a chunk, because a step costs more than a few records do.

Which files share one is kept, so that a chunk that was counted yesterday is found again today: files that are new are read with one
another and never with old ones, and where a file is gone, those that shared its chunk stay together. So of every chunk that there ever
was, each chunk of today has all records or none, and what two releases have in common is told by whole chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from tasks.source.chunks import Chunk, Piece, SourceFile
from tasks.store.files import write_atomically
from tasks.store.secret import seal, unsealed
from tasks.store.store import Store

SHARED_FILES = 128
"""Files of a chunk at most: as many are read again where one of them is gone."""
SHARED_ROWS = 250_000
"""Records of several files together at most: few enough that a million of them are work for more than one core."""

Shares = list[list[str]]
"""Digests of files that share a chunk; no digest stands in two of them."""
Small = Mapping[str, tuple[SourceFile, pa.Schema]]
"""Files that may share a chunk, and their columns, by digest."""


def chunks_of(files: Sequence[SourceFile], schemas: Sequence[pa.Schema], chunk_rows: int, chunk_bytes: int, store: Store) -> list[Chunk]:
    """Cuts files into chunks, in the order of the first file of each.

    Args:
        files: The source, in the order of their names.
        schemas: Of each, without metadata: files whose columns are written alike may share a chunk.
        chunk_rows: Records of a chunk at most.
        chunk_bytes: What these take at most, where the row groups of a file are small enough.
        store: Remembers which files share a chunk.

    Raises:
        StorageError: the folder cannot be written.
    """
    most = min(chunk_rows, SHARED_ROWS)
    small: dict[str, tuple[SourceFile, pa.Schema]] = {}
    for file, schema in zip(files, schemas, strict=True):
        # Of equal files the first alone, so that a digest names one file of a chunk.
        if 0 < file.rows <= most // 2 and file.rows * file.width <= chunk_bytes // 2:
            small.setdefault(file.digest, (file, schema))
    memo = store.folder / "shares.json"
    known = _known(memo)
    shares = list(_refined(known, [file.digest for file in files if file.rows], small, (most, chunk_bytes)))
    if shares != known:
        write_atomically(memo, lambda part: part.write_text(seal(shares)))
    owners = {digest: share for share in shares for digest in share}
    chunks = []
    for file in files:
        if file.digest not in small or small[file.digest][0] is not file:
            chunks += _ranges(file, chunk_rows, chunk_bytes)
        elif owners[file.digest][0] == file.digest:
            together = (small[digest][0] for digest in owners[file.digest])
            chunks.append(Chunk(pieces=tuple(Piece(file=one, first=0, rows=one.rows) for one in together)))
    # A table that may be empty is a chunk without rows.
    return chunks or [Chunk.of(file) for file in files[:1]]


def _refined(known: Shares, here: Iterable[str], small: Small, most: tuple[int, int]) -> Iterator[list[str]]:
    """Yields what shares a chunk from now on: parts of what did before, of files that are here or of files that are not, then new files.

    What is cut into ranges today stands for itself from now on.
    """
    there = set(here)
    for share in known:
        yield from _packed([digest for digest in share if digest in small], small, most)
        yield from ([digest] for digest in share if digest in there and digest not in small)
        if gone := [digest for digest in share if digest not in there]:
            yield gone
    old = {digest for share in known for digest in share}
    yield from _packed([digest for digest in small if digest not in old], small, most)
    yield from ([digest] for digest in dict.fromkeys(here) if digest not in small and digest not in old)


def _packed(digests: Sequence[str], small: Small, most: tuple[int, int]) -> Iterator[list[str]]:
    """Yields neighbours together, as long as their columns are alike and they are not too many records, nor bytes."""
    share: list[str] = []
    rows = size = 0
    for digest in digests:
        file, schema = small[digest]
        rows, size = rows + file.rows, size + file.rows * file.width
        if share and (len(share) == SHARED_FILES or rows > most[0] or size > most[1] or not schema.equals(small[share[0]][1])):
            yield share
            share, rows, size = [], file.rows, file.rows * file.width
        share.append(digest)
    if share:
        yield share


def _known(memo: Path) -> Shares:
    """Returns what shared a chunk before; nothing if a single character of it was changed since."""
    found = unsealed(memo)
    return found if isinstance(found, list) else []


def _ranges(file: SourceFile, chunk_rows: int, chunk_bytes: int) -> list[Chunk]:
    """Cuts a file into ranges of at most so many rows, and between row groups of at most so many bytes where these are small enough."""
    most = min(chunk_rows, chunk_bytes // max(file.width, 1))
    # A chunk that begins inside a row group has it decoded from its beginning, so borders are kept to where they can be.
    chunks: list[Chunk] = []
    first = rows = 0
    for group in file.groups:
        if rows and rows + group > most:
            chunks.append(Chunk.of(file, first, rows))
            first, rows = first + rows, 0
        rows += group
        while rows > chunk_rows:
            chunks.append(Chunk.of(file, first, chunk_rows))
            first, rows = first + chunk_rows, rows - chunk_rows
    return [*chunks, Chunk.of(file, first, rows)] if rows else chunks
