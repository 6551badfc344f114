"""The records of a source as codes, for algorithms that recode single records: coded per chunk, then gathered and put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from core.columns.coding import Coder
from core.columns.records import canonical, marks
from schemas.errors.base import PrivacyError, SourceError
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.counting.domains import axis_names
from tasks.pseudonyms.pseudonyms import read_published
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("coded", __name__)
BYTES_PER_RECORD, BYTES_PER_CODE = 72, 14


@dataclass(frozen=True, eq=False)
class Records:
    """All records, ordered by their QIDs and what else they publish, so that nothing depends on where they stood.

    Attributes:
        codes: Shape (n, QIDs), the code of each value.
        sensitive: Shape (n,) per sensitive column that a privacy model looks at: the code of each value.
        order: Shape (n,), where each record stands in the source, chunk after chunk.
        chunks: Number of records of each chunk.
    """

    codes: NDArray[np.unsignedinteger]
    sensitive: tuple[NDArray[np.integer], ...]
    order: NDArray[np.intp]
    chunks: tuple[int, ...]


def coded_key(coding: Coding, source: Source, chunk: Chunk) -> Key:
    """Returns the key of a coded chunk."""
    return STEP.key(chunk.key, coding.key, source.payload_key)


def code_chunk(job: Job, coding: Coding, source: Source, chunk: Chunk, store: Store) -> Artifact:
    """Codes the QIDs of a chunk, and the sensitive columns that a privacy model looks at, and marks its records; in the chunk's order.

    Raises:
        SourceError: the file changed since phase 1.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: the disk is full, or more memory is needed than there is.
    """
    names = axis_names(job)
    wanted = list(dict.fromkeys([*names, *source.payload]))

    def write(path: Path) -> int:
        coders = [Coder(domain) for domain in (*coding.domains, *coding.sensitive)]
        rows, writer = 0, None
        try:
            for batch in read_published(job, source, chunk, wanted):
                codes = [coder.code(batch.column(name)) for coder, name in zip(coders, names, strict=True)]
                marked = marks([batch.column(name) for name in source.payload], batch.num_rows)
                arrays = [pa.array(column) for column in (*codes, marked)]
                coded = pa.RecordBatch.from_arrays(arrays, names=[str(position) for position in range(len(arrays))])
                writer = writer or ipc.new_file(path, coded.schema)
                writer.write_batch(coded)
                rows += batch.num_rows
        except LookupError:
            raise SourceError.changed(chunk.file.name) from None
        finally:
            if writer:
                writer.close()
        return rows

    return store.make("coded", coded_key(coding, source, chunk), ".arrow", write)


def bytes_of_records(coding: Coding, records: int) -> int:
    """Returns about how much memory an algorithm takes for so many records, labels included: measured, twice the records' own."""
    return 2 * records * (BYTES_PER_RECORD + BYTES_PER_CODE * (len(coding.domains) + len(coding.sensitive)))


def gather(job: Job, coding: Coding, parts: Sequence[Artifact], store: Store) -> Records:
    """Puts the records of all chunks into one matrix.

    Raises:
        PrivacyError: there are fewer than k, or they do not fit the job's memory.
    """
    count = sum(part.rows for part in parts)
    if count < job.privacy.k:
        raise PrivacyError.too_few(job.privacy.k, count)
    domains, qids = (*coding.domains, *coding.sensitive), len(coding.domains)
    needed = bytes_of_records(coding, count)
    if needed > job.memory:
        raise PrivacyError.too_many_records(job.method.name, count, needed)
    # Room for all is taken once: to concatenate chunks would hold every record twice.
    columns = [np.empty(count, Coder(domain).code(domain.values[:0]).dtype) for domain in domains]
    marked = np.empty(count, np.uint64)
    first = 0
    for part in parts:
        with pa.memory_map(str(store.path(part))) as mapped:
            table = ipc.open_file(mapped).read_all()
            for position, column in enumerate([*columns, marked]):
                column[first : first + part.rows] = table.column(position).to_numpy()
        first += part.rows
    order = canonical(columns[:qids], [domain.size for domain in coding.domains], marked)
    codes = np.empty((count, qids), np.result_type(*columns[:qids]))
    for position, column in enumerate(columns[:qids]):
        codes[:, position] = column[order]
    return Records(codes, tuple(column[order] for column in columns[qids:]), order, tuple(part.rows for part in parts))
