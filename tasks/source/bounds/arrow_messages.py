"""What the batches of an Arrow file take unpacked, before any is read: Arrow makes room for whatever a few bytes in front of a buffer say.

A file or a stream is a row of messages: four bytes of ones, the size of a description in FlatBuffers, the description, and a body. Of a
batch the description lists the buffers of the body, and each that is packed begins with the bytes that it becomes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

MAGIC, PADDED = b"ARROW1", 8
"""What a file begins with, and after how many bytes its messages do: a file is a stream behind its name, and before its footer."""
MOST_DESCRIPTION = 64_000_000
"""Bytes of a description: that of a batch of a million columns, about."""
_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that have a body, as the schema of Arrow's messages numbers them."""


def batch_sizes(file: BinaryIO) -> Iterator[int]:
    """Yields how many bytes each batch of a file takes unpacked, those of dictionaries too, in the order in which they stand there.

    Args:
        file: In Arrow's file or stream format, open for reading.

    Raises:
        ValueError: what stands there are no such messages.
        OSError: the file cannot be read.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    place = PADDED if file.read(len(MAGIC)) == MAGIC else 0
    while place < end:
        file.seek(place)
        size = _number(file.read(4), "<I")
        place += 4
        if size == _CONTINUED:
            size = _number(file.read(4), "<I")
            place += 4
        if size == 0:
            return
        if size > min(MOST_DESCRIPTION, end - place):
            raise ValueError
        message = _Table.root(file.read(size))
        place += size
        body = message.number(3, "<q")
        if body < 0 or body > end - place:
            raise ValueError
        kind = message.number(1, "<B")
        if kind in (_DICTIONARY, _RECORDS):
            batch = message.table(2)
            batch = batch.table(1) if kind == _DICTIONARY else batch
            yield _unpacked(file, batch, place, body)
        place += body


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

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yields pairs of 64-bit numbers, of which a field is a list."""
        place = self._place(field)
        if not place:
            return
        start = self.place + place
        first = start + _number(self.content, "<I", start)
        many = _number(self.content, "<I", first)
        if many > len(self.content) // 16:
            raise ValueError
        yield from struct.iter_unpack("<qq", self.content[first + 4 : first + 4 + 16 * many])
