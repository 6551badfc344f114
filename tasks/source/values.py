"""Whether columns hold what their types say: Arrow reads any bytes as text and any number as a moment, and others fail on them later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.columns.column_types import inclusive_moments, plain_type
from schemas.errors.values import ValuesError


class Unreadable:
    """Counts the values of some columns that are not what their types say."""

    def __init__(self) -> None:
        self._texts, self._moments, self._types = Counter[str](), Counter[str](), dict[str, pa.DataType]()

    def check_batch(self, batch: pa.RecordBatch, columns: Sequence[str]) -> bool:
        """Looks at columns of a batch; returns whether all values so far are what their types say."""
        for name in columns:
            column = batch.column(name)
            self._texts[name] += undecodable(column)
            self._moments[name] += _outside(column)
            self._types[name] = plain_type(column.type)
        return not self._texts.total() and not self._moments.total()

    def check(self, file: str) -> None:
        """Refuses what was counted in a file."""
        for name, count in (+self._texts).items():
            raise ValuesError.not_utf8(name, file, count)
        for name, count in (+self._moments).items():
            ends = inclusive_moments(self._types[name])
            assert ends is not None
            raise ValuesError.no_moments(name, count, ends[0].text, ends[1].text)


def undecodable(column: pa.Array) -> int:
    """Counts the values of a column that are not UTF-8, shape (n,); 0 for one of another type than text, or of a dictionary of it."""
    kind = plain_type(column.type)
    if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)):
        return 0
    # A few entries stand for all records, and are nearly always right: then nothing else is looked at.
    entries = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    if _is_text(entries):
        return 0
    # Few files come here, so that a loop over the values does no harm.
    bad = {number for number in range(len(entries)) if not _is_text(entries.slice(number, 1))}
    return sum(place in bad for place in column.indices.to_pylist()) if isinstance(column, pa.DictionaryArray) else len(bad)


def _is_text(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _outside(column: pa.Array) -> int:
    """Counts the dates and times of a column that not every program reads; 0 for one of another type."""
    dtype = plain_type(column.type)
    ends = inclusive_moments(dtype)
    if ends is None:
        return 0
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    first, last = ends
    numbers = column.view(pa.int32() if dtype.bit_width == 32 else pa.int64())
    least, most = (end.as_py() for end in pc.min_max(numbers).values())
    if least is None or (first.number <= least and most <= last.number):
        return 0
    outside = pc.or_(pc.less(numbers, first.number), pc.greater(numbers, last.number))
    return int(pc.sum(outside).as_py())
