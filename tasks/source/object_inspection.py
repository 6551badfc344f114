"""Inspection of objects by tasks, each read once; large CSV objects are converted a range at a time.

The flow, which listed them, gets their digests, columns and sizes of row groups, and no byte of a record. What was found of an object is
kept under its address and what the listing said of it; so is its digest, apart, because a change of our code is no reason to read it again.

For a large CSV object tasks first look through ranges of equal length for quotes and ends of lines; what they found, taken together, says
where records end. A file that quotes do not decide, or any of whose rows do not fit, is read by one task as any other is, which tells what
is wrong with it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from core.formats.record_ends import ScannedRange, record_starts, records_of, scan_range
from schemas.errors.base import SourceError, StorageError
from schemas.job.formats import CSV, FORMATS
from schemas.job.job import Job
from schemas.job.source import UTF8
from schemas.reading.model import FrozenModel
from schemas.registry.treatment_kinds import treatment_kind
from tasks.engine.calls import Call, tasks_for
from tasks.engine.guard import Result
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_groups, map_step
from tasks.source.apart import check_header, unpacked_of
from tasks.source.csv_files import convert_rows, converted_key, join_csv
from tasks.source.locations import Located, Readable
from tasks.source.pinned import BLOCK, copy_object, open_as_listed
from tasks.source.reading import Footer, footer_of, read_footer
from tasks.store.database import database_kept_open
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.place import target_of
from tasks.store.store import Artifact, Store

LOOKS, DIGESTS = StepCode("looks", __name__), StepCode("digested", "tasks.source.listing")


class ObjectInspection(FrozenModel):
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
    """Return for each object the Parquet file to read and its footer; tasks convert what is no Parquet."""
    job, store = run.job, run.store
    for one in objects:
        _forget_lost(store, inspection_key(job, one))
    try:
        large = [one for one in objects if is_readable_in_ranges(job, one) and not store.find("looks", inspection_key(job, one))]
        parts = convert_ranges(run, large) if large else {}
        found = (
            map_groups(run, "objects", _look_at_some, objects, lambda one: inspection_key(job, one), job, store, parts) if objects else []
        )
    finally:
        # Another run that has taken over may be in the midst of its own.
        with suppress(StorageError):
            run.work.check()
            store.remove(RANGES.name)
    looks = (store.read_model(artifact, ObjectInspection) for artifact in found)
    here = is_read_here(job)
    return [_as_read(one, look, store, here=here) for one, look in zip(objects, looks, strict=True)]


def inspection_key(job: Job, source_file: Located) -> Key:
    """Return the key of an object's inspection: its address, its stat, and the job's reading settings."""
    reading = job.source.model_dump(mode="json", include={"format", *CSV.names, "table", "query"})
    return LOOKS.key(source_file.name, source_file.stat, reading)


def _forget_lost(store: Store, key: Key) -> None:
    """Remove the inspection of an object whose converted file is missing."""
    found = store.find("looks", key)
    if found and (made := store.read_model(found, ObjectInspection).converted_file) and not store.is_complete(made):
        store.discard([found])


def _look_at_some(job: Job, store: Store, parts: Mapping[str, tuple[Artifact, ...]], objects: Sequence[Located]) -> list[Artifact]:
    with database_kept_open():
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
        with open_as_listed(one.name, one.stat) as file:
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
    """Return whether this process reads records: no workers, a vault's tokens, or a target folder."""
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


RANGES, JOINED = StepCode("ranges", __name__), StepCode("converted", __name__)
LEAST = 64_000_000
"""Bytes of a range: a task that reads fewer takes longer to be asked."""
PLAIN = {".csv", ".tsv", ".txt"}


def is_readable_in_ranges(job: Job, source_file: Located) -> bool:
    """Return whether a CSV object may be read in ranges: uncompressed, and large enough for two tasks."""
    delimiter = job.source.delimiter
    plain = job.source.format == "csv" and job.source.encoding == UTF8 and PurePosixPath(source_file.name).suffix.lower() in PLAIN
    parted = len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n'
    return bool(plain and parted and source_file.stat and int(source_file.stat[0]) >= 2 * LEAST and count_remote_workers())


def joined_key(job: Job, digest: str) -> Key:
    """Return the key of the Parquet file that a CSV file becomes by ranges."""
    return JOINED.key(converted_key(job, digest))


def convert_ranges(run: Run, objects: Sequence[Located]) -> dict[str, tuple[Artifact, ...]]:
    """Convert ranges of CSV objects to Parquet in tasks; return artefacts by object, none of one not cut.

    Args:
        objects: Such as ``is_readable_in_ranges`` tells.
    """
    cut = {one.name: (one, starts) for one, starts in zip(objects, _starts(objects), strict=True) if len(starts) > 1}
    looked = _each(run, "look through range", _scan, {name: _ranges(run, one, starts) for name, (one, starts) in cut.items()})
    calls = {}
    for name, (one, starts) in cut.items():
        found = record_starts(list(zip(starts, looked[name], strict=True)))
        # The first record is the header.
        whole = [both for both in _between(found or [], one) if both[0] < both[1]]
        calls[name] = [(run.job.with_task_memory(), one, (found or [0])[0], *both, run.store) for both in whole]
    made = _each(run, "convert range", _convert, calls)
    return {name: _together(parts, looked[name]) for name, parts in made.items()}


def _together(parts: Sequence[Artifact | None], looked: Sequence[ScannedRange]) -> tuple[Artifact, ...]:
    """Return the converted ranges of an object; nothing if one failed or records are missing."""
    there = tuple(part for part in parts if part is not None)
    whole = len(there) == len(parts) and 1 + sum(part.rows for part in there) == records_of(looked)
    return there if whole else ()


def _starts(objects: Sequence[Located]) -> list[list[int]]:
    """Return the offsets at which the ranges of each object begin."""
    sizes = [_size(one) for one in objects]
    tasks, total = tasks_for(count_remote_workers()), sum(sizes)
    counts = [min(size // LEAST, -(-tasks * size // total)) for size in sizes]
    return [[size * number // count for number in range(count)] for size, count in zip(sizes, counts, strict=True)]


def _ranges(run: Run, one: Located, starts: Sequence[int]) -> list[tuple[Any, ...]]:
    return [(run.job, one, *both) for both in _between(starts, one)]


def _between(starts: Sequence[int], one: Located) -> list[tuple[int, int]]:
    return list(zip(starts, [*starts[1:], _size(one)], strict=True)) if starts else []


def _size(one: Located) -> int:
    assert one.stat is not None
    return int(one.stat[0])


def _each(
    run: Run, label: str, function: Callable[..., Result], arguments: Mapping[str, Sequence[tuple[Any, ...]]]
) -> dict[str, list[Result]]:
    """Call a function for each of some arguments, with the key of its artefact; results are by object."""
    once, calls = secrets.token_hex(16), list[Call]()
    many = sum(map(len, arguments.values()))
    for number, those in enumerate(chain.from_iterable(arguments.values()), start=1):
        key, name = RANGES.key(once, number), f"{label} {number} of {many} ({once[:8]})"
        calls.append(Call(key, name, (*those, key), may_leave_process=True))
    made = iter(map_step(run, "objects", function, calls))
    return {name: list(islice(made, len(mine))) for name, mine in arguments.items()}


def _scan(job: Job, one: Located, first: int, last: int, _key: Key) -> ScannedRange:
    before = max(first - 2, 0)
    ends = b"".join(_read(one, before, first)), b"".join(_read(one, last, last + 1))
    return scan_range(_read(one, first, last), *ends, job.source.delimiter)


def _convert(job: Job, one: Located, header: int, first: int, last: int, store: Store, key: Key) -> Artifact | None:
    """Convert the records of a range; return nothing if some do not fit or cannot be read."""
    folder = private_folder(store.folder.parent / "spill" / "objects")
    path = folder / f"{secrets.token_hex(8)}.csv"
    try:
        with path.open("wb") as copied:
            # The header too: by its end the kind of all ends of lines is known, which the first one within quotes may not be of.
            for block in chain(_read(one, 0, header), _read(one, first, last)):
                copied.write(block)
        return store.make(RANGES.name, key, ".parquet", lambda part: convert_rows(job, path, one.name, part, store))
    except SourceError:
        return None
    finally:
        path.unlink(missing_ok=True)


def _read(one: Located, first: int, last: int) -> Iterator[bytes]:
    """Yield the bytes of a range in parts."""
    assert one.stat is not None
    with open_as_listed(one.name, one.stat) as file:
        file.seek(first)
        while first < last and (block := file.read(min(BLOCK, last - first))):
            first += len(block)
            yield block
