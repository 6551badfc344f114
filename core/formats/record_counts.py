"""How many records a CSV file has, counted from its bytes alone, so that what a reader makes of it can be held against the file itself.

A record ends at an end of a line outside of quotes. A quote opens a field where nothing but spaces stands before it in that field. Two
quotes within are a letter, and elsewhere a quote is a letter too. DuckDB reads CSV so, and refuses what it would read in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from core.formats.record_kernels import (
    DELIMITER,
    ENDED,
    LENGTH,
    LONGEST,
    NEWLINE,
    QUOTE,
    RECORDS,
    RETURN,
    SPACE,
    STATE,
    count_block,
    transitions,
)

MARK = b"\xef\xbb\xbf"
"""What spreadsheets begin a file of UTF-8 with."""
STANDS_FOR = 0xFF
"""A byte that no text in UTF-8 has, in the place of a delimiter of several."""


class RecordCount(NamedTuple):
    """What was counted of a CSV file.

    Attributes:
        records: How many there are, the header included.
        longest: Bytes of the longest, without the end of its line.
    """

    records: int
    longest: int


def count_records(blocks: Iterable[bytes], delimiter: str, columns: int) -> RecordCount:
    """Counts the records of a CSV file in one reading.

    Args:
        blocks: Its bytes, a part at a time.
        delimiter: What separates fields, one character.
        columns: How many it has: an empty line is a record where there is one column, and none where there are several.
    """
    parts = delimiter.encode()
    kinds = np.zeros(256, np.uint8)
    for letter, kind in ((" ", SPACE), ('"', QUOTE), ("\n", NEWLINE), ("\r", RETURN)):
        kinds[ord(letter)] = kind
    kinds[parts[0] if len(parts) == 1 else STANDS_FOR] = DELIMITER
    table, known = transitions(), np.zeros(4, np.int64)
    known[STATE] = ENDED
    for block in _without_mark(_of_one_byte(blocks, parts)):
        count_block(np.frombuffer(block, np.uint8), kinds, table, int(columns > 1), known)
    # Its last line may have no end.
    return RecordCount(int(known[RECORDS] + (known[LENGTH] > 0)), int(max(known[LONGEST], known[LENGTH])))


def _of_one_byte(blocks: Iterable[bytes], delimiter: bytes) -> Iterator[bytes]:
    """Yields the bytes with a delimiter of one byte, and as many spaces as it had more, which mean nothing after it."""
    if len(delimiter) == 1:
        yield from blocks
        return
    instead, kept = bytes([STANDS_FOR]) + b" " * (len(delimiter) - 1), b""
    for block in blocks:
        whole = (kept + block).replace(delimiter, instead)
        # The beginning of one may be the end of a block.
        kept = whole[1 - len(delimiter) :]
        yield whole[: 1 - len(delimiter)]
    yield kept


def _without_mark(blocks: Iterable[bytes]) -> Iterator[bytes]:
    first = b""
    stream = iter(blocks)
    while len(first) < len(MARK) and (block := next(stream, b"")):
        first += block
    yield first.removeprefix(MARK)
    yield from stream
