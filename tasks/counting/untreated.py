"""Phase that inspects untreated columns, before anything else of the source is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors.refusals import PassthroughError, PolicyError
from schemas.job.columns import REST, Columns
from schemas.job.job import Job
from schemas.job.policy import banned_faults
from schemas.release.figures import PassedColumn, Passthrough
from tasks.counting.untreated_figures import (
    BYTES,
    FIGURES,
    SCHEMA,
    VALUES,
    ColumnCounts,
    ColumnInspection,
    FigureReading,
    Figures,
    Summed,
    ValueReading,
    bytes_by_column,
    merge_samples,
    read_figures,
    row_groups_by_column,
    sum_in_database,
)
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_step, run_for_item, run_for_items, split_for_workers
from tasks.source.chunks import ChunkedSource
from tasks.store.database import ENOUGH, database, literal
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("values_apart", __name__)
MOST_SHARES = 64
"""Each group of chunks leaves as many pieces; more would be many small ones."""


def sum_in_shares(run: Run, column_count: int, parts: Sequence[Artifact]) -> Summed:
    """Return value sums by column and samples over all chunks; tasks sum up a share of the digests each.

    Args:
        column_count: How many columns were counted.
        parts: Tables of the chunks.
    """
    job, groups = run.job.with_task_memory(), split_for_workers(parts)
    shares = min(len(groups), MOST_SHARES)

    def calls(name: str, keys: Sequence[Key], given: Sequence[tuple[object, ...]]) -> list[Call]:
        labels = (f"{name} {number} of {len(given)}" for number in range(1, len(given) + 1))
        return [
            Call(key, label, (job, *one, key, run.store), may_leave_process=True)
            for key, label, one in zip(keys, labels, given, strict=True)
        ]

    keys = [STEP.key([part.sha256 for part in group], shares, column_count) for group in groups]
    apart = map_step(
        run, "values apart", divide_values_by_share, calls("set apart", keys, [(shares, column_count, group) for group in groups])
    )
    pieces = [[made[number] for made in apart] for number in range(shares)]
    keys = [STEP.key("sums", [piece.sha256 for piece in mine]) for mine in pieces]
    sums = [json.loads(text) for text in map_step(run, "sum values", sum_of_share, calls("share", keys, [(mine,) for mine in pieces]))]
    added: Figures = {}
    for column, *figures in (row for rows in sums for row in rows):
        added[column] = tuple(map(sum, zip(added.get(column, (0, 0, 0)), figures, strict=True)))
    return Summed(added, tuple(made[shares] for made in apart))


def divide_values_by_share(
    job: Job, share_count: int, column_count: int, parts: Sequence[Artifact], key: Key, store: Store
) -> list[Artifact]:
    """Sum values of some chunks; return one artefact per share of digests, then one of samples."""
    files = [store.path(part) for part in parts]
    statement = f"""
        CREATE TEMP TABLE apart AS SELECT "column", digest, sum("count")::BIGINT AS "count", (digest % {share_count:d})::INTEGER AS share
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

        made = [store.make(STEP.name, STEP.key(key, number), ".parquet", partial(write, number)) for number in range(share_count)]
    return [*made, store.make(STEP.name, STEP.key(key, "sample"), ".parquet", lambda path: _write_sample(path, files, column_count))]


def _write_sample(path: Path, files: Sequence[Path], columns: int) -> int:
    """Write the values of least digest of each column as a chunk's table, one row group per column."""
    rows, names = 0, [str(file) for file in files]
    _, sampled = row_groups_by_column(names)
    with pq.ParquetWriter(path, SCHEMA, write_statistics=["column", "count"], use_dictionary=["column", "count"]) as writer:
        for number in range(columns):
            digests, values = merge_samples(sampled.get(number, []))
            kinds = pa.array([number] * len(digests), pa.uint16()), pa.array([0] * len(digests), pa.uint32())
            writer.write_table(pa.table([kinds[0], pa.array(digests), kinds[1], values], schema=SCHEMA))
            rows += len(digests)
        writer.add_key_value_metadata({BYTES: json.dumps(bytes_by_column(names))})
    return rows


def sum_of_share(job: Job, pieces: Sequence[Artifact], key: Key, store: Store) -> str:
    """Return JSON rows of column, distinct, unique and all values, summed over one share of digests."""
    spill = private_folder(store.folder.parent / "spill" / f"values-{key}")
    figures = sum_in_database(job, [str(store.path(piece)) for piece in pieces], spill)
    return json.dumps([[column, *found] for column, found in figures.items()])


FEW = 8
"""Chunks whose values one task of a cluster sums up."""
OWN = 4
"""How often a value of a text occurs on average, at most, where a dictionary costs more than it saves."""


def check_published(run: Run, source: ChunkedSource) -> None:
    """Raise ``PolicyError`` if the release would publish columns that the policy forbids.

    The columns of ``insensitive: rest`` are known by now.
    """
    policy = run.policy
    if policy and (faults := banned_faults(policy, source.payload)):
        raise PolicyError.below(run.job.name, policy.path, faults)


def measure_untreated_columns(run: Run, source: ChunkedSource) -> tuple[dict[str, PassedColumn], ChunkedSource]:
    """Return untreated columns' figures and the source with text lengths; raise for identifying columns.

    Returns:
        Figures by column, in the order of the release; and the source with the lengths of its texts.
    """
    columns = run.job.columns
    untreated = [name for name in source.payload if name not in source.treatments]
    person = columns.person[0] if len(columns.person) == 1 else None
    names = [*untreated, *([person] if untreated and person is not None and person not in untreated else [])]
    if not untreated:
        return {}, source

    figures = inspect_columns(run, source, names, person=person)
    found = {name: figures.columns[name] for name in untreated}
    if refused := refused_columns(columns, found):
        raise PassthroughError.identifying_columns(refused)
    # Of all records, published or not, so that the files of a release are cut alike whatever is suppressed.
    lengths = {name: -(-figures.bytes[name] // source.records) for name in untreated}
    own = tuple(name for name in untreated if lengths[name] and OWN * found[name].distinct >= found[name].values)
    return found, source.model_copy(update={"text_bytes": lengths, "own_texts": own})


def refused_columns(columns: Columns, found: Passthrough) -> dict[str, tuple[str, ...]]:
    """Return by name the reasons of identifying columns under ``insensitive: rest``; else empty."""
    if columns.insensitive != REST:
        return {}
    return {name: one.reasons for name, one in found.items() if one.reasons and name not in columns.sensitive}


def inspect_columns(
    run: Run, source: ChunkedSource, names: Sequence[str], *, person: str | None = None, people: int | None = None
) -> ColumnInspection:
    """Return figures of columns: values counted over the complete source, patterns found in a sample.

    Args:
        names: The columns.
        person: The column among them that tells persons apart.
        people: How many persons there are, if no column tells.
    """
    parts = run_for_items(run, VALUES, ValueReading(source.columns, tuple(names), run.store), source.chunks)
    return read_figures(_figures(run, names, (person, people), parts), run.store)


def _figures(run: Run, names: Sequence[str], whose: tuple[str | None, int | None], parts: Sequence[Artifact]) -> Artifact:
    """Sum up the values of all chunks; on a cluster by tasks."""
    elsewhere, values = count_remote_workers() > 0, ColumnCounts(parts)
    given = FigureReading(run.job.with_task_memory() if elsewhere else run.job, tuple(names), whose[0], run.store, run.spill, whose[1])
    if elsewhere and len(parts) > FEW and FIGURES.find(given, values) is None:
        values = ColumnCounts(parts, sum_in_shares(run, len(names), parts))
    return run_for_item(run, FIGURES, given, values, "look at columns", elsewhere=elsewhere)
