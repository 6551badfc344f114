"""Where records of CSV end, found out range by range: what a range is depends on whether it begins in quotes, so both are looked at.

A byte is in quotes if an odd number of quotes stands before it. So of each range the number of its quotes is told, and where its first
record ends if it begins outside of quotes, and if it begins inside; the sums of those before a range say which. That is exact for files in
which a quote either opens a field, closes it, or is doubled within. All else is told to be irregular, and nobody may cut such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUOTE, NEWLINE, RETURN = 34, 10, 13


@dataclass(frozen=True)
class Beginning:
    """What a range is if it begins outside of quotes, or if it begins inside.

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
class Scanned:
    """A range of a file.

    Attributes:
        quotes: How many it has.
        beginnings: What it is if it begins outside of quotes, and inside.
        closed: Whether its last byte is the end of a line.
    """

    quotes: int
    beginnings: tuple[Beginning, Beginning]
    closed: bool


def scan(blocks: Iterable[bytes], before: bytes, after: bytes, delimiter: str) -> Scanned:
    """Look through a range.

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
    return Scanned(quotes, (outside, within), past.endswith(b"\n"))


class _Block:
    """A part of a range, with two bytes before it and one after, as far as there are any."""

    def __init__(self, past: bytes, block: bytes, after: bytes, delimiter: str) -> None:
        # What lies outside of the file parts fields and ends lines as what stands between them does.
        padded = (b"\n" * 2 + past)[-2:] + block + (after or b"\n")
        self._bytes = np.frombuffer(padded, np.uint8)
        self._here = self._bytes[2:-1]
        self._starts, self._ends = self._bytes[1:-2], self._bytes[3:]
        self.quotes = np.flatnonzero(self._here == QUOTE)
        self._borders = (QUOTE, NEWLINE, RETURN, ord(delimiter))

    def regular(self, inside: int) -> bool:
        """Return whether it is, if it begins inside of quotes or outside."""
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
        """Return where lines end, and how many bytes their ends have."""
        found = np.flatnonzero(self._here == NEWLINE)
        found = found[self._outside(found, inside)]
        returned = self._starts[found] == RETURN
        return found, ({2} if returned.any() else set()) | ({1} if not returned.all() else set())

    def _outside(self, places: NDArray[np.intp], inside: int) -> NDArray[np.bool_]:
        even: NDArray[np.bool_] = (np.searchsorted(self.quotes, places) + inside) % 2 == 0
        return even

    def _bordered(self, found: NDArray[np.uint8]) -> bool:
        return bool(np.isin(found, self._borders).all())


def record_starts(ranges: Sequence[tuple[int, Scanned]]) -> list[int] | None:
    """Return where ranges of whole records begin, the end of the header first; None where quotes do not decide it.

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


def records_of(ranges: Sequence[Scanned]) -> int:
    """Return how many records a file has that was cut, the header included.

    Args:
        ranges: What was found in its ranges, in order; no line is empty, as ``cuts`` sees to.
    """
    quotes = records = 0
    for one in ranges:
        records += one.beginnings[quotes % 2].lines
        quotes += one.quotes
    # The last line may have no end.
    return records + (not ranges[-1].closed if ranges else 0)
