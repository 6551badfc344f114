"""Arrow IPC files and streams (Feather), converted to Parquet once, with their types."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import ipc

from schemas.errors.base import SourceError
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from tasks.source.apart import run_in_forked_process
from tasks.source.batches import schema_of_columns, write_batches
from tasks.source.locations import Located, Readable
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("arrow", __name__)
BATCH_SHARE = 2
"""Which part of the memory a batch may take, which Arrow unpacks as a whole."""
STREAM_END = b"\xff\xff\xff\xff" + bytes(4)
ALIGNED = 64
"""Bytes between the end of the messages of a file and its footer, at most."""
MAGIC, BLOCK = b"ARROW1", 24
"""What a file begins and ends with, and the bytes in which its footer says where a batch is."""
MOST_DESCRIPTION = 64_000_000
"""Bytes of a description: that of a batch of a million columns, about."""
_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that have a body, as the schema of Arrow's messages numbers them."""


def arrow_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Return an Arrow source file as Parquet, converted unless the store has it by content."""
    assert file.path is not None
    made = convert_arrow(file.path, file.name, file.digest, store, job.memory)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256, converted_file=made)


def convert_arrow(path: Path, name: str, digest: str, store: Store, memory: int) -> Artifact:
    """Return an Arrow file's artefact as Parquet in row order, converted if missing; raise if damaged.

    Args:
        path: The file; Arrow's file or stream format, which its first bytes tell.
        name: What the user calls it.
        memory: Bytes that the job may take.
    """

    return store.make(
        "converted", STEP.key(digest), ".parquet", lambda part: run_in_forked_process(name, _convert, path, name, memory, part)
    )


def _convert(path: Path, name: str, memory: int, part: Path) -> int:
    """Write an Arrow file as Parquet, and return its number of records."""
    _check_batches(path, name, memory)
    try:
        with _opened(path, name) as (schema, batches):
            return write_batches(part, schema_of_columns(schema), batches, name)
    except pa.ArrowException:
        raise SourceError.unreadable(name, "arrow") from None


def _check_batches(path: Path, name: str, memory: int) -> None:
    """Refuse an Arrow file with records that its footer does not list, or with too large a batch."""
    try:
        with path.open("rb") as file:
            largest, behind = max(batch_sizes(file), default=0), bytes_behind(file)
    except (ValueError, OSError):
        raise SourceError.unreadable(name, "arrow") from None
    if behind > ALIGNED:
        # Several files in a row end in the footer of the last one, which knows nothing of the others.
        raise FileError.cut_off(name)
    if largest > memory // BATCH_SHARE:
        raise ValuesError.large_batch(name, largest, memory // BATCH_SHARE)


@contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    # Not mapped: a file that is cut short while it is read would end the process.
    with pa.OSFile(str(path)) as opened:
        if opened.read(len(MAGIC)) == MAGIC:
            file = ipc.open_file(opened)
            yield file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            opened.seek(0)
            stream = ipc.open_stream(opened)
            yield stream.schema, _to_the_end(stream, opened, name)


def _to_the_end(stream: Iterator[pa.RecordBatch], opened: pa.NativeFile, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream, and refuse one that does not end exactly where its file does."""
    yield from stream
    end = opened.tell()
    opened.seek(0)
    # Writers of old begin a message with its length alone, which is 0 at the end.
    mark = STREAM_END if opened.read(4) == STREAM_END[:4] else STREAM_END[4:]
    opened.seek(max(end - len(mark), 0))
    if end != opened.size() or opened.read() != mark:
        raise FileError.cut_off(name)


def batch_sizes(file: BinaryIO) -> Iterator[int]:
    """Yield the unpacked bytes of each batch of an Arrow file, dictionaries included.

    Args:
        file: In Arrow's file or stream format, open for reading.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) == MAGIC:
        # A reader goes where the footer leads, and nowhere else.
        for place in _listed(file, end):
            _, size = _message(file, place, end)
            yield size or 0
        return
    place = 0
    while place < end:
        place, size = _message(file, place, end)
        if size is not None:
            yield size


def bytes_behind(file: BinaryIO) -> int:
    """Return the bytes between the last listed batch and the footer of an Arrow file; 0 for a stream.

    Also 0 where no batch is listed.

    Args:
        file: In Arrow's file or stream format, open for reading.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        return 0
    last = max((_message(file, place, end)[0] for place in _listed(file, end)), default=None)
    return 0 if last is None else _footer(file, end) - last


def _footer(file: BinaryIO, end: int) -> int:
    """Return the offset of the footer of a file."""
    tail = 4 + len(MAGIC)
    file.seek(max(end - tail, 0))
    size = _number(file.read(4), "<I")
    if size > min(MOST_DESCRIPTION, end - tail):
        raise ValueError
    return end - tail - size


def _listed(file: BinaryIO, end: int) -> list[int]:
    """Return the offsets of the batches that a file's footer lists."""
    start = _footer(file, end)
    file.seek(start)
    footer = _Table.root(file.read(end - 4 - len(MAGIC) - start))
    return [place for field in (2, 3) for place in footer.places(field)]


def _message(file: BinaryIO, place: int, end: int) -> tuple[int, int | None]:
    """Return where the message at an offset ends, and its unpacked bytes; None if it is no batch."""
    if not 0 <= place < end:
        raise ValueError
    file.seek(place)
    size = _number(file.read(4), "<I")
    place += 4
    if size == _CONTINUED:
        size = _number(file.read(4), "<I")
        place += 4
    if size == 0:
        # So a stream ends, whatever comes behind it.
        return end, None
    if size > min(MOST_DESCRIPTION, end - place):
        raise ValueError
    message = _Table.root(file.read(size))
    place += size
    body, kind = message.number(3, "<q"), message.number(1, "<B")
    if body < 0 or body > end - place:
        raise ValueError
    if kind not in (_DICTIONARY, _RECORDS):
        return place + body, None
    batch = message.table(2)
    return place + body, _unpacked(file, batch.table(1) if kind == _DICTIONARY else batch, place, body)


def _unpacked(file: BinaryIO, batch: _Table, place: int, body: int) -> int:
    """Return the unpacked bytes of the buffers of a batch whose body begins at an offset."""
    packed, total = batch.has(3), 0
    for start, length in batch.pairs(2):
        if start < 0 or length < 0 or start + length > body:
            raise ValueError
        said = length
        if packed and length >= 8:
            file.seek(place + start)
            # One that would not shrink is left as it is, and says so by -1.
            said = max(_number(file.read(8), "<q"), length)
        total += said
    return total


def _number(content: bytes, form: str, place: int = 0) -> int:
    try:
        [number] = struct.unpack_from(form, content, place)
    except struct.error:
        raise ValueError from None
    return int(number)


class _Table:
    """A table of FlatBuffers, whose fields are found by number."""

    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place
        self.fields = place - _number(content, "<i", place)
        if not 0 <= self.fields < len(content):
            raise ValueError
        self.width = _number(content, "<H", self.fields)

    @classmethod
    def root(cls, content: bytes) -> _Table:
        """Return the root table of a buffer."""
        return cls(content, _number(content, "<I"))

    def _place(self, field: int) -> int:
        entry = 4 + 2 * field
        return _number(self.content, "<H", self.fields + entry) if entry + 2 <= self.width else 0

    def has(self, field: int) -> bool:
        """Return whether a field is present."""
        return self._place(field) > 0

    def number(self, field: int, struct_format: str) -> int:
        """Return the number in a field; 0 if the field is left out."""
        place = self._place(field)
        return _number(self.content, struct_format, self.place + place) if place else 0

    def table(self, field: int) -> _Table:
        """Return the table in a field."""
        place = self._place(field)
        if not place:
            raise ValueError
        start = self.place + place
        return _Table(self.content, start + _number(self.content, "<I", start))

    def places(self, field: int) -> list[int]:
        """Return the offsets of the blocks that a field lists."""
        found = self._list(field, BLOCK)
        return [int(place) for place, *_ in struct.iter_unpack("<qiiq", found)]

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs of 64-bit numbers that a field lists."""
        yield from struct.iter_unpack("<qq", self._list(field, 16))

    def _list(self, field: int, width: int) -> bytes:
        """Return the bytes of a list of records of one width; no bytes if the field is left out."""
        place = self._place(field)
        if not place:
            return b""
        start = self.place + place
        first = start + _number(self.content, "<I", start)
        many = _number(self.content, "<I", first)
        if first + 4 + width * many > len(self.content):
            raise ValueError
        return self.content[first + 4 : first + 4 + width * many]
