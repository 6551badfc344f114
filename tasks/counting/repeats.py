"""How often the identifiers of a source repeat, where nobody is named as a person: what a run warns of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import working_type
from core.persons.digests import digests_of
from core.persons.repeats import NOTHING, Repeats, repeats_together
from schemas.job.columns import names
from schemas.job.job import Job
from schemas.release.repeats import RepeatedColumn
from tasks.source.chunks import Chunk, Source
from tasks.source.reading import read_chunk
from tasks.source.sources import footer
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("repeats", __name__)


def counted_columns(job: Job, source: Source) -> list[str]:
    """Returns the identifiers whose values can be counted; none where persons are named, or the job says that every record is one."""
    if job.columns.person or job.columns.each_a_person:
        return []
    types = {field.name: working_type(field.type) for field in source.columns}
    return [name for name in names(job.columns.identifiers) if name in types and _has_digests(types[name])]


def _has_digests(dtype: pa.DataType) -> bool:
    if pt.is_null(dtype) or pt.is_nested(dtype) or pt.is_float16(dtype) or pt.is_decimal256(dtype):
        return False
    return not (pt.is_duration(dtype) or pt.is_interval(dtype) or pt.is_union(dtype))


def repeats_key(columns: Sequence[str], chunk: Chunk) -> Key:
    """Returns the key of what repeats in a chunk."""
    return STEP.key(chunk.key, columns)


def count_repeats(columns: Sequence[str], chunk: Chunk, store: Store) -> Artifact:
    """Counts how often the values of columns repeat in one chunk, on a sample of the values where they are many.

    Raises:
        SourceError: the file cannot be read, or has changed.
    """

    def write(path: Path) -> int:
        found = _counted(columns, chunk)
        with path.open("wb") as file:
            arrays = {f"{part}_{number}": array for number, one in enumerate(found) for part, array in _arrays(one)}
            np.savez(file, **arrays)
        return sum(len(one.values) for one in found)

    return store.make("repeats", repeats_key(columns, chunk), ".npz", write)


def _counted(columns: Sequence[str], chunk: Chunk) -> list[Repeats]:
    found = dict.fromkeys(columns, NOTHING)
    there, plain = list(columns), chunk
    if chunk.file.drift is not None:
        # In the types of the file: to widen what is not published could fail, and what a file lacks has no values.
        plain = chunk.model_copy(update={"file": chunk.file.model_copy(update={"drift": None})})
        held = {*footer(chunk.file.path, chunk.file.name)[0].names, *(name for name, *_ in chunk.file.partition)}
        there = [name for name in columns if name in held]
    for batch in read_chunk(plain, there, as_written=True) if there else ():
        for name, column in zip(there, batch.columns, strict=True):
            found[name] = found[name].and_also(digests_of([column], batch.num_rows))
    return list(found.values())


def _arrays(one: Repeats) -> Iterator[tuple[str, NDArray[Any]]]:
    yield from (("values", one.values), ("counts", one.counts), ("totals", np.array([one.bits, one.records, one.seen])))


def repeated_columns(columns: Sequence[str], parts: Iterable[Artifact], store: Store) -> dict[str, RepeatedColumn]:
    """Returns the columns whose values repeat, with how often.

    Args:
        columns: In the order in which they were counted.
        parts: Of all chunks.
        store: Has them.
    """
    found = [NOTHING] * len(columns)
    for part in parts:
        with np.load(store.path(part)) as arrays:
            mine = [_read(arrays, number) for number in range(len(columns))]
        found = [repeats_together(pair) for pair in zip(found, mine, strict=True)]
    told = {name: one for name, one in zip(columns, found, strict=True) if one.most > 1}
    return {name: RepeatedColumn(mean=one.mean, most=one.most, share=one.share) for name, one in told.items()}


def _read(arrays: Mapping[str, NDArray[Any]], number: int) -> Repeats:
    bits, records, seen = arrays[f"totals_{number}"].tolist()
    return Repeats(bits, arrays[f"values_{number}"], arrays[f"counts_{number}"], records, seen)
