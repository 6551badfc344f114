"""Duplicates per identifier where the job has no person column, for warnings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import working_type
from core.units.digests import digests_of
from core.units.repeats import (
    NOTHING,
    ValueCounts,
    merge_value_counts,
)
from schemas.job.columns import names
from schemas.job.job import Job
from schemas.release.figures import RepeatedColumn
from tasks.counting.person_spellings import ColumnsReading, report_spellings
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, merge_on_cluster, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import footer_of, open_source_file, read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact


def countable_identifiers(job: Job, source: ChunkedSource) -> list[str]:
    """Return identifier columns whose repeats can be counted; empty if the job says who a person is."""
    if job.columns.person or job.columns.each_a_person:
        return []
    types = {field.name: working_type(field.type) for field in source.columns}
    return [name for name in names(job.columns.identifiers) if name in types and _has_digests(types[name])]


def _has_digests(dtype: pa.DataType) -> bool:
    if pt.is_null(dtype) or pt.is_nested(dtype) or pt.is_float16(dtype) or pt.is_decimal256(dtype):
        return False
    return not (pt.is_duration(dtype) or pt.is_interval(dtype) or pt.is_union(dtype))


def _count(given: ColumnsReading, chunk: Chunk, path: Path) -> int:
    found = dict.fromkeys(given.columns, NOTHING)
    for plain, there in _as_written(given.columns, chunk):
        for batch in read_chunk(plain, there, as_written=True) if there else ():
            for name, column in zip(there, batch.columns, strict=True):
                found[name] = found[name].with_records(digests_of([column], batch.num_rows), measured=_has_fractions(column))
    return _write(path, list(found.values()))


REPEATED_VALUES = FileStep("repeats", make=_count, reads=lambda _given, chunk: chunk.key, settings=lambda given: given.columns)
"""How often the values of columns repeat in a chunk, on a sample of the values where they are many."""


def _has_fractions(column: pa.Array) -> bool:
    """Return whether a numeric column has values that are not whole numbers.

    A whole number that was read as a float because of missing values is none.
    """
    if not (pt.is_floating(column.type) or pt.is_decimal(column.type)):
        return False
    # Neither NaN nor infinity is a fraction. The doubles of whole decimals may have one, as Arrow makes them.
    numbers = column if pt.is_decimal(column.type) else column.cast(pa.float64())
    return bool(pc.any(pc.and_(pc.is_finite(numbers), pc.not_equal(numbers, pc.floor(numbers)))).as_py())


def _as_written(columns: Sequence[str], chunk: Chunk) -> Iterator[tuple[Chunk, list[str]]]:
    """Yield the chunk with its columns, or its files one by one where their types differ from the source.

    Each file comes in its own types, with the columns that it holds.
    """
    if all(piece.file.drift is None for piece in chunk.pieces):
        yield chunk, list(columns)
        return
    for piece in chunk.pieces:
        file = piece.file
        with open_source_file(file) as read:
            held = {*footer_of(read, file.name).columns.names, *(name for name, *_ in file.partition)}
        # To widen what is not published could fail, and what a file lacks has no values.
        plain = piece.model_copy(update={"file": file.model_copy(update={"drift": None})})
        yield Chunk(pieces=(plain,)), [name for name in columns if name in held]


def _table(found: Sequence[ValueCounts]) -> pa.Table:
    """Return counted values as an Arrow table, with their columns' totals as metadata."""
    places = np.concatenate([np.full(len(one.values), number, np.int32) for number, one in enumerate(found)])
    values, counts = np.concatenate([one.values for one in found]), np.concatenate([one.counts for one in found])
    totals = json.dumps([(one.bits, one.records, one.records_counted, one.measured) for one in found])
    return pa.table({"column": places, "value": values, "count": counts}).replace_schema_metadata({"totals": totals})


def _read(table: pa.Table) -> list[ValueCounts]:
    """Return counted values from an Arrow table: the inverse of ``_table``."""
    column, values, counts = (table[name].to_numpy() for name in ("column", "value", "count"))
    totals = json.loads(table.schema.metadata[b"totals"])
    mine = [column == number for number in range(len(totals))]
    return [
        ValueCounts(bits, values[of], counts[of], records, seen, measured)
        for of, (bits, records, seen, measured) in zip(mine, totals, strict=True)
    ]


def _add(given: ColumnsReading, parts: Sequence[Artifact], path: Path) -> int:
    return _write(path, _together(given, parts))


def _write(path: Path, found: Sequence[ValueCounts]) -> int:
    table = _table(found)
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)


BUNDLED = FileStep(
    BUNDLES,
    make=_add,
    reads=lambda _given, parts: [part.sha256 for part in parts],
    settings=lambda given: given.columns,
    phase="bundle repeats",
)
"""What repeats in several chunks, or in bundles of them; the sum is no larger than one of them may be."""


def find_repeating_identifiers(run: Run, source: ChunkedSource) -> dict[str, RepeatedColumn]:
    """Return identifiers with repeated values, each with mean and largest number of records per value.

    There are none where persons are named, or the job says that every record is one.
    """
    given = ColumnsReading(tuple(countable_identifiers(run.job, source)), run.store)
    if not given.columns:
        return {}
    parts = run_for_items(run, REPEATED_VALUES, given, source.chunks)
    return repeated_columns(given, merge_on_cluster(run, BUNDLED, given, parts, always_merged=REPEATED_VALUES.name))


def _together(given: ColumnsReading, parts: Iterable[Artifact]) -> list[ValueCounts]:
    found = [NOTHING] * len(given.columns)
    for part in parts:
        found = [merge_value_counts(pair) for pair in zip(found, _read(pq.read_table(given.store.path(part))), strict=True)]
    return found


def repeated_columns(given: ColumnsReading, parts: Iterable[Artifact]) -> dict[str, RepeatedColumn]:
    """Return repeating columns without fractions, with mean and largest number of records per value.

    No fraction is the number of a person.

    Args:
        given: Has the columns, in the order in which they were counted.
        parts: Of all chunks, or of bundles of them.
    """
    found = _together(given, parts)
    told = {name: one for name, one in zip(given.columns, found, strict=True) if one.most > 1 and not one.measured}
    return {name: RepeatedColumn(mean=one.mean, most=one.most, share=one.share) for name, one in told.items()}


def note_spellings_of_persons(run: Run, source: ChunkedSource, key: Sequence[str] = ()) -> None:
    """Notify of persons that differ only in spelling, by ``key`` or else the job's person columns.

    Args:
        key: Columns that name a person, where the job of the run does not say so: of a table with a row for each.
    """
    report_spellings(run, source, key or run.job.columns.person)
