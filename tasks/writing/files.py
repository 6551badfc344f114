"""A data file of a release as it is written: plain types, no statistics, no metadata of the source."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import plain_type, restored, working_type
from tasks.source.chunks import Source

PAGE, LONG = 1 << 23, 256
"""Bytes of texts, and on average of one of them, from which they are written in pages as they come."""


def published_schema(labels: pa.Table, source: Source) -> pa.Schema:
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
            written plain: it would be a single page, which every reader would have to take into memory as a whole.
        schema: What they are published as.
    """
    table = pa.table({name: _short(restored(column, schema.field(name).type)) for name, column in columns.items()})
    # Dictionaries are written as they are, which is quick, and declared as plain text, so that readers get text.
    declared = base64.b64encode(schema.serialize().to_pybytes())
    with pq.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False, store_schema=False) as writer:
        writer.add_key_value_metadata({"ARROW:schema": declared.decode()})
        writer.write_table(table)
    return len(table)


def _short(column: pa.Array) -> pa.Array:
    coded = isinstance(column, pa.DictionaryArray) and column.dictionary.nbytes > max(PAGE, LONG * len(column.dictionary))
    return column.dictionary_decode() if coded else column
