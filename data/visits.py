"""Synthetic visits of patients: a table with several records per person.

Claims, stays and payments are such tables too. Of four visits three are further ones of a person: some people come once, some often.
Between two visits a person grows older, gains or loses weight, and may move or change the profession, so that the visits of one person
differ in their quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from data.medical import QIDS, files_of
from data.patients import BLOCK, HEAVIEST, LIGHTEST, OLDEST, SCHEMA, draw_block

VISITS_PER_PERSON = 4
MOVED, CHANGED = 0.1, 0.05
"""Shares of the visits before which somebody moved, or took up another profession."""
COLUMNS = ("patient_id", *QIDS, "health_condition")
FIELDS = pa.schema([SCHEMA.field(name) for name in COLUMNS])


def make_visits(out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
    """Write synthetic visits as Parquet files, and return their paths.

    The files are ``out/visits-00001.parquet`` and so on. Memory holds the patients, about 40 bytes each, and 4 bytes a visit.

    Args:
        out: Folder for the files, made if it is not there.
        rows: Number of visits, 1 to 999,999,999; of a quarter as many people, each of whom has at least one.
        files: Number of files, of equal length to within one record; by default one per million visits.
        seed: 0 or greater; the same seed and number of visits give the same bytes with the same versions of NumPy, PyArrow and Faker.

    Returns:
        The paths in the order of their records.

    Raises:
        ValueError: an argument is out of range, or ``out`` holds files of a data set of more files, which would mix with this one.
    """
    parts = files_of("visits", out, rows, files, seed)
    persons = max(rows // VISITS_PER_PERSON, 1)
    whose, patients = _whose(rows, persons, seed), _patients(persons, seed)
    for path, first, end in parts:
        _write(path, _visits(patients, whose, seed, first, end))
    return [path for path, *_ in parts]


def _whose(rows: int, persons: int, seed: int) -> NDArray[np.int32]:
    """Return the person of each visit, shape (rows,).

    Every person has one visit, and persons with low numbers have more of the others.
    """
    rng = np.random.default_rng([seed, rows])
    further = (persons * rng.random(rows - persons) ** 2).astype(np.int32)
    whose = np.concatenate([np.arange(persons, dtype=np.int32), further])
    rng.shuffle(whose)
    return whose


def _patients(persons: int, seed: int) -> pa.Table:
    """Return the patients of the visits as one table."""
    blocks = (draw_block(seed, number).select(COLUMNS) for number in range(-(-persons // BLOCK)))
    return pa.concat_tables(list(blocks)).slice(0, persons).combine_chunks()


def _visits(patients: pa.Table, whose: NDArray[np.int32], seed: int, first: int, end: int) -> Iterator[pa.Table]:
    """Yield the visits ``first`` to ``end`` (not included) block by block.

    The draws of a visit depend on the block that its number is in.
    """
    for number in range(first // BLOCK, (end - 1) // BLOCK + 1):
        start = max(first - number * BLOCK, 0)
        stop = min(end - number * BLOCK, BLOCK)
        visitors = whose[number * BLOCK : (number + 1) * BLOCK]
        yield _drawn(patients.take(pa.array(visitors)), seed, number).slice(start, stop - start)


def _drawn(visitors: pa.Table, seed: int, number: int) -> pa.Table:
    """Return a block of visits, with ages, weights and homes changed at random."""
    rng = np.random.default_rng([seed, number, len(COLUMNS)])
    # Where somebody moved to, what he does now and what he comes with is taken from patients beyond the last one.
    others = draw_block(seed, (1 << 20) + number).slice(0, len(visitors))
    older, heavier = rng.integers(0, 3, BLOCK)[: len(visitors)], (6 * rng.standard_normal(BLOCK))[: len(visitors)]
    moved, changed = (rng.random(BLOCK)[: len(visitors)] < share for share in (MOVED, CHANGED))
    tenths = np.clip(np.rint(visitors["bmi"].to_numpy() * 10 + heavier), LIGHTEST, HEAVIEST)
    columns = {
        "age": pa.array(np.minimum(visitors["age"].to_numpy() + older, OLDEST).astype(np.int16)),
        "bmi": pa.array(tenths / 10),
        "pin_code": pc.if_else(pa.array(moved), others["pin_code"], visitors["pin_code"]),
        "profession": pc.if_else(pa.array(changed), others["profession"], visitors["profession"]),
        "health_condition": others["health_condition"],
    }
    return pa.table([columns.get(name, visitors[name]) for name in COLUMNS], schema=FIELDS)


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables to one Parquet file, which gets its name when it is complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        with pq.ParquetWriter(part, FIELDS, compression="zstd", compression_level=1, store_schema=False) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=BLOCK)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
