"""Rows of a database, converted to Parquet once: from a DuckDB file or a PostgreSQL server.

A query's rows come in no fixed order, so a release is named after a digest that does not depend on it. What a DuckDB file holds is kept as
long as the file does not change. A server is asked anew at every run; only a run that was cut off (killed, no disk left) goes on with the
rows that it began with, so that what it counted and what it publishes are of one moment. ``source.extract: once`` keeps the first answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from schemas.errors.base import SourceError, StorageError
from schemas.errors.storage import DatabaseError
from schemas.job.job import Job
from tasks.engine.runs import Run, locked_run
from tasks.source.batches import GROUP_ROWS, schema_of_columns, write_batches
from tasks.source.listing import digest_while_stable, file_stat, while_stable
from tasks.source.locations import Located, Readable
from tasks.source.postgresql import address, rows_of
from tasks.store.database import connect, is_out_of_memory, literal, quote
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import Key, StepCode, fingerprint_of
from tasks.store.secret import seal, unsealed
from tasks.store.store import Artifact, Store

DUCKDB, POSTGRESQL, CONTENTS = StepCode("duckdb", __name__), StepCode("postgresql", __name__), StepCode("contents", __name__)
# Rows that were there before keep their order whoever asks for them, so that they are known again; only how they are written counts.
QUERIES = StepCode("queries", "tasks.source.batches")
ROWS = ("rows", 1)
"""What a digest of rows begins with. Ids of releases are made of these digests, so it stays."""
LOSSY = ("TIME WITH TIME ZONE", "BIT", "INTERVAL", "UNION", "VARIANT", "UHUGEINT")
PENDING = "extract.json"


@dataclass(frozen=True)
class Extract:
    """Extracted rows: the artefact, and a digest of the rows in any order."""

    artifact: Artifact
    content: str


def statement(job: Job) -> str:
    """Return the query of a job, or the query that reads its table."""
    source = job.source
    if source.query is not None:
        return source.query
    assert source.table is not None
    return f"SELECT * FROM {'.'.join(quote(part) for part in source.table.split('.'))}"


def duckdb_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Extract the rows of a DuckDB file to Parquet, once for its content."""
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
    """Extract the rows of a table or query of a DuckDB file to Parquet.

    Args:
        job: Gives the table or the query.
        path: The file; it is opened for reading, and nothing else can be reached from the query.
        name: What the user calls it.
        digest: Of the file.
        store: Gets the rows.
    """
    key = DUCKDB.key(digest, statement(job))
    artifact = store.make("extracts", key, ".parquet", lambda part: _read_duckdb(job, path, name, part, store))
    return Extract(artifact, _kept_content(job, artifact, store))


def _read_duckdb(job: Job, path: Path, name: str, part: Path, store: Store) -> int:
    with connect(job, store.folder.parent / "spill") as connection:
        try:
            connection.execute(f"ATTACH {literal(str(path))} AS source (READ_ONLY)")
        except duckdb.Error:
            raise SourceError.unreadable(name, "duckdb (it may be open in another program)") from None
        try:
            if [one.type for one in connection.extract_statements(statement(job))] != [duckdb.StatementType.SELECT]:
                raise DatabaseError.not_select()
            connection.execute("USE source")
            connection.execute("SET TimeZone = 'UTC'")
            # Only now, because to attach is such an access; locked, so that the query cannot take it back.
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            relation = connection.sql(statement(job))
            named = zip(relation.columns, map(str, relation.types), strict=True)
            if lossy := [f"'{column}' ({dtype})" for column, dtype in named if dtype.startswith(LOSSY)]:
                raise DatabaseError.no_such_type(lossy)
            reader = relation.to_arrow_reader(GROUP_ROWS)
            return write_batches(part, schema_of_columns(reader.schema), reader, name)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            # The system's errors have a number; Arrow says without one what DuckDB says of rows that are read.
            if is_out_of_memory(error) or (isinstance(error, OSError) and error.errno is not None):
                raise
            raise DatabaseError.refused("DuckDB", None) from None


def _kept_content(job: Job, artifact: Artifact, store: Store) -> str:
    def write(part: Path) -> int:
        part.write_text(content_digest(job, store.path(artifact), store))
        return 1

    return store.path(store.make("contents", CONTENTS.key(artifact.sha256), ".txt", write)).read_text()


def content_digest(job: Job, path: Path, store: Store) -> str:
    """Return a digest of the rows of a Parquet file, in any order.

    Each row is written as its values' texts, each after its length, and the sums of both halves of the rows' MD5 tell the rows apart: not
    from one who forges rows, who could as well change them, but from every accident.
    """
    schema = pq.read_schema(path)
    texts = ", ".join(f"coalesce(length({text})::VARCHAR || ':' || {text}, '-')" for text in (f"{quote(n)}::VARCHAR" for n in schema.names))
    with connect(job, store.folder.parent / "spill") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sums = connection.execute(
            "SELECT count(*), sum(md5_number_lower(line)::HUGEINT), sum(md5_number_upper(line)::HUGEINT) "
            f"FROM (SELECT concat({texts}) AS line FROM read_parquet({literal(str(path))}, hive_partitioning = false))"
        ).fetchone()
    columns = [(field.name, str(field.type)) for field in schema]
    return fingerprint_of(*ROWS, columns, [str(number) for number in sums or ()])


def postgresql_as_parquet(job: Job, _file: Located, store: Store) -> Readable:
    """Extract the rows of a query on a PostgreSQL server to Parquet."""
    asked = extract_postgresql(job, store)
    return Readable(store.path(asked.artifact), asked.artifact.sha256, None, asked.content, converted_file=asked.artifact)


def extract_postgresql(job: Job, store: Store) -> Extract:
    """Query a PostgreSQL server and keep the rows, unless an interrupted run already has them.

    Rows that were there before keep their order, so that whatever was counted from them still holds.
    """
    where = job.source.connection.identity_without_secret(job.folder) if job.source.connection else ""
    key = POSTGRESQL.key(statement(job), job.source.types, where)
    if pending := _pending(key, store):
        return pending
    asked = private_folder(store.folder / "queries") / "asked.parquet"
    rows = write_atomically(asked, lambda part: _ask(job, part))
    content = content_digest(job, asked, store)

    def move(part: Path) -> int:
        asked.replace(part)
        return rows

    artifact = store.make("queries", QUERIES.key(content), ".parquet", move)
    store.keep_only(artifact)
    record = {"key": key, "content": content, "artifact": artifact.model_dump()}
    # Last: a run that is cut off before has counted nothing yet and may ask again.
    write_atomically(store.folder / PENDING, lambda part: part.write_text(seal(record)))
    return Extract(artifact, content)


def _ask(job: Job, part: Path) -> int:
    with rows_of(address(job), statement(job), job.source.types) as (schema, batches):
        return write_batches(part, schema, batches, "PostgreSQL")


def _pending(key: Key, store: Store) -> Extract | None:
    try:
        record = unsealed(store.folder / PENDING)
        artifact = Artifact.model_validate(record["artifact"])
        known = record["key"] == key and store.is_complete(artifact)
        return Extract(artifact, str(record["content"])) if known else None
    except (KeyError, TypeError, ValidationError):
        return None


@contextmanager
def fixed_extract(job: Job, store: Store, *, goes_on: bool) -> Iterator[None]:
    """Use one extract of a server's rows until the block ends, with success or with a refusal.

    What is cut off instead goes on with them when it is run again: a kill, an interrupt, a full disk, too little memory.
    """
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
    """Remove a kept extract, so that the next run queries the server again; counts stay."""
    if job.source.extract == "each_run":
        (store.folder / PENDING).unlink(missing_ok=True)


@contextmanager
def open_run(job: Job, *, goes_on: bool = False) -> Iterator[Run]:
    """Lock the work of a job, clear leftovers of killed runs, and use one extract until the block ends.

    Args:
        job: The job.
        goes_on: Whether another step of the same command goes on with what this one read of a database.
    """
    with locked_run(job) as run, fixed_extract(job, run.store, goes_on=goes_on):
        yield run
