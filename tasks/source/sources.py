"""Reading of a source: its files are found, digested, checked against the job and cut into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from core.columns.column_types import is_coarsenable, is_text, is_unpublishable, plain_type, type_differences, working_type
from core.privacy.pseudonyms import has_text
from core.recoding.recoding import label_columns
from schemas.errors.base import SourceError, nearest
from schemas.errors.values import ValuesError
from schemas.job.columns import REST
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.registry.treatment_kinds import treatment_kind
from tasks.engine.calls import CHUNK_SHARE
from tasks.engine.runs import Run
from tasks.source.apart import LengthInspection, lengths_unpacked
from tasks.source.chunks import Chunk, ChunkedSource, Piece, SourceFile, common_schema, differing_fields
from tasks.source.listing import stat_of, while_stable
from tasks.source.locations import (
    Located,
    Readable,
    check_folders_apart,
    columns_of_folders,
    is_object,
    locate_source_files,
    with_partition,
)
from tasks.source.object_inspection import inspect_objects, is_read_here
from tasks.source.person_records import Bounded, bound_records
from tasks.source.pinned import check_all_as_listed
from tasks.source.published_columns import decide_published_values
from tasks.source.reading import Footer, plain_texts, read_footer, row_bytes
from tasks.store.database import database_kept_open
from tasks.store.files import write_atomically
from tasks.store.keys import fingerprint_of, json_with_digest, values_with_digest
from tasks.store.store import Store

SHARED_FILES = 128
"""Files of a chunk at most: as many are read again where one of them is gone."""
SHARED_ROWS = 250_000
"""Records of several files together at most: few enough that a million of them are work for more than one core."""

Shares = list[list[str]]
"""Digests of files that share a chunk; no digest stands in two of them."""
Small = Mapping[str, tuple[SourceFile, pa.Schema]]
"""Files that may share a chunk, and their columns, by digest."""


def chunks_of(files: Sequence[SourceFile], schemas: Sequence[pa.Schema], chunk_rows: int, chunk_bytes: int, store: Store) -> list[Chunk]:
    """Return chunks that cover all records of files; small files share a chunk, remembered in the store.

    Args:
        files: The source, in the order of their names.
        schemas: Of each, without metadata: files whose columns are written alike may share a chunk.
        chunk_rows: Records of a chunk at most.
        chunk_bytes: What these take at most, where the row groups of a file are small enough.
    """
    most = min(chunk_rows, SHARED_ROWS)
    small: dict[str, tuple[SourceFile, pa.Schema]] = {}
    for file, schema in zip(files, schemas, strict=True):
        # Of equal files the first alone, so that a digest names one file of a chunk.
        if 0 < file.rows <= most // 2 and file.rows * file.width <= chunk_bytes // 2:
            small.setdefault(file.digest, (file, schema))
    memo = store.folder / "shares.json"
    known = _known(memo)
    shares = list(_refined(known, [file.digest for file in files if file.rows], small, (most, chunk_bytes)))
    if shares != known:
        write_atomically(memo, lambda part: part.write_text(json_with_digest(shares)))
    owners = {digest: share for share in shares for digest in share}
    chunks = []
    for file in files:
        if file.digest not in small or small[file.digest][0] is not file:
            chunks += _ranges(file, chunk_rows, chunk_bytes)
        elif owners[file.digest][0] == file.digest:
            together = (small[digest][0] for digest in owners[file.digest])
            chunks.append(Chunk(pieces=tuple(Piece(file=one, first=0, rows=one.rows) for one in together)))
    # A table that may be empty is a chunk without rows.
    return chunks or [Chunk.of(file) for file in files[:1]]


def _refined(known: Shares, here: Iterable[str], small: Small, most: tuple[int, int]) -> Iterator[list[str]]:
    """Yield groups of files that share a chunk from now on: parts of earlier groups, then new files.

    What is cut into ranges today stands for itself from now on.
    """
    there = set(here)
    for share in known:
        yield from _packed([digest for digest in share if digest in small], small, most)
        yield from ([digest] for digest in share if digest in there and digest not in small)
        if gone := [digest for digest in share if digest not in there]:
            yield gone
    old = {digest for share in known for digest in share}
    yield from _packed([digest for digest in small if digest not in old], small, most)
    yield from ([digest] for digest in dict.fromkeys(here) if digest not in small and digest not in old)


def _packed(digests: Sequence[str], small: Small, most: tuple[int, int]) -> Iterator[list[str]]:
    """Yield groups of neighbouring files with alike columns and bounded records and bytes."""
    share: list[str] = []
    rows = size = 0
    for digest in digests:
        file, schema = small[digest]
        rows, size = rows + file.rows, size + file.rows * file.width
        if share and (len(share) == SHARED_FILES or rows > most[0] or size > most[1] or not schema.equals(small[share[0]][1])):
            yield share
            share, rows, size = [], file.rows, file.rows * file.width
        share.append(digest)
    if share:
        yield share


def _known(memo: Path) -> Shares:
    """Return the groups of files that shared a chunk before; none if their file was altered."""
    found = values_with_digest(memo)
    return found if isinstance(found, list) else []


def _ranges(file: SourceFile, chunk_rows: int, chunk_bytes: int) -> list[Chunk]:
    """Cut a file into ranges of bounded rows, and of bounded bytes where row groups are small enough."""
    most = min(chunk_rows, chunk_bytes // max(file.width, 1))
    # A chunk that begins inside a row group has it decoded from its beginning, so borders are kept to where they can be.
    chunks: list[Chunk] = []
    first = rows = 0
    for group in file.groups:
        if rows and rows + group > most:
            chunks.append(Chunk.of(file, first, rows))
            first, rows = first + rows, 0
        rows += group
        while rows > chunk_rows:
            chunks.append(Chunk.of(file, first, chunk_rows))
            first, rows = first + chunk_rows, rows - chunk_rows
    return [*chunks, Chunk.of(file, first, rows)] if rows else chunks


LONGEST_NAME = 1000
"""Characters of a column's name: what reads CSV gives up on a first line of some million."""
LONGEST_KEY = 100_000
"""Bytes of a value of which labels are made, or which is counted in classes."""


def read_source(run: Run) -> ChunkedSource:
    """Locate, digest, convert and check a source's files; return them with chunks; raise if unfit."""
    job, store = run.job, run.store
    found = locate_source_files(job, store)
    remote, local = ([one for one in found if is_object(one) is there] for there in (True, False))
    looks = (*zip(remote, inspect_objects(run, remote), strict=True), *zip(local, _look_here(job, local, store), strict=True))
    looked = {one.name: look for one, look in looks}
    files, schemas = [], []
    for one, partition in zip(found, columns_of_folders(job, [one.name for one in found]), strict=True):
        read, (schema, groups, size, long, plain) = looked[one.name]
        check_folders_apart(one.name, schema, partition)
        digest = fingerprint_of(read.digest, partition) if partition else read.digest
        width = max(row_bytes(schema), size // max(sum(groups), 1))
        texts = tuple(text for text in plain_texts(schema) if text not in plain)
        kept = {"path": read.path, "stat": read.stat, "content": read.content, "converted": read.converted, "digest": digest, "long": long}
        files.append(
            SourceFile(
                name=one.name, groups=groups, width=width, texts=texts, partition=partition, normalise=job.columns.normalised, **kept
            )
        )
        schemas.append(with_partition(schema, partition))
    names = [file.name for file in files]
    if job.source.drift == "freeze":
        check_same_columns(names, schemas)
    columns = common_schema(names, schemas) if len(files) > 1 else schemas[0]
    files = [file.model_copy(update={"drift": differing_fields(schema, columns)}) for file, schema in zip(files, schemas, strict=True)]
    payload = _payload(job, columns)
    _check_lengths(job, files)
    treated = _treated_types(job, columns)
    if not any(file.rows for file in files) and not job.may_be_empty:
        raise SourceError.empty(len(files))
    left = Bounded(files, 0, 0)
    if job.columns.most_records is not None:
        left = bound_records(job, files, columns, store, here=is_read_here(job))
    if job.columns.ways and not is_read_here(job):
        raise SourceError.treated_on_cluster()
    files, read_as = decide_published_values(job, left.files, columns, store)
    return ChunkedSource(
        files=tuple(files),
        chunks=tuple(chunks_of(files, schemas, job.chunk_rows, job.task_memory // CHUNK_SHARE, store)),
        payload=(*payload, *treated),
        columns=read_as,
        published=(*(plain_type(read_as.field(name).type) for name in payload), *treated.values()),
        treatments={one.name: [one.treatment.canonical(), job.suppression.treatment] for one in job.columns.pseudonyms},
        evolved=type_differences(columns, schemas),
        source_types={field.name: field.type for field in columns if field.type != read_as.field(field.name).type},
        withheld=(left.records, left.persons),
    )


def check_unchanged(source: ChunkedSource) -> None:
    """Raise ``SourceError`` if a file or object of a source changed since it was digested."""
    known = [(file.name, file.stat) for file in source.files if file.stat is not None]
    for name, stat in known:
        if not is_address(name) and stat_of(name) != stat:
            raise SourceError.changed(name)
    check_all_as_listed({name: stat for name, stat in known if is_address(name)})


@contextmanager
def unchanged_sources(*sources: ChunkedSource) -> Iterator[None]:
    """Raise ``SourceError`` if a source changed within the block, in place of any error of the block.

    The recount reads sources too: one that changed is the user's to know of, and no fault of the files.
    """
    try:
        yield
    except Exception:
        for source in sources:
            check_unchanged(source)
        raise
    # After the last look at it: what changed while it was being read must not be published as if it had not.
    for source in sources:
        check_unchanged(source)


def as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Return a source file, or a query's rows, as Parquet, converted into the store unless there."""
    convert = FORMATS[job.source.format].convert
    if convert is None:
        assert file.path is not None
        return Readable(file.path, file.digest, file.stat)
    # Once, into the run's store, and under the digest of the file: so only if it was read as it was digested.
    read: Readable = convert(job, file, store.watching(lambda: while_stable(file.path, file.name, file.stat)))
    return read


def _look_here(job: Job, files: Sequence[Located], store: Store) -> list[tuple[Readable, Footer]]:
    """Return for each file of this machine the Parquet file to read and its footer."""
    with database_kept_open():
        reads = [as_parquet(job, one, store) for one in files]
    asked, footers = [], []
    for read, one in zip(reads, files, strict=True):
        assert read.path is not None
        asked.append(LengthInspection(read.path, one.name, read.converted or read.digest, read.stat))
    for file, found in zip(asked, lengths_unpacked(asked, job.memory, store), strict=True):
        with while_stable(file.path, file.name, file.stat):
            footers.append(read_footer(file.path, file.name, found))
    return list(zip(reads, footers, strict=True))


def _check_lengths(job: Job, files: Sequence[SourceFile]) -> None:
    """Refuse values that are too long for quasi-identifiers and columns of privacy models."""
    for name in (*(qid.name for qid in job.columns.quasi_identifiers), *job.privacy.columns):
        if any(file.long.get(name, 0) > LONGEST_KEY for file in files):
            raise ValuesError.long_keys(name, LONGEST_KEY)


def check_same_columns(names: Sequence[str], schemas: Sequence[pa.Schema]) -> None:
    """Raise ``SourceError`` if files differ in columns or types; columns of nulls alone fit any type."""
    first: dict[str, tuple[str, pa.DataType]] = {}
    for name, schema in zip(names, schemas, strict=True):
        mine = {field.name: plain_type(field.type) for field in schema}
        lacking = sorted(mine.keys() ^ set(schemas[0].names))
        typed = {column: dtype for column, dtype in mine.items() if not pa.types.is_null(dtype)}
        known = {column: first.setdefault(column, (name, dtype)) for column, dtype in typed.items()}
        if differing := [*lacking, *(column for column, dtype in typed.items() if known[column][1] != dtype)]:
            raise SourceError.schemas_differ(name, names[0] if lacking else known[differing[0]][0], differing)


def check_column_names(names: Sequence[str]) -> None:
    """Raise ``ValuesError`` for column names that are too long, equal but for case, or hold a zero."""
    if zeros := sum("\0" in name for name in names):
        raise ValuesError.zero_names(zeros)
    if long := sum(len(name) > LONGEST_NAME for name in names):
        raise ValuesError.long_names(long, LONGEST_NAME)
    # DuckDB's names know no case, and it would count the first of the two twice.
    if repeated := sorted({name for name in names if [other.lower() for other in names].count(name.lower()) > 1}):
        raise ValuesError.same_names([name for name in names if name.lower() == repeated[0].lower()])


def _payload(job: Job, schema: pa.Schema) -> tuple[str, ...]:
    roles = {**job.columns.roles(), **dict.fromkeys(job.columns.person, "person")}
    names = list(schema.names)
    check_column_names(names)
    if unknown := [name for name in roles if name not in names]:
        faults = [f"'{name}'{nearest(name, names)}" for name in unknown if name != REST]
        listed_rest = [f"'{REST}' (for all other columns write insensitive: {REST}, without brackets)"] if REST in unknown else []
        raise SourceError.unknown_columns(faults + listed_rest)
    rest = [name for name in names if name not in roles]
    if rest and job.columns.insensitive != REST:
        raise SourceError.unlisted_columns(rest)
    if nameless := sum(not name and roles.get(name) not in {"identifiers", "withheld"} for name in names):
        raise ValuesError.no_names(nameless)
    if job.output.format == "csv" and (broken := sum(len(name.splitlines()) > 1 for name in names)):
        raise ValuesError.line_breaks_in_names(broken)
    insensitive = rest if job.columns.insensitive == REST else list(job.columns.insensitive)
    payload = (*job.columns.sensitive, *insensitive)
    _check_types(job, schema, payload)
    for name in job.columns.normalised:
        if not is_text(dtype := plain_type(schema.field(name).type)):
            raise SourceError.wrong_type(name, str(dtype), "normalised", "leave normalise out, which is for text")
    return payload


def _check_types(job: Job, schema: pa.Schema, payload: Sequence[str]) -> None:
    for qid in job.columns.quasi_identifiers:
        dtype = plain_type(schema.field(qid.name).type)
        if not is_coarsenable(dtype):
            remedy = "make it text, a number, a boolean, a date or a timestamp, or give it another role"
            raise SourceError.wrong_type(qid.name, str(dtype), "a quasi-identifier", remedy)
        bounds = job.intervals == "bounds" and qid.hierarchy.ranged
        for name in label_columns(qid.name, bounds):
            if name != qid.name and name in schema.names:
                raise SourceError.wrong_type(
                    name, "a name that intervals: bounds needs", "kept", f"rename it, or publish '{qid.name}' as text"
                )
    for name in [qid.name for qid in job.columns.quasi_identifiers] + list(payload):
        dtype = plain_type(schema.field(name).type)
        if pa.types.is_decimal256(dtype):
            raise SourceError.wrong_type(name, str(dtype), "read", "decimals of more than 38 digits are not; make it text or fewer digits")
    for name in job.privacy.columns:
        dtype = plain_type(schema.field(name).type)
        if not is_coarsenable(dtype):
            remedy = "make it text, a number, a boolean, a date or a timestamp"
            raise SourceError.wrong_type(name, str(dtype), "looked at by a privacy model", remedy)
    for name in job.columns.person:
        dtype = plain_type(schema.field(name).type)
        if is_unpublishable(dtype):
            raise SourceError.wrong_type(name, str(dtype), "the name of a person", "make it text or a number")
    for name in payload:
        dtype = plain_type(schema.field(name).type)
        if pa.types.is_nested(dtype) or pa.types.is_null(dtype):
            raise SourceError.wrong_type(
                name, str(dtype), "published", "turn it into text or numbers, or list it under withheld to leave it out"
            )


def _treated_types(job: Job, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the type of the pseudonyms of each published identifier, in the order of the job."""
    types = {}
    for one in job.columns.pseudonyms:
        dtype, entry = working_type(schema.field(one.name).type), treatment_kind(one.treatment)
        if (made := entry.published(one.treatment, dtype)) is None:
            raise SourceError.wrong_type(one.name, str(dtype), f"treated by '{entry.name}'", entry.fitting)
        if (subject := one.treatment.subject) is not None:
            _check_subject(schema, subject, entry.name)
        types[one.name] = made
    return types


def _check_subject(schema: pa.Schema, subject: str, kind: str) -> None:
    if subject not in schema.names:
        raise SourceError.unknown_columns([f"'{subject}'{nearest(subject, schema.names)}"])
    dtype = working_type(schema.field(subject).type)
    if not has_text(dtype):
        raise SourceError.wrong_type(subject, str(dtype), f"the subject of a {kind}", "make it text, a whole number or a date")
