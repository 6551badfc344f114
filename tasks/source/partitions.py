"""Hive partitions: columns that are named, with their value, by the folders of a file (``region=North/part.parquet``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from schemas.errors.base import SourceError, counted
from schemas.job.job import Job
from schemas.reading.typed_texts import is_spelling, sql_type
from tasks.store.database import literal, quote

NULL = "__HIVE_DEFAULT_PARTITION__"
ARROW_TYPES = {
    "text": pa.string(), "integer": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip
# No leading zeros, because 007 would be published as 7; and no more digits than int64 surely holds.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")

Partition: TypeAlias = tuple[tuple[str, str | None, str], ...]
"""Name, value as text (None is null) and type, as in ``source.types``, of each column that the folders of a file name."""


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type of a type of ``source.types``."""
    if name in ARROW_TYPES:
        return ARROW_TYPES[name]
    precision, scale = re.findall(r"\d+", name)
    return pa.decimal128(int(precision), int(scale))


def partitions(job: Job, files: Sequence[str]) -> list[Partition]:
    """Return the partition of each file, empty unless the job says ``source.hive``.

    A column is of whole numbers where all its values are, without leading zeros, else text, unless ``source.types`` says otherwise.
    """
    if not job.source.hive:
        return [() for _ in files]
    found = [named_by(file.split("/")[:-1]) for file in files]
    for file, columns in zip(files, found, strict=True):
        if differing := sorted(columns.keys() ^ found[0].keys()):
            raise SourceError.schemas_differ(file, files[0], differing)
    types = {name: job.source.types.get(name) or _inferred([columns[name] for columns in found]) for name in found[0]}
    for name, dtype in types.items():
        wrong = sum(_scalar(columns[name], dtype) is None for columns in found)
        if wrong:
            raise SourceError.bad_rows(files[0], [f"{counted(wrong, 'folder')} whose '{name}' is not of the type that source.types gives"])
    return [tuple((name, value, types[name]) for name, value in columns.items()) for columns in found]


def named_by(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that folders name, with their values as text; None is null."""
    columns: dict[str, str | None] = {}
    for folder in folders:
        name, mark, value = folder.partition("=")
        if name and mark:
            columns[unquote(name)] = None if value == NULL else unquote(value)
    return columns


def _inferred(values: Sequence[str | None]) -> str:
    there = [value for value in values if value is not None]
    return "integer" if there and all(_WHOLE.fullmatch(value) for value in there) else "text"


def _scalar(value: str | None, dtype: str) -> pa.Scalar | None:
    """Return a value in its type, or None where it is not of that type."""
    if value is not None and not is_spelling(value, dtype):
        return None
    try:
        return pa.array([value], pa.string()).cast(arrow_type(dtype))[0]
    except pa.ArrowException:
        return None


def with_partition(schema: pa.Schema, partition: Partition) -> pa.Schema:
    """Return the columns of a file with those of its folders after them."""
    for name, _, dtype in partition:
        schema = schema.append(pa.field(name, arrow_type(dtype)))
    return schema


def partition_column(partition: Partition, name: str, rows: int) -> pa.Array | None:
    """Return a column that folders name, of one value; text as a dictionary, like the text of files. None if they do not name it."""
    for column, value, dtype in partition:
        if column == name:
            scalar = _scalar(value, dtype)
            assert scalar is not None
            repeated = pa.repeat(scalar, rows)
            return repeated.dictionary_encode() if pt.is_string(scalar.type) else repeated
    return None


def relation(
    files: Sequence[tuple[str, Partition]],
    *,
    alike: bool = True,
    numbered: bool = False,
) -> str:
    """Return what DuckDB reads all files as, with the columns of their folders.

    Args:
        files: Paths of Parquet files, each with its partition.
        alike: Whether they have the same columns; others are put together by the names of these.
        numbered: Whether the number of each row in its file is read too, as ``file_row_number``.
    """
    together: dict[Partition, list[str]] = {}
    for path, partition in files:
        together.setdefault(partition, []).append(path)
    parts = []
    for partition, paths in together.items():
        listed = ", ".join(map(literal, paths))
        # DuckDB would take the folders for columns of types of its own choice, beside ours.
        asked = ["hive_partitioning = false", *["union_by_name = true"] * (not alike), *["file_row_number = true"] * numbered]
        read = f"read_parquet([{listed}], {', '.join(asked)})"
        if len(together) == 1 and not partition:
            return read
        extra = "".join(
            f", {'NULL' if value is None else literal(value)}::{sql_type(dtype)} AS {quote(name)}" for name, value, dtype in partition
        )
        parts.append(f"SELECT *{extra} FROM {read}")
    return f"({' UNION ALL BY NAME '.join(parts)})"
