"""Records of persons: which ones a bound keeps, and at which one a person counts.

``columns.most_records`` bounds them. The records of a person are put in the order of a keyed digest of where they stand, and those beyond
the bound are withheld. The key is the digest of the whole source, so that the draw follows from no value and nobody without the source can
repeat it. Every step after this one reads files without the records that were withheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.columns.column_types import working_type
from schemas.errors.base import SourceError
from schemas.job.job import Job
from tasks.source.chunks import Chunk, SourceFile
from tasks.source.reading import BATCH_BYTES, BATCH_ROWS, FEWEST, open_source_file, read_chunk
from tasks.source.unpacked import UNIT, rows_of_long
from tasks.store.database import connect, quote, write_parquet
from tasks.store.keys import Key, StepCode, fingerprint_of
from tasks.store.store import Artifact, Store

WITHHELD, BOUNDED = StepCode("withheld", __name__), StepCode("bounded", __name__)
ROW_NUMBER = "file_row_number"
"""What DuckDB calls the number of a row; the recount asks for it beside the columns of the source."""
Rows = npt.NDArray[np.int64]


class Bounded(NamedTuple):
    """Source files without records beyond the bound per person, and how many were withheld of how many.

    Attributes:
        files: Its files, without the records that were withheld.
        records: How many were withheld.
    """

    files: list[SourceFile]
    records: int
    persons: int


def bound_records(job: Job, files: Sequence[SourceFile], columns: pa.Schema, store: Store, *, here: bool) -> Bounded:
    """Return the source without each person's records beyond ``columns.most_records``, and their numbers.

    Args:
        job: Names the persons and the bound.
        columns: Names and types as which all files are read.
        here: Whether these are read in this process; else they are fetched by whoever reads them.
    """
    if ROW_NUMBER in columns.names:
        raise SourceError.wrong_type(ROW_NUMBER, "a name that columns.most_records needs", "kept", "rename it")
    key = fingerprint_of(sorted(file.content or file.digest for file in files))
    withheld = _withheld(job, files, columns, key, store)
    if not withheld.rows:
        return Bounded(list(files), 0, 0)
    found = pq.read_table(store.path(withheld))
    numbers, starts = np.unique(found["file"].to_numpy(), return_index=True)
    kept = list(files)
    # They come file by file.
    for number, rows in zip(numbers.tolist(), np.split(found["row"].to_numpy(), starts[1:]), strict=True):
        kept[number] = _without(job, files[number], rows, columns, withheld.key, store, here=here)
    return Bounded(kept, len(found), int(pc.sum(found["first"]).as_py()))


def person_condition_sql(persons: Mapping[str, pa.DataType]) -> str:
    """Return the SQL condition that a record has a person.

    Args:
        persons: The type of each column that names a person, by name; of numbers, what is none names nobody.
    """
    there = [f"{quote(name)} IS NOT NULL" for name in persons]
    numbers = [f"NOT isnan({quote(name)})" for name, dtype in persons.items() if pa.types.is_floating(dtype)]
    return " AND ".join([*there, *numbers])


def person_number_sql(persons: Mapping[str, pa.DataType]) -> str:
    """Return SQL of a 64-bit digest of who a person is, by which a record of the person is drawn.

    It is a digest of who it is, the same whatever the file, its order and the machine.

    Args:
        persons: As for ``person_condition_sql``.
    """
    return f"md5_number_lower(concat_ws(chr(31), {', '.join(_text_sql(quote(name), dtype) for name, dtype in persons.items())}))"


def _text_sql(column: str, dtype: pa.DataType) -> str:
    if pa.types.is_floating(dtype):
        # Zero has two signs and is one value.
        return f"({column}::DOUBLE + 0)::VARCHAR"
    if pa.types.is_timestamp(dtype):
        # Neither the unit nor the zone of the machine says how it is written.
        return f"epoch_us({column}::TIMESTAMP{' WITH TIME ZONE' if dtype.tz else ''})::VARCHAR"
    return f"{column}::VARCHAR"


def drawn_values_sql(rows: str, persons: Iterable[str], number: str) -> str:
    """Return SQL with a row per person: ``value`` of one record, drawn by the person's number.

    It is right because a person whose least and greatest value are one has it in every record. Of the others the records stand in the
    order of their values, and the person's number, modulo how many there are, is the place of the one that is drawn.

    Args:
        rows: What is read as ``value``, never null, and the persons.
        number: Expression over them, as of ``person_number_sql``.
    """
    names = ", ".join(persons)
    return f"""
        WITH of_persons AS ({rows}),
        spans AS MATERIALIZED (
            SELECT {names}, min(value) AS low, max(value) AS high, count(*)::UBIGINT AS records FROM of_persons GROUP BY {names}
        ),
        several AS (SELECT {names}, {number} % records AS place FROM spans WHERE low < high),
        numbered AS (
            SELECT value, place, row_number() OVER (PARTITION BY {names} ORDER BY value) - 1 AS at_place
            FROM of_persons JOIN several USING ({names})
        )
        SELECT low AS value FROM spans WHERE low = high UNION ALL SELECT value FROM numbered WHERE at_place = place
    """


def _withheld(job: Job, files: Sequence[SourceFile], columns: pa.Schema, key: str, store: Store) -> Artifact:
    """Return the withheld records: ``file`` (position), ``row``, ``first`` (first withheld of a person)."""
    persons, most = job.columns.person, job.columns.most_records
    # What the user calls a column could be a name of ours.
    types = {f"person_{number}": working_type(columns.field(name).type) for number, name in enumerate(persons)}
    schema = pa.schema([*types.items(), ("file", pa.int32()), ("row", pa.int64())])
    statement = f"""
        SELECT file, row, place = {most} + 1 AS first FROM (
            SELECT file, row, row_number() OVER (
                PARTITION BY {", ".join(types)} ORDER BY sha256(concat_ws(':', '{key}', digest, row)), file
            ) AS place
            FROM records JOIN digests USING (file) WHERE {person_condition_sql(types)}
        ) WHERE place > {most} ORDER BY file, row
    """

    def write(part: Path) -> int:
        digests = pa.table({"file": pa.array(range(len(files)), pa.int32()), "digest": [file.digest for file in files]})
        batches = pa.RecordBatchReader.from_batches(schema, _numbered(files, persons, schema))
        with connect(job, store.folder.parent / "spill") as connection, batches:
            connection.register("records", batches)
            connection.register("digests", digests)
            return write_parquet(connection, statement, part)

    return store.make(WITHHELD.name, WITHHELD.key(key, [Chunk.of(file).key for file in files], persons, most), ".parquet", write)


def _numbered(files: Sequence[SourceFile], persons: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the persons of records, with the position of the file and the row number from 0."""
    for number, file in enumerate(files):
        first = 0
        for batch in read_chunk(Chunk.of(file), persons, plain=persons) if file.rows else ():
            rows = batch.num_rows
            place = [pa.array(np.full(rows, number, np.int32)), pa.array(np.arange(first, first + rows))]
            whose = [_plain(batch.column(name)).cast(schema.field(at).type) for at, name in enumerate(persons)]
            yield pa.RecordBatch.from_arrays([*whose, *place], schema=schema)
            first += rows


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _without(job: Job, file: SourceFile, rows: Rows, columns: pa.Schema, key: Key, store: Store, *, here: bool) -> SourceFile:
    """Return a file without given rows, and without columns that are not published."""
    hidden = {*job.columns.columns_withheld} - {*job.columns.person, *(one.treatment.subject for one in job.columns.pseudonyms)}

    def write(part: Path) -> int:
        with open_source_file(file) as read:
            return _copy_without(file, read, rows, [name for name in columns.names if name not in hidden], part)

    made = store.make(BOUNDED.name, BOUNDED.key(key, file.digest, file.name, sorted(hidden)), ".parquet", write)
    groups = pq.read_metadata(store.path(made))
    sizes = tuple(groups.row_group(number).num_rows for number in range(groups.num_row_groups))
    path = store.path(made) if here else store.folder / made.file
    return file.model_copy(update={"path": path, "groups": sizes, "converted": made.sha256})


def _batch_rows(file: SourceFile) -> int:
    return min(BATCH_ROWS, max(BATCH_BYTES // max(file.width, 1), FEWEST), rows_of_long(file.long.values()))


def _copy_without(file: SourceFile, read: object, rows: Rows, names: Sequence[str], part: Path) -> int:
    first, kept = 0, 0
    with pq.ParquetFile(read, coerce_int96_timestamp_unit=UNIT) as source:
        written = [name for name in names if name in source.schema_arrow.names]
        schema = pa.schema([source.schema_arrow.field(name) for name in written])
        with pq.ParquetWriter(part, schema, version="2.6", compression="zstd") as writer:
            for batch in source.iter_batches(_batch_rows(file), columns=written, use_threads=False):
                low, high = np.searchsorted(rows, [first, first + batch.num_rows])
                left = np.ones(batch.num_rows, bool)
                left[rows[low:high] - first] = False
                first += batch.num_rows
                table = pa.Table.from_batches([batch]).filter(pa.array(left))
                kept += len(table)
                if len(table):
                    writer.write_table(table)
    if first != file.rows:
        raise SourceError.changed(file.name)
    return kept
