"""Unpacked lengths of the values of a Parquet file, found before any value is unpacked.

A few kilobytes can be many gigabytes.

Pages are bounded by the job's memory, values by 16 MB, and of columns whose values are long, so many records are read at a time as memory
holds. Headers of pages say it. Of a dictionary its entries are looked at, because one long entry among short ones may be every record's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError

MOST_HEADER = 1 << 14
"""Bytes of a header that are read: with statistics of long values more, but these come last and are not needed."""
DICTIONARY_PAGE = 2
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
"""Fields of a header that hold what is said of its kind of page."""
_MOST_DEPTH = 8


class Page(NamedTuple):
    """Header of a page of a Parquet column: kind, number of values, encoding and unpacked size.

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
    """Yield the header of each page of a column of a row group, without reading values.

    Args:
        opened: The file, open for reading.
        column: What its footer says of the column.
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
    """A reader of one page header."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def page(self) -> tuple[Page, int]:
        """Return the page that the header describes, and its bytes behind the header."""
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


UNIT = "us"
"""In which INT96 is read, wherever that is done."""
_ROWS = 131_072


def check_int96(parquet_file: Any, metadata: pq.FileMetaData, name: str) -> None:
    """Raise ``ValuesError`` for INT96 timestamps with digits below the microsecond.

    Args:
        parquet_file: The Parquet file, open for reading.
        metadata: Its footer.
        name: What the user calls it.
    """
    places = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    columns = [column.path for column in places if column.physical_type == "INT96" and "." not in column.path]
    if not columns:
        return
    fine, kept = (
        pq.ParquetFile(parquet_file, metadata=metadata, coerce_int96_timestamp_unit=unit, pre_buffer=False) for unit in ("ns", UNIT)
    )
    lost = dict.fromkeys(columns, 0)
    for group in range(metadata.num_row_groups):
        read = (file.iter_batches(_ROWS, row_groups=[group], columns=columns, use_threads=False) for file in (fine, kept))
        for one, other in zip(*read, strict=True):
            for column in columns:
                # Both come round in the same way, so that beyond the years of nanoseconds they are equal too.
                whole = pc.multiply(other.column(column).view(pa.int64()), 1000)
                lost[column] += pc.sum(pc.not_equal(whole, one.column(column).view(pa.int64()))).as_py() or 0
    for column, count in lost.items():
        if count:
            raise ValuesError.nanoseconds(column, name, count)


MOST_VALUE = 16_000_000
"""Bytes of a value."""
LONG_BATCH = 32_000_000
"""Bytes of long values that are read at a time."""
SHORT = 256
"""Bytes of a value that is no long one: so many records as are read at a time take no more than that."""
PAGE_SHARE, LEAST_PAGE = 4, 128_000_000
"""Which part of the memory a page may take, and at least how many bytes: it is unpacked whole. DuckDB writes pages of up to 100 MB."""
AHEAD = 1 << 18
_DELTA_BYTE_ARRAY = 7
_TEXTS, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"


class Unpacked(NamedTuple):
    """Lengths of long values of a Parquet file by column, and bytes beyond its footer's size.

    Attributes:
        long: By column of which values are long, how many bytes one may take.
        size: Bytes of all values, as far as they are more than the footer says: those that dictionaries repeat.
    """

    long: dict[str, int]
    size: int


def long_value_lengths(opened: Any, metadata: pq.FileMetaData, name: str, memory: int) -> Unpacked:
    """Return the lengths of long values of an open Parquet file; raise if one exceeds the limits.

    Args:
        opened: The file, open for reading.
        metadata: Its footer.
        name: What the user calls it.
        memory: Bytes that the job may take.
    """
    long, size = Counter[str](), 0
    look = _Look(opened, metadata)
    try:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for place in range(metadata.num_columns) if group.num_rows else ():
                column = group.column(place)
                pages = list(pages_of(opened, column))
                _check_pages(pages, column, name, memory)
                longest, more = look.at(number, column, pages, metadata.schema.column(place))
                long[column.path_in_schema] = max(long[column.path_in_schema], longest)
                size += more
    except (ValueError, OSError, pa.ArrowException):
        raise SourceError.unreadable(name, "parquet") from None
    for column_name, longest in long.items():
        if longest > MOST_VALUE:
            raise ValuesError.too_long(column_name, name, MOST_VALUE)
    return Unpacked({column: longest for column, longest in long.items() if longest > SHORT}, size)


def rows_of_long(long: Iterable[int]) -> int:
    """Return how many records to read at a time where values of columns have some lengths; at least one."""
    return max(LONG_BATCH // max(sum(long), 1), 1)


def _check_pages(pages: Iterable[Page], column: pq.ColumnChunkMetaData, name: str, memory: int) -> None:
    """Refuse pages whose unpacked bytes do not fit into memory."""
    sizes, most = [page.size for page in pages], max(memory // PAGE_SHARE, LEAST_PAGE)
    if max(sizes, default=0) > most:
        raise ValuesError.large_page(column.path_in_schema, name, max(sizes), most)
    if sum(sizes) > column.total_uncompressed_size:
        raise ValueError


class _Look:
    """Inspection of the values of a file whose headers do not show their lengths."""

    def __init__(self, opened: Any, metadata: pq.FileMetaData) -> None:
        columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        texts = [column.path for column in columns if column.physical_type == _TEXTS]
        kept: dict[str, Any] = {"metadata": metadata, "buffer_size": AHEAD, "pre_buffer": False, "coerce_int96_timestamp_unit": UNIT}
        self._plain = pq.ParquetFile(opened, **kept)
        self._coded = pq.ParquetFile(opened, read_dictionary=texts, **kept)

    def at(self, group: int, column: pq.ColumnChunkMetaData, pages: Sequence[Page], declared: pq.ColumnSchema) -> tuple[int, int]:
        """Return the length of a column's longest value in a row group, and the bytes beyond its pages."""
        if declared.physical_type == _FIXED:
            return declared.length, 0
        if declared.physical_type != _TEXTS:
            return 0, 0
        plain = [page for page in pages if not page.is_dictionary]
        # Of a page that lists its values one after the other, the average is what so many of them take.
        longest, more = max((-(-page.size // max(page.values, 1)) for page in plain), default=0), 0
        most = sum(page.size for page in pages)
        if most > SHORT and any(page.encoding == _DELTA_BYTE_ARRAY for page in plain):
            # A value begins as the one before it does, which takes a few bytes, however long that is.
            longest, total = self._longest_value(group, column.path_in_schema, most)
            return longest, max(total - most, 0)
        for page in pages:
            if page.is_dictionary and page.size > SHORT:
                entry = page.size // max(page.values, 1)
                longest = max(longest, self._longest_entry(group, column.path_in_schema, page.size))
                more += entry * column.num_values if entry > SHORT else 0
        return longest, more

    def _longest_entry(self, group: int, name: str, size: int) -> int:
        """Return the length of the longest dictionary entry; all bytes of a dictionary that cannot be read."""
        for batch in self._coded.iter_batches(1, row_groups=[group], columns=[name], use_threads=False):
            if isinstance(batch.column(0), pa.DictionaryArray):
                return int(pc.max(pc.binary_length(batch.column(0).dictionary)).as_py() or 0)
            break
        return size

    def _longest_value(self, group: int, name: str, most: int) -> tuple[int, int]:
        """Return the length of the longest value of a column in a row group, and the bytes of all values.

        No value is longer than ``most``, which is returned with 0 where the column is not read as text.
        """
        longest = total = 0
        for batch in self._plain.iter_batches(rows_of_long([most]), row_groups=[group], columns=[name], use_threads=False):
            column = batch.column(0)
            if not isinstance(column, pa.StringArray | pa.BinaryArray | pa.LargeStringArray | pa.LargeBinaryArray):
                return most, 0
            lengths = pc.binary_length(column)
            longest, total = max(longest, pc.max(lengths).as_py() or 0), total + (pc.sum(lengths).as_py() or 0)
        return longest, total
