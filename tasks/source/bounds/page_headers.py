"""Headers of the pages of a Parquet column: what each takes unpacked, before anything is unpacked.

A footer gives sums that no reader checks, and of a dictionary it gives nothing: three thousand places in a dictionary of one megabyte are
three gigabytes of text. The header before each page says its kind, its encoding, how many values it has and how many bytes it becomes. It
is written in Thrift's compact protocol, of which the few rules that a reader needs are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow.parquet as pq

MOST_HEADER = 1 << 14
"""Bytes of a header that are read: with statistics of long values more, but these come last and are not needed."""
DICTIONARY_PAGE = 2
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
"""Fields of a header that hold what is said of its kind of page."""
_MOST_DEPTH = 8


class Page(NamedTuple):
    """A page of a column.

    Attributes:
        is_dictionary: Whether it holds the entries to which places in other pages lead.
        values: How many it has.
        encoding: Number of the encoding, as Parquet numbers them.
        size: Bytes that it takes unpacked.
    """

    is_dictionary: bool
    values: int
    encoding: int
    size: int


def pages_of(opened: Any, column: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """Yields the pages of a column of a row group.

    Args:
        opened: The file, open for reading.
        column: What its footer says of the column.

    Raises:
        ValueError: what stands there are no pages, or they do not end where the footer says.
        OSError: the file cannot be read.
    """
    place = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        place = min(place, column.dictionary_page_offset)
    end, values = place + column.total_compressed_size, 0
    while place < end and values < column.num_values:
        opened.seek(place)
        header = _Header(opened.read(min(MOST_HEADER, end - place)))
        page, packed = header.page()
        yield page
        values += 0 if page.is_dictionary else page.values
        place += header.place + packed


class _Header:
    """Reads one header."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def page(self) -> tuple[Page, int]:
        """Returns the page, and how many bytes it takes behind its header.

        Raises:
            ValueError: it is none.
        """
        try:
            said = self._struct(0)
            kind, size, packed = said[1], said[2], said[3]
            about = said.get(_DATA) or said.get(_DICTIONARY) or said.get(_DATA_V2) or {}
            values, encoding = about.get(1, 0), about.get(4 if _DATA_V2 in said else 2, 0)
        except (IndexError, KeyError, TypeError, AttributeError):
            raise ValueError from None
        # Any field may be of any type, in what is no header.
        if not all(isinstance(number, int) and number >= 0 for number in (kind, size, packed, values, encoding)):
            raise ValueError
        return Page(kind == DICTIONARY_PAGE, values, encoding, size), packed

    def _struct(self, depth: int) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise ValueError
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            found[field] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == _TRUE
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                self.place += 8
            case 8:
                size = self._number()
                self.place += size
            case 9 | 10:
                self._elements(depth)
            case 12:
                return self._struct(depth + 1)
            case _:
                raise ValueError
        return None

    def _elements(self, depth: int) -> None:
        head = self._byte()
        many = head >> 4 if head >> 4 < 15 else self._number()
        if many > MOST_HEADER:
            raise ValueError
        for _ in range(many):
            # In a list a truth takes a byte of its own.
            self._byte() if head & 15 in (_TRUE, _FALSE) else self._value(head & 15, depth + 1)

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise ValueError

    def _zigzag(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)
