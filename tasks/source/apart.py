"""Unpacked lengths of Parquet values, read in a process of their own, as damage crashes Arrow."""

from __future__ import annotations

import json
import os
import pickle
import resource
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors.base import SkaldError, SourceError
from schemas.errors.tables import FileError
from tasks.source.listing import Stat, while_stable
from tasks.source.unpacked import Unpacked, check_int96, long_value_lengths
from tasks.store.keys import StepCode
from tasks.store.store import Store

Result = TypeVar("Result")


def run_in_forked_process(name: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a forked process and return its result; raise ``FileError`` if a signal ends it.

    Args:
        name: The file that it reads, as the user knows it.
        function: Reads a file of this machine, and returns what can be pickled.
    """
    content = _answer_of(function, arguments)
    if content is None:
        raise FileError.fatal(name)
    made: Result = _given(content)
    return made


def run_each_in_forked_process(function: Callable[..., Result], calls: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Result]:
    """Call a function for each file in one forked process, return results; find a file that kills it.

    A copy of the process costs as much as a hundred small files, so that one reads all of them. Where a signal ends it, each file is
    read in a copy of its own: then it is known which one did.

    Args:
        function: As for ``run_in_forked_process``.
        calls: The name of each file, and the arguments of the function.
    """
    if not calls:
        return []
    content = _answer_of(_each_of, (function, [arguments for _, arguments in calls]))
    if content is None:
        return [run_in_forked_process(name, function, *arguments) for name, arguments in calls]
    made: list[Result] = _given(content)
    return made


def _each_of(function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in calls]


def _given(content: bytes) -> Any:
    result, error = pickle.loads(content)
    if error is not None:
        raise error
    return result


def _answer_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes | None:
    """Return the answer of a copy of this process; None if a signal ended it."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Other threads are not in the copy, which only reads a file.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _answer(write, function, arguments)
    os.close(write)
    with os.fdopen(read, "rb") as answered:
        content = answered.read()
    status = os.waitpid(child, 0)[1]
    return None if os.WIFSIGNALED(status) or not content else content


def _answer(write: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> NoReturn:
    """Write a result or an error into a pipe, and end the process without its exit handlers."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A library's last words are no sentence of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        result: Any = None
        error: Exception | None = None
        try:
            result = function(*arguments)
        except SkaldError as ours:
            error = ours
        except Exception as other:  # its text is kept from everybody by whoever catches it
            error = other
        with os.fdopen(write, "wb") as answer:
            answer.write(pickle.dumps((result, error)))
        code = 0
    finally:
        os._exit(code)


STEP = StepCode("unpacked", __name__)
_SIGNATURE, _ENCRYPTED = 28, b"PARE"
"""Bytes of the signature of a footer, and how a file ends whose footer is encrypted too."""


class LengthInspection(NamedTuple):
    """Path, name, digest and stat of a Parquet file whose value lengths are looked up.

    Attributes:
        path: Where it is.
        name: What the user calls it.
        digest: Of its content.
        stat: As ``while_stable`` has it.
    """

    path: Path
    name: str
    digest: str
    stat: Stat | None


def lengths_unpacked(files: Sequence[LengthInspection], memory: int, store: Store) -> list[Unpacked]:
    """Return each Parquet file's value lengths, stored or read; raise for encrypted or damaged files.

    Args:
        memory: Bytes that the job may take.
    """
    keys = [STEP.key(file.digest, memory) for file in files]
    kept = {key: store.find(STEP.name, key) for key in keys}
    new = {key: file for key, file in zip(keys, files, strict=True) if kept[key] is None}
    made = run_each_in_forked_process(_unpacked_at_rest, [(file.name, (file, memory)) for file in new.values()])
    for key, one in zip(new, made, strict=True):
        kept[key] = store.make(STEP.name, key, ".json", partial(_write, one))
    texts = {key: store.path(one).read_text() for key, one in kept.items() if one}
    return [Unpacked(*json.loads(texts[key])) for key in keys]


def _write(found: Unpacked, part: Path) -> int:
    return part.write_text(json.dumps(found))


def _unpacked_at_rest(file: LengthInspection, memory: int) -> Unpacked:
    with while_stable(file.path, file.name, file.stat):
        return unpacked_of(file.path, file.name, memory)


def unpacked_of(path: Path, name: str, memory: int) -> Unpacked:
    """Return the lengths of a Parquet file's long values; raise if it is encrypted, damaged or too large.

    Args:
        name: What the user calls it.
        memory: Bytes that the job may take.
    """
    try:
        with pa.OSFile(str(path)) as file, pq.ParquetFile(file) as opened:
            check_plain(file, opened.metadata, name)
            check_int96(file, opened.metadata, name)
            return long_value_lengths(file, opened.metadata, name, memory)
    except (pa.ArrowException, OSError):
        with suppress(OSError), pa.OSFile(str(path)) as file:
            raise _unreadable(file, name) from None
        raise SourceError.unreadable(name, "parquet") from None


def check_header(opened: Any, name: str) -> None:
    """Raise ``SourceError`` for an open Parquet file that is encrypted or of too fine timestamps.

    Args:
        name: What the user calls it.
    """
    try:
        with pq.ParquetFile(opened) as file:
            check_plain(opened, file.metadata, name)
            check_int96(opened, file.metadata, name)
    except (pa.ArrowException, OSError):
        raise _unreadable(opened, name) from None


def check_plain(opened: Any, metadata: pq.FileMetaData, name: str) -> None:
    """Raise ``FileError`` for a Parquet file with encrypted columns, at which Arrow would crash.

    Args:
        opened: The file, open for reading.
        metadata: Its footer.
        name: What the user calls it.
    """
    opened.seek(-8, os.SEEK_END)
    size = int.from_bytes(opened.read(4), "little")
    # A footer that is not encrypted itself is followed by a signature then.
    if size - metadata.serialized_size == _SIGNATURE:
        raise FileError.encrypted(name)


def _unreadable(opened: Any, name: str) -> SourceError:
    with suppress(pa.ArrowException, OSError, ValueError):
        opened.seek(-4, os.SEEK_END)
        if opened.read(4) == _ENCRYPTED:
            return FileError.encrypted(name)
    return SourceError.unreadable(name, "parquet")
