"""Tables of Polars, pandas and Arrow written to files, and read back as the same kind.

None of these packages is imported unless the process already uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.python.pandas_frames import back_to_pandas, is_alike, table_of_pandas
from flows.python.polars_frames import write_polars
from schemas.errors.tables import FrameError

if TYPE_CHECKING:
    import pyarrow as pa

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later

Back = Callable[[Any], Any]


def write_frame(frame: Any, path: Path, linking: Collection[str] = ()) -> Back:
    """Write a table as Parquet; return a function that turns an Arrow table into a table of its kind.

    Args:
        frame: A DataFrame or LazyFrame of Polars, a DataFrame of pandas, a Table, RecordBatch or RecordBatchReader of Arrow, or whatever
            else gives a stream of Arrow's (``__arrow_c_stream__``).
        path: The file, in a folder that is private.
        linking: Columns of keys and references.

    Returns:
        What makes a table of Arrow the same kind; streams of others become tables.

    Raises:
        FrameError: it is no table, two columns have one name, or a column holds values of several types.
    """
    import pyarrow as pa

    if (polars := _used("polars")) and isinstance(frame, polars.DataFrame | polars.LazyFrame):
        return write_polars(polars, frame, path)
    if (pandas := _used("pandas")) and isinstance(frame, pandas.DataFrame):
        _check_names([str(name) for name in frame.columns])
        table = table_of_pandas(frame, linking)
        _write_arrow([table], table.schema, path)
        return back_to_pandas(pandas, frame, table.schema)
    if isinstance(frame, pa.RecordBatch | pa.Table):
        whole = frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
        _write_arrow([whole], whole.schema, path)
        return partial(_retyped if whole is frame else _one_batch, whole.schema)
    reader = frame if isinstance(frame, pa.RecordBatchReader) else _stream_of(frame)
    schema = reader.schema
    _write_arrow((pa.Table.from_batches([batch]) for batch in reader), schema, path)
    return (lambda table: _retyped(schema, table).to_reader()) if reader is frame else partial(_retyped, schema)


def _stream_of(frame: Any) -> pa.RecordBatchReader:
    """Return an Arrow stream of an object, or raise if it is no table."""
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise FrameError.no_table(type(frame).__name__)
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError, ValueError):
        # A column alone is a stream too, of values and not of records.
        raise FrameError.no_table(type(frame).__name__) from None


def _one_batch(schema: pa.Schema, table: pa.Table) -> pa.RecordBatch:
    """Return a released table as one record batch with the original types."""
    import pyarrow as pa

    made = _retyped(schema, table)
    return made.combine_chunks().to_batches()[0] if len(made) else pa.RecordBatch.from_pylist([], made.schema)


def _retyped(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """Return a released table with the original column types, where values are of the same kind."""
    import pyarrow.types as pt

    for place, field in enumerate(table.schema):
        before = schema.field(field.name).type if field.name in schema.names else field.type
        if before == field.type or not is_alike(field.type, before):
            continue
        column = table[field.name]
        # The order of entries is that of a category; entries here come as records do, and only those of records.
        if pt.is_dictionary(before):
            column = column.cast(before.value_type).dictionary_encode()
            before = _unordered(before)
        table = table.set_column(place, field.name, column.cast(before))
    return table


def _unordered(dtype: pa.DictionaryType) -> pa.DataType:
    """Return a dictionary type without an order."""
    import pyarrow as pa

    return pa.dictionary(dtype.index_type, dtype.value_type)


def read_frame(files: Sequence[Path], back: Back) -> Any:
    """Read Parquet files, in order, as one Arrow table, and return what ``back`` makes of the table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return back(pa.concat_tables(pq.read_table(path, partitioning=None) for path in files))


def _used(package: str) -> Any:
    """Return a package if the process has imported it, else None.

    Without the import there can be no table of the package.
    """
    return sys.modules.get(package)


def _write_arrow(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    """Write Arrow tables to one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_names(schema.names)
    try:
        with pq.ParquetWriter(path, schema.remove_metadata()) as writer:
            for table in tables:
                writer.write_table(table.replace_schema_metadata(None))
    except pa.ArrowException as error:
        raise _why_unwritten(schema, type(error).__name__) from None


def _why_unwritten(schema: pa.Schema, kind: str) -> FrameError:
    """Return the error for a table that cannot be written as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for field in schema:
        try:
            pq.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
        except pa.ArrowException:
            return FrameError.no_such_type(field.name, str(field.type))
    return FrameError.unwritten(kind)


def _check_names(names: list[str]) -> None:
    """Raise if two columns have the same name."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FrameError.same_names(twice)
