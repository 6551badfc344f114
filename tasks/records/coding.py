"""Coding of a source's single records, per chunk, then gathered and put in canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from core.columns.coding import Coder
from core.mondrian.ranks import CutAxes, Order, axis_of
from core.recoding.release_order import canonical_record_order, record_hashes
from core.units.digests import Digests
from core.units.persons import EVERY_RECORD, unit_of_records
from core.units.unit import Unit
from schemas.errors.base import PrivacyError, SourceError
from schemas.job.job import Job
from tasks.counting.chunk_counts import axis_names, person_key
from tasks.counting.coding import Coding, DomainTable
from tasks.engine.runs import Run
from tasks.engine.steps import run_for_items
from tasks.lattice.promises import check_at_least_k, source_value_counts
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.writing.people import digests_in
from tasks.writing.pseudonyms import read_published

BYTES_PER_RECORD, BYTES_PER_CODE, BYTES_PER_PERSON = 72, 14, 24


@dataclass(frozen=True, eq=False)
class JobRecords:
    """All records as codes in canonical order, with sensitive codes, persons and source positions.

    Attributes:
        codes: Shape (n, QIDs), the code of each value.
        sensitive: Shape (n,) per sensitive column that a privacy model looks at: the code of each value.
        order: Shape (n,), the position of each record in the source, chunk after chunk.
        chunks: Number of records of each chunk.
        source_counts: Shape (values,) per sensitive column: how many records of the whole source have each value, or persons where they
            are named.
        unit: The unit that k counts, with the persons of the records.
    """

    codes: NDArray[np.unsignedinteger]
    sensitive: tuple[NDArray[np.integer], ...]
    order: NDArray[np.intp]
    chunks: tuple[int, ...]
    source_counts: tuple[NDArray[np.int64], ...]
    unit: Unit = EVERY_RECORD

    @classmethod
    def of(
        cls,
        coding: Coding,
        columns: Sequence[NDArray[np.integer]],
        marked: NDArray[np.uint64],
        digests: Digests | None,
        chunks: tuple[int, ...],
        wholes: tuple[NDArray[np.int64], ...] | None = None,
    ) -> JobRecords:
        """Return records in canonical order from columns of codes in the order of the source.

        Args:
            coding: Of the run.
            columns: Shape (n,) per QID, then per sensitive column: the code of each value.
            marked: Shape (n,), from ``record_hashes``.
            digests: Shape (n,), the digest of each record's person; None where the job has no person column.
            chunks: Number of records of each chunk.
            wholes: As ``source_counts``; counted from these records if left out.
        """
        qids = len(coding.domains)
        order = canonical_record_order(columns[:qids], [domain.size for domain in coding.domains], marked, digests)
        codes = np.empty((len(order), qids), np.result_type(*columns[:qids]))
        for position, column in enumerate(columns[:qids]):
            codes[:, position] = column[order]
        unit = unit_of_records(None if digests is None else digests[order])
        sensitive = tuple(column[order] for column in columns[qids:])
        return cls(codes, sensitive, order, chunks, source_counts_of(coding, sensitive, unit) if wholes is None else wholes, unit)


def source_counts_of(coding: Coding, sensitive: Sequence[NDArray[np.integer]], unit: Unit) -> tuple[NDArray[np.int64], ...]:
    """Return, per sensitive column, how many records (or persons) have each value, shape (values,).

    Args:
        coding: Of the run.
        sensitive: Shape (n,) per column, the value of each record of the whole source.
        unit: The unit that k counts.
    """
    if unit.adds_up:
        return tuple(source_value_counts(coding, position) for position in range(len(sensitive)))
    return tuple(unit.count(codes.astype(np.int64), domain.size) for codes, domain in zip(sensitive, coding.sensitive, strict=True))


@dataclass(frozen=True)
class RecordReading(DomainTable):
    """The inputs of coding records: domain table and source."""

    source: ChunkedSource


def _code(given: RecordReading, chunk: Chunk, path: Path) -> int:
    """Code the QIDs and modelled sensitive columns of a chunk, in the chunk's order, with record hashes.

    Where persons are named, each record also has the digest of its person.
    """
    job, source, names = given.job, given.source, axis_names(given.job)
    wanted = list(dict.fromkeys([*names, *source.payload]))
    coders = [Coder(domain) for domain in (*given.coding.domains, *given.coding.sensitive)]
    rows, writer = 0, None
    # As the source names them, whatever is published in the place of that.
    digests = digests_in(job, chunk) if job.columns.person else None
    try:
        for batch in read_published(job, source, chunk, wanted):
            codes = [coder.code(batch.column(name)) for coder, name in zip(coders, names, strict=True)]
            marked = record_hashes([batch.column(name) for name in source.payload], batch.num_rows)
            whose = [] if digests is None else [digests[rows : rows + batch.num_rows]]
            arrays = [pa.array(column) for column in (*codes, marked, *whose)]
            coded = pa.RecordBatch.from_arrays(arrays, names=[str(position) for position in range(len(arrays))])
            writer = writer or ipc.new_file(path, coded.schema)
            writer.write_batch(coded)
            rows += batch.num_rows
    except LookupError:
        raise SourceError.changed(chunk.name) from None
    finally:
        if writer:
            writer.close()
    return rows


CODED = FileStep(
    "coded",
    make=_code,
    reads=lambda given, chunk: [chunk.key, given.coding.key],
    settings=lambda given: [given.source.payload_key, person_key(given.job, given.source.columns)],
    suffix=".arrow",
)
"""The records of a chunk as codes."""


def code_records(run: Run, source: ChunkedSource, domain: Artifact) -> list[Artifact]:
    """Return each chunk's artefact of its records' domain codes, coded if missing."""
    return run_for_items(run, CODED, RecordReading(run.job, domain, run.store, run.spill, source), source.chunks)


def bytes_of_records(job: Job, coding: Coding, record_count: int) -> int:
    """Return about how many bytes an algorithm takes for so many records, labels included.

    Measured: twice the bytes of the records.
    """
    each = BYTES_PER_RECORD + BYTES_PER_CODE * (len(coding.domains) + len(coding.sensitive))
    return 2 * record_count * (each + (BYTES_PER_PERSON if job.columns.person else 0))


def gather_records(job: Job, coding: Coding, coded_chunks: Sequence[Artifact], store: Store) -> JobRecords:
    """Read all coded records in canonical order; raise ``PrivacyError`` below k or above memory."""
    count = sum(part.rows for part in coded_chunks)
    check_at_least_k(job, count)
    needed = bytes_of_records(job, coding, count)
    if needed > job.memory:
        raise PrivacyError.too_many_records(job.method.name, count, needed)
    # Room for all is taken once: to concatenate chunks would hold every record twice.
    columns = [np.empty(count, Coder(domain).code(domain.values[:0]).dtype) for domain in (*coding.domains, *coding.sensitive)]
    marked = np.empty(count, np.uint64)
    digests = np.empty(count, np.uint64) if job.columns.person else None
    first = 0
    for part in coded_chunks:
        with pa.memory_map(str(store.path(part))) as mapped:
            table = ipc.open_file(mapped).read_all()
            for position, column in enumerate([*columns, marked, *([] if digests is None else [digests])]):
                column[first : first + part.rows] = table.column(position).to_numpy()
        first += part.rows
    records = JobRecords.of(coding, columns, marked, digests, tuple(part.rows for part in coded_chunks))
    whose = records.unit.figures()
    if whose:
        check_at_least_k(job, whose[0], "person")
    return records


def axes_of(job: Job, coding: Coding, order: Order = "listed") -> CutAxes:
    """Return the axes of cuts, one per QID, built once per order and cached in the coding.

    Args:
        coding: Domains and hierarchies.
        order: Order of siblings, where the hierarchy leaves it open.
    """
    qids = job.columns.quasi_identifiers
    of_qids = zip(qids, coding.domains, coding.hierarchies, strict=True)
    return coding.once(("axes", order), lambda: CutAxes.of(axis_of(*of, job.folder, order) for of in of_qids))
