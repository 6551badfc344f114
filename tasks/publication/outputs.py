"""Data files of a release in the job's format: staged in a folder, or put into a bucket by tasks.

They are put into staging, or by tasks into a bucket, several at a time, and read back from there for the recount. What a task is given and
gives back are references and digests; no byte of a record passes through the flow.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote as escaped

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import to_working_type, working_type
from core.formats.spreadsheets import csv_header, escaped_csv_sql
from core.hierarchies.levels import as_text
from schemas.errors.base import SourceError, StorageError
from schemas.errors.storage import ObjectStoreError, OutputError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.release.evidence import MANIFEST, PublishedFile
from schemas.release.manifest import Manifest
from schemas.release.report import Example
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, run_step, split_for_workers
from tasks.release.examples import example_files, examples_of
from tasks.release.files import BOM, DATA, TABLE, Csv
from tasks.source.chunks import ChunkedSource
from tasks.source.locations import NULL
from tasks.store.database import attached_sql, connect, literal, parquet_sql, quote
from tasks.store.files import apply_user_umask, file_digest, flush, private_folder
from tasks.store.keys import StepCode
from tasks.store.place import Bucket
from tasks.store.store import Artifact, Store
from tasks.writing.runs import write_release

Numbered = tuple[int, Artifact]
"""A data file with its number in the release."""


def number_output_files(files: Sequence[Artifact]) -> list[Numbered]:
    """Return the files that have records as (number, artefact) pairs, numbered from 1 in release order."""
    return list(enumerate((file for file in files if file.rows), start=1))


def stage_files(files: Mapping[str, Artifact], store: Store, staging: Path) -> list[PublishedFile]:
    """Link or copy Parquet files into the staging folder by name; return their manifest entries."""
    folders = {(staging / name).parent for name in files}
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)
            apply_user_umask(folder)
        for name, artifact in files.items():
            try:
                # The artefact and the published file are one then, mode and all; what keeps others from artefacts is the folder above.
                os.link(store.path(artifact), staging / name)
            except OSError:
                shutil.copyfile(store.path(artifact), staging / name)
            apply_user_umask(staging / name)
            flush(staging / name)
        for folder in folders:
            flush(folder)
    except OSError as error:
        raise StorageError.not_writable(str(staging), error.strerror or "unknown reason") from None
    return [PublishedFile(path=name, rows=one.rows, sha256=one.sha256, bytes=one.size) for name, one in files.items()]


MOST_FOLDERS = 1_000
LONGEST_NAME = 255
BLOCK = 1 << 20


def check_output(job: Job, source: ChunkedSource) -> None:
    """Raise ``SourceError`` if the job's output format cannot hold the type of a published column."""
    types = {qid.name: source.columns.field(qid.name).type for qid in job.columns.quasi_identifiers}
    for name, given in (types | dict(zip(source.payload, source.published, strict=True))).items():
        dtype = working_type(given)
        if job.output.format == "csv" and (pt.is_binary(dtype) or pt.is_large_binary(dtype) or pt.is_fixed_size_binary(dtype)):
            raise SourceError.wrong_type(name, str(dtype), "written as CSV", "turn it into text, or choose output.format: parquet")
        if job.output.format != "parquet" and pt.is_duration(dtype):
            kind = "CSV" if job.output.format == "csv" else "a table of DuckDB"
            remedy = "turn it into a number of a unit that its name tells, or choose output.format: parquet"
            raise SourceError.wrong_type(name, str(dtype), f"written as {kind}", remedy)
        if job.output.format == "duckdb" and pt.is_timestamp(dtype) and dtype.unit == "ns" and dtype.tz:
            raise SourceError.wrong_type(
                name, str(dtype), "kept exactly by DuckDB", "round it to microseconds, or choose output.format: parquet"
            )


def stage_output(job: Job, files: Sequence[Numbered], store: Store, staging: Path, spill: Path) -> list[PublishedFile]:
    """Write data files into the staging folder in the job's format; return their manifest entries.

    Args:
        job: Says the format.
        files: The Parquet files with their numbers, or some of them; a DuckDB file is made of all.
        store: Where they are.
        staging: Has the folder ``data``.
        spill: Folder for DuckDB's spill files.
    """
    try:
        if job.output.partition_by:
            staged = _stage_partitions(job, [(number, store.path(file)) for number, file in files], staging)
        elif job.output.format == "csv":
            staged = [_stage_csv(job, store.path(file), staging, number, spill) for number, file in files]
        elif job.output.format == "duckdb":
            staged = _stage_table(job, [store.path(file) for _, file in files], staging, spill)
        else:
            staged = stage_files({f"{DATA}/part-{number:05d}.parquet": file for number, file in files}, store, staging)
    except OSError as error:
        raise StorageError.not_writable(str(staging), error.strerror or "unknown reason") from None
    return staged


def check_folders(files: Sequence[PublishedFile]) -> None:
    """Raise ``OutputError`` if partitioned data files are in more than 1,000 folders."""
    if len({file.path.rsplit("/", 1)[0] for file in files}) > MOST_FOLDERS:
        raise OutputError.too_many_folders(MOST_FOLDERS)


def _staged(staging: Path, path: Path, rows: int) -> PublishedFile:
    apply_user_umask(path)
    flush(path)
    name = path.relative_to(staging).as_posix()
    return PublishedFile(path=name, rows=rows, sha256=file_digest(path), bytes=path.stat().st_size)


def csv_layout(job: Job, files: Sequence[Artifact], store: Store) -> Csv:
    """Return delimiter and column types of the release's CSV files; defaults for other formats."""
    if job.output.format != "csv" or not files:
        return Csv()
    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as connection:
        return Csv(job.output.delimiter, column_types(connection, store.path(files[0])))


def column_types(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    """Return DuckDB's types of a Parquet file's columns, by name."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {parquet_sql([path])}").fetchall()
    return {str(name): str(dtype) for name, dtype, *_ in described}


def _stage_csv(job: Job, part: Path, staging: Path, number: int, spill: Path) -> PublishedFile:
    path = staging / DATA / f"part-{number:05d}.csv"
    body = path.with_suffix(".body")
    with connect(job, spill) as connection:
        # DuckDB writes moments in the session's zone: bytes would depend on the machine's.
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = true")
        types = column_types(connection, part)
        texts = [name for name, dtype in types.items() if dtype == "VARCHAR"]
        columns = ", ".join(f"{escaped_csv_sql(quote(name))} AS {quote(name)}" if name in texts else quote(name) for name in types)
        forced = f", FORCE_QUOTE ({', '.join(map(quote, texts))})" if texts else ""
        [(rows,)] = connection.execute(
            f"COPY (SELECT {columns} FROM {parquet_sql([part])}) TO {literal(str(body))} "
            f"(FORMAT csv, COMPRESSION none, HEADER false, DELIMITER {literal(job.output.delimiter)}, "
            f"QUOTE '\"', ESCAPE '\"', NULLSTR ''{forced})"
        ).fetchall()
    with path.open("wb") as whole, body.open("rb") as records:
        whole.write(((BOM if job.output.bom else "") + csv_header(list(types), job.output.delimiter)).encode())
        shutil.copyfileobj(records, whole, BLOCK)
    body.unlink()
    return _staged(staging, path, int(rows))


def _stage_table(job: Job, parts: Sequence[Path], staging: Path, spill: Path) -> list[PublishedFile]:
    """Write one DuckDB file, whose bytes may differ between writings, unlike its table."""
    if not parts:
        return []
    path = staging / DATA / "release.duckdb"
    with connect(job, spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(f"ATTACH {attached_sql(path)} AS written")
        connection.execute(f"CREATE TABLE written.{TABLE} AS SELECT * FROM {parquet_sql(parts)}")
        [(rows,)] = connection.execute(f"SELECT count(*) FROM written.{TABLE}").fetchall()
        connection.execute("DETACH written")
    return [_staged(staging, path, int(rows))]


def _stage_partitions(job: Job, parts: Sequence[tuple[int, Path]], staging: Path) -> list[PublishedFile]:
    """Split the records of every file by some columns, which become folder names and leave the files."""
    staged: list[PublishedFile] = []
    folders: set[str] = set()
    for number, part in parts:
        with pq.ParquetFile(part) as file:
            table, schema = file.read(), file.schema_arrow
        columns = {name: to_working_type(table[name].combine_chunks()) for name in table.column_names}
        keys = pa.table({name: _spelled(columns[name]) for name in job.output.partition_by})
        kept = pa.schema([field for field in schema if field.name not in job.output.partition_by])
        combined = _combined(keys)
        for place, values in enumerate(combined.dictionary.to_pylist()):
            # Counted as they are made: a column of names would else fill the target before it is refused.
            folders.add(values)
            if len(folders) > MOST_FOLDERS:
                raise OutputError.too_many_folders(MOST_FOLDERS)
            path = staging / DATA / values / f"part-{number:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            mine = pc.equal(combined.indices, pa.scalar(place, combined.indices.type))
            rows = write_release(path, {name: _coded(columns[name].filter(mine)) for name in kept.names}, kept)
            staged.append(_staged(staging, path, rows))
    found = list((staging / DATA).rglob("*"))
    # Where two names that differ by case are one, a folder would hold records of another's.
    if lost := {file.path for file in staged} - {path.relative_to(staging).as_posix() for path in found}:
        raise OutputError.folders_alike(len({path.rsplit("/", 1)[0] for path in lost}))
    for folder in found:
        if folder.is_dir():
            apply_user_umask(folder)
            flush(folder)
    return staged


def _coded(column: pa.Array) -> pa.Array:
    return pc.dictionary_encode(column) if pt.is_string(column.type) or pt.is_large_string(column.type) else column


def _spelled(column: pa.Array) -> pa.Array:
    """Return the values of a column as text for folder names; refuse empty ones and ``NULL``'s name."""
    # With its zone as columns of text have it: Arrow writes +0100, which readers take for no zone at all.
    zoned = pt.is_timestamp(column.type) and column.type.tz is not None
    texts = as_text(column) if zoned else column.cast(pa.string())
    if unfit := pc.sum(pc.or_(pc.equal(texts, ""), pc.equal(texts, NULL))).as_py():
        raise OutputError.no_folder(unfit)
    return texts


def _combined(keys: pa.Table) -> pa.DictionaryArray:
    """Return the folder of each record, such as ``region=North/sex=f``, escaped as in an address."""
    parts = []
    for name in keys.column_names:
        coded = pc.dictionary_encode(keys[name].combine_chunks(), null_encoding="encode")
        names = [f"{escaped(name, safe='')}={NULL if text is None else escaped(text, safe='')}" for text in coded.dictionary.to_pylist()]
        # Escaped text is ASCII, so that its characters are the bytes that file systems count.
        if long := sum(len(folder) > LONGEST_NAME for folder in names):
            raise OutputError.long_folder(long)
        parts.append(pa.array(names).take(coded.indices))
    joined = pc.binary_join_element_wise(*parts, "/") if len(parts) > 1 else parts[0]
    return pc.dictionary_encode(joined)


def bucket_without_release(job: Job, release: str) -> Bucket:
    """Return the bucket that a job publishes in; raise ``ObjectStoreError`` if it has the release.

    A task that comes late, of a run that was taken over, must not put its files in the place of published ones.
    """
    bucket = Bucket(str(job.target))
    if bucket.exists(f"{release}/{MANIFEST}"):
        raise ObjectStoreError.exists(bucket.location_of(release))
    return bucket


DELIVERED, EXAMPLES = StepCode("delivered", __name__), StepCode("examples", __name__)


class Delivery(FrozenModel):
    """Manifest entries of data files that a task uploaded, and their column types for CSV.

    Attributes:
        types: DuckDB's types of their columns, where the format has none.
    """

    files: tuple[PublishedFile, ...]
    types: dict[str, str]


def deliver_files(run: Run, files: Sequence[Artifact], release: str) -> tuple[list[PublishedFile], Csv]:
    """Upload a release's data files to a bucket in tasks; return their entries and CSV layout."""
    job, there = run.job, number_output_files(files)
    parts = split_for_workers(there) if job.output.format != "duckdb" else [there]
    # What is in a bucket may be gone or replaced tomorrow: no later run finds these calls made.
    calls = [
        Call.once(DELIVERED, f"deliver {number} of {len(parts)}", (job, release, run.store, part))
        for number, part in enumerate(parts, start=1)
    ]
    made = map_step(run, "deliver", _deliver, calls)
    staged = [file for one in made for file in one.files]
    check_folders(staged)
    types: Mapping[str, str] = next((one.types for one in made), {})
    return staged, Csv(job.output.delimiter, types) if job.output.format == "csv" else Csv()


def _deliver(job: Job, release: str, store: Store, files: Sequence[Numbered]) -> Delivery:
    bucket = bucket_without_release(job, release)
    with scratch(store) as staging:
        private_folder(staging / "data")
        staged = stage_output(job.with_task_memory(), files, store, staging, staging / "spill")
        for file in staged:
            bucket.upload(staging / file.path, f"{release}/{file.path}", file.sha256)
        layout = csv_layout(job, [file for _, file in files], store)
    return Delivery(files=tuple(staged), types=dict(layout.types))


def examples_delivered(run: Run, staged: Sequence[PublishedFile], manifest: Manifest) -> tuple[Example, ...]:
    """Return example records for the report from data files in a bucket, read in a task."""
    call = Call.once(EXAMPLES, "examples", (run.job, list(staged), manifest, run.store))
    return run_step(run, "publish", _examples, call)


def _examples(job: Job, staged: Sequence[PublishedFile], manifest: Manifest, store: Store) -> tuple[Example, ...]:
    with fetched_files(job, manifest.release, example_files(sorted(staged, key=lambda file: Path(file.path))), store) as (_, files):
        return examples_of(f"release '{manifest.release}'", files, manifest)


@contextmanager
def fetched_files(job: Job, release: str, staged: Sequence[PublishedFile], store: Store) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a spill folder and local copies of files in a bucket; raise if a copy's digest differs."""
    place, wrong = Bucket(str(job.target)).below(release), 0
    with scratch(store) as folder:
        for file in staged:
            path = folder / file.path
            private_folder(path.parent)
            # What a store says it has taken is not yet what it gives.
            wrong += not place.download(file.path, path, file.sha256)
        if wrong:
            raise ObjectStoreError.differs(place.location, wrong)
        yield folder / "spill", [folder / file.path for file in staged]


@contextmanager
def scratch(store: Store) -> Iterator[Path]:
    """Yield a private temporary folder in a store's work, with folder ``spill``; remove it at the end."""
    folder = private_folder(store.folder.parent / "spill" / f"delivery-{secrets.token_hex(8)}")
    try:
        private_folder(folder / "spill")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
