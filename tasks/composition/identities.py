"""Chunk by chunk: a sample of the records of a source, by which two sources are known to have some in common; never published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.composition.identities import Sample
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups
from tasks.source.chunks import Chunk, Source
from tasks.source.reading import read_chunk
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("identities", __name__)
NAMES = ["leading", "whole", "file"]


def identity_columns(source: Source) -> list[str]:
    """Returns the columns by which a record is known, in an order that does not depend on the job: all that have plain values."""
    return sorted(field.name for field in source.columns if not (pt.is_nested(field.type) or pt.is_null(field.type)))


def sample_of(run: Run, source: Source) -> Sample:
    """Returns a sample of the records of the source, each with the number of its file.

    Raises:
        SkaldError: whatever a step raises.
    """
    names = identity_columns(source)

    def key(chunk: Chunk) -> Key:
        return STEP.key(chunk.key, names)

    parts = map_groups(run, "identities", _sample_chunks, source.chunks, key, names, run.store)
    numbers = {id(file): number for number, file in enumerate(source.files)}
    found = []
    for chunk, part in zip(source.chunks, parts, strict=True):
        sample = read_sample(run.store.path(part))
        found.append(Sample(sample.leading, sample.whole, np.full(len(sample.whole), numbers[id(chunk.file)], np.int32)))
    return Sample.of_all(found)


def _sample_chunks(names: Sequence[str], store: Store, chunks: Sequence[Chunk]) -> list[Artifact]:
    return [_sample_chunk(names, chunk, store) for chunk in chunks]


def _sample_chunk(names: Sequence[str], chunk: Chunk, store: Store) -> Artifact:
    def write(path: Path) -> int:
        sample = Sample.of_all([])
        # As it is written: what is not published may hold any bytes.
        for batch in read_chunk(chunk, names, as_written=True):
            sample = Sample.of_all([sample, Sample.of(batch.columns, batch.num_rows)])
        return write_sample(path, sample)

    return store.make("identities", STEP.key(chunk.key, list(names)), ".parquet", write)


def write_sample(path: Path, sample: Sample) -> int:
    """Writes a sample and returns the number of its records."""
    table = pa.table([sample.leading, sample.whole, sample.file], names=NAMES)
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)


def read_sample(path: Path) -> Sample:
    """Reads a sample."""
    table = pq.read_table(path)
    return Sample(*(table[name].to_numpy() for name in NAMES))
