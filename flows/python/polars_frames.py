"""Conversion of Polars frames to Parquet files, and back to their original column types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors.tables import FrameError

if TYPE_CHECKING:
    import pyarrow as pa

UNREAD = ("Int128", "UInt128", "Float16", "Object", "Unknown")
"""Types that Parquet has no type for, or none that is read."""


def write_polars(polars: Any, frame: Any, path: Path) -> Callable[[pa.Table], Any]:
    """Write a Polars frame, lazy or not, as Parquet; return a function from Arrow tables to its kind.

    Raises:
        FrameError: its plan fails, or a column is of a type that is not read.
    """
    lazy = isinstance(frame, polars.LazyFrame)
    try:
        schema = frame.collect_schema()
    except Exception as error:
        raise FrameError.uncomputed(type(error).__name__) from None
    for name, dtype in schema.items():
        if type(dtype).__name__ in UNREAD or str(dtype) in UNREAD:
            raise FrameError.no_such_type(name, str(dtype))
    try:
        (frame.sink_parquet if lazy else frame.write_parquet)(path)
    except Exception as error:
        raise (FrameError.uncomputed if lazy else FrameError.unwritten)(type(error).__name__) from None

    def back(table: pa.Table) -> Any:
        made = _retyped(polars, polars.from_arrow(table), schema)
        return made.lazy() if lazy else made

    return back


def _retyped(polars: Any, frame: Any, schema: Mapping[str, Any]) -> Any:
    """Return a frame with its original column types, categories included."""
    columns = []
    for name, dtype in frame.schema.items():
        before = schema.get(name)
        if before is None or before == dtype:
            continue
        if dtype == polars.String and isinstance(before, polars.Categorical):
            columns.append(polars.col(name).cast(polars.Categorical))
        elif dtype == polars.String and isinstance(before, polars.Enum):
            there = set(frame[name].unique())
            # A category without a record could be that of a suppressed one; labels are none.
            if there - {None} <= set(before.categories):
                columns.append(polars.col(name).cast(polars.Enum([one for one in before.categories if one in there])))
        elif dtype.is_temporal() and type(dtype) is type(before):
            columns.append(polars.col(name).cast(before))
    return frame.with_columns(columns)
