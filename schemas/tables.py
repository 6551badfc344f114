"""Schemas of the tables that one step passes to the next.

Tables of the complete source are checked with bounds on their values, tables of chunks by types alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow

if TYPE_CHECKING:
    import pandera.polars as pandera


@dataclass(frozen=True)
class ColumnSchema:
    """Type and bounds of a table's column.

    With a type: whole numbers within bounds, and no null. Without a type: any values.

    Attributes:
        type: An Arrow type; None for values of whatever type, and nulls.
        least: The least that a number may be.
        most: The most; None for no bound.
    """

    type: pyarrow.DataType | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class TableSchema:
    """All columns of a table, and the columns that identify its rows uniquely."""

    columns: Mapping[str, ColumnSchema]
    unique: Sequence[str] = ()

    def pandera(self) -> pandera.DataFrameSchema:
        """Build the Pandera schema that checks names, types and bounds of the columns, and unique rows.

        Pandera is imported here because its import takes longer than many runs.
        """
        import pandera.polars as pandera  # noqa: PLC0415
        import polars as pl  # noqa: PLC0415

        types = {pyarrow.int16(): pl.Int16, pyarrow.int64(): pl.Int64}
        columns = {
            name: pandera.Column(nullable=True)
            if column.type is None
            else pandera.Column(types[column.type], [pandera.Check.ge(column.least), *_most(column)])
            for name, column in self.columns.items()
        }
        return pandera.DataFrameSchema(columns, strict=True, unique=list(self.unique) or None)


def _most(column: ColumnSchema) -> list[pandera.Check]:
    """Return the Pandera check for the upper bound of a column, as a list of 0 or 1 checks."""
    import pandera.polars as pandera  # noqa: PLC0415

    return [] if column.most is None else [pandera.Check.le(column.most)]


def domain_schema(values: Sequence[str], *, with_persons: bool = False) -> TableSchema:
    """Return the schema of a domain table: QID position, count, and one value column per QID.

    Each value of a QID is listed once.

    Args:
        values: Names of the columns of values.
        with_persons: Whether persons were counted at the values.
    """
    numbers = {
        "qid": ColumnSchema(pyarrow.int16(), most=len(values) - 1),
        "count": ColumnSchema(pyarrow.int64(), least=1),
        **({"persons": ColumnSchema(pyarrow.int64())} if with_persons else {}),
    }
    return TableSchema(numbers | {name: ColumnSchema() for name in values}, unique=("qid", *values))


def histogram_schema(word_count: int) -> TableSchema:
    """Return the schema of a histogram: cell columns of 64-bit words, and a count of records."""
    columns = {f"cell_{word}": ColumnSchema(pyarrow.int64()) for word in range(word_count)}
    return TableSchema(columns | {"count": ColumnSchema(pyarrow.int64(), least=1)})


def chunk_domain_types(values: Sequence[str], types: Sequence[pyarrow.DataType]) -> pyarrow.Schema:
    """Return the Arrow schema of a chunk's domain table.

    Args:
        values: Names of the columns of values.
        types: Their types.
    """
    return pyarrow.schema([("qid", pyarrow.int16()), ("count", pyarrow.int64()), *zip(values, types, strict=True)])


def chunk_histogram_types(word_count: int) -> pyarrow.Schema:
    """Return the Arrow schema of a chunk's histogram: cell columns of words, and a count."""
    return pyarrow.schema([(name, pyarrow.int64()) for name in [*(f"cell_{word}" for word in range(word_count)), "count"]])
