"""Synthetic hospital in three tables: persons, visits and conditions.

Of every four visits three are further ones of a person, so that some people come once and some often; two visits of three find a
condition. A few conditions are known of the person and of no visit.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.errors.base import counted

BLOCK = 1 << 18
VISITS, CONDITIONS = 2.0, 2 / 3
"""Visits of a person and conditions of a visit, on average."""
OFTEN = 0.35
"""How unevenly visits are shared out: the exponent of the rank."""
MOST, MOST_FILES = 99_999_999, 9_999
FIRST_DAY, DAYS = np.datetime64("2023-01-01"), 730
WARDS = ["cardiology", "emergency", "geriatrics", "maternity", "neurology", "oncology", "paediatrics", "surgery"]
CODES = [f"{letter}{number:02d}" for letter in "ABCEFGIJKM" for number in range(0, 60, 4)]
SEXES = ["female", "male"]
TABLES = ("person", "visit", "condition")
"""Folders of the tables."""


def make_hospital(out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
    """Write the synthetic hospital as Parquet files in three folders, and return their paths.

    The folders are ``out/person``, ``out/visit`` and ``out/condition``, each with files ``part-00001.parquet`` and so on.

    Args:
        out: Folder for the tables, made if it is not there.
        rows: Number of persons, 1 to 99,999,999; visits and conditions follow.
        files: Number of files of each table; by default one per million rows of it.
        seed: 0 or greater; the same seed and number of persons give the same rows.

    Raises:
        ValueError: an argument is out of range, or a folder holds other files.
    """
    if not 1 <= rows <= MOST or seed < 0:
        raise ValueError(f"there must be 1 to {MOST:,} persons, and a seed of 0 or more")
    if files is not None and not 1 <= files <= MOST_FILES:
        raise ValueError(f"there must be 1 to {MOST_FILES:,} files")
    random = np.random.default_rng([seed, rows])
    persons = _persons(random, rows)
    visits = _visits(random, rows)
    written = []
    for name, table in zip(TABLES, (persons, visits, _conditions(random, rows, visits)), strict=True):
        written += _write(out / name, table, files or max(-(-len(table) // 1_000_000), 1))
    return written


def _persons(random: np.random.Generator, rows: int) -> pa.Table:
    """Return the table of persons."""
    ages = np.clip(np.rint(random.normal(48, 22, rows)), 0, 99).astype(np.int64)
    areas = random.zipf(1.3, rows) % 400
    return pa.table(
        {
            "person_id": _shuffled(random, rows),
            "sex": _some(random, SEXES, rows),
            "age": ages,
            "zip": pa.array([f"{10_000 + 37 * area:05d}" for area in areas.tolist()]),
            "income": np.rint(random.lognormal(10.3, 0.5, rows)).astype(np.int64),
        }
    )


def _visits(random: np.random.Generator, rows: int) -> pa.Table:
    """Return the table of visits."""
    many = max(int(VISITS * rows), 1)
    whose = (rows * random.random(many) ** (1 + OFTEN)).astype(np.int64)
    # The identifiers of persons are shuffled, so that the places of those who come often tell nothing.
    ids = _shuffled(np.random.default_rng([rows, 7]), rows)
    starts = FIRST_DAY + random.integers(0, DAYS, many).astype("timedelta64[D]")
    return pa.table(
        {
            "visit_id": _shuffled(random, many) + 1_000_000_000,
            "person_id": ids[whose],
            "start": pa.array(starts.astype("datetime64[D]")),
            "ward": _some(random, WARDS, many),
            "nights": np.minimum(random.geometric(0.45, many) - 1, 30),
        }
    )


def _conditions(random: np.random.Generator, rows: int, visits: pa.Table) -> pa.Table:
    """Return the table of conditions."""
    many = max(int(CONDITIONS * len(visits)), 1)
    found_in = random.integers(0, len(visits), many)
    visit_ids = pa.array(visits["visit_id"].to_numpy()[found_in], mask=random.random(many) < 0.02)
    return pa.table({"person_id": visits["person_id"].to_numpy()[found_in], "visit_id": visit_ids, "icd10": _some(random, CODES, many)})


def _shuffled(random: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Return the numbers from 1 to ``rows`` in random order."""
    numbers = np.arange(1, rows + 1, dtype=np.int64)
    random.shuffle(numbers)
    return numbers


def _some(random: np.random.Generator, values: list[str], rows: int) -> pa.Array:
    """Return random values from a list, earlier ones more often."""
    picked = (random.beta(1, 1.7, rows) * len(values)).astype(np.int32)
    return pa.array(values).take(pa.array(picked))


def _write(folder: Path, table: pa.Table, files: int) -> list[Path]:
    """Write a table as Parquet files into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number:05d}.parquet" for number in range(1, files + 1)]
    if strange := len(set(folder.iterdir()) - set(paths)):
        raise ValueError(f"'{folder}' holds {counted(strange, 'other file')}, which would mix with this table; give an empty folder")
    for number, path in enumerate(paths):
        first, last = len(table) * number // files, len(table) * (number + 1) // files
        pq.write_table(table.slice(first, last - first), path, row_group_size=BLOCK)
    return paths
