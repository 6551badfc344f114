"""Timestamps as Spark, Hive and Impala write them: INT96, nanoseconds of a day and the day, of any year.

They are read as microseconds, which hold every year that the calendar has. As nanoseconds, which is how Arrow reads them unless it is told,
9999-12-31 would come round as 1816. Hive and Impala may write digits below the microsecond: those are refused, and not cut.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors.values import ValuesError

UNIT = "us"
"""In which INT96 is read, wherever that is done."""
_ROWS = 131_072


def check_int96(opened: Any, metadata: pq.FileMetaData, name: str) -> None:
    """Refuse timestamps in INT96 with digits below the microsecond.

    Args:
        opened: The Parquet file, open for reading.
        metadata: Its footer.
        name: What the user calls it.

    Raises:
        ValuesError: there are such.
    """
    places = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    columns = [column.path for column in places if column.physical_type == "INT96" and "." not in column.path]
    if not columns:
        return
    fine, kept = (pq.ParquetFile(opened, metadata=metadata, coerce_int96_timestamp_unit=unit, pre_buffer=False) for unit in ("ns", UNIT))
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
