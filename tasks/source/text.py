"""Whether columns of text hold text: Arrow reads any bytes as such, and fails, or lets others fail, only once they are looked at."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from core.columns.column_types import plain_type


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
