"""Schemas of the tables that cross from one step to the next: of the whole source's with what their values may be, of chunks' by types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow

if TYPE_CHECKING:
    import pandera.polars as pandera


@dataclass(frozen=True)
class ColumnSchema:
    """What a column holds: whole numbers within bounds and no null, or without a type anything.

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
    """The columns of a table, all of them, and those by which no two of its rows are alike."""

    columns: Mapping[str, ColumnSchema]
    unique: Sequence[str] = ()

    def pandera(self) -> pandera.DataFrameSchema:
        """Return the same for Pandera, whose import costs more than many a run."""
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
    import pandera.polars as pandera  # noqa: PLC0415

    return [] if column.most is None else [pandera.Check.le(column.most)]


def domain_schema(values: Sequence[str], *, persons: bool = False) -> TableSchema:
    """Return the schema of a domain table: QID position, count, and one column of values per QID, each value listed once.

    Args:
        values: Names of the columns of values.
        persons: Whether persons were counted at the values.
    """
    numbers = {
        "qid": ColumnSchema(pyarrow.int16(), most=len(values) - 1),
        "count": ColumnSchema(pyarrow.int64(), least=1),
        **({"persons": ColumnSchema(pyarrow.int64())} if persons else {}),
    }
    return TableSchema(numbers | {name: ColumnSchema() for name in values}, unique=("qid", *values))


def histogram_schema(words: int) -> TableSchema:
    """Return the schema of a histogram: a cell of one or more words, and how many records it holds."""
    columns = {f"cell_{word}": ColumnSchema(pyarrow.int64()) for word in range(words)}
    return TableSchema(columns | {"count": ColumnSchema(pyarrow.int64(), least=1)})


def chunk_domain_types(values: Sequence[str], types: Sequence[pyarrow.DataType]) -> pyarrow.Schema:
    """Return the columns of a chunk's domain table.

    Args:
        values: Names of the columns of values.
        types: Their types.
    """
    return pyarrow.schema([("qid", pyarrow.int16()), ("count", pyarrow.int64()), *zip(values, types, strict=True)])


def chunk_histogram_types(words: int) -> pyarrow.Schema:
    """Return the columns of a chunk's histogram: a cell of one or more words, and how many records it holds."""
    return pyarrow.schema([(name, pyarrow.int64()) for name in [*(f"cell_{word}" for word in range(words)), "count"]])
