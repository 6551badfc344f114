"""Two-level shuffle of runs, where the workers of a cluster write the files of a release.

Without it each file takes its part of every run, and every worker fetches all runs: work that grows with the square of the data. So the
runs of neighbouring chunks are first divided into *shuffle parts*, each with the records of some neighbouring files. A file takes its
records from its shuffle part. The files stay the same, because their order is canonical.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from schemas.reading.model import FrozenModel
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, run_for_each_item
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.writing.runs import CODED, FILES, file_records_from, opened_runs

LEAST_RUNS = 8
"""Runs that are gathered at once, because it costs less."""


class ShuffleParts(NamedTuple):
    """The runs of each shuffle part, and the number of output files in a part.

    Attributes:
        runs: Of each shuffle part.
    """

    runs: tuple[tuple[Artifact, ...], ...]
    files: int

    def of(self, number: int) -> tuple[Sequence[Artifact], int]:
        """Return the runs of a file's shuffle part, and the number of the file within it."""
        return self.runs[number // self.files], number % self.files


def shuffle_runs(run: Run, runs: Sequence[Artifact], file_count: int, column_count: int) -> ShuffleParts:
    """Return runs divided into shuffle parts on a cluster with many; all runs as one part elsewhere.

    Args:
        runs: Files of ``write_run``.
        file_count: How many files the release is laid out over.
        column_count: Of the payload.
    """
    if file_count < 2 or len(runs) <= LEAST_RUNS or not count_remote_workers():
        return ShuffleParts((tuple(runs),), max(file_count, 1))
    width, size = math.isqrt(file_count - 1) + 1, math.isqrt(len(runs) - 1) + 1
    ranges = tuple(range(first, min(first + width, file_count)) for first in range(0, file_count, width))
    groups = [runs[first : first + size] for first in range(0, len(runs), size)]
    made = run_for_each_item(run, SHUFFLE_PARTS, PartRanges(ranges, column_count, run.store), groups)
    return ShuffleParts(tuple(zip(*(group.shuffle_parts for group in made), strict=True)), width)


@dataclass(frozen=True)
class PartRanges:
    """The file numbers of each shuffle part, the number of payload columns, and the store."""

    files: tuple[range, ...]
    columns: int
    store: Store


class PartGroup(FrozenModel):
    """The shuffle parts of the runs of some neighbouring chunks."""

    shuffle_parts: tuple[Artifact, ...]


def _lay(given: PartRanges, runs: Sequence[Artifact]) -> PartGroup:
    """Divide the runs of some chunks into shuffle parts."""
    key, paths = SHUFFLE_PARTS.key(given, runs), [given.store.path(run) for run in runs]

    def shuffle_part(numbers: range) -> Artifact:
        own = SHUFFLE_PARTS.keys.key(key, numbers.start)
        return given.store.make(SHUFFLE_PARTS.name, own, ".arrow", lambda path: write_shuffle_part(path, paths, numbers, given.columns))

    return PartGroup(shuffle_parts=tuple(map(shuffle_part, given.files)))


SHUFFLE_PARTS = FilesStep(
    "shuffle_parts",
    make=_lay,
    reads=lambda given, runs: [[run.sha256 for run in runs], [(numbers.start, numbers.stop) for numbers in given.files], given.columns],
    phase="gather",
)
"""The records of the runs of some neighbouring chunks, apart by shuffle part."""


def write_shuffle_part(path: Path, runs: Sequence[Path], numbers: range, column_count: int) -> int:
    """Write the records of some output files from several runs as one run; return their number."""
    rows, writer = 0, None
    with opened_runs(runs) as opened, pa.OSFile(str(path), "wb") as sink:
        for number in numbers:
            classes, payload = file_records_from(opened, number, column_count)
            batch = _plain(classes, payload, len(numbers))
            writer = writer or ipc.new_file(sink, batch.schema, options=ipc.IpcWriteOptions(compression="lz4"))
            writer.write_batch(batch)
            rows += len(classes)
        if writer:
            writer.close()
    return rows


def _plain(classes: NDArray[np.int32], payload: Sequence[pa.Array], files: int) -> pa.RecordBatch:
    """Return records with plain text, since an Arrow file cannot hold a dictionary per batch."""
    arrays, fields = [pa.array(classes)], [pa.field("0", pa.int32())]
    for place, column in enumerate(payload, start=1):
        coded = pa.types.is_dictionary(column.type)
        arrays.append(column.dictionary_decode() if coded else column)
        fields.append(pa.field(str(place), arrays[-1].type, metadata=CODED if coded else None))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, {FILES: str(files)}))
