"""Types of columns: as a file declares them, as the algorithms work on them, and as a release gives them back.

Arrow has several types for one meaning (text in three layouts, decimals in four widths), and few of its kernels know all of them. Columns
are worked on in one type per meaning and published in the type of the source.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def is_text(kind: pa.DataType) -> bool:
    """Tells whether an Arrow type holds text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Returns the type of the values, whether or not they are written as a dictionary."""
    return dtype.value_type if pt.is_dictionary(dtype) else dtype


def working_type(dtype: pa.DataType) -> pa.DataType:
    """Returns the type in which the values of a column are worked on; the same for the same meaning."""
    plain = plain_type(dtype)
    if isinstance(plain, pa.BaseExtensionType):
        return working_type(plain.storage_type)
    if pt.is_string_view(plain):
        return pa.string()
    if pt.is_binary_view(plain):
        return pa.binary()
    if pt.is_decimal32(plain) or pt.is_decimal64(plain):
        return pa.decimal128(plain.precision, plain.scale)
    return plain


def working(column: pa.Array) -> pa.Array:
    """Returns a column in its working type; dictionaries of other kinds than text, and what needs no change, stay as they are."""
    if isinstance(column, pa.DictionaryArray):
        entries = working(column.dictionary)
        # One type of indices, in no order of its own, or files that number their entries otherwise could not be put together.
        if entries is column.dictionary and pt.is_int32(column.indices.type) and not column.type.ordered:
            return column
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), entries)
    if isinstance(column, pa.ExtensionArray):
        return working(column.storage)
    wanted = working_type(column.type)
    if pt.is_float32(wanted) or pt.is_float64(wanted):
        # Zero has two signs and is one value.
        column = pc.add(column, pa.scalar(0, wanted))
    return column if wanted == column.type else column.cast(wanted)


def restored(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Returns a column in the type in which it is published; a dictionary stays one, because it is only a way of writing.

    Args:
        column: Shape (n,), in the working type of ``dtype``.
        dtype: The type of the source, without dictionary.
    """
    if isinstance(column, pa.DictionaryArray) or column.type == dtype:
        return column
    if isinstance(dtype, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(dtype, restored(column, dtype.storage_type))
    return column.cast(dtype)


def in_utc(dtype: pa.DataType) -> pa.DataType:
    """Returns the type whose values are the same instants without a zone's name: Polars panics at offsets and at zones it does not know."""
    return pa.timestamp(dtype.unit, "UTC") if pt.is_timestamp(dtype) and dtype.tz else dtype
