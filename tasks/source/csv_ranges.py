"""Large CSV objects, converted to Parquet by several tasks, a range of whole records each.

Tasks first look through ranges of equal length for quotes and ends of lines; what they found, taken together, says where records end. A
file that quotes do not decide, or any of whose rows do not fit, is read by one task as any other is, which tells what is wrong with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any

from core.formats.record_ends import ScannedRange, record_starts, records_of, scan_range
from schemas.errors.base import SourceError
from schemas.job.job import Job
from schemas.job.source import UTF8
from tasks.engine.calls import Call, tasks_for
from tasks.engine.guard import Result
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_step
from tasks.source.csv_files import convert_rows, converted_key
from tasks.source.locations import Located
from tasks.source.pinned import BLOCK, pinned
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

RANGES, JOINED = StepCode("ranges", __name__), StepCode("converted", __name__)
LEAST = 64_000_000
"""Bytes of a range: a task that reads fewer takes longer to be asked."""
PLAIN = {".csv", ".tsv", ".txt"}


def is_read_in_ranges(job: Job, source_file: Located) -> bool:
    """Return whether a CSV object may be read in ranges: uncompressed, and large enough for two tasks."""
    delimiter = job.source.delimiter
    plain = job.source.format == "csv" and job.source.encoding == UTF8 and PurePosixPath(source_file.name).suffix.lower() in PLAIN
    parted = len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n'
    return bool(plain and parted and source_file.stat and int(source_file.stat[0]) >= 2 * LEAST and count_remote_workers())


def joined_key(job: Job, digest: str) -> Key:
    """Return the key of the Parquet file that a CSV file becomes by ranges."""
    return JOINED.key(converted_key(job, digest))


def convert_ranges(run: Run, objects: Sequence[Located]) -> dict[str, tuple[Artifact, ...]]:
    """Convert the ranges of several objects to Parquet by tasks, all at the same time.

    Args:
        run: The run.
        objects: Such as ``is_read_in_ranges`` tells.

    Returns:
        What became of the ranges of each object, by its name and in the order of the records; nothing of one that cannot be cut.
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
    with pinned(one.name, one.stat) as file:
        file.seek(first)
        while first < last and (block := file.read(min(BLOCK, last - first))):
            first += len(block)
            yield block
