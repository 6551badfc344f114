"""How long the values of a Parquet file are once they are unpacked, found before any is: a few kilobytes can be many gigabytes.

Pages are bounded by the job's memory, values by 16 MB, and of columns whose values are long, so many records are read at a time as memory
holds. Headers of pages say it. Of a dictionary its entries are looked at, because one long entry among short ones may be every record's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from tasks.source.bounds.int96 import UNIT
from tasks.source.bounds.page_headers import Page, pages_of

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
    """What the values of a file take.

    Attributes:
        long: By column of which values are long, how many bytes one may take.
        size: Bytes of all values, as far as they are more than the footer says: those that dictionaries repeat.
    """

    long: dict[str, int]
    size: int


def unpacked(opened: Any, metadata: pq.FileMetaData, name: str, memory: int) -> Unpacked:
    """Returns how long the values of an open Parquet file are.

    Args:
        opened: The file, open for reading.
        metadata: Its footer.
        name: What the user calls it.
        memory: Bytes that the job may take.

    Raises:
        SourceError: a page or a value is larger than is read, or what the footer says of the pages is not so.
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
    """Returns how many records are read at a time, at least one, where values of some columns may be so long."""
    return max(LONG_BATCH // max(sum(long), 1), 1)


def _check_pages(pages: Iterable[Page], column: pq.ColumnChunkMetaData, name: str, memory: int) -> None:
    """Refuses pages that take more than memory has room for.

    Raises:
        ValuesError: there are such.
        ValueError: they take more than the footer says.
    """
    sizes, most = [page.size for page in pages], max(memory // PAGE_SHARE, LEAST_PAGE)
    if max(sizes, default=0) > most:
        raise ValuesError.large_page(column.path_in_schema, name, max(sizes), most)
    if sum(sizes) > column.total_uncompressed_size:
        raise ValueError


class _Look:
    """Looks at the values of a file, where headers do not say how long they are."""

    def __init__(self, opened: Any, metadata: pq.FileMetaData) -> None:
        columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        texts = [column.path for column in columns if column.physical_type == _TEXTS]
        kept: dict[str, Any] = {"metadata": metadata, "buffer_size": AHEAD, "pre_buffer": False, "coerce_int96_timestamp_unit": UNIT}
        self._plain = pq.ParquetFile(opened, **kept)
        self._coded = pq.ParquetFile(opened, read_dictionary=texts, **kept)

    def at(self, group: int, column: pq.ColumnChunkMetaData, pages: Sequence[Page], declared: pq.ColumnSchema) -> tuple[int, int]:
        """Returns how long values of a column are in a row group, and what all of them take beyond their pages."""
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
        """Returns how long the entries of a dictionary are that takes so many bytes; all of these where it cannot be read as one."""
        for batch in self._coded.iter_batches(1, row_groups=[group], columns=[name], use_threads=False):
            if isinstance(batch.column(0), pa.DictionaryArray):
                return int(pc.max(pc.binary_length(batch.column(0).dictionary)).as_py() or 0)
            break
        return size

    def _longest_value(self, group: int, name: str, most: int) -> tuple[int, int]:
        """Returns how long the longest value of a column is in a row group, where none is longer than most, and what all of them take."""
        longest = total = 0
        for batch in self._plain.iter_batches(rows_of_long([most]), row_groups=[group], columns=[name], use_threads=False):
            column = batch.column(0)
            if not isinstance(column, pa.StringArray | pa.BinaryArray | pa.LargeStringArray | pa.LargeBinaryArray):
                return most, 0
            lengths = pc.binary_length(column)
            longest, total = max(longest, pc.max(lengths).as_py() or 0), total + (pc.sum(lengths).as_py() or 0)
        return longest, total
