"""Runs: the released records of a chunk as class numbers and payload, apart by output file, so that a file takes its part of every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import ipc

from core.columns.coding import smallest_type
from core.columns.release_order import dense_ranks

CODED, FILES = {"coded": "1"}, b"files"
"""Marks a column of a run whose text was a dictionary, and is one again when it is read; and names how many files a run is set apart by."""


class RunWriter:
    """Writes a run in rounds of about so many bytes: in each a record batch for every output file, from the first to the last.

    A chunk of few bytes is one round, and keeps its dictionaries. In more the entries would be others in each, which a file of Arrow cannot
    hold, so that text is written plain.

    Attributes:
        rows: Records so far.
    """

    def __init__(self, path: Path, files: int, most_bytes: int) -> None:
        self.rows = 0
        self._path, self._files, self._most = path, max(files, 1), most_bytes
        self._waiting: list[tuple[NDArray[np.signedinteger[Any]], pa.RecordBatch, NDArray[np.int64]]] = []
        self._bytes = 0
        self._writer: ipc.RecordBatchFileWriter | None = None

    def add(self, classes: NDArray[np.signedinteger[Any]], payload: pa.RecordBatch, files: NDArray[np.int64]) -> None:
        """Adds records: their classes and output files, shape (n,), and what they publish."""
        # A batch that is full goes out when another comes, so that what fits into one round is one.
        if self._bytes > self._most:
            self._write(plain=True)
        self._waiting.append((classes, payload, files))
        self._bytes += payload.nbytes
        self.rows += len(classes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._write(plain=self._writer is not None)
        if self._writer is not None:
            self._writer.close()

    def _write(self, *, plain: bool) -> None:
        classes, files = (np.concatenate([part[place] for part in self._waiting]) for place in (0, 2))
        parts = [part for _, part, _ in self._waiting]
        self._waiting, self._bytes = [], 0
        table = pa.Table.from_batches([part for part in parts if part.num_rows] or parts[:1])
        # Narrow integers are sorted by radix.
        order = np.argsort(files.astype(smallest_type(int(files.max(initial=0)) + 1)), kind="stable")
        rows = pa.array(order)
        arrays, fields = [pa.array(classes[order])], [pa.field("0", pa.from_numpy_dtype(classes.dtype))]
        # By position: a column of the source may have any name, ours included.
        for place, column in enumerate(table.columns, start=1):
            coded = pa.types.is_dictionary(column.type)
            whole = _combined(column.unify_dictionaries() if coded else column)
            arrays.append((whole.dictionary_decode() if coded and plain else whole).take(rows))
            fields.append(pa.field(str(place), arrays[-1].type, metadata=CODED if coded and plain else None))
        ordered = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, {FILES: str(self._files)}))
        if self._writer is None:
            self._writer = ipc.new_file(self._path, ordered.schema, options=ipc.IpcWriteOptions(compression="lz4"))
        start = 0
        # A batch for each, empty ones too, so that an output file finds its part of a run by its number and reads nothing else.
        for end in np.cumsum(np.bincount(files, minlength=self._files)).tolist():
            self._writer.write_batch(ordered.slice(start, end - start))
            start = end


def write_run(path: Path, classes: NDArray[np.signedinteger[Any]], payload: pa.RecordBatch, files: NDArray[np.int64]) -> int:
    """Writes a run of one round, of as many output files as there are up to the last that has records; returns how many there are."""
    with RunWriter(path, int(files.max(initial=-1)) + 1, payload.nbytes) as run:
        run.add(classes, payload, files)
    return run.rows


def gathered(runs: Sequence[Path], number: int, columns: int) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Returns the classes of the records of one output file, shape (n,), and their payload, from all runs.

    Args:
        runs: The runs.
        number: Of the file.
        columns: Of the payload.
    """
    with opened_runs(runs) as opened:
        return gathered_from(opened, number, columns)


@contextmanager
def opened_runs(runs: Sequence[Path]) -> Iterator[list[ipc.RecordBatchFileReader]]:
    """Opens runs, mapped, so that only the pages of a few batches of them are read."""
    with ExitStack() as stack:
        yield [ipc.open_file(stack.enter_context(pa.memory_map(str(path)))) for path in runs]


def gathered_from(opened: Sequence[ipc.RecordBatchFileReader], number: int, columns: int) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Does the same with runs that are open."""
    batches: list[pa.RecordBatch] = []
    for run in opened:
        files = int(run.schema.metadata[FILES])
        found = [run.get_batch(place) for place in range(number, run.num_record_batches, files)] if number < files else []
        batches += [_coded(batch) for batch in found if batch.num_rows] or [_coded(pa.RecordBatch.from_pylist([], schema=run.schema))]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    classes = table.column(0).to_numpy()
    return classes, [_only_used(_combined(table.column(place + 1))) for place in range(columns)]


def _coded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Makes dictionaries again of what was one, and leaves out what a run says of itself."""
    fields = zip(batch.columns, batch.schema, strict=True)
    columns = [pc.dictionary_encode(column) if field.metadata else column for column, field in fields]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _only_used(column: pa.Array) -> pa.Array:
    """Leaves the dictionary entries that records use, each once and ascending.

    Entries without a record would be written all the same, and could be those of a suppressed one; the order in which entries were found
    is that of the source.
    """
    if not isinstance(column, pa.DictionaryArray):
        return column
    valid = column.indices.is_valid().to_numpy(zero_copy_only=False)
    indices = column.indices.fill_null(0).to_numpy()
    used = np.flatnonzero(np.bincount(indices[valid], minlength=len(column.dictionary)))
    entries = column.dictionary.take(pa.array(used))
    _, firsts, ranks = np.unique(dense_ranks(entries)[0], return_index=True, return_inverse=True)
    found = np.zeros(max(len(column.dictionary), 1), np.int32)
    found[used] = ranks
    return pa.DictionaryArray.from_arrays(pa.array(found[indices], mask=~valid), entries.take(pa.array(firsts)))
