"""The values of all chunks summed up by tasks of a cluster: set apart by their digests, so that each value is in one share, and whole.

What is distinct, or of one record, is so in its share, and the shares' figures add up. Values that hardly repeat are as many as there are
records: they pass from worker to worker by way of the store, each twice, and none through the flow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.job.job import Job
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import cut, map_step
from tasks.passthrough.chunks import BYTES, SCHEMA
from tasks.passthrough.figures import Figures, Summed, bytes_of, groups_of, sample_of, summed_in
from tasks.store.database import ENOUGH, database, literal
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("values_apart", __name__)
MOST_SHARES = 64
"""Each group of chunks leaves as many pieces; more would be many small ones."""


def sum_in_shares(run: Run, columns: int, parts: Sequence[Artifact]) -> Summed:
    """Has tasks sum up the values of all chunks.

    Args:
        run: The run.
        columns: How many columns were counted.
        parts: Tables of the chunks.

    Raises:
        SkaldError: whatever a step raises.
    """
    job, groups = run.job.in_task(), cut(parts)
    shares = min(len(groups), MOST_SHARES)

    def calls(name: str, keys: Sequence[Key], given: Sequence[tuple[object, ...]]) -> list[Call]:
        labels = (f"{name} {number} of {len(given)}" for number in range(1, len(given) + 1))
        return [Call(key, label, (job, *one, key, run.store), elsewhere=True) for key, label, one in zip(keys, labels, given, strict=True)]

    keys = [STEP.key([part.sha256 for part in group], shares, columns) for group in groups]
    apart = map_step(run, "values apart", set_values_apart, calls("set apart", keys, [(shares, columns, group) for group in groups]))
    pieces = [[made[number] for made in apart] for number in range(shares)]
    keys = [STEP.key("sums", [piece.sha256 for piece in mine]) for mine in pieces]
    sums = [json.loads(text) for text in map_step(run, "sum values", sum_of_share, calls("share", keys, [(mine,) for mine in pieces]))]
    added: Figures = {}
    for column, *figures in (row for rows in sums for row in rows):
        added[column] = tuple(map(sum, zip(added.get(column, (0, 0, 0)), figures, strict=True)))
    return Summed(added, tuple(made[shares] for made in apart))


def set_values_apart(job: Job, shares: int, columns: int, parts: Sequence[Artifact], key: Key, store: Store) -> list[Artifact]:
    """Sums the values of some chunks and sets them apart by share; the last artefact is their sample.

    Raises:
        StorageError: the disk is full, memory too small, or an artefact gone.
    """
    files = [store.path(part) for part in parts]
    statement = f"""
        CREATE TEMP TABLE apart AS SELECT "column", digest, sum("count")::BIGINT AS "count", (digest % {shares:d})::INTEGER AS share
        FROM read_parquet([{", ".join(literal(str(file)) for file in files)}]) WHERE "count" > 0 GROUP BY ALL
    """
    spill = private_folder(store.folder.parent / "spill" / f"values-{key}")
    with database(job.memory, spill, 1 if job.memory < ENOUGH else job.threads) as connection:
        connection.execute(statement)
        # Two workers may do it at a time, and what they leave is then the same.
        connection.execute("SET preserve_insertion_order = true")

        def write(number: int, path: Path) -> int:
            selected = f"""SELECT "column", digest, "count" FROM apart WHERE share = {number:d} ORDER BY ALL"""
            [(rows,)] = connection.execute(f"COPY ({selected}) TO {literal(str(path))} (FORMAT parquet)").fetchall()
            return int(rows)

        made = [store.make(STEP.name, STEP.key(key, number), ".parquet", partial(write, number)) for number in range(shares)]
    return [*made, store.make(STEP.name, STEP.key(key, "sample"), ".parquet", lambda path: _write_sample(path, files, columns))]


def _write_sample(path: Path, files: Sequence[Path], columns: int) -> int:
    """Writes the values of least digest of each column, as a chunk's table has them: a row group is of one column."""
    rows, names = 0, [str(file) for file in files]
    _, sampled = groups_of(names)
    with pq.ParquetWriter(path, SCHEMA, write_statistics=["column", "count"], use_dictionary=["column", "count"]) as writer:
        for number in range(columns):
            digests, values = sample_of(sampled.get(number, []))
            kinds = pa.array([number] * len(digests), pa.uint16()), pa.array([0] * len(digests), pa.uint32())
            writer.write_table(pa.table([kinds[0], pa.array(digests), kinds[1], values], schema=SCHEMA))
            rows += len(digests)
        writer.add_key_value_metadata({BYTES: json.dumps(bytes_of(names))})
    return rows


def sum_of_share(job: Job, pieces: Sequence[Artifact], key: Key, store: Store) -> str:
    """Counts, by column, the distinct values of a share, those of one record, and all; returns that as text.

    Raises:
        StorageError: the disk is full, memory too small, or an artefact gone.
    """
    spill = private_folder(store.folder.parent / "spill" / f"values-{key}")
    figures = summed_in(job, [str(store.path(piece)) for piece in pieces], spill)
    return json.dumps([[column, *found] for column, found in figures.items()])
