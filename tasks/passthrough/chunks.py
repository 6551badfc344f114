"""Chunk by chunk: the values of columns that are published untreated, counted by digest, and a sample of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.passthrough.samples import ValueCounter
from tasks.source.chunks import Chunk
from tasks.source.reading import long_texts, opened, read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Store

SCHEMA = pa.schema(
    [
        pa.field("column", pa.uint16(), nullable=False),
        pa.field("digest", pa.uint64(), nullable=False),
        pa.field("count", pa.uint32(), nullable=False),
        pa.field("value", pa.string()),
    ]
)
"""A digest with its count, and no value; or one that was sampled with its value, and no count."""
COMPRESSION = {"column": "lz4", "digest": "none", "count": "lz4", "value": "lz4"}
"""Digests are as good as random."""
BYTES = "bytes"
"""Names what such a table says of all values of each column: how many bytes they take, where they are text."""
AT_A_TIME = 1_000_000
"""Values of which digests are held at most, about: 12 MB, and as much again while they are sorted."""
CODED_TEXT = 6
"""Bytes that a text of a file takes, on average, from which most are taken to occur once there: of others a dictionary takes fewer."""


@dataclass(frozen=True)
class ValueReading:
    """What values are counted by: the columns of the source, and the names of those that are counted."""

    columns: pa.Schema
    names: tuple[str, ...]
    store: Store


def _count(given: ValueReading, chunk: Chunk, path: Path) -> int:
    """Counts the values of the named columns in one chunk; a column stands in the table by its place among the names."""
    rows, sizes = 0, [0] * len(given.names)
    with pq.ParquetWriter(
        path, SCHEMA, compression=COMPRESSION, write_statistics=["column", "count"], use_dictionary=["column", "count"]
    ) as writer:
        for table in _tables(given.names, chunk, sizes):
            writer.write_table(table)
            rows += len(table)
        writer.add_key_value_metadata({BYTES: json.dumps(sizes)})
    return rows


VALUES = FileStep(
    "values",
    make=_count,
    reads=lambda _given, chunk: chunk.key,
    settings=lambda given: [(name, str(given.columns.field(name).type)) for name in given.names],
)
"""The values of columns in a chunk, by digest, and a sample of them."""


def _tables(names: Sequence[str], chunk: Chunk, sizes: list[int]) -> Iterator[pa.Table]:
    """Yields tables of a few columns at a time, since each may hold a value of its own in every record; tells the bytes of their texts."""
    many, plain = max(AT_A_TIME // max(chunk.rows, 1), 1), _own_texts(chunk)
    for first in range(0, len(names), many):
        counters = {first + place: ValueCounter() for place in range(len(names[first : first + many]))}
        for batch in read_chunk(chunk, names[first : first + many], plain=plain):
            for counter, column in zip(counters.values(), batch.columns, strict=True):
                counter.add(column)
            if sum(counter.waiting for counter in counters.values()) > 2 * AT_A_TIME:
                yield from (_counted(number, counter) for number, counter in counters.items())
        for number, counter in counters.items():
            yield _counted(number, counter)
            yield _sampled(number, counter)
            sizes[number] = counter.bytes


def _own_texts(chunk: Chunk) -> list[str]:
    """Returns the columns of text in which nearly every value is another, as far as the first row group of the first file tells.

    Read as dictionaries they cost more than they save; what is found of them is the same.
    """
    file = chunk.pieces[0].file
    if file.path is None or not file.texts:
        return []
    with opened(file) as read:
        return long_texts(read, file.name, file.texts, CODED_TEXT)


def _counted(number: int, counter: ValueCounter) -> pa.Table:
    digests, counts = counter.counted()
    nothing = pa.nulls(len(digests), pa.string())
    return pa.table([np.full(len(digests), number, np.uint16), digests, counts.astype(np.uint32), nothing], schema=SCHEMA)


def _sampled(number: int, counter: ValueCounter) -> pa.Table:
    digests, texts = counter.sample
    none = np.zeros(len(digests), np.uint32)
    return pa.table([np.full(len(digests), number, np.uint16), digests, none, texts], schema=SCHEMA)
