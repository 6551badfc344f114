"""The figures of columns that are published untreated, over the whole source: added up out of core, and their samples looked at."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.passthrough.looks import reasons
from core.passthrough.samples import MOST_LOOKED_AT
from schemas.job.job import Job
from schemas.release.passthrough import PassedColumn
from tasks.passthrough.chunks import SCHEMA
from tasks.store.database import ENOUGH, database
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

COUNT = SCHEMA.get_field_index("count")
STEP = Step("passthrough", __name__)


def figures_key(names: Sequence[str], persons: str | None, parts: Sequence[Artifact]) -> Key:
    """Returns the key of the figures of all chunks, in whatever order they come."""
    return STEP.key(sorted(part.sha256 for part in parts), list(names), persons)


def add_values(job: Job, names: Sequence[str], persons: str | None, parts: Sequence[Artifact], store: Store, spill: Path) -> Artifact:
    """Adds up the values of all chunks and looks at a sample of each column.

    Args:
        job: Gives memory and threads.
        names: The columns that were counted.
        persons: The one among them that tells persons apart, which others are compared with.
        parts: Tables of the chunks.
        store: Where they are.
        spill: Folder for what does not fit into memory.

    Raises:
        StorageError: the disk is full, or memory too small.
    """

    def write(path: Path) -> int:
        files = [str(store.path(part)) for part in parts]
        # Each thread holds buffers of its own, which a small budget has no room for.
        with database(job.memory, spill, 1 if job.memory < ENOUGH else job.threads) as connection:
            sums = {number: figures for number, *figures in connection.execute(sums_sql(), {"files": files}).fetchall()}
            samples, nobody = _samples(files), (0, 0, 0)
        people = sums.get(names.index(persons), nobody)[0] if persons is not None else None
        found: dict[str, PassedColumn] = {}
        for number, name in enumerate(names):
            distinct, unique, values = sums.get(number, nobody)
            why = reasons(name, samples[number], distinct, unique, values, None if name == persons else people)
            looked_at = len(samples[number])
            found[name] = PassedColumn(distinct=distinct, unique_records=unique, values=values, looked_at=looked_at, reasons=tuple(why))
        path.write_text(json.dumps({name: one.model_dump() for name, one in found.items()}))
        return len(found)

    return store.make("passthrough", figures_key(names, persons, parts), ".json", write)


def read_figures(artifact: Artifact, store: Store) -> dict[str, PassedColumn]:
    """Reads the figures by column, in the order in which the columns were counted."""
    return {name: PassedColumn.model_validate(one) for name, one in json.loads(store.path(artifact).read_text()).items()}


def sums_sql() -> str:
    """Returns the statement that counts, by column, distinct values, those of one record, and all.

    A value stands in the table of each chunk that holds it, so that counts are added up by digest before any is called unique.
    """
    return """
        SELECT "column", count(*), count(*) FILTER (records = 1), sum(records)::BIGINT FROM (
            SELECT "column", digest, sum("count") AS records FROM read_parquet($files) WHERE "count" > 0 GROUP BY ALL
        ) GROUP BY 1 ORDER BY 1
    """


def _samples(files: Sequence[str]) -> defaultdict[int, list[str]]:
    """Returns the values with the smallest digests of each column: the smallest of all are among those of each chunk."""
    smallest: dict[int, tuple[NDArray[np.uint64], pa.Array]] = {}
    for path in files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                # A row group is of one column; that of its sample counts nothing. A file that lacks the column has none of its values.
                part = file.metadata.row_group(group)
                if not part.num_rows or part.column(COUNT).statistics.max:
                    continue
                table = file.read_row_group(group, ["column", "digest", "value"], use_threads=False)
                number, digests, values = table["column"][0].as_py(), table["digest"].to_numpy(), table["value"].combine_chunks()
                if number in smallest:
                    digests, values = np.concatenate([smallest[number][0], digests]), pa.concat_arrays([smallest[number][1], values])
                _, places = np.unique(digests, return_index=True)
                kept = places[:MOST_LOOKED_AT]
                smallest[number] = digests[kept], values.take(pa.array(kept))
    return defaultdict(list, {number: values.to_pylist() for number, (_, values) in smallest.items()})
