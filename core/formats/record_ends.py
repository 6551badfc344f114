"""Ends of CSV records, found range by range so that a file can be cut.

A byte is in quotes if an odd number of quotes comes before it. Whether a range begins in quotes depends on the ranges before, so both cases
are scanned. Each range reports its number of quotes and where its first record ends in either case; the sums of quotes before a range
decide which case holds. That is exact for files in which a quote either opens a field, closes it, or is doubled within. All other files are
reported as irregular and must not be cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUOTE, NEWLINE, RETURN = 34, 10, 13


@dataclass(frozen=True)
class Beginning:
    """Records of a range under the assumption that it begins outside, or inside, of quotes.

    Attributes:
        end: Bytes until after the first end of a line outside of quotes; -1 if there is none.
        regular: Whether each quote opens or closes a field or is doubled, and no line is empty or ends in a carriage return alone.
        endings: How many bytes the ends of its lines have: 1 and 2 stand for two kinds.
        lines: How many lines end in it, outside of quotes.
    """

    end: int
    regular: bool
    endings: tuple[int, ...]
    lines: int


@dataclass(frozen=True)
class ScannedRange:
    """Quotes of a byte range of a CSV file, and its records if it begins outside, or inside, of quotes.

    Attributes:
        quotes: How many it has.
        beginnings: What it is if it begins outside of quotes, and inside.
        closed: Whether its last byte is the end of a line.
    """

    quotes: int
    beginnings: tuple[Beginning, Beginning]
    closed: bool


def scan_range(blocks: Iterable[bytes], before: bytes, after: bytes, delimiter: str) -> ScannedRange:
    """Count the quotes of a byte range of a CSV file; find its record ends for either state at its start.

    Args:
        blocks: Its bytes, a part at a time.
        before: The last two bytes before it; fewer at the beginning of the file.
        after: The byte after it; none at the end of the file.
        delimiter: What parts fields, one character of ASCII.
    """
    quotes, place, past = 0, 0, before
    ends, regular, endings, ended = [-1, -1], [True, True], [set[int](), set[int]()], [0, 0]
    stream = iter(blocks)
    block = next(stream, b"")
    while block:
        following = next(stream, b"")
        looked = _Block(past, block, (following or after)[:1], delimiter)
        for begins in (0, 1):
            inside = (quotes + begins) % 2
            regular[begins] &= looked.regular(inside)
            lines, kinds = looked.lines(inside)
            endings[begins] |= kinds
            ended[begins] += len(lines)
            if ends[begins] < 0 and len(lines):
                ends[begins] = place + int(lines[0]) + 1
        quotes, place, past = quotes + len(looked.quotes), place + len(block), (past + block)[-2:]
        block = following
    outside, within = (Beginning(ends[one], regular[one], tuple(sorted(endings[one])), ended[one]) for one in (0, 1))
    return ScannedRange(quotes, (outside, within), past.endswith(b"\n"))


class _Block:
    """Block of a range, with two bytes before it and one after where the file has them."""

    def __init__(self, past: bytes, block: bytes, after: bytes, delimiter: str) -> None:
        """Keep the bytes of a block and find its quotes."""
        # What lies outside of the file parts fields and ends lines as what stands between them does.
        padded = (b"\n" * 2 + past)[-2:] + block + (after or b"\n")
        self._bytes = np.frombuffer(padded, np.uint8)
        self._here = self._bytes[2:-1]
        self._starts, self._ends = self._bytes[1:-2], self._bytes[3:]
        self.quotes = np.flatnonzero(self._here == QUOTE)
        self._borders = (QUOTE, NEWLINE, RETURN, ord(delimiter))

    def regular(self, inside: int) -> bool:
        """Return whether quotes and line ends are well-formed, given whether the block starts within quotes."""
        opening, closing = self.quotes[inside::2], self.quotes[1 - inside :: 2]
        if not (self._bordered(self._starts[opening]) and self._bordered(self._ends[closing])):
            return False
        returns = np.flatnonzero(self._here == RETURN)
        if np.any(self._ends[returns[self._outside(returns, inside)]] != NEWLINE):
            return False
        lines, _ = self.lines(inside)
        # The line before ended just before this end, of one byte or of two.
        empty = (self._starts[lines] == NEWLINE) | ((self._starts[lines] == RETURN) & (self._bytes[lines] == NEWLINE))
        return not np.any(empty)

    def lines(self, inside: int) -> tuple[NDArray[np.intp], set[int]]:
        """Return the positions of line ends outside of quotes, and the numbers of bytes that they have."""
        found = np.flatnonzero(self._here == NEWLINE)
        found = found[self._outside(found, inside)]
        returned = self._starts[found] == RETURN
        return found, ({2} if returned.any() else set()) | ({1} if not returned.all() else set())

    def _outside(self, places: NDArray[np.intp], inside: int) -> NDArray[np.bool_]:
        """Return a mask of the positions that are outside of quotes."""
        even: NDArray[np.bool_] = (np.searchsorted(self.quotes, places) + inside) % 2 == 0
        return even

    def _bordered(self, found: NDArray[np.uint8]) -> bool:
        """Return whether all given bytes are quotes, delimiters or line ends."""
        return bool(np.isin(found, self._borders).all())


def record_starts(ranges: Sequence[tuple[int, ScannedRange]]) -> list[int] | None:
    """Return where the first record of each range starts, in bytes, after the header; None if unclear.

    Args:
        ranges: First byte of each range of a file, in order and without a gap, and what was found there.
    """
    quotes, found, endings = 0, list[int](), set[int]()
    for first, one in ranges:
        begins = one.beginnings[quotes % 2]
        endings |= set(begins.endings)
        if not begins.regular or len(endings) > 1:
            return None
        if begins.end >= 0:
            found.append(first + begins.end)
        quotes += one.quotes
    # A quote that does not close is for whoever reads the file to tell of.
    return None if quotes % 2 or not found else found


def records_of(ranges: Sequence[ScannedRange]) -> int:
    """Return the number of records of a file from its scanned ranges, the header included.

    Args:
        ranges: What was found in its ranges, in order; no line is empty, as ``cuts`` sees to.
    """
    quotes = records = 0
    for one in ranges:
        records += one.beginnings[quotes % 2].lines
        quotes += one.quotes
    # The last line may have no end.
    return records + (not ranges[-1].closed if ranges else 0)
