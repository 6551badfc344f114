"""Rows of a database, converted to Parquet once: from a DuckDB file or a PostgreSQL server.

A query's rows come in no fixed order, so a release is named after a digest that does not depend on it. What a DuckDB file holds is kept as
long as the file does not change. A server is asked anew at every run; only a run that was cut off (killed, no disk left) goes on with the
rows that it began with, so that what it counted and what it publishes are of one moment. ``source.extract: once`` keeps the first answer.
All tables of a job are read in one transaction of a server, which sees no later change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from schemas.errors.base import StorageError
from schemas.errors.storage import DatabaseError
from schemas.job.job import Job
from tasks.engine.runs import Run, locked_run
from tasks.source.batches import GROUP_ROWS, fitted_column, schema_of_columns, write_batches
from tasks.source.listing import digest_while_stable, file_stat, while_stable
from tasks.source.locations import Located, Readable, arrow_type
from tasks.store.database import attached_sql, connect, interruptible, is_out_of_memory, parquet_sql, quote
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import StepCode, fingerprint_of, json_with_digest, values_with_digest
from tasks.store.postgresql import cancel_query, database_of, open_session, postgres_address
from tasks.store.store import Artifact, Store

DUCKDB, POSTGRESQL, CONTENTS = StepCode("duckdb", __name__), StepCode("postgresql", __name__), StepCode("contents", __name__)
# Rows that were there before keep their order whoever asks for them, so that they are known again; only how they are written counts.
QUERIES = StepCode("queries", "tasks.source.batches")
ROWS = ("rows", 1)
"""What a digest of rows begins with. Ids of releases are made of these digests, so it stays."""
LOSSY = ("TIME WITH TIME ZONE", "BIT", "INTERVAL", "UNION", "VARIANT", "UHUGEINT")
PENDING = {"each_run": "extract.json", "once": "extract_once.json"}
"""Records of the extracts that are kept, those of all tables of a job: by ``source.extract``."""


@dataclass(frozen=True)
class Extract:
    """Artefact of rows extracted from a database, and a digest of the rows in any order."""

    artifact: Artifact
    content: str


KEPT = TypeAdapter(dict[str, Extract])


def source_statement(job: Job) -> str:
    """Return the job's SQL query, or one that reads the table that the job names."""
    source = job.source
    if source.query is not None:
        return source.query
    assert source.table is not None
    return f"SELECT * FROM {'.'.join(quote(part) for part in source.table.split('.'))}"


def duckdb_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Return the rows of a DuckDB file as Parquet, extracted unless the store has them by content."""
    assert file.path is not None
    # What was committed since the last checkpoint is in a log beside the file.
    log = file.path.with_name(f"{file.path.name}.wal")
    if not log.exists():
        read = extract_duckdb(job, file.path, file.name, file.digest, store)
    else:
        stat = file_stat(log)
        digest = fingerprint_of(file.digest, digest_while_stable(log, str(log), stat))
        read = extract_duckdb(job, file.path, file.name, digest, store.watching(lambda: while_stable(log, str(log), stat)))
    return Readable(store.path(read.artifact), read.artifact.sha256, None, read.content, converted_file=read.artifact)


def extract_duckdb(job: Job, path: Path, name: str, digest: str, store: Store) -> Extract:
    """Return the rows of a DuckDB file's table or query as a Parquet artefact, extracted if missing.

    Args:
        job: Gives the table or the query.
        path: The file; it is opened for reading, and nothing else can be reached from the query.
        name: What the user calls it.
    """
    key = DUCKDB.key(digest, source_statement(job))
    artifact = store.make("extracts", key, ".parquet", lambda part: _read_duckdb(job, path, name, part, store))
    return Extract(artifact, _kept_content(job, artifact, store))


def _read_duckdb(job: Job, path: Path, name: str, part: Path, store: Store) -> int:
    with ExitStack() as closing:
        connection = closing.enter_context(connect(job, store.folder.parent / "spill"))

        def answer(call: Callable[[], Any]) -> Any:
            return interruptible(call, connection.interrupt, closing)

        try:
            connection.execute(f"ATTACH {attached_sql(path)} AS source (READ_ONLY)")
        except duckdb.Error:
            raise DatabaseError.not_opened(name) from None
        try:
            if [one.type for one in connection.extract_statements(source_statement(job))] != [duckdb.StatementType.SELECT]:
                raise DatabaseError.not_select()
            connection.execute("USE source")
            connection.execute("SET TimeZone = 'UTC'")
            # Only now, because to attach is such an access; locked, so that the query cannot take it back.
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            relation = connection.sql(source_statement(job))
            named = zip(relation.columns, map(str, relation.types), strict=True)
            if lossy := [f"'{column}' ({dtype})" for column, dtype in named if dtype.startswith(LOSSY)]:
                raise DatabaseError.no_such_type(lossy)
            reader = answer(lambda: relation.to_arrow_reader(GROUP_ROWS))
            return write_batches(part, schema_of_columns(reader.schema), iter(lambda: answer(lambda: next(reader, None)), None), name)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            # The system's errors have a number; Arrow says without one what DuckDB says of rows that are read.
            if is_out_of_memory(error) or (isinstance(error, OSError) and error.errno is not None):
                raise
            if job.source.table is not None and isinstance(error, duckdb.CatalogException | duckdb.BinderException):
                _check_table(connection, job.source.table, name)
            raise DatabaseError.refused("DuckDB", None) from None


def _check_table(connection: duckdb.DuckDBPyConnection, table: str, name: str) -> None:
    """Raise if the attached file has no table or view of this name."""
    held = "SELECT schema_name, {0}_name FROM duckdb_{0}s() WHERE database_name = 'source' AND NOT internal"
    there = connection.sql(" UNION ALL ".join(held.format(kind) for kind in ("table", "view"))).fetchall()
    names = sorted(one if schema == "main" else f"{schema}.{one}" for schema, one in there)
    if table.casefold().removeprefix("main.") not in map(str.casefold, names):
        raise DatabaseError.no_table(name, table, names)


def _kept_content(job: Job, artifact: Artifact, store: Store) -> str:
    def write(part: Path) -> int:
        part.write_text(content_digest(job, store.path(artifact), store))
        return 1

    return store.path(store.make("contents", CONTENTS.key(artifact.sha256), ".txt", write)).read_text()


def content_digest(job: Job, path: Path, store: Store) -> str:
    """Return a digest of the rows of a Parquet file that does not depend on their order.

    Each row is written as its values' texts, each after its length, and the sums of both halves of the rows' MD5 tell the rows apart: not
    from one who forges rows, who could as well change them, but from every accident.
    """
    schema = pq.read_schema(path)
    texts = ", ".join(f"coalesce(length({text})::VARCHAR || ':' || {text}, '-')" for text in (f"{quote(n)}::VARCHAR" for n in schema.names))
    with connect(job, store.folder.parent / "spill") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sums = connection.execute(
            "SELECT count(*), sum(md5_number_lower(line)::HUGEINT), sum(md5_number_upper(line)::HUGEINT) "
            f"FROM (SELECT concat({texts}) AS line FROM {parquet_sql([path])})"
        ).fetchone()
    columns = [(field.name, str(field.type)) for field in schema]
    return fingerprint_of(*ROWS, columns, [str(number) for number in sums or ()])


def postgresql_as_parquet(job: Job, _file: Located, store: Store) -> Readable:
    """Return the rows of the job's query on PostgreSQL as Parquet, asking the server unless kept."""
    asked = extract_postgresql(job, store)
    return Readable(store.path(asked.artifact), asked.artifact.sha256, None, asked.content, converted_file=asked.artifact)


def extract_postgresql(job: Job, store: Store) -> Extract:
    """Query a PostgreSQL server and store the rows, unless a cut-off run kept them; return both.

    Rows that were there before keep their order, so that whatever was counted from them still holds.
    """
    key = POSTGRESQL.key(source_statement(job), job.source.types, database_of(postgres_address(job)))
    kept = {extract: _kept(store, extract) for extract in PENDING}
    own = kept[job.source.extract]
    if key in own and store.is_complete(own[key].artifact):
        return own[key]
    if job.source.extract == "each_run":
        # Rows of a query that the job no longer has are of no use to it.
        own = kept["each_run"] = {known: one for known, one in own.items() if (QUERIES.name, one.artifact.key) in store.used}
    asked = private_folder(store.folder / "queries") / "asked.parquet"
    rows = write_atomically(asked, lambda part: _ask(job, part))
    content = content_digest(job, asked, store)

    def move(part: Path) -> int:
        asked.replace(part)
        return rows

    artifact = store.make("queries", QUERIES.key(content), ".parquet", move)
    own[key] = Extract(artifact, content)
    store.prune((artifact.step,), {(artifact.step, one.artifact.key) for extracts in kept.values() for one in extracts.values()})
    record = json_with_digest(KEPT.dump_python(own, mode="json"))
    # Last: a run that is cut off before has counted nothing yet and may ask again.
    write_atomically(store.folder / PENDING[job.source.extract], lambda part: part.write_text(record))
    return own[key]


def _ask(job: Job, part: Path) -> int:
    with rows_of(postgres_address(job), source_statement(job), job.source.types) as (schema, batches):
        return write_batches(part, schema, batches, "PostgreSQL")


def _kept(store: Store, extract: str) -> dict[str, Extract]:
    try:
        return KEPT.validate_python(values_with_digest(store.folder / PENDING[extract]))
    except ValidationError:
        return {}


@contextmanager
def fixed_extract(job: Job, store: Store, *, goes_on: bool) -> Iterator[None]:
    """Around the block, keep the server's extract if a kill, full disk or memory ends it, else forget it."""
    try:
        yield
    except (StorageError, KeyboardInterrupt):
        raise
    except BaseException:
        forget_extract(job, store)
        raise
    if not goes_on:
        forget_extract(job, store)


def forget_extract(job: Job, store: Store) -> None:
    """Delete the record of a kept extract under ``extract: each_run``, so that the next run queries anew."""
    if job.source.extract == "each_run":
        (store.folder / PENDING["each_run"]).unlink(missing_ok=True)


@contextmanager
def open_run(job: Job, *, goes_on: bool = False) -> Iterator[Run]:
    """Yield the run of a locked job, leftovers cleared; a database is queried once until the end.

    Args:
        goes_on: Whether another step of the same command goes on with what this one read of a database.
    """
    with locked_run(job) as run, fixed_extract(job, run.store, goes_on=goes_on):
        yield run


TYPE = b"POSTGRESQL:type"
OTHER_VALUES = ("money", "oid", "char")
"""Types that the driver gives as other values: as cents, above 2^31 as negative numbers, and as bytes that may be no text."""


_SHARED: ContextVar[tuple[ExitStack, dict[str, Any]] | None] = ContextVar("connections of a moment", default=None)


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Within the block, read all that is asked of a server as it is at the first query."""
    with ExitStack() as closing:
        before = _SHARED.set((closing, {}))
        try:
            yield
        finally:
            _SHARED.reset(before)


@contextmanager
def rows_of(uri: str, query: str, types: Mapping[str, str]) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Run a query read-only on PostgreSQL; yield its schema and an iterator of batches, or raise.

    Args:
        query: A SELECT.
        types: Types of columns, as in ``source.types``; every ``numeric`` needs one.
    """
    try:
        from adbc_driver_manager.dbapi import Error
    except ImportError:
        raise DatabaseError.not_installed() from None
    with ExitStack() as own:
        shared, connections = _SHARED.get() or (own, {})
        try:
            if uri not in connections:
                connections[uri] = open_session(uri, shared)
            cursor = own.enter_context(connections[uri].cursor())
            # To close it reads to the end, unless nobody sends any more.

            def end(failed: type[BaseException] | None, *_: object) -> None:
                if failed:
                    cancel_query(cursor)

            own.push(end)

            def answer(call: Callable[[], Any]) -> Any:
                return interruptible(call, lambda: cancel_query(cursor), own, shared)

            # Within brackets stands nothing but a query: DO and COPY … TO PROGRAM write in a read-only session too. A comment may end it.
            answer(lambda: cursor.execute(f"SELECT * FROM ({query}\n) AS source"))
            # The cursor itself gives out a reader that loses the SQLSTATE.
            reader = answer(lambda: cursor._results.reader)
            schema = _columns(reader.schema, types)
            yield schema, _typed(lambda: answer(lambda: next(reader, None)), schema, types, Error)
        except BaseException as error:
            # Nothing more can be asked within the transaction.
            connections.pop(uri, None)
            if isinstance(error, (Error, pa.ArrowException)):
                raise _refused(error) from None
            raise


def _refused(error: Exception) -> DatabaseError:
    from adbc_driver_manager.dbapi import OperationalError

    lost = "08006" if isinstance(error, OperationalError) else None
    return DatabaseError.refused("PostgreSQL", getattr(error, "sqlstate", None) or lost)


def _columns(schema: pa.Schema, types: Mapping[str, str]) -> pa.Schema:
    if not schema.names:
        raise DatabaseError.not_select()
    if unknown := [name for name in types if name not in schema.names]:
        raise DatabaseError.unknown_types(unknown)
    kinds = [(field.metadata or {}).get(TYPE, b"").decode() for field in schema]
    if bare := [field.name for field, kind in zip(schema, kinds, strict=True) if kind == "numeric" and field.name not in types]:
        raise DatabaseError.no_precision(bare)
    if other := [f"'{field.name}' ({kind})" for field, kind in zip(schema, kinds, strict=True) if kind in OTHER_VALUES]:
        raise DatabaseError.no_such_type(other)
    # A type is given to values, and not to the bytes in which the server sends those that have no type here.
    texts = [field.with_type(pa.string()) if kind == "numeric" else field for field, kind in zip(schema, kinds, strict=True)]
    kept = schema_of_columns(pa.schema(texts))
    return pa.schema([field.with_type(arrow_type(types[field.name])) if field.name in types else field for field in kept])


def _typed(
    following: Callable[[], pa.RecordBatch | None], schema: pa.Schema, types: Mapping[str, str], failed: type[Exception]
) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = following()
        except (failed, pa.ArrowException, OSError) as error:
            raise _refused(error) from None
        if batch is None:
            return
        columns = [fitted_column(column, field, types.get(field.name)) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
