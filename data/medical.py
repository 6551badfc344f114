"""Synthetic medical data set of the SKALD paper (section IV-A, Table I), with any number of records.

Record i depends on the seed and on i alone. So a data set of two million records begins with the data set of one million, the number of
files does not change their joint content, and a lost file can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data.patients import BLOCK, MAX_NUMBER, SCHEMA, draw_block
from schemas.errors.base import counted, listed

FILE_ROWS = 1_000_000

QIDS = ("blood_group", "profession", "age", "bmi", "pin_code")


def make_medical(out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
    """Write synthetic medical records as Parquet files, and return their paths.

    The files are ``out/medical-00001.parquet`` and so on. Memory holds one block, whatever ``rows`` is. Files of an earlier data set are
    written over. A file appears under its name when it is complete.

    Args:
        out: folder for the files, made if it is not there.
        rows: number of records, 1 to 999,999,999.
        files: number of files, of equal length to within one record; by default one per million records, the last one shorter.
        seed: 0 or greater; the same seed gives the same bytes with the same versions of NumPy, PyArrow and Faker.

    Returns:
        The paths in the order of their records.

    Raises:
        ValueError: an argument is out of range, or ``out`` holds files of a data set of more files, which would mix with this one.
    """
    parts = files_of("medical", out, rows, files, seed)
    for path, first, end in parts:
        _write(path, _records(seed, first, end))
    return [path for path, *_ in parts]


def files_of(kind: str, out: Path, rows: int, files: int | None, seed: int) -> list[tuple[Path, int, int]]:
    """Check the arguments and create a data set's folder; return each file with its record range.

    Each entry has the path, the first record in the file, and the first record after it.

    Raises:
        ValueError: an argument is out of range, or ``out`` holds files of a data set of more files, which would mix with this one.
    """
    ends = _file_ends(kind, rows, files)
    if seed < 0:
        raise ValueError(f"the seed is {seed}; give 0 or a greater number")
    paths = [out / f"{kind}-{number:05d}.parquet" for number in range(1, len(ends))]
    _refuse_strangers(kind, out, paths)
    out.mkdir(parents=True, exist_ok=True)
    return [(path, first, end) for path, (first, end) in zip(paths, pairwise(ends), strict=True)]


def _file_ends(kind: str, rows: int, files: int | None) -> list[int]:
    """Return the positions where files begin and end, from 0 to ``rows``.

    File f holds the records from the f-th of these numbers to the next.
    """
    if not 1 <= rows <= MAX_NUMBER:
        raise ValueError(f"{rows:,} records are asked for; the {kind} data set has 1 to {MAX_NUMBER:,}")
    if files is None:
        return [*range(0, rows, FILE_ROWS), rows]
    if not 1 <= files <= rows:
        raise ValueError(f"{counted(rows, 'record')} cannot fill {counted(files, 'file')}; give 1 to {rows:,} files")
    return [rows * number // files for number in range(files + 1)]


def _refuse_strangers(kind: str, out: Path, paths: list[Path]) -> None:
    """Raise ValueError if other files in the folder would be read as part of the data set.

    A reader of ``medical-*.parquet`` or the like would take them for its files.
    """
    strangers = sorted({path.name for path in out.glob(f"{kind}-*.parquet")} - {path.name for path in paths})
    if strangers:
        raise ValueError(
            f"{out} holds {counted(len(strangers), 'file')} of another data set ({listed(strangers)}); choose another folder or remove them"
        )


def _records(seed: int, first: int, end: int) -> Iterator[pa.Table]:
    """Yield the records ``first`` to ``end`` (not included) block by block."""
    for number in range(first // BLOCK, (end - 1) // BLOCK + 1):
        start = max(first - number * BLOCK, 0)
        yield draw_block(seed, number).slice(start, min(end - number * BLOCK, BLOCK) - start)


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables to one Parquet file, which gets its name when it is complete."""
    part = path.with_name(f".{path.name}.part")
    # Statistics and dictionaries only for the columns that are read again; numbers, names and addresses hardly repeat.
    columns = [*QIDS, "health_condition"]
    try:
        with pq.ParquetWriter(
            part, SCHEMA, compression="zstd", compression_level=1, use_dictionary=columns, write_statistics=columns, store_schema=False
        ) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=BLOCK)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
