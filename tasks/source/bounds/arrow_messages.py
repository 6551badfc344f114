"""What the batches of an Arrow file take unpacked, before any is read: Arrow makes room for whatever a few bytes in front of a buffer say.

A stream is a row of messages: four bytes of ones, the size of a description in FlatBuffers, the description, and a body. A file is one too,
with a footer that says where they are. Of a batch the description lists the buffers of the body, and each that is packed begins with the
bytes that it becomes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

MAGIC, BLOCK = b"ARROW1", 24
"""What a file begins and ends with, and the bytes in which its footer says where a batch is."""
MOST_DESCRIPTION = 64_000_000
"""Bytes of a description: that of a batch of a million columns, about."""
_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that have a body, as the schema of Arrow's messages numbers them."""


def batch_sizes(file: BinaryIO) -> Iterator[int]:
    """Yields how many bytes each batch of a file takes unpacked, those of dictionaries too.

    Args:
        file: In Arrow's file or stream format, open for reading.

    Raises:
        ValueError: what stands there are no such messages.
        OSError: the file cannot be read.
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


def _listed(file: BinaryIO, end: int) -> list[int]:
    """Returns where the batches of a file begin, as its footer has it."""
    tail = 4 + len(MAGIC)
    file.seek(max(end - tail, 0))
    size = _number(file.read(4), "<I")
    if size > min(MOST_DESCRIPTION, end - tail):
        raise ValueError
    file.seek(end - tail - size)
    footer = _Table.root(file.read(size))
    return [place for field in (2, 3) for place in footer.places(field)]


def _message(file: BinaryIO, place: int, end: int) -> tuple[int, int | None]:
    """Returns where the message at a place ends, and what it takes unpacked; None where it is no batch."""
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
    """Returns what the buffers of a batch take, whose body begins at a place of the file."""
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
    """A table of FlatBuffers: fields by number, found by way of a table of their places."""

    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place
        self.fields = place - _number(content, "<i", place)
        if not 0 <= self.fields < len(content):
            raise ValueError
        self.width = _number(content, "<H", self.fields)

    @classmethod
    def root(cls, content: bytes) -> _Table:
        """Returns the table that a description begins with."""
        return cls(content, _number(content, "<I"))

    def _place(self, field: int) -> int:
        entry = 4 + 2 * field
        return _number(self.content, "<H", self.fields + entry) if entry + 2 <= self.width else 0

    def has(self, field: int) -> bool:
        """Tells whether a field is there."""
        return self._place(field) > 0

    def number(self, field: int, form: str) -> int:
        """Returns a number, 0 where it is left out."""
        place = self._place(field)
        return _number(self.content, form, self.place + place) if place else 0

    def table(self, field: int) -> _Table:
        """Returns a table.

        Raises:
            ValueError: there is none.
        """
        place = self._place(field)
        if not place:
            raise ValueError
        start = self.place + place
        return _Table(self.content, start + _number(self.content, "<I", start))

    def places(self, field: int) -> list[int]:
        """Returns where the blocks begin of which a field is a list."""
        found = self._list(field, BLOCK)
        return [int(place) for place, *_ in struct.iter_unpack("<qiiq", found)]

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yields pairs of 64-bit numbers, of which a field is a list."""
        yield from struct.iter_unpack("<qq", self._list(field, 16))

    def _list(self, field: int, width: int) -> bytes:
        """Returns the bytes of a list of records of one width; none where it is left out."""
        place = self._place(field)
        if not place:
            return b""
        start = self.place + place
        first = start + _number(self.content, "<I", start)
        many = _number(self.content, "<I", first)
        if first + 4 + width * many > len(self.content):
            raise ValueError
        return self.content[first + 4 : first + 4 + width * many]
