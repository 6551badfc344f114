"""Runs gathered in two levels, where the workers of a cluster write the files of a release.

Gathered at once, each file takes its part of every run, and every worker fetches all runs: work that grows with the square of the data. So
the runs of neighbouring chunks are set apart by *shelves* first, each with the parts of some neighbouring files, and a file takes its part
of the shelf that it is on. Records and their order are the same: a file is put in canonical order whatever it was gathered from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, workers_elsewhere
from tasks.store.keys import Key, Step, key_of_all
from tasks.store.store import Artifact, Store
from tasks.writing.runs import CODED, FILES, gathered_from, opened_runs

STEP = Step("shelves", __name__)
LEAST_RUNS = 8
"""Runs that are gathered at once, because it costs less."""


class Shelves(NamedTuple):
    """What the files of a release are gathered from.

    Attributes:
        runs: Of each shelf.
        files: How many files a shelf has.
    """

    runs: tuple[tuple[Artifact, ...], ...]
    files: int

    def of(self, number: int) -> tuple[Sequence[Artifact], int]:
        """Returns what a file is gathered from, and its number there."""
        return self.runs[number // self.files], number % self.files


def set_on_shelves(run: Run, runs: Sequence[Artifact], files: int, columns: int) -> Shelves:
    """Returns what files are gathered from: all runs, or shelves where there are many runs and workers elsewhere.

    Args:
        run: The run.
        runs: What ``write_run`` wrote.
        files: How many files the release is laid out over.
        columns: Of the payload.

    Raises:
        SkaldError: whatever a step raises.
    """
    if files < 2 or len(runs) <= LEAST_RUNS or not workers_elsewhere():
        return Shelves((tuple(runs),), max(files, 1))
    width, size = math.isqrt(files - 1) + 1, math.isqrt(len(runs) - 1) + 1
    ranges = [range(first, min(first + width, files)) for first in range(0, files, width)]
    groups = [runs[first : first + size] for first in range(0, len(runs), size)]
    calls = [
        Call(key_of_all(_keys(group, ranges, columns)), f"gather {number} of {len(groups)}", (group, ranges, columns, run.store), True)
        for number, group in enumerate(groups, start=1)
    ]
    made = map_step(run, "gather", lay_on_shelves, calls)
    return Shelves(tuple(zip(*made, strict=True)), width)


def lay_on_shelves(runs: Sequence[Artifact], ranges: Sequence[range], columns: int, store: Store) -> list[Artifact]:
    """Sets some runs apart by shelves.

    Args:
        runs: Of neighbouring chunks.
        ranges: The files of each shelf.
        columns: Of the payload.
        store: Gets an artefact for each shelf.

    Raises:
        StorageError: a folder cannot be made.
    """
    paths = [store.path(run) for run in runs]

    def writer(numbers: range) -> Callable[[Path], int]:
        return lambda path: write_shelf(path, paths, numbers, columns)

    named = zip(_keys(runs, ranges, columns), ranges, strict=True)
    return [store.make("shelves", key, ".arrow", writer(numbers)) for key, numbers in named]


def _keys(runs: Sequence[Artifact], ranges: Sequence[range], columns: int) -> list[Key]:
    read = [run.sha256 for run in runs]
    return [STEP.key(read, numbers.start, numbers.stop, columns) for numbers in ranges]


def write_shelf(path: Path, runs: Sequence[Path], numbers: range, columns: int) -> int:
    """Writes the records of some files together, in the form of a run of these files; returns how many there are."""
    rows, writer = 0, None
    with opened_runs(runs) as opened, pa.OSFile(str(path), "wb") as sink:
        for number in numbers:
            classes, payload = gathered_from(opened, number, columns)
            batch = _plain(classes, payload, len(numbers))
            writer = writer or ipc.new_file(sink, batch.schema, options=ipc.IpcWriteOptions(compression="lz4"))
            writer.write_batch(batch)
            rows += len(classes)
        if writer:
            writer.close()
    return rows


def _plain(classes: NDArray[np.int32], payload: Sequence[pa.Array], files: int) -> pa.RecordBatch:
    """Returns records with their text written plain: the dictionaries of files differ, which a file of Arrow cannot hold."""
    arrays, fields = [pa.array(classes)], [pa.field("0", pa.int32())]
    for place, column in enumerate(payload, start=1):
        coded = pa.types.is_dictionary(column.type)
        arrays.append(column.dictionary_decode() if coded else column)
        fields.append(pa.field(str(place), arrays[-1].type, metadata=CODED if coded else None))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, {FILES: str(files)}))
