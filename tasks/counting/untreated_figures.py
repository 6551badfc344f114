"""Figures of untreated columns over the complete source, counted out of core, and checks of samples.

They are inspected before anything else of the source is counted.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.formats.samples import MOST_SAMPLED_VALUES, ValueCounter, digest_totals, distinct_digests
from core.formats.value_patterns import identifying_patterns
from schemas.errors.refusals import PassthroughError, PolicyError
from schemas.job.columns import REST, Columns
from schemas.job.job import Job
from schemas.job.policy import banned_faults
from schemas.reading.model import FrozenModel
from schemas.release.figures import PassedColumn, Passthrough
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, run_for_item, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import long_texts, open_source_file, read_chunk
from tasks.store.database import ENOUGH, database, file_pattern
from tasks.store.files import private_folder
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store

SCHEMA = pa.schema(
    [
        pa.field("column", pa.uint16(), nullable=False),
        pa.field("digest", pa.uint64(), nullable=False),
        pa.field("count", pa.uint32(), nullable=False),
        pa.field("value", pa.string()),
    ]
)
"""A digest with its count, and no value; or one that was sampled with its value, and no count."""
COMPRESSION = {"column": "lz4", "digest": "none", "count": "lz4", "value": "lz4"}
"""Digests are as good as random."""
BYTES = "bytes"
"""Metadata key of the bytes that all texts of each column take."""
AT_A_TIME = 1_000_000
"""Values of which digests are held at most, about: 12 MB, and as much again while they are sorted."""
CODED_TEXT = 6
"""Bytes that a text of a file takes, on average, from which most are taken to occur once there: of others a dictionary takes fewer."""


@dataclass(frozen=True)
class ValueReading:
    """The columns to count: the source's schema and the names."""

    columns: pa.Schema
    names: tuple[str, ...]
    store: Store


def _count(given: ValueReading, chunk: Chunk, path: Path) -> int:
    """Count the values of some columns in one chunk by digest, with samples.

    A column's number in the table is its position among the names.
    """
    rows, sizes = 0, [0] * len(given.names)
    with pq.ParquetWriter(
        path, SCHEMA, compression=COMPRESSION, write_statistics=["column", "count"], use_dictionary=["column", "count"]
    ) as writer:
        for table in _tables(given.names, chunk, sizes):
            writer.write_table(table)
            rows += len(table)
        writer.add_key_value_metadata({BYTES: json.dumps(sizes)})
    return rows


VALUES = FileStep(
    "values",
    make=_count,
    reads=lambda _given, chunk: chunk.key,
    settings=lambda given: [(name, str(given.columns.field(name).type)) for name in given.names],
)
"""The values of columns in a chunk, by digest, and a sample of them."""


def _tables(names: Sequence[str], chunk: Chunk, sizes: list[int]) -> Iterator[pa.Table]:
    """Yield tables of value counts and samples, a few columns at a time, and fill in ``sizes``.

    ``sizes`` gets the bytes of each text column. Each column may hold a distinct value in every record.
    """
    many, plain = max(AT_A_TIME // max(chunk.rows, 1), 1), _own_texts(chunk)
    for first in range(0, len(names), many):
        counters = {first + place: ValueCounter() for place in range(len(names[first : first + many]))}
        for batch in read_chunk(chunk, names[first : first + many], plain=plain):
            for counter, column in zip(counters.values(), batch.columns, strict=True):
                counter.add(column)
            if sum(counter.waiting for counter in counters.values()) > 2 * AT_A_TIME:
                yield from (_counted(number, counter) for number, counter in counters.items())
        for number, counter in counters.items():
            yield _counted(number, counter)
            yield _sampled(number, counter)
            sizes[number] = counter.bytes


def _own_texts(chunk: Chunk) -> list[str]:
    """Return text columns with mostly distinct values, judged by the first row group of the first file.

    Dictionaries of them cost more than they save. The counts are the same either way.
    """
    file = chunk.pieces[0].file
    if file.path is None or not file.texts:
        return []
    with open_source_file(file) as read:
        return long_texts(read, file.name, file.texts, CODED_TEXT)


def _counted(number: int, counter: ValueCounter) -> pa.Table:
    digests, counts = counter.take_counts()
    nothing = pa.nulls(len(digests), pa.string())
    return pa.table([np.full(len(digests), number, np.uint16), digests, counts.astype(np.uint32), nothing], schema=SCHEMA)


def _sampled(number: int, counter: ValueCounter) -> pa.Table:
    digests, texts = counter.sample
    none = np.zeros(len(digests), np.uint32)
    return pa.table([np.full(len(digests), number, np.uint16), digests, none, texts], schema=SCHEMA)


COLUMN, COUNT = SCHEMA.get_field_index("column"), SCHEMA.get_field_index("count")
FEW_FILES, BYTES_PER_VALUE = 64, 60
"""Files that are opened anew for each column, of which the footers are held; and what a value takes while those of one column are sorted,
where it fits."""


class ColumnInspection(FrozenModel):
    """Figures of untreated columns, and the bytes of their texts.

    Attributes:
        bytes: Bytes of all values of each text column.
    """

    columns: dict[str, PassedColumn] = {}
    bytes: dict[str, int] = {}


class Group(NamedTuple):
    """A row group of a chunk's value table, with the file's footer where files are few."""

    path: str
    number: int
    rows: int
    footer: pq.FileMetaData | None


Figures = dict[int, tuple[int, ...]]
"""By column distinct values, those of one record, and all."""


@dataclass(frozen=True)
class FigureReading:
    """Settings for summing column figures: job, names, person column, store and number of people.

    Attributes:
        job: Gives memory and threads.
        names: The columns that were counted.
        persons: The column among them that identifies persons, with which others are compared.
        store: Holds the tables.
        people: How many persons there are, where no column tells them apart; None where one does, or every record is a person.
    """

    job: Job
    names: tuple[str, ...]
    persons: str | None
    store: Store
    people: int | None = None


def _add(given: FigureReading, parts: Sequence[Artifact], path: Path) -> int:
    """Sum up the values of all chunks and check a sample of each column."""
    persons, nobody = given.persons, (0, 0, 0)
    files = [str(given.store.path(part)) for part in parts]
    counted, sampled = _row_groups_by_column(files)
    sums = _sums(given.job, files, counted, given.store.folder.parent / "spill" / f"values-{FIGURES.key(given, parts)}")
    samples: dict[int, list[str]] = {number: _merged_sample(groups).to_pylist() for number, groups in sampled.items()}
    people = sums.get(given.names.index(persons), nobody)[0] if persons is not None else given.people
    found: dict[str, PassedColumn] = {}
    for number, name in enumerate(given.names):
        distinct, unique, occurring = sums.get(number, nobody)
        why = identifying_patterns(name, samples.get(number, []), distinct, unique, occurring, None if name == persons else people)
        looked_at = len(samples.get(number, []))
        found[name] = PassedColumn(distinct=distinct, unique_records=unique, values=occurring, looked_at=looked_at, reasons=tuple(why))
    path.write_text(ColumnInspection(columns=found, bytes=dict(zip(given.names, _bytes_by_column(files), strict=True))).model_dump_json())
    return len(found)


FIGURES = FileStep(
    "passthrough",
    make=_add,
    # In whatever order chunks come.
    reads=lambda _given, parts: sorted(part.sha256 for part in parts),
    settings=lambda given: [given.names, given.persons, *([] if given.people is None else [given.people])],
    suffix=".json",
)
"""The figures of columns that are published untreated."""


VALUE_SUMS_SQL = """
    SELECT "column", count(*), count(*) FILTER (records = 1), sum(records)::BIGINT FROM (
        SELECT "column", digest, sum("count") AS records FROM read_parquet($files, hive_partitioning = false) WHERE "count" > 0 GROUP BY ALL
    ) GROUP BY 1 ORDER BY 1
"""
"""Counts, by column, distinct values, unique ones and all. A value is in the table of each chunk that holds it, so that counts are added
up by digest before any is called unique."""


def _bytes_by_column(files: Sequence[str]) -> list[int]:
    """Return, per column in counting order, the bytes of its texts, from metadata of value tables."""
    sizes: list[int] = np.sum([json.loads(pq.read_metadata(file).metadata[BYTES.encode()]) for file in files], axis=0).tolist()
    return sizes


def _row_groups_by_column(files: Sequence[str]) -> tuple[dict[int, list[Group]], dict[int, list[Group]]]:
    """Return, by column number, row groups of value counts and row groups of samples, in value tables.

    Each row group is of one column.
    """
    counted: dict[int, list[Group]] = defaultdict(list)
    sampled: dict[int, list[Group]] = defaultdict(list)
    few = len(files) <= FEW_FILES
    for path in files:
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups):
            # A file that lacks the column has none of its values.
            if (part := metadata.row_group(number)).num_rows:
                to = counted if part.column(COUNT).statistics.max else sampled
                to[part.column(COLUMN).statistics.min].append(Group(path, number, part.num_rows, metadata if few else None))
    return counted, sampled


def _sums(job: Job, files: Sequence[str], counted: Mapping[int, Sequence[Group]], spill: Path) -> Figures:
    """Return by column the numbers of distinct values, of values of one record, and of all."""
    largest = max((sum(group.rows for group in groups) for groups in counted.values()), default=0)
    if len(files) <= FEW_FILES and largest * BYTES_PER_VALUE <= job.memory // 4:
        return {number: _summed(groups) for number, groups in counted.items()}
    # Each thread holds buffers of its own, which a small budget has no room for.
    with database(job.memory, private_folder(spill), 1 if job.memory < ENOUGH else job.threads) as connection:
        return {
            number: tuple(figures)
            for number, *figures in connection.execute(VALUE_SUMS_SQL, {"files": list(map(file_pattern, files))}).fetchall()
        }


def _summed(groups: Sequence[Group]) -> tuple[int, ...]:
    tables = [_read(group, ["digest", "count"]) for group in groups]
    return digest_totals(*([table[name].to_numpy() for table in tables] for name in ("digest", "count")))


def _read(group: Group, columns: Sequence[str]) -> pa.Table:
    with pa.OSFile(group.path) as opened, pq.ParquetFile(opened, metadata=group.footer) as file:
        return file.read_row_group(group.number, list(columns), use_threads=False)


def _merged_sample(groups: Sequence[Group]) -> pa.Array:
    """Return a column's merged sample: the values of its smallest distinct digests, shape (values,)."""
    digests, values = np.empty(0, np.uint64), pa.array([], pa.string())
    for group in groups:
        table = _read(group, ["digest", "value"])
        digests = np.concatenate([digests, table["digest"].to_numpy()])
        values = pa.concat_arrays([values, table["value"].combine_chunks()])
        kept = distinct_digests(digests)[1][:MOST_SAMPLED_VALUES]
        digests, values = digests[kept], values.take(pa.array(kept))
    return values


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
        person: The column among them that tells persons apart.
        people: How many persons there are, if no column tells.
    """
    parts = run_for_items(run, VALUES, ValueReading(source.columns, tuple(names), run.store), source.chunks)
    elsewhere = count_remote_workers() > 0
    given = FigureReading(run.job.with_task_memory() if elsewhere else run.job, tuple(names), person, run.store, people)
    made = run_for_item(run, FIGURES, given, parts, "look at columns", elsewhere=elsewhere)
    return run.store.read_model(made, ColumnInspection)
