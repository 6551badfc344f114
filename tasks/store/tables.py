"""Parquet tables that pass between steps, each checked against its schema before it is written.

Tables of the whole source are checked value by value. One that fails is put to Pandera, which names what is wrong with it. Those of
chunks, of which there may be thousands, are checked by what their columns' types say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import DTypeLike, NDArray

from core.columns.column_types import in_utc
from core.columns.data_parallel import LEAST_ROWS, each_in_parallel, threads_here
from core.columns.domains import Domain, QidValueCounts, rows_of_axis, value_column
from schemas.errors.base import StorageError
from tasks.store.store import Artifact, Store

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
    """
    return pyarrow.schema([("qid", pyarrow.int16()), ("count", pyarrow.int64()), *zip(values, types, strict=True)])


def chunk_histogram_types(word_count: int) -> pyarrow.Schema:
    """Return the Arrow schema of a chunk's histogram: cell columns of words, and a count."""
    return pyarrow.schema([(name, pyarrow.int64()) for name in [*(f"cell_{word}" for word in range(word_count)), "count"]])


def validated_table(table: pa.Table, schema: TableSchema | pa.Schema, step: str) -> pa.Table:
    """Return the given table if it satisfies its schema; raise ``StorageError`` if not.

    A table of a chunk is checked by the types of its columns, others value by value.
    """
    if isinstance(schema, pa.Schema):
        if not table.schema.equals(schema):
            raise StorageError.malformed(step, ["columns"])
        return table
    if not _holds(table, schema):
        raise StorageError.malformed(step, _failures(table, schema))
    return table


def _holds(table: pa.Table, schema: TableSchema) -> bool:
    if set(table.column_names) != set(schema.columns) or table.num_columns != len(schema.columns):
        return False
    if not all(_fits(table[name], column) for name, column in schema.columns.items()):
        return False
    # Where nothing stands in a column, it tells no rows apart.
    telling = [name for name in schema.unique if table[name].null_count < len(table)] or list(schema.unique)
    return not telling or len(pa.TableGroupBy(table, telling, use_threads=False).aggregate([])) == len(table)


def _fits(values: pa.ChunkedArray, column: ColumnSchema) -> bool:
    if column.type is None:
        return True
    if values.type != column.type or values.null_count:
        return False
    bounds = pc.min_max(values).as_py()
    return not len(values) or (bounds["min"] >= column.least and (column.most is None or bounds["max"] <= column.most))


def _failures(table: pa.Table, schema: TableSchema) -> list[str]:
    """Return the names of the checks that a table fails; other parts of Pandera's errors hold cells."""
    import polars as pl  # noqa: PLC0415 - with Pandera half a second, which a run that goes well does without
    from pandera.errors import SchemaError, SchemaErrors  # noqa: PLC0415

    frame = pl.DataFrame(table.cast(pa.schema([field.with_type(in_utc(field.type)) for field in table.schema])))
    try:
        schema.pandera().validate(frame, lazy=True)
    except SchemaErrors as errors:
        return sorted({str(check) for check in errors.failure_cases["check"]})
    except SchemaError as error:
        return [str(error.reason_code)]
    return ["columns"]


def write_table(path: Path, table: pa.Table, schema: TableSchema | pa.Schema, step: str, ascending: str | None = None) -> int:
    """Write a table that satisfies its schema as Parquet; return its rows; raise ``StorageError`` if not.

    Args:
        path: Where to.
        table: What.
        schema: What it must satisfy, or its columns, for a table of one chunk.
        step: Names it in a message.
        ascending: A column of ascending integers, if there is one: written as differences it takes a quarter of time and space.
    """
    table = validated_table(table, schema, step)
    with opened_table(path, table.schema, ascending) as writer:
        writer.write_table(table)
    return len(table)


def opened_table(path: Path, schema: pa.Schema, ascending: str | None = None) -> pq.ParquetWriter:
    """Open a Parquet writer for a table written in pieces, in the form of ``write_table``."""
    plain = [name for name in schema.names if name != ascending]
    encoding = {ascending: "DELTA_BINARY_PACKED"} if ascending else None
    return pq.ParquetWriter(path, schema, compression="lz4", write_statistics=False, use_dictionary=plain, column_encoding=encoding)


def write_undeclared_table(table: pa.Table, path: Path) -> int:
    """Write a table as Parquet without a schema check; return its number of rows."""
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)


def read_table(store: Store, artifact: Artifact) -> pa.Table:
    """Return the table of an artefact, its columns read in parallel; raise ``StorageError`` if damaged."""
    path = str(store.path(artifact))

    def read(columns: Sequence[str] | None) -> pa.Table:
        # A file of its own, which is no part of a dataset: to look whether it is one takes longer than to read a small table.
        with pa.OSFile(path) as opened, pq.ParquetFile(opened) as file:
            return file.read(columns, use_threads=False)

    try:
        if artifact.rows < LEAST_ROWS or threads_here() == 1:
            return read(None)
        with pa.OSFile(path) as opened:
            schema = pq.read_schema(opened)
        # By a name columns are asked for that have it, and parts of columns.
        if len({name.partition(".")[0] for name in schema.names}) < len(schema.names) or any(pt.is_nested(one) for one in schema.types):
            return read(None)
        parts = each_in_parallel(lambda name: read([name]), schema.names)
        return pa.table([part.column(0) for part in parts], schema)
    except (pa.ArrowException, OSError):
        raise StorageError.malformed(artifact.step, ["not readable"]) from None


def write_domains(path: Path, blocks: Iterable[pa.Table], schema: TableSchema | pa.Schema, step: str) -> int:
    """Write a domain table in blocks, each checked; return its rows; raise ``StorageError`` if unfit.

    Args:
        path: Where to.
        blocks: Of which one is looked at and written at a time.
        schema: What each must satisfy, as of ``validated_table``.
        step: Names it in a message.
    """
    rows, writer, last = 0, None, None
    try:
        for block in blocks:
            validated_table(block, schema, step)
            if last is not None and not _goes_on(last, block):
                raise StorageError.malformed(step, ["ascending"])
            writer = writer or opened_table(path, block.schema)
            writer.write_table(block)
            rows, last = rows + len(block), block
    finally:
        if writer:
            writer.close()
    return rows


def _goes_on(last: pa.Table, block: pa.Table) -> bool:
    """Return whether a piece of a table has values after those of the piece before it."""
    if not len(last) or not len(block):
        return True
    before, position = last["qid"][-1].as_py(), block["qid"][0].as_py()
    if before != position:
        return bool(before < position)
    end, begin = last[value_column(position)][-1], block[value_column(position)][0]
    return end.is_valid and (not begin.is_valid or bool(pc.less(end, begin).as_py()))


def load_domains(store: Store, artifact: Artifact, names: Sequence[str]) -> tuple[Domain, ...]:
    """Return the domains in a stored domain table, one per column in the order of ``names``."""
    return tuple(axis.domain(name) for axis, name in zip(load_value_counts(store, artifact, len(names)), names, strict=True))


def load_value_counts(store: Store, artifact: Artifact, axis_count: int) -> list[QidValueCounts]:
    """Return values and counts in a stored domain table, read one column at a time."""
    try:
        with pa.OSFile(str(store.path(artifact))) as opened, pq.ParquetFile(opened) as file:
            if file.num_row_groups <= 1:
                table = file.read(use_threads=False)
                return [rows_of_axis(table, position) for position in range(axis_count)]
            held = [pc.min_max(file.read_row_group(group, ["qid"])["qid"]).as_py() for group in range(file.num_row_groups)]
            return [_rows_of(file, [(one["min"], one["max"]) for one in held], position) for position in range(axis_count)]
    except (pa.ArrowException, OSError):
        raise StorageError.malformed(artifact.step, ["not readable"]) from None


def _rows_of(file: pq.ParquetFile, held: Sequence[tuple[int, int]], position: int) -> QidValueCounts:
    """Return the rows of a file that belong to one column, from the columns of its row groups."""
    groups = [number for number, (least, most) in enumerate(held) if least <= position <= most]
    wanted = ["qid", "count", value_column(position), *(["persons"] if "persons" in file.schema_arrow.names else [])]
    return rows_of_axis(file.read_row_groups(groups, wanted, use_threads=False), position)


@contextmanager
def array_file(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """Open a new file of an array in C order at its first number; what is not written is 0.

    Args:
        dtype: Of the array, without objects.
        shape: Of the array.
    """
    kind = np.dtype(dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape})
        end = file.tell() + kind.itemsize * prod(shape)
        yield file
        file.truncate(end)


def write_numbers(file: BinaryIO, numbers: NDArray[Any]) -> None:
    """Write numbers in C order at a file's position, as ``array_file`` opens it."""
    file.write(np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).data)


def write_array(path: Path, numbers: NDArray[Any]) -> int:
    """Write an array to a file of its own; return its length."""
    with array_file(path, numbers.dtype, numbers.shape) as file:
        write_numbers(file, numbers)
    return len(numbers)
