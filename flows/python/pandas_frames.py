"""Conversion of pandas frames to Arrow tables, and back to their original column types.

Nullable numbers, texts, categories and objects keep their types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from schemas.errors.tables import FrameError

if TYPE_CHECKING:
    import pyarrow as pa

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later


def table_of_pandas(frame: Any, linking: Collection[str]) -> pa.Table:
    """Convert a pandas frame to an Arrow table without its index, or raise FrameError.

    Args:
        linking: Columns of keys and references, whose whole numbers pandas holds as floats where some are missing.

    Raises:
        FrameError: a column holds values of several types, or of a type that is not read.
    """
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError):
        raise _why_not(frame) from None
    for field, dtype in zip(table.schema, frame.dtypes, strict=True):
        if isinstance(field.type, pa.BaseExtensionType):
            raise FrameError.no_such_type(field.name, str(dtype))
        if field.name in linking and pa.types.is_floating(field.type):
            with suppress(pa.ArrowInvalid):
                table = table.set_column(table.schema.get_field_index(field.name), field.name, table[field.name].cast(pa.int64()))
    return table


def _why_not(frame: Any) -> FrameError:
    """Return the error for a frame that cannot become an Arrow table."""
    import pyarrow as pa

    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        try:
            pa.Array.from_pandas(column)
        except (pa.ArrowException, TypeError, ValueError):
            # Arrow's own text shows the value.
            is_object = column.dtype == object
            return (
                FrameError.several_types(str(name), _first_other(column))
                if is_object
                else FrameError.no_such_type(str(name), str(column.dtype))
            )
    return FrameError.unwritten("pandas")


def _first_other(column: Any) -> int:
    """Return the position of the first value whose type differs from the first value's type."""
    kinds = [type(value) for value in column]
    there = [place for place, null in enumerate(column.isna()) if not null]
    return next((place for place in there if kinds[place] is not kinds[there[0]]), 0)


def back_to_pandas(pandas: Any, frame: Any, schema: pa.Schema) -> Callable[[pa.Table], Any]:
    """Return a function that converts a released Arrow table to a pandas frame.

    Columns that are published unchanged keep their type.

    Args:
        pandas: The package.
        frame: The frame that was given.
        schema: Its columns in Arrow's types.
    """
    labels = {str(name): name for name in frame.columns}
    dtypes = dict(zip(labels, frame.dtypes, strict=True))

    def back(table: pa.Table) -> Any:
        columns = {}
        for field in table.schema:
            same = field.name in dtypes and is_alike(field.type, schema.field(field.name).type)
            made = _series(pandas, table[field.name], dtypes[field.name]) if same else _plain(pandas, table[field.name])
            columns[labels.get(field.name, field.name)] = made
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(table)))

    return back


def is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two Arrow types hold values of one kind.

    A column of one type may then be written as the other.
    """
    import pyarrow.types as pt

    from core.columns.column_types import working_type

    one, other = working_type(one), working_type(other)
    kinds = (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), pt.is_timestamp, pt.is_time, pt.is_duration, pt.is_decimal)
    binary = pt.is_binary(one) or pt.is_large_binary(one)
    return bool(one == other or any(kind(one) and kind(other) for kind in kinds) or (binary and pt.is_large_binary(other)))


def _series(pandas: Any, column: pa.ChunkedArray, dtype: Any) -> Any:
    """Return a column as a pandas series of its original type."""
    if dtype == "object":
        return pandas.Series(column.to_pylist(), dtype=object)
    if isinstance(dtype, pandas.CategoricalDtype):
        values = column.to_pylist()
        there = {value for value in values if value is not None}
        # Categories without a record could be those of suppressed ones.
        used = [one for one in dtype.categories if one in there]
        return pandas.Series(pandas.Categorical(values, categories=used, ordered=dtype.ordered))
    if isinstance(dtype, pandas.ArrowDtype):
        return pandas.Series(pandas.arrays.ArrowExtensionArray(column.cast(dtype.pyarrow_dtype)))
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(column))
    made = _plain(pandas, column)
    # Whole numbers have no null in NumPy.
    return made if made.dtype == dtype or (column.null_count and dtype.kind in "iub") else made.astype(dtype)


def _plain(pandas: Any, column: pa.ChunkedArray) -> Any:
    """Return a column as a pandas series of the default type; nullable where it has nulls."""
    import pyarrow.types as pt

    if column.null_count and (pt.is_integer(column.type) or pt.is_boolean(column.type)):
        name = "boolean" if pt.is_boolean(column.type) else str(column.type).replace("i", "I", 1).replace("uI", "UI")
        return pandas.Series(pandas.api.types.pandas_dtype(name).__from_arrow__(column))
    return column.to_pandas()
