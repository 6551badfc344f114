"""Readers of a source's first records, by format, for drafting a job."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from schemas.job.source import UTF8
from tasks.planning.spellings import detect_spelling, spelling_keys
from tasks.source.csv_files import BLOCK, write_in_utf8
from tasks.store.database import literal
from tasks.store.files import random_temporary_folder

WESTERN = "windows-1252"
MOST_CHARACTERS = 1 << 26
"""Characters that are looked at to tell the encoding of a file."""


@dataclass(frozen=True)
class Sample:
    """A source's files as DuckDB reads them, and the keys of ``source`` that describe them.

    Attributes:
        relation: What DuckDB reads them as.
        keys: What ``source`` says of them besides their path.
        texts: Whether every column is read as text, so that the job gives the types.
        close: Removes what was made for reading, such as private copies in UTF-8.
    """

    relation: str
    keys: Mapping[str, str] = field(default_factory=dict)
    texts: bool = False
    close: Callable[[], None] = ExitStack().close


def parquet_sample(_connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, hive: bool = False) -> Sample:
    """Return the sample of Parquet files; with ``hive``, also the columns their folders name."""
    return Sample(f"read_parquet([{_listed(files)}], hive_partitioning = {str(hive).lower()})")


def csv_sample(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> Sample:
    """Return the sample of CSV files, with encoding, delimiter and spelling detected in the first file."""
    encoding = encoding_of(files[0])
    with ExitStack() as opened:
        read = opened.enter_context(files_in_utf8(files, encoding))
        found = connection.execute(f"SELECT Delimiter FROM sniff_csv({literal(str(read[0]))})").fetchone()
        delimiter = str(found[0]) if found else ","
        # All as text: a type guessed from the front may not fit what follows, and as a number a code loses its leading zeros.
        how = f"delim = {literal(delimiter)}, header = true, all_varchar = true, quote = '\"', escape = '\"'"
        spelling, spelled = detect_spelling(connection, f"read_csv([{_listed(read)}], {how})")
        keys = {"format": "csv", "delimiter": delimiter, **({"encoding": encoding} if encoding != UTF8 else {})}
        return Sample(spelled, {**keys, **spelling_keys(spelling)}, texts=True, close=opened.pop_all().close)


@contextmanager
def files_in_utf8(files: Sequence[Path], encoding: str) -> Iterator[Sequence[Path]]:
    """Yield text files in UTF-8: the given ones if it is their encoding, else private copies, removed at the end."""
    if encoding == UTF8:
        yield files
        return
    with random_temporary_folder("csv") as folder:
        copies = [folder / f"{number}.csv" for number, _ in enumerate(files)]
        for file, copy in zip(files, copies, strict=True):
            write_in_utf8(file, str(file), encoding, copy)
        yield copies


def encoding_of(file: Path) -> str:
    """Return the encoding of a text file: UTF-8, UTF-16 by its first bytes, or else what Windows writes in western languages."""
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16"
        with pa.input_stream(str(file), compression="detect") as stream, io.TextIOWrapper(stream, UTF8) as text:
            left = MOST_CHARACTERS
            while left > 0 and (characters := text.read(BLOCK)):
                left -= len(characters)
    except UnicodeDecodeError:
        return WESTERN
    except OSError:
        # Who reads it says what is wrong with it.
        return UTF8
    return UTF8


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(literal(str(path)) for path in files)
