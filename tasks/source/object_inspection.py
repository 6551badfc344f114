"""Inspection of objects by tasks: each is read once for its digest and converted to Parquet.

The flow, which listed them, gets their digests, columns and sizes of row groups, and no byte of a record. What was found of an object is
kept under its address and what the listing said of it; so is its digest, apart, because a change of our code is no reason to read it again.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from schemas.errors.base import StorageError
from schemas.job.formats import CSV, FORMATS
from schemas.job.job import Job
from schemas.pseudonyms.kinds import treatment_kind
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_groups
from tasks.source.bounds.value_lengths import check_header, unpacked_of
from tasks.source.csv_files import join_csv
from tasks.source.csv_ranges import RANGES, convert_ranges, is_read_in_ranges, joined_key
from tasks.source.locations import Located, Readable
from tasks.source.pinned import copy_object, pinned
from tasks.source.reading import Footer, footer_of, read_footer
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.place import target_of
from tasks.store.store import Artifact, Store

LOOKS, DIGESTS = StepCode("looks", __name__), StepCode("digested", "tasks.source.listing")


class ObjectInspection(BaseModel):
    """Digest, columns and row groups that a task found in an object.

    Attributes:
        digest: As `Readable` has it.
        content: As `Readable` has it.
        columns: Its columns as Parquet has them, serialised by Arrow, in base64.
        groups: Number of records of each row group.
        size: Bytes of all row groups, uncompressed.
        is_cached: Whether the stat of the object still counts: rows of a database are kept as they were.
        converted_file: What it was converted to.
        long: As `Footer` has it.
        plain: As `Footer` has it.
    """

    model_config = ConfigDict(frozen=True)

    digest: str
    content: str | None
    columns: str
    groups: tuple[int, ...]
    size: int
    is_cached: bool
    converted_file: Artifact | None
    long: dict[str, int] = {}
    plain: frozenset[str] = frozenset()


def inspect_objects(run: Run, objects: Sequence[Located]) -> list[tuple[Readable, Footer]]:
    """Return for each object the Parquet file to read and its footer."""
    job, store = run.job, run.store
    for one in objects:
        _forget_lost(store, inspection_key(job, one))
    try:
        large = [one for one in objects if is_read_in_ranges(job, one) and not store.find("looks", inspection_key(job, one))]
        parts = convert_ranges(run, large) if large else {}
        found = (
            map_groups(run, "objects", _look_at_some, objects, lambda one: inspection_key(job, one), job, store, parts) if objects else []
        )
    finally:
        # Another run that has taken over may be in the midst of its own.
        with suppress(StorageError):
            run.work.check()
            store.remove(RANGES.name)
    looks = (ObjectInspection.model_validate_json(store.path(artifact).read_bytes()) for artifact in found)
    here = is_read_here(job)
    return [_as_read(one, look, store, here=here) for one, look in zip(objects, looks, strict=True)]


def inspection_key(job: Job, source_file: Located) -> Key:
    """Return the key of an object's inspection: its address, its stat, and the job's reading settings."""
    reading = job.source.model_dump(mode="json", include={"format", *CSV.names, "table", "query"})
    return LOOKS.key(source_file.name, source_file.stat, reading)


def _forget_lost(store: Store, key: Key) -> None:
    """Remove the inspection of an object whose converted file is missing."""
    found = store.find("looks", key)
    if (
        found
        and (made := ObjectInspection.model_validate_json(store.path(found).read_bytes()).converted_file)
        and not store.is_complete(made)
    ):
        store.discard([found])


def _look_at_some(job: Job, store: Store, parts: Mapping[str, tuple[Artifact, ...]], objects: Sequence[Located]) -> list[Artifact]:
    return [_look_at(job, store, one, parts.get(one.name, ())) for one in objects]


def _look_at(job: Job, store: Store, one: Located, parts: Sequence[Artifact]) -> Artifact:
    def write(part: Path) -> int:
        look = _looked(job, store, one, parts)
        part.write_text(look.model_dump_json())
        return sum(look.groups)

    return store.make("looks", inspection_key(job, one), ".json", write)


def _looked(job: Job, store: Store, one: Located, parts: Sequence[Artifact]) -> ObjectInspection:
    assert one.stat is not None
    convert = FORMATS[job.source.format].convert
    if convert is None:
        digest = _digest_of(store, one)
        with pinned(one.name, one.stat) as file:
            check_header(file, one.name)
            return _look(Readable(None, digest, one.stat), footer_of(file, one.name))
    if parts:
        digest = _digest_of(store, one)
        made = join_csv(job.with_task_memory(), parts, joined_key(job, digest), store)
        return _look(
            Readable(store.path(made), digest, one.stat, converted=made.sha256, converted_file=made),
            read_footer(store.path(made), one.name, unpacked_of(store.path(made), one.name, job.memory)),
        )
    with _spooled(store, one) as (path, digest):
        read: Readable = convert(job.with_task_memory(), one._replace(path=path, digest=digest), store)
    assert read.path is not None
    return _look(read, read_footer(read.path, one.name, unpacked_of(read.path, one.name, job.memory)))


def _look(read: Readable, found: Footer) -> ObjectInspection:
    columns = base64.b64encode(found.columns.serialize().to_pybytes()).decode()
    kept = read.stat is not None
    return ObjectInspection(
        digest=read.digest,
        content=read.content,
        columns=columns,
        groups=found.groups,
        size=found.size,
        long=found.long,
        plain=found.plain,
        is_cached=kept,
        converted_file=read.converted_file,
    )


def is_read_here(job: Job) -> bool:
    """Return whether the process of the flow reads records itself.

    It does where there are no workers elsewhere, where it keeps tokens, and where the target is a folder.
    """
    keeps_tokens = any(treatment_kind(one.treatment).vaulted for one in job.columns.pseudonyms)
    return not count_remote_workers() or keeps_tokens or target_of(job).folder is not None


def _as_read(one: Located, look: ObjectInspection, store: Store, *, here: bool) -> tuple[Readable, Footer]:
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(look.columns)))
    # Of work in a bucket nothing is fetched that only workers read.
    path = None if look.converted_file is None else store.path(look.converted_file) if here else store.folder / look.converted_file.file
    converted = look.converted_file.sha256 if look.converted_file and look.is_cached else None
    read = Readable(path, look.digest, one.stat if look.is_cached else None, look.content, converted, look.converted_file)
    return read, Footer(columns, look.groups, look.size, look.long, look.plain)


def _digest_of(store: Store, one: Located) -> str:
    def write(part: Path) -> int:
        assert one.stat is not None
        part.write_text(copy_object(one.name, one.stat))
        return 1

    return store.path(store.make("digested", DIGESTS.key(one.name, one.stat), ".txt", write)).read_text()


@contextmanager
def _spooled(store: Store, one: Located) -> Iterator[tuple[Path, str]]:
    """Yield a temporary copy of an object and its digest, for its conversion."""
    assert one.stat is not None
    # What a killed run leaves here, the next one clears away.
    folder = private_folder(store.folder.parent / "spill" / "objects")
    path = folder / f"{secrets.token_hex(8)}{''.join(PurePosixPath(one.name).suffixes[-2:])}"
    try:
        yield path, copy_object(one.name, one.stat, path)
    finally:
        path.unlink(missing_ok=True)
