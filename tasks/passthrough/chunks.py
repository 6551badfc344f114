"""Chunk by chunk: the values of columns that are published untreated, counted by digest, and a sample of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.passthrough.samples import ValueCounter
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("values", __name__)
SCHEMA = pa.schema([("column", pa.uint16()), ("digest", pa.uint64()), ("count", pa.uint32()), ("value", pa.string())])
"""A digest with its count, and no value; or one that was sampled with its value, and no count."""
BYTES = "bytes"
"""Names what such a table says of all values of each column: how many bytes they take, where they are text."""
AT_A_TIME = 1_000_000
"""Values of which digests are held at most, about: 12 MB, and as much again while they are sorted."""


def values_key(columns: pa.Schema, names: Sequence[str], chunk: Chunk) -> Key:
    """Returns the key of the values of a chunk."""
    return STEP.key(chunk.key, [(name, str(columns.field(name).type)) for name in names])


def count_chunk_values(columns: pa.Schema, names: Sequence[str], chunk: Chunk, store: Store) -> Artifact:
    """Counts the values of the named columns in one chunk; a column stands in the table by its place among the names.

    Raises:
        SourceError: the file cannot be read, or has changed.
        StorageError: the folder cannot be written.
    """

    def write(path: Path) -> int:
        rows, sizes = 0, [0] * len(names)
        with pq.ParquetWriter(
            path, SCHEMA, compression="lz4", write_statistics=["column", "count"], use_dictionary=["column", "count"]
        ) as writer:
            for table in _tables(names, chunk, sizes):
                writer.write_table(table)
                rows += len(table)
            writer.add_key_value_metadata({BYTES: json.dumps(sizes)})
        return rows

    return store.make("values", values_key(columns, names, chunk), ".parquet", write)


def _tables(names: Sequence[str], chunk: Chunk, sizes: list[int]) -> Iterator[pa.Table]:
    """Yields tables of a few columns at a time, since each may hold a value of its own in every record; tells the bytes of their texts."""
    many = max(AT_A_TIME // max(chunk.rows, 1), 1)
    for first in range(0, len(names), many):
        counters = {first + place: ValueCounter() for place in range(len(names[first : first + many]))}
        for batch in read_chunk(chunk, names[first : first + many]):
            for counter, column in zip(counters.values(), batch.columns, strict=True):
                counter.add(column)
            if sum(counter.waiting for counter in counters.values()) > 2 * AT_A_TIME:
                yield from (_counted(number, counter) for number, counter in counters.items())
        for number, counter in counters.items():
            yield _counted(number, counter)
            yield _sampled(number, counter)
            sizes[number] = counter.bytes


def _counted(number: int, counter: ValueCounter) -> pa.Table:
    digests, counts = counter.counted()
    nothing = pa.nulls(len(digests), pa.string())
    return pa.table([np.full(len(digests), number, np.uint16), digests, counts.astype(np.uint32), nothing], schema=SCHEMA)


def _sampled(number: int, counter: ValueCounter) -> pa.Table:
    sample = counter.sample
    digests = np.array(sorted(sample), np.uint64)
    none = np.zeros(len(digests), np.uint32)
    texts = [sample[digest] for digest in digests.tolist()]
    return pa.table([np.full(len(digests), number, np.uint16), digests, none, pa.array(texts, pa.string())], schema=SCHEMA)
