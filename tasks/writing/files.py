"""A data file of a release as it is written: plain types, no statistics, no metadata of the source."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import is_text, plain_type, restored, working_type
from schemas.errors.values import ValuesError
from tasks.source.chunks import ChunkedSource

PAGE, LONG = 1 << 23, 256
"""Bytes of texts, and on average of one of them, from which they are written in pages as they come."""
MOST_UNPACKED, REPEATED = 256_000_000, 4
"""Bytes of long texts that a file unpacks to where equal records repeat them, and how often they do on average before that counts."""
SAMPLED_VALUES = 2048
"""Values of a column that are looked at, to tell whether a dictionary would be shorter than they are."""


def published_schema(labels: pa.Table, source: ChunkedSource) -> pa.Schema:
    """Returns the columns of the release with their plain types."""
    fields = [field.with_type(_published_type(field, source.columns)) for field in labels.schema]
    fields += [pa.field(name, dtype) for name, dtype in zip(source.payload, source.published, strict=True)]
    return pa.schema([field.remove_metadata().with_nullable(True) for field in fields])


def _published_type(label: pa.Field, columns: pa.Schema) -> pa.DataType:
    """Returns the type of a published QID: the source's where its values are of that kind still, else that of its labels."""
    if label.name not in columns.names or working_type(columns.field(label.name).type) != label.type:
        return label.type
    return plain_type(columns.field(label.name).type)


def write_release(path: Path, columns: dict[str, pa.Array], schema: pa.Schema) -> int:
    """Writes a data file of a release, without statistics or source metadata; returns how many records it holds.

    Args:
        path: The file.
        columns: In their working types; text may be a dictionary of what these records use, and of nothing else. One of long texts is
            written plain: it would be a single page, which every reader would have to take into memory as a whole. So are values that
            hardly repeat, which are shorter without one.
        schema: What they are published as.
    """
    for name, column in columns.items():
        _check_unpacked(name, column)
    formed = {name: _formed(column, schema.field(name).type) for name, column in columns.items()}
    coded = [name for name, (_, repeated) in formed.items() if repeated]
    table = pa.table({name: restored(column, schema.field(name).type) for name, (column, _) in formed.items()})
    # Dictionaries are written as they are, which is quick, and declared as plain text, so that readers get text.
    declared = base64.b64encode(schema.serialize().to_pybytes())
    with pq.ParquetWriter(
        path, table.schema, compression="zstd", use_dictionary=coded, write_statistics=False, store_schema=False
    ) as writer:
        writer.add_key_value_metadata({"ARROW:schema": declared.decode()})
        writer.write_table(table)
    return len(table)


def _check_unpacked(name: str, column: pa.Array) -> None:
    """Refuses what equal records make so large, which stand in one file: a few bytes that every reader unpacks to gigabytes."""
    if not isinstance(column, pa.DictionaryArray) or not (is_text(column.type.value_type) or pt.is_binary(column.type.value_type)):
        return
    if column.dictionary.nbytes * len(column) <= MOST_UNPACKED:
        return
    # Entries are as long as they are on average, or looked at.
    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) * len(column) > MOST_UNPACKED:
        size = pc.sum(lengths.take(column.indices)).as_py() or 0
        if size > max(MOST_UNPACKED, REPEATED * column.dictionary.nbytes) and size > LONG * len(column):
            raise ValuesError.repeated(name, size, MOST_UNPACKED)


def _formed(column: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, bool]:
    """Returns a column as a dictionary or plain, as it is written, and whether the file has a dictionary of it."""
    if isinstance(column, pa.DictionaryArray) and not is_text(dtype):
        # Nothing but text is read as a dictionary, so that of others nobody could tell what order its entries are in.
        column = column.dictionary_decode()
    repeated = pays_to_dictionary_encode(column)
    if isinstance(column, pa.DictionaryArray):
        long = column.dictionary.nbytes > max(PAGE, LONG * len(column.dictionary))
        column = column.dictionary_decode() if long or not repeated else column
    return column, repeated


def pays_to_dictionary_encode(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tells whether the values of a column of a file are written as places in a dictionary of them: whether these are shorter.

    Args:
        column: Shape (n,), in its working type, in the order of the file; plain, or of text a dictionary of what is used and nothing else.
    """
    if is_text(plain_type(column.type)):
        return not mostly_distinct(column)
    if pt.is_null(column.type):
        return True
    values = len(column) - column.null_count
    # Evenly spaced ones are as good as any.
    if values > 4 * SAMPLED_VALUES:
        column = column.take(pa.array(np.arange(SAMPLED_VALUES) * len(column) // SAMPLED_VALUES))
    some, distinct = len(column) - column.null_count, pc.count_distinct(column).as_py()
    # A quarter of them distinct is the bound; of so many in a sample nearly all are.
    return bool(4 * distinct <= values if some == values else distinct < some - 2 * some * some / values)


def mostly_distinct(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Tells whether there are more than half as many different texts as records; of a dictionary each entry is another, and is used."""
    coded = isinstance(texts, pa.DictionaryArray)
    distinct = len(texts.dictionary) - texts.dictionary.null_count if coded else pc.count_distinct(texts).as_py()
    return bool(2 * distinct > len(texts))
