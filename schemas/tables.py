"""Pandera schemas of the tables that cross from one step to the next."""

from __future__ import annotations

from collections.abc import Sequence

import pandera.polars as pa
import polars as pl


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


def pairs_schema() -> pa.DataFrameSchema:
    """Returns the schema of the pairs of a chunk: a person's digest, a cell by its place in the chunk's histogram, and their records."""
    columns = {"person": pa.Column(pl.UInt64), "cell": pa.Column(pl.UInt32), "count": pa.Column(pl.UInt32, pa.Check.ge(1))}
    return pa.DataFrameSchema(columns, strict=True)
