"""Number of records of a CSV file, counted from its bytes alone.

It is compared with what a reader finds in the file. A record ends at an end of a line outside of quotes. A quote opens a field where
nothing but spaces comes before it in that field. Two quotes within are a letter, and elsewhere a quote is a letter too. DuckDB reads CSV
so, and refuses files that it would read in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("formats.record_counts")

FIELD, WITHIN, QUOTED, CLOSED, ENDED, RETURNED, PASSED = range(7)
"""States after a byte: at the beginning of a field, within a plain one, within quotes, after a quote there; after LF at the end of a line,
after CR, and after LF that follows CR."""
OTHER, DELIMITER, QUOTE, SPACE, NEWLINE, RETURN = range(6)
"""Kinds of bytes."""
KINDS = 8
STATE, RECORDS, LENGTH, LONGEST = range(4)
"""What is known between two blocks: the state after the last byte, records that have ended, bytes of the open one, and of the longest."""


def transitions() -> NDArray[np.uint8]:
    """Return the next parser state for each state and kind of byte, shape (states * KINDS,).

    The index is the state times ``KINDS`` plus the kind of the byte.
    """
    begun = [WITHIN, FIELD, QUOTED, FIELD, ENDED, RETURNED]
    rows = {
        **dict.fromkeys((FIELD, ENDED, RETURNED, PASSED), begun),
        # A quote in the midst of a plain field is a letter of it.
        WITHIN: [WITHIN, FIELD, WITHIN, WITHIN, ENDED, RETURNED],
        QUOTED: [QUOTED, QUOTED, CLOSED, QUOTED, QUOTED, QUOTED],
        CLOSED: [WITHIN, FIELD, QUOTED, CLOSED, ENDED, RETURNED],
    }
    table = np.zeros((len(rows), KINDS), np.uint8)
    for state, row in rows.items():
        table[state, : len(row)] = row
    table[RETURNED, NEWLINE] = PASSED
    return table.ravel()


def count_block(block: NDArray[np.uint8], kinds: NDArray[np.uint8], table: NDArray[np.uint8], least: int, known: NDArray[np.int64]) -> None:
    """Count the records that end in a block of bytes, as ``count_bytes`` does.

    Where no quotes are, only ends of lines count, and NumPy finds these.
    """
    if known[STATE] in (QUOTED, CLOSED) or (block == ord('"')).any():
        count_bytes(block, kinds, table, least, known)
    elif len(block):
        _count_lines(kinds[block], table, least, known)


def _count_lines(found: NDArray[np.uint8], table: NDArray[np.uint8], least: int, known: NDArray[np.int64]) -> None:
    """Count the records that end in a block without quotes, of whose bytes the kinds are given."""
    # Whether a byte follows CR.
    follows = np.append(known[STATE] == RETURNED, found[:-1] == RETURN)
    [ends] = np.nonzero((found == NEWLINE) | (found == RETURN))
    begins = np.append(-known[LENGTH], ends + 1)
    lengths = (ends - begins[:-1])[(found[ends] == RETURN) | ~follows[ends]]
    known[RECORDS] += np.count_nonzero(lengths >= least)
    known[LONGEST] = max(int(known[LONGEST]), int(lengths.max(initial=0)))
    known[LENGTH] = len(found) - begins[-1]
    # The last byte that is no space decides, with a CR before it, and that spaces follow.
    [others] = np.nonzero(found != SPACE)
    if len(others):
        last = others[-1]
        known[STATE] = table[(RETURNED if follows[last] else WITHIN) * KINDS + found[last]]
    if not len(others) or others[-1] < len(found) - 1:
        known[STATE] = table[known[STATE] * KINDS + SPACE]


@kernel
def count_bytes(block: NDArray[np.uint8], kinds: NDArray[np.uint8], table: NDArray[np.uint8], least: int, known: NDArray[np.int64]) -> None:
    """Count the records that end in a block of bytes; update ``known``, the parser's state.

    Args:
        block: Shape (bytes,).
        kinds: Shape (256,), the kind of each byte.
        table: As ``transitions`` returns it.
        least: Bytes that a line must have to be a record.
        known: Shape (4,), what was known before the block, which becomes what is known after it.
    """
    state, records, begun, longest = int(known[STATE]), known[RECORDS], -known[LENGTH], known[LONGEST]
    for place in range(block.shape[0]):
        state = int(table[state * KINDS + kinds[block[place]]])
        if state >= ENDED:
            if state != PASSED:
                length = place - begun
                records += int(length >= least)
                longest = max(longest, length)
            begun = place + 1
    known[STATE], known[RECORDS], known[LENGTH], known[LONGEST] = state, records, block.shape[0] - begun, longest


MARK = b"\xef\xbb\xbf"
"""What spreadsheets begin a file of UTF-8 with."""
STANDS_FOR = 0xFF
"""A byte that no text in UTF-8 has, in the place of a delimiter of several."""


class RecordCount(NamedTuple):
    """Number of records of a CSV file, and the length of the longest.

    Attributes:
        records: How many there are, the header included.
        longest: Bytes of the longest, without the end of its line.
    """

    records: int
    longest: int


def count_records(blocks: Iterable[bytes], delimiter: str, column_count: int) -> RecordCount:
    """Count the records of a CSV file, its header included, and measure the longest, in one pass.

    Args:
        blocks: Its bytes, a part at a time.
        delimiter: What separates fields, one character.
        column_count: How many it has: an empty line is a record where there is one column, and none where there are several.
    """
    parts = delimiter.encode()
    kinds = np.zeros(256, np.uint8)
    for letter, kind in ((" ", SPACE), ('"', QUOTE), ("\n", NEWLINE), ("\r", RETURN)):
        kinds[ord(letter)] = kind
    kinds[parts[0] if len(parts) == 1 else STANDS_FOR] = DELIMITER
    table, known = transitions(), np.zeros(4, np.int64)
    known[STATE] = ENDED
    for block in _without_mark(_of_one_byte(blocks, parts)):
        count_block(np.frombuffer(block, np.uint8), kinds, table, int(column_count > 1), known)
    # Its last line may have no end.
    return RecordCount(int(known[RECORDS] + (known[LENGTH] > 0)), int(max(known[LONGEST], known[LENGTH])))


def _of_one_byte(blocks: Iterable[bytes], delimiter: bytes) -> Iterator[bytes]:
    """Yield blocks of bytes with a delimiter of several bytes replaced by a single byte.

    Spaces fill the length; they mean nothing after a delimiter.
    """
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
    """Yield blocks of bytes without a UTF-8 byte order mark."""
    first = b""
    stream = iter(blocks)
    while len(first) < len(MARK) and (block := next(stream, b"")):
        first += block
    yield first.removeprefix(MARK)
    yield from stream
