"""Columns that are published otherwise than they are (``publish``): what becomes of each value, decided before anything is counted.

Every step after this one reads columns as they are published, so that l and t are of what is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from core.columns.column_types import is_text, plain_type, working_type
from core.persons.digests import Digests, digests_of
from core.recoding.publishing import is_number, published_values, scalar_of
from schemas.errors.base import SourceError
from schemas.job.job import Job
from schemas.privacy.publish import Publishing, Way, canonical_way, counts_people
from tasks.source.bounds.value_counts import count_values, hold
from tasks.source.chunks import Chunk, SourceFile
from tasks.source.reading import read_chunk
from tasks.store.database import connect
from tasks.store.keys import StepCode
from tasks.store.store import Store

PUBLISHED = StepCode("publish", __name__)
BYTES_PER_VALUE = 800
"""What a different value takes in the recount."""
NUMBERS = "only numbers are rounded, cut or put into groups; say publish: shared, which takes every type"


def publish_columns(job: Job, files: Sequence[SourceFile], columns: pa.Schema, store: Store) -> tuple[list[SourceFile], pa.Schema]:
    """Decides what is published of the values of columns that say so, of all records of a source.

    Args:
        job: Says how columns are published.
        files: The source.
        columns: Names and types as which all files are read.
        store: Gets what is decided.

    Returns:
        The files, which are read so from here on, and the types as which they are.

    Raises:
        SourceError: a column is of a type that cannot be published so.
        StorageError: the disk is full, or more memory is needed than there is.
    """
    if not job.columns.ways:
        return list(files), columns
    given = {name: working_type(columns.field(name).type) for name in job.columns.ways}
    for name, kind in given.items():
        _check_type(name, kind, job.columns.ways[name])
    if job.is_of_several:
        # Who has a value is known once rows are joined to their persons.
        return list(files), columns
    made = {}
    for name, way in job.columns.ways.items():
        key = PUBLISHED.key([Chunk.of(file).key for file in files], name, canonical_way(way), job.columns.person, job.privacy.k)
        made[name] = store.make(PUBLISHED.name, key, ".arrow", lambda path, name=name: _decided(job, files, name, given[name], store, path))  # type: ignore[misc]
    places = {name: (str(store.path(one)), one.sha256) for name, one in made.items()}
    fields = [field.with_type(pa.float64()) if is_mean(job.columns.ways.get(field.name)) else field for field in columns]
    return [file.model_copy(update={"publish": places}) for file in files], pa.schema(fields)


def is_mean(way: Way | None) -> bool:
    """Tells whether numbers are published as means, which are fractions."""
    return isinstance(way, Publishing) and way.microaggregate is not None


def _decided(job: Job, files: Sequence[SourceFile], name: str, kind: pa.DataType, store: Store, path: Path) -> int:
    way, k = job.columns.ways[name], job.privacy.k
    with connect(job, store.folder.parent / "spill") as connection:
        hold(connection, _read(job, files, name), 1)
        counted = count_values(connection, 0, kind, k, persons=bool(job.columns.person), every=is_mean(way))
    # The recount holds every value once more, one by one.
    if (needed := len(counted.values) * BYTES_PER_VALUE) > job.memory:
        raise SourceError.too_many_values(name, len(counted.values), needed)
    return published_values(counted, way, k).write(path)


def _read(job: Job, files: Sequence[SourceFile], name: str) -> Iterator[tuple[list[pa.Array], Digests | None]]:
    persons = job.columns.person
    for file in files:
        for batch in read_chunk(Chunk.of(file), [name, *persons], plain=[name, *persons]) if file.rows else ():
            yield [batch.column(0)], digests_of(batch.columns[1:], batch.num_rows) if persons else None


def _check_type(name: str, kind: pa.DataType, way: Way) -> None:
    plain = plain_type(kind)
    if not isinstance(way, Publishing):
        able = is_number(plain) or is_text(plain) or pt.is_boolean(plain) or pt.is_date(plain) or pt.is_timestamp(plain)
        if not able or pt.is_float16(plain):
            remedy = "make it text, a number, a boolean, a date or a timestamp, or list it under withheld"
            raise SourceError.wrong_type(name, str(plain), "published as shared", remedy)
        return
    if not is_number(plain) or pt.is_float16(plain):
        raise SourceError.wrong_type(name, str(plain), "published so", NUMBERS)
    numbers = [one for one in (way.round, way.top, way.bottom) if one is not None]
    try:
        fitting = all(_fits(one, plain) and scalar_of(one, plain) is not None for one in numbers)
    except (ValueError, OverflowError, pa.ArrowException):
        fitting = False
    if not fitting:
        raise SourceError.wrong_type(name, str(plain), "published so", "give round, top and bottom as values of that type")


def _fits(number: Decimal, kind: pa.DataType) -> bool:
    """Tells whether a number has no more places behind its point than a decimal type."""
    return not pt.is_decimal(kind) or bool(number.scaleb(kind.scale) == number.scaleb(kind.scale).to_integral_value())


def shared_columns(job: Job) -> list[str]:
    """Returns the columns of which every published value is shared by people who are counted."""
    return [name for name, way in job.columns.ways.items() if counts_people(way)]


def rows_of_people(batches: Sequence[pa.RecordBatch], columns: int, kept: np.ndarray) -> tuple[list[pa.Array], Digests | None]:
    """Returns some records of batches: their columns, and the digests of their persons, whose names come after these."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().filter(pa.array(kept))
    arrays = [column.combine_chunks() for column in table.columns]
    return arrays[:columns], digests_of(arrays[columns:], len(table)) if len(arrays) > columns else None
