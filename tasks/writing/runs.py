"""Runs: the released records of a chunk as class numbers and payload, grouped by output file."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray
from pyarrow import ipc

from core.columns.coding import smallest_type
from core.columns.column_types import is_text, plain_type, to_published_type, to_working_type, working_type
from core.columns.numbers import dictionary_positions
from core.recoding.release_order import entry_ranks
from schemas.errors.values import ValuesError
from tasks.source.chunks import ChunkedSource

PAGE, LONG = 1 << 23, 256
"""Bytes of texts, and on average of one of them, from which they are written in pages as they come."""
MOST_UNPACKED, REPEATED = 256_000_000, 4
"""Bytes of long texts that a file unpacks to where equal records repeat them, and how often they do on average before that counts."""
SAMPLED_VALUES = 2048
"""Values of a column that are looked at, to tell whether a dictionary would be shorter than they are."""


def published_schema(labels: pa.Table, source: ChunkedSource) -> pa.Schema:
    """Return the schema of the release's data files: label columns, then the other published columns."""
    fields = [field.with_type(_published_type(field, source.columns)) for field in labels.schema]
    fields += [pa.field(name, dtype) for name, dtype in zip(source.payload, source.published, strict=True)]
    return pa.schema([field.remove_metadata().with_nullable(True) for field in fields])


def _published_type(label: pa.Field, columns: pa.Schema) -> pa.DataType:
    """Return the published type of a QID: the source's type if its labels have it, else theirs."""
    if label.name not in columns.names or working_type(columns.field(label.name).type) != label.type:
        return label.type
    return plain_type(columns.field(label.name).type)


def write_release(path: Path, columns: dict[str, pa.Array], schema: pa.Schema) -> int:
    """Write columns as a data file of a release, without statistics; return its number of rows.

    Args:
        columns: In their working types; text may be a dictionary of used entries only. One of long texts is
            written plain: it would be a single page, which every reader would have to take into memory as a whole. So are values that
            hardly repeat, which are shorter without one.
        schema: The published schema.
    """
    for name, column in columns.items():
        _check_unpacked(name, column)
    formed = {name: _formed(column, schema.field(name).type) for name, column in columns.items()}
    coded = [name for name, (_, repeated) in formed.items() if repeated]
    table = pa.table({name: to_published_type(column, schema.field(name).type) for name, (column, _) in formed.items()})
    # Dictionaries are written as they are, which is quick, and declared as plain text, so that readers get text.
    declared = base64.b64encode(schema.serialize().to_pybytes())
    with pq.ParquetWriter(
        path, table.schema, compression="zstd", use_dictionary=coded, write_statistics=False, store_schema=False
    ) as writer:
        writer.add_key_value_metadata({"ARROW:schema": declared.decode()})
        writer.write_table(table)
    return len(table)


def _check_unpacked(name: str, column: pa.Array) -> None:
    """Raise ``ValuesError`` if repeated long texts would unpack to too many bytes.

    Equal records are in one file, so that a few bytes could become gigabytes for every reader.
    """
    if not isinstance(column, pa.DictionaryArray) or not (is_text(column.type.value_type) or pt.is_binary(column.type.value_type)):
        return
    if column.dictionary.nbytes * len(column) <= MOST_UNPACKED:
        return
    # Entries are as long as they are on average, or looked at.
    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) * len(column) > MOST_UNPACKED:
        size = pc.sum(lengths.take(column.indices)).as_py() or 0
        if size > max(MOST_UNPACKED, REPEATED * column.dictionary.nbytes) and size > LONG * len(column):
            raise ValuesError.repeated(name, size, MOST_UNPACKED)


def _formed(column: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, bool]:
    """Return a column as it is written, as a dictionary or plain, and whether the file has a dictionary."""
    if isinstance(column, pa.DictionaryArray) and not is_text(dtype):
        # Nothing but text is read as a dictionary, so that of others nobody could tell what order its entries are in.
        column = column.dictionary_decode()
    repeated = pays_to_dictionary_encode(column)
    if isinstance(column, pa.DictionaryArray):
        long = column.dictionary.nbytes > max(PAGE, LONG * len(column.dictionary))
        column = column.dictionary_decode() if long or not repeated else column
    return column, repeated


def pays_to_dictionary_encode(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether dictionary encoding would shorten a column in a file, by a sample if long.

    Args:
        column: Shape (n,), in its working type, in the order of the file; plain, or for text a dictionary of used entries only.
    """
    if is_text(plain_type(column.type)):
        return not mostly_distinct(column)
    if pt.is_null(column.type):
        return True
    values = len(column) - column.null_count
    # Evenly spaced ones are as good as any.
    if values > 4 * SAMPLED_VALUES:
        column = column.take(pa.array(np.arange(SAMPLED_VALUES) * len(column) // SAMPLED_VALUES))
    some, distinct = len(column) - column.null_count, pc.count_distinct(column).as_py()
    # A quarter of them distinct is the bound; of so many in a sample nearly all are.
    return bool(4 * distinct <= values if some == values else distinct < some - 2 * some * some / values)


def mostly_distinct(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether more than half of a text column's values are distinct.

    A dictionary must hold used and distinct entries only.
    """
    coded = isinstance(texts, pa.DictionaryArray)
    distinct = len(texts.dictionary) - texts.dictionary.null_count if coded else pc.count_distinct(texts).as_py()
    return bool(2 * distinct > len(texts))


TRIED = 1 << 16
"""Bytes of each part of a column that are packed, to tell what it comes to."""
CODED, FILES = {"coded": "1"}, b"files"
"""Marks a column of a run whose text was a dictionary, and is one again when it is read; and names how many files a run is set apart by."""


class RunWriter:
    """Writer of a run in passes of limited bytes, each with a record batch per output file.

    A chunk of few bytes is one pass, and keeps its dictionaries. In more the entries would be others in each, which a file of Arrow cannot
    hold, so that text is written plain. Memory holds a pass and a column of it in order.

    Args:
        most_bytes: Approximate bytes of the records of a pass.
        own: Columns of the payload whose text comes plain, because nearly every value is another, and is a dictionary in the release.
        narrow: Whether numbers of classes and of entries are written in as few bytes as hold them where a run is one pass.

    Attributes:
        rows: Records so far.
    """

    def __init__(self, path: Path, files: int, most_bytes: int, own: Container[str] = (), *, narrow: bool = True) -> None:
        self.rows = 0
        self._narrow = narrow
        self._path, self._files, self._most, self._own = path, max(files, 1), most_bytes, own
        self._waiting: list[tuple[NDArray[np.signedinteger[Any]], pa.RecordBatch, NDArray[np.int64]]] = []
        self._bytes = 0
        self._writer: ipc.RecordBatchFileWriter | None = None

    def add(self, classes: NDArray[np.signedinteger[Any]], payload: pa.RecordBatch, files: NDArray[np.int64]) -> None:
        """Add records (classes and output files, shape (n,), payload); written once a pass is full."""
        # A batch that is full goes out when another comes, so that what fits into one round is one.
        if self._bytes > self._most:
            self._write(plain=True)
        self._waiting.append((classes, payload, files))
        self._bytes += sum(map(_plain_bytes, payload.columns))
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
        some = [part for _, part, _ in self._waiting if part.num_rows] or [self._waiting[0][1]]
        names, waiting = some[0].schema.names, deque(zip(*(part.columns for part in some), strict=True))
        # What is put in order is held no longer as it came.
        self._waiting, self._bytes = [], 0
        del some
        # Narrow integers are sorted by radix.
        order = np.argsort(files.astype(smallest_type(int(files.max(initial=0)) + 1)), kind="stable")
        rows, narrow = pa.array(order), self._narrow and not plain
        if narrow:
            classes = classes.astype(smallest_type(int(classes.max(initial=0)) + 1))
        arrays, fields = [pa.array(classes[order])], [pa.field("0", pa.from_numpy_dtype(classes.dtype))]
        # By position: a column of the source may have any name, ours included.
        for place, name in enumerate(names, start=1):
            whole = _together(waiting.popleft())
            coded = pa.types.is_dictionary(whole.type)
            whole = _narrow(whole) if coded and narrow else whole
            arrays.append((whole.dictionary_decode() if coded and plain else whole).take(rows))
            fields.append(pa.field(str(place), arrays[-1].type, metadata=CODED if (coded and plain) or name in self._own else None))
        ordered = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, {FILES: str(self._files)}))
        if self._writer is None:
            # Narrow numbers are no shorter for a codec, which takes several times as long as to write them.
            codec = "lz4" if not (narrow and _are_numbers(arrays)) and _packs(arrays) else None
            self._writer = ipc.new_file(self._path, ordered.schema, options=ipc.IpcWriteOptions(compression=codec))
        start = 0
        # A batch for each, empty ones too, so that an output file finds its part of a run by its number and reads nothing else.
        for end in np.cumsum(np.bincount(files, minlength=self._files)).tolist():
            self._writer.write_batch(ordered.slice(start, end - start))
            start = end


def _plain_bytes(column: pa.Array) -> int:
    """Return about how many bytes a column takes without dictionary encoding."""
    if not isinstance(column, pa.DictionaryArray) or not is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) <= LONG:
        return int(column.nbytes)
    # One entry may be every record's.
    return max(int(column.nbytes), pc.sum(lengths.take(column.indices)).as_py() or 0)


def _narrow(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary column with the narrowest index type."""
    narrow = next((dtype for dtype in (pa.int8(), pa.int16()) if len(column.dictionary) < 1 << dtype.bit_width - 1), column.indices.type)
    return pa.DictionaryArray.from_arrays(column.indices.cast(narrow), column.dictionary)


def _are_numbers(columns: Sequence[pa.Array]) -> bool:
    """Return whether all payload columns are dictionaries with no more bytes of entries than of indices."""
    coded = [column for column in columns[1:] if pa.types.is_dictionary(column.type)]
    return len(coded) == len(columns) - 1 and all(column.dictionary.nbytes <= column.indices.nbytes for column in coded)


def _packs(columns: Sequence[pa.Array]) -> bool:
    """Return whether compression saves more than half of all columns together, by their first bytes."""
    buffers = [buffer for column in columns for buffer in column.buffers() if buffer is not None and buffer.size]
    codec, packed = pa.Codec("lz4"), 0.0
    for buffer in buffers:
        some = min(buffer.size, TRIED)
        packed += codec.compress(buffer.slice(0, some)).size / some * buffer.size
    return bool(2 * packed < sum(buffer.size for buffer in buffers))


def write_run(
    path: Path, classes: NDArray[np.signedinteger[Any]], payload: pa.RecordBatch, files: NDArray[np.int64], *, narrow: bool = True
) -> int:
    """Write records grouped by output file as a run in one pass; return their number.

    It has output files up to the last one with records.
    """
    with RunWriter(path, int(files.max(initial=-1)) + 1, payload.nbytes, narrow=narrow) as run:
        run.add(classes, payload, files)
    return run.rows


def count_file_records(runs: Sequence[Path], number: int) -> int:
    """Return the number of one output file's records in all runs, from batch headers alone."""
    with opened_runs(runs) as opened:
        files = [(run, int(run.schema.metadata[FILES])) for run in opened]
        return sum(
            run.get_batch(place).num_rows
            for run, count in files
            if number < count
            for place in range(number, run.num_record_batches, count)
        )


def read_file_records(runs: Sequence[Path], number: int, column_count: int) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Return one output file's records from all runs: classes, shape (n,), and payload columns."""
    with opened_runs(runs) as opened:
        return file_records_from(opened, number, column_count)


@contextmanager
def opened_runs(runs: Sequence[Path]) -> Iterator[list[ipc.RecordBatchFileReader]]:
    """Yield runs opened as memory maps, closed after the block."""
    with ExitStack() as stack:
        yield [ipc.open_file(stack.enter_context(pa.memory_map(str(path)))) for path in runs]


def file_records_from(
    opened: Sequence[ipc.RecordBatchFileReader], number: int, column_count: int
) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Return one output file's records from open runs: classes, shape (n,), and payload columns."""
    found: list[tuple[pa.RecordBatch, list[object]]] = []
    for run in opened:
        schema = run.schema
        files = int(schema.metadata[FILES])
        notes = [field.metadata for field in schema]
        places = range(number, run.num_record_batches, files) if number < files else ()
        parts = [part for part in (_repeated_once(run.get_batch(place), notes) for place in places) if part[0].num_rows]
        found += parts or [(pa.RecordBatch.from_pylist([], schema=schema), notes)]
    # One column at a time is put together, and held no longer in parts: all of them would be there twice.
    waiting = deque([[(part.column(place), notes[place]) for part, notes in found] for place in range(column_count + 1)])
    del found, parts
    classes = np.concatenate([part.to_numpy() for part, _ in waiting.popleft()]).astype(np.int32, copy=False)
    return classes, [_payload(waiting.popleft()) for _ in range(column_count)]


def _repeated_once(part: pa.RecordBatch, notes: Sequence[object]) -> tuple[pa.RecordBatch, list[object]]:
    """Dictionary-encode columns of long values, because equal records are in one file."""
    columns, left = part.columns, list(notes)
    for place, column in enumerate(columns):
        able = (left[place] and is_text(column.type)) or pa.types.is_binary(column.type)
        if able and column.nbytes > max(PAGE, LONG * len(column)):
            columns[place], left[place] = pc.dictionary_encode(column), None
    return pa.RecordBatch.from_arrays(columns, names=part.schema.names), left


def _payload(parts: Sequence[tuple[pa.Array, object]]) -> pa.Array:
    """Concatenate the parts of a column and restore its dictionary if it had one.

    Each part comes with its field's metadata.
    """
    noted = [part for part, note in parts if note]
    # Of one width again, as runs of few entries and of many cannot be put together otherwise.
    others = [to_working_type(part) if pa.types.is_dictionary(part.type) else part for part, note in parts if not note]
    # Encoded together, since most values of such columns occur in one part only.
    encoded = [pc.dictionary_encode(pa.concat_arrays(noted))] if noted else []
    if encoded and not others and is_text(encoded[0].type.value_type) and mostly_distinct(encoded[0]):
        # It will be written plain, so that nobody sees the order of its entries, each of which is used.
        return encoded[0]
    apart = [*others, *encoded]
    if any(pa.types.is_dictionary(part.type) for part in apart):
        # Long bytes are a dictionary by now. A run of short ones, or of none, has them plain.
        apart = [part if pa.types.is_dictionary(part.type) else pc.dictionary_encode(part) for part in apart]
    whole = _together(apart)
    if encoded and others:
        # Runs of one pass and of several stand side by side, and so do long parts and short ones: each value belongs to its own record.
        order = np.argsort(np.repeat([bool(note) for _, note in parts], [len(part) for part, _ in parts]), kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        whole = whole.take(pa.array(places))
    return _only_used(whole)


def _together(parts: Sequence[pa.Array]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.chunked_array(parts).combine_chunks()


def _only_used(column: pa.Array) -> pa.Array:
    """Keep the dictionary entries that records use, each once and ascending.

    Entries without a record would be written all the same, and could be those of a suppressed one; the order in which entries were found
    is that of the source.
    """
    if not isinstance(column, pa.DictionaryArray):
        return column
    place = dictionary_positions(column)
    used = np.flatnonzero(np.bincount(place, minlength=len(column.dictionary))[: len(column.dictionary)])
    entries = column.dictionary if len(used) == len(column.dictionary) else column.dictionary.take(pa.array(used))
    ranks, _ = entry_ranks(entries)
    # Entries that are alike have one rank; the last place is that of nulls.
    first = np.empty(int(ranks.max(initial=-1)) + 1, np.int64)
    first[ranks[::-1]] = np.arange(len(ranks))[::-1]
    found = np.zeros(len(column.dictionary) + 1, np.int32)
    found[used] = ranks
    missing = place == len(column.dictionary) if column.indices.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(found[place], mask=missing), entries.take(pa.array(first)))
