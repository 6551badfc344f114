"""Files that may crash a library, read in a process of their own: Arrow crashes at some damaged files."""

from __future__ import annotations

import os
import pickle
import resource
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NoReturn, TypeVar

from schemas.errors.base import SkaldError
from schemas.errors.tables import FileError

Result = TypeVar("Result")


def run_in_forked_process(name: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a forked copy of this process, which may crash; return its result.

    Args:
        name: The file that it reads, as the user knows it.
        function: Reads a file of this machine, and returns what can be pickled.
        *arguments: Of the function.
    """
    content = _answer_of(function, arguments)
    if content is None:
        raise FileError.fatal(name)
    made: Result = _given(content)
    return made


def run_each_in_forked_process(function: Callable[..., Result], calls: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Result]:
    """Call a function for each of several files in forked processes, which may crash; return results.

    A copy of the process costs as much as a hundred small files, so that one reads all of them. Where a signal ends it, each file is
    read in a copy of its own: then it is known which one did.

    Args:
        function: As for ``run_in_forked_process``.
        calls: The name of each file, and the arguments of the function.
    """
    if not calls:
        return []
    content = _answer_of(_each_of, (function, [arguments for _, arguments in calls]))
    if content is None:
        return [run_in_forked_process(name, function, *arguments) for name, arguments in calls]
    made: list[Result] = _given(content)
    return made


def _each_of(function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in calls]


def _given(content: bytes) -> Any:
    result, error = pickle.loads(content)
    if error is not None:
        raise error
    return result


def _answer_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes | None:
    """Return the answer of a copy of this process; None if a signal ended it."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Other threads are not in the copy, which only reads a file.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _answer(write, function, arguments)
    os.close(write)
    with os.fdopen(read, "rb") as answered:
        content = answered.read()
    status = os.waitpid(child, 0)[1]
    return None if os.WIFSIGNALED(status) or not content else content


def _answer(write: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> NoReturn:
    """Write a result or an error into a pipe, and end the process without its exit handlers."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A library's last words are no sentence of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        result: Any = None
        error: Exception | None = None
        try:
            result = function(*arguments)
        except SkaldError as ours:
            error = ours
        except Exception as other:  # its text is kept from everybody by whoever catches it
            error = other
        with os.fdopen(write, "wb") as answer:
            answer.write(pickle.dumps((result, error)))
        code = 0
    finally:
        os._exit(code)


MAGIC, BLOCK = b"ARROW1", 24
"""What a file begins and ends with, and the bytes in which its footer says where a batch is."""
MOST_DESCRIPTION = 64_000_000
"""Bytes of a description: that of a batch of a million columns, about."""
_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that have a body, as the schema of Arrow's messages numbers them."""


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
    """Return the number of bytes between the last listed batch and the footer; 0 in a stream.

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
