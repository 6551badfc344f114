"""Values that fewer than k released people share, and classes that break l or t through them.

Such values are replaced as other rare values are (``publish: shared``).

Classes are made by the values that the whole source publishes. Where suppression leaves a value to fewer than k people, it is published as
the rest. A class may then have too few different values, or be too far from the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import Coder
from core.columns.domains import Domain, domain_as_published, with_null
from core.formats.published import PublishedValues, read_published_values
from core.privacy.models import Spread
from core.privacy.promise import Promise
from core.units.digests import Digests, digests_of
from schemas.errors.base import SourceError
from schemas.errors.methods import SharedValuesError
from schemas.job.job import Job
from schemas.registry.privacy_kinds import models_in_job
from tasks.counting.coding import Coding
from tasks.engine.runs import Run
from tasks.source.chunks import Chunk, ChunkedSource, Piece
from tasks.source.published_columns import (
    SOMEBODY,
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

CLASSES_AT_A_TIME = 1 << 18


class SourceWithClasses(Protocol):
    """Interface of a source with the class of each record."""

    @property
    def source(self) -> ChunkedSource:
        """The source that is read and whose records have a class."""

    @property
    def coding(self) -> Coding:
        """Domains and hierarchies of its columns; asked for only where a column is under a privacy model."""

    def classes_of(self, number: int, chunk: Chunk) -> NDArray[np.int32]:
        """Return the class of each record of a chunk, shape (rows,), negative if it is not released."""


def check_with_the_rest(
    connection: duckdb.DuckDBPyConnection,
    given: SourceWithClasses,
    job: Job,
    persons: Sequence[str],
    staying: Mapping[str, tuple[pa.Array, pa.Array]],
) -> None:
    """Raise ``SharedValuesError`` if classes break l or t by what is published of some columns.

    Args:
        connection: Gets a table of the source.
        given: The source, its domains and classes.
        job: The promise.
        persons: Columns that name a person; none where records are counted.
        staying: By column under a privacy model, the values that stay, and as an array of one what all others are published as.
    """
    coders, domains = list[Coder](), list[Domain]()
    for observed in (domain for domain in given.coding.sensitive if domain.qid in staying):
        published = published_with_the_rest(observed, *staying[observed.qid])
        if not published.equals(with_null(observed)):
            codes, domain = domain_as_published(observed, published)
            coders.append(Coder(observed, codes.astype(np.uint32)))
            domains.append(domain)
    if not domains:
        return
    names = [domain.qid for domain in domains]
    make_class_table(connection, _coded(given, persons, names, coders), len(names))
    broken = [
        domain.qid
        for place, domain in enumerate(domains)
        if any(map(len, classes_breaking(connection, place, job, domain, count_persons=bool(persons))))
    ]
    if broken:
        sections = dict.fromkeys(f"privacy.{kind.section}" for kind, column, _ in models_in_job(dict(job.privacy)) if column in broken)
        raise SharedValuesError.of_the_rest(broken, list(sections))


def published_with_the_rest(observed: Domain, staying: pa.Array, rest: pa.Array) -> pa.Array:
    """Return what is published of each value of a domain: itself if it stays, else the rest.

    A null is last. A value that nobody released has is the rest, too, in the source that classes are compared with.
    """
    values = with_null(observed)
    return pc.if_else(pc.is_in(values, value_set=staying.cast(values.type)), values, rest.cast(values.type)[0])


def _coded(given: SourceWithClasses, persons: Sequence[str], names: Sequence[str], coders: Sequence[Coder]) -> Iterator[pa.RecordBatch]:
    """Yield the class, person and published codes of all records; the person is 0 where none is named."""
    columns = [f"value_{number}" for number in range(len(names))]
    for number, chunk in enumerate(given.source.chunks):
        classes, first = given.classes_of(number, chunk), 0
        for batch in read_chunk(chunk, [*names, *persons], plain=persons):
            mine, first = classes[first : first + batch.num_rows], first + batch.num_rows
            try:
                values = [pa.array(coder.code(column), pa.int32()) for coder, column in zip(coders, batch.columns, strict=False)]
            except LookupError:
                raise SourceError.changed(chunk.name) from None
            whose = digests_of(batch.columns[len(names) :], batch.num_rows) if persons else np.zeros(batch.num_rows, np.uint64)
            yield pa.RecordBatch.from_arrays([pa.array(mine, pa.int32()), pa.array(whose), *values], names=["class", "person", *columns])


def make_class_table(connection: duckdb.DuckDBPyConnection, batches: Iterator[pa.RecordBatch], column_count: int) -> None:
    """Make the table ``classed``: ``class``, ``person``, ``value_0`` …, ``records``.

    Args:
        connection: Gets it.
        batches: Records with these columns: class numbers, negative for records that are not released, digests, and codes.
    """
    columns = [f"value_{number}" for number in range(column_count)]
    types = "".join(f", {name} INTEGER" for name in columns)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE classed (class INTEGER, person UBIGINT{types}, records BIGINT)")
    for batch in batches:
        connection.register("batch", batch)
        connection.execute(f"INSERT INTO classed SELECT class, person, {', '.join(columns)}, count(*) FROM batch GROUP BY ALL")
        connection.unregister("batch")


def classes_breaking(
    connection: duckdb.DuckDBPyConnection,
    column: int,
    job: Job,
    domain: Domain,
    *,
    count_persons: bool,
    at_a_time: int = CLASSES_AT_A_TIME,
) -> Iterator[NDArray[np.int64]]:
    """Yield the classes that break what a job asks of one column, a part of all classes at a time.

    Args:
        connection: Has the table of ``make_class_table``.
        column: Position of the column there.
        job: The promise.
        domain: The column's published values of the whole source.
        count_persons: Whether persons are counted, and not records.
    """
    count = f"count(DISTINCT person) FILTER ({SOMEBODY})" if count_persons else "sum(records)::BIGINT"
    whole = np.zeros(domain.size, np.int64)
    values, counts = _columns(connection, f"SELECT value_{column}, {count} FROM classed GROUP BY 1")
    whole[values] = counts
    [(everybody, last)] = connection.execute(f"SELECT {count}, max(class) FROM classed").fetchall()
    promise = promise_on_column(job, domain)
    if count_persons:
        promise = promise.of_people({domain.qid: whole}, int(everybody))
    released = f"(SELECT class, value_{column} AS value, {count} AS held FROM classed WHERE class >= 0 GROUP BY 1, 2)"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE held_in_classes AS FROM {released} WHERE held > 0")
    sizes = f"(SELECT class, {count} AS held FROM classed WHERE class >= 0 GROUP BY 1)"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sizes_of_classes AS FROM {sizes}")
    for first in range(0, int(last) + 1, at_a_time):
        yield _breaking(connection, promise, domain.qid, whole, f"WHERE class BETWEEN {first} AND {first + at_a_time - 1}")


def promise_on_column(job: Job, domain: Domain) -> Promise:
    """Return k and the models that a job asks of one sensitive column, given its domain."""
    asked_of = models_in_job(dict(job.privacy))
    return Promise(
        job.privacy.k, tuple(kind.model(column, spec, domain, job.folder) for kind, column, spec in asked_of if column == domain.qid)
    )


def _breaking(connection: duckdb.DuckDBPyConnection, promise: Promise, name: str, whole: NDArray[np.int64], part: str) -> NDArray[np.int64]:
    """Return the classes of a part that break a promise on one column."""
    classes, units = _columns(connection, f"SELECT class, held FROM sizes_of_classes {part} ORDER BY class")
    owners, values, counts = _columns(connection, f"SELECT class, value, held FROM held_in_classes {part} ORDER BY class, value")
    spread = Spread(np.searchsorted(classes, owners), values, counts, whole)
    return classes[promise.failing(units, {name: spread})]


def _columns(connection: duckdb.DuckDBPyConnection, statement: str) -> list[NDArray[np.int64]]:
    """Return the columns of a statement as whole numbers."""
    return [column.to_numpy().astype(np.int64) for column in connection.sql(statement).to_arrow_table().columns]


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
        kept, start = given.classes_of(number, chunk) >= 0, 0
        # Batch by batch: the shared columns of a whole chunk may be hundreds.
        for batch in read_chunk(chunk, [*names, *job.columns.person]):
            yield rows_of_people(batch, len(names), kept[start : start + batch.num_rows])
            start += batch.num_rows


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
