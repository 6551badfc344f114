"""Schemas of the tables that cross from one step to the next: of the whole source's by Pandera, of chunks' by types."""

from __future__ import annotations

from collections.abc import Sequence

import pandera.polars as pa
import polars as pl
import pyarrow


def domain_schema(values: Sequence[str], *, persons: bool = False) -> pa.DataFrameSchema:
    """Returns the schema of a domain table: QID position, count, and one column of values per QID, each value listed once.

    Args:
        values: Names of the columns of values.
        persons: Whether persons were counted at the values.
    """
    columns = {
        "qid": pa.Column(pl.Int16, pa.Check.in_range(0, len(values) - 1)),
        "count": pa.Column(pl.Int64, pa.Check.ge(1)),
        **({"persons": pa.Column(pl.Int64, pa.Check.ge(0))} if persons else {}),
    } | {name: pa.Column(nullable=True) for name in values}
    return pa.DataFrameSchema(columns, strict=True, unique=["qid", *values])


def histogram_schema(words: int) -> pa.DataFrameSchema:
    """Returns the schema of a histogram: a cell of one or more words, and how many records it holds."""
    columns = {f"cell_{word}": pa.Column(pl.Int64, pa.Check.ge(0)) for word in range(words)}
    return pa.DataFrameSchema(columns | {"count": pa.Column(pl.Int64, pa.Check.ge(1))}, strict=True)


def chunk_domain_types(values: Sequence[str], types: Sequence[pyarrow.DataType]) -> pyarrow.Schema:
    """Returns the columns of a chunk's domain table.

    Args:
        values: Names of the columns of values.
        types: Their types.
    """
    return pyarrow.schema([("qid", pyarrow.int16()), ("count", pyarrow.int64()), *zip(values, types, strict=True)])


def chunk_histogram_types(words: int) -> pyarrow.Schema:
    """Returns the columns of a chunk's histogram: a cell of one or more words, and how many records it holds."""
    return pyarrow.schema([(name, pyarrow.int64()) for name in [*(f"cell_{word}" for word in range(words)), "count"]])
