"""Tables of Polars, pandas and Arrow as files, and back as what they were. None of these is imported unless it is used already."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors.tables import FrameError

if TYPE_CHECKING:
    import pyarrow as pa

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later

Back = Callable[[Any], Any]


def write_frame(frame: Any, path: Path) -> Back:
    """Writes a table as Parquet.

    Args:
        frame: A DataFrame or LazyFrame of Polars, a DataFrame of pandas, a Table, RecordBatch or RecordBatchReader of Arrow, or whatever
            else gives a stream of Arrow's (``__arrow_c_stream__``).
        path: The file, in a folder that is private.

    Returns:
        What makes a table of Arrow the same kind; streams of others become tables.

    Raises:
        FrameError: it is no table, two columns have one name, or a column holds values of several types.
    """
    if (polars := _used("polars")) and isinstance(frame, polars.DataFrame | polars.LazyFrame):
        return _write_polars(polars, frame, path)
    if (pandas := _used("pandas")) and isinstance(frame, pandas.DataFrame):
        table = _of_pandas(frame)
        _write_arrow([table], table.schema, path)
        return lambda table: table.to_pandas()
    import pyarrow as pa

    if isinstance(frame, pa.RecordBatch):
        _write_arrow([pa.Table.from_batches([frame])], frame.schema, path)
        return lambda table: table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)
    if isinstance(frame, pa.Table):
        _write_arrow([frame], frame.schema, path)
        return lambda table: table
    if not hasattr(frame, "__arrow_c_stream__"):
        raise FrameError.no_table(type(frame).__name__)
    reader = frame if isinstance(frame, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(frame)
    _write_arrow((pa.Table.from_batches([batch]) for batch in reader), reader.schema, path)
    return (lambda table: table.to_reader()) if reader is frame else (lambda table: table)


def read_frame(files: Sequence[Path], back: Back) -> Any:
    """Returns the records of Parquet files, in order, as the kind of table that ``write_frame`` told."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return back(pa.concat_tables(pq.read_table(path, partitioning=None) for path in files))


def _used(package: str) -> Any:
    """Returns a package that the process has imported: nobody has a table of one that it has not."""
    return sys.modules.get(package)


def _write_polars(polars: Any, frame: Any, path: Path) -> Back:
    lazy = isinstance(frame, polars.LazyFrame)
    try:
        (frame.sink_parquet if lazy else frame.write_parquet)(path)
    except Exception as error:
        raise FrameError.unwritten(type(error).__name__) from None
    back: Back = polars.from_arrow
    return (lambda table: back(table).lazy()) if lazy else back


def _of_pandas(frame: Any) -> pa.Table:
    """Returns a frame of pandas without its index, which names records."""
    import pyarrow as pa

    _check_names([str(name) for name in frame.columns])
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    for position, name in enumerate(frame.columns):
        try:
            pa.Array.from_pandas(frame.iloc[:, position])
        except (pa.ArrowException, TypeError, ValueError):
            # Arrow's own text shows the value.
            raise FrameError.several_types(str(name), _first_other(frame.iloc[:, position])) from None
    raise FrameError.unwritten("pandas")


def _first_other(column: Any) -> int:
    """Returns the place of the first value that is of another type than the first of all."""
    kinds = [type(value) for value in column]
    there = [place for place, null in enumerate(column.isna()) if not null]
    return next((place for place in there if kinds[place] is not kinds[there[0]]), 0)


def _write_arrow(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_names(schema.names)
    try:
        with pq.ParquetWriter(path, schema.remove_metadata()) as writer:
            for table in tables:
                writer.write_table(table.replace_schema_metadata(None))
    except pa.ArrowException as error:
        raise FrameError.unwritten(type(error).__name__) from None


def _check_names(names: list[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FrameError.same_names(twice)
