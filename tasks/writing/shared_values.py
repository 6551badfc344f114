"""Values that fewer than k released people share, because records were suppressed.

They are replaced as other rare values are (``publish: shared``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.formats.published import PublishedValues, read_published_values
from core.units.digests import Digests
from schemas.job.job import Job
from tasks.engine.runs import Run
from tasks.source.chunks import Chunk, ChunkedSource, Piece
from tasks.source.published_columns import (
    as_typed,
    fewest_people,
    make_value_table,
    people_of_value,
    people_with_values,
    rows_of_people,
    shared_columns,
)
from tasks.source.reading import read_chunk
from tasks.store.database import connect
from tasks.store.keys import StepCode
from tasks.writing.shared_promises import SourceWithClasses, check_with_the_rest

SHARED_STEP = StepCode("shared", __name__)


def with_shared_values(run: Run, given: SourceWithClasses) -> ChunkedSource:
    """Return the source with values replaced that fewer than k released people share; else as given.

    Raise ``SharedValuesError`` if classes then break a promise on what is published.
    """
    source, names, job = given.source, shared_columns(run.job), run.job
    if not names:
        return source
    publish, staying = dict(source.files[0].publish), dict[str, tuple[pa.Array, pa.Array]]()
    with connect(job, run.spill) as connection:
        make_value_table(connection, _released(given, names, job), len(names))
        for number, name in enumerate(names):
            known = read_published_values(Path(publish[name][0]))
            left, gone = released_values(connection, number, known, job.privacy.k, count_persons=bool(job.columns.person))
            if len(gone):
                key = SHARED_STEP.key(publish[name][1], [str(one) for one in gone.to_pylist()])
                made = run.store.make(SHARED_STEP.name, key, ".arrow", known.without(gone).write)
                publish[name] = run.store.path(made), made.sha256
            if name in job.privacy.columns:
                staying[name] = left, known.others_published_as
        if staying:
            check_with_the_rest(connection, given, job, job.columns.person, staying)
    return source.model_copy(
        update={
            "files": tuple(file.model_copy(update={"publish": publish}) for file in source.files),
            "chunks": tuple(_published(chunk, publish) for chunk in source.chunks),
        }
    )


def _published(chunk: Chunk, publish: dict[str, tuple[Path, str]]) -> Chunk:
    def anew(piece: Piece) -> Piece:
        return piece.model_copy(update={"file": piece.file.model_copy(update={"publish": publish})})

    return Chunk(pieces=tuple(map(anew, chunk.pieces)))


def _released(given: SourceWithClasses, names: Sequence[str], job: Job) -> Iterator[tuple[Sequence[pa.Array], Digests | None]]:
    """Yield the shared columns and persons of each chunk's released records."""
    for number, chunk in enumerate(given.source.chunks):
        kept = given.classes_of(number, chunk) >= 0
        yield rows_of_people(list(read_chunk(chunk, [*names, *job.columns.person])), len(names), kept)


class ReleasedValues(NamedTuple):
    """The published values of a column that released people have, a null among them.

    Attributes:
        staying: Those that stay.
        gone: Those to replace, because fewer than k people share each.
    """

    staying: pa.Array
    gone: pa.Array


def released_values(
    connection: duckdb.DuckDBPyConnection, column: int, published_values: PublishedValues, k: int, *, count_persons: bool
) -> ReleasedValues:
    """Return the published values of released people: those that stay, and those that too few share.

    People whose values are replaced must be k together. Where they are fewer, the next rarest value is replaced too.

    Args:
        connection: Holds the table of released values and their people.
        column: Position of the column there.
        published_values: The column's published values.
        k: People who share a value, at least.
        count_persons: Whether persons are counted, and not records.
    """
    kind = published_values.others_published_as.type
    found = people_of_value(connection, column, count_persons=count_persons)
    values, people = as_typed(found["value"].combine_chunks(), kind), np.asarray(found["people"].combine_chunks())
    rest = np.asarray(
        pc.is_in(values, published_values.others_published_as)
        if not published_values.others_published_as.null_count
        else pc.is_null(values)
    )
    gone = (people < k) & ~rest
    while (gone | rest).any():
        together, records = people_with_values(connection, column, values.filter(pa.array(gone | rest)), count_persons=count_persons)
        left = ~gone & ~rest
        if not records or together >= k or not left.any():
            break
        one = fewest_people(found, kind, pa.array(left))
        gone |= np.asarray(pc.is_in(values, one)) if not one.null_count else np.asarray(pc.is_null(values))
    return ReleasedValues(values.filter(pa.array(~gone)), values.filter(pa.array(gone)))
