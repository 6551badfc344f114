"""Reading of a job's tables: sources, domains of quasi-identifiers, and rows encoded as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import working_type
from schemas.errors.base import SourceError
from schemas.errors.refusals import PolicyError
from schemas.job.job import Job
from schemas.job.policy import banned_faults
from schemas.relational.table_jobs import lasting_key, persons_job, table_job, tables_policy_faults
from schemas.relational.tables_job import TablesJob
from tasks.counting.coding import CellCoder, Coding, load_coding
from tasks.counting.domains import ChunkReading, axis_names
from tasks.counting.source_domains import count_domains
from tasks.engine.runs import Run, faults_under_policy, locked_run, named_policy
from tasks.engine.steps import run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.extracts import at_one_moment, fixed_extract
from tasks.source.reading import read_chunk
from tasks.source.sources import read_source
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.work_folder import check_folders_disjoint
from tasks.writing.pseudonyms import with_key_fingerprints


@dataclass(frozen=True)
class TableSource:
    """One table of a job: its one-table job and run, its source, and its key and reference columns.

    Attributes:
        name: Of the table.
        job: The table as a job of its own.
        run: The run, with that job.
        source: Its files and chunks.
        linking: Columns of its key and of its references, each once.
    """

    name: str
    job: Job
    run: Run
    source: ChunkedSource
    linking: tuple[str, ...]

    @property
    def published_columns(self) -> tuple[str, ...]:
        """Names of the columns of the published table, in their order."""
        return (*self.linking, *(qid.name for qid in self.job.columns.quasi_identifiers), *self.source.payload)


@contextmanager
def open_tables(job: TablesJob) -> Iterator[Run]:
    """Check all tables against the policy, lock the run folder, and yield the run of the unit's job."""
    jobs = {name: table_job(job, name) for name in job.tables}
    _check_policy(job, jobs)
    for of_table in jobs.values():
        check_folders_disjoint(of_table)
    with locked_run(jobs[job.tree.unit]) as run, ExitStack() as asked:
        for of_table in jobs.values():
            asked.enter_context(fixed_extract(of_table, run.store, goes_on=False))
        yield run


def _check_policy(job: TablesJob, jobs: Mapping[str, Job]) -> None:
    """Raise one ``PolicyError`` with every point in which a job stands below the policy in force."""
    if (policy := named_policy()) is None:
        return
    faults = [fault for of_table in jobs.values() for fault in faults_under_policy(policy, of_table)]
    if faults := list(dict.fromkeys([*faults, *tables_policy_faults(policy, job)])):
        raise PolicyError.below(job.name, policy.path, faults)


def read_tables(run: Run, job: TablesJob) -> dict[str, TableSource]:
    """Locate each table's files, check columns by job and policy; return sources by name, parents first."""
    tables, faults = dict[str, TableSource](), dict[str, SourceError]()
    with at_one_moment():
        for name in job.tree.tables:
            spec, of_table = job.tables[name], table_job(job, name)
            linking = tuple(dict.fromkeys([*spec.key, *(column for columns in spec.referring.values() for column in columns)]))
            own = replace(run, job=of_table)
            try:
                source = read_source(own)
            except SourceError as error:
                faults[name] = error
                continue
            if name == job.tree.unit and lasting_key(job):
                # A key that cannot be used is told of before hours are spent.
                source = with_key_fingerprints(persons_job(job), source)
            tables[name] = TableSource(name, of_table, own, source, linking)
    if faults:
        raise SourceError.of_tables({name: str(error) for name, error in faults.items()})
    # What ``insensitive: rest`` takes in is known by now.
    if run.policy and (banned := [fault for one in tables.values() for fault in banned_faults(run.policy, one.source.payload)]):
        raise PolicyError.below(job.name, run.policy.path, list(dict.fromkeys(banned)))
    return tables


@dataclass(frozen=True)
class RowReading(ChunkReading):
    """Settings for encoding a table's rows: its domains, key, reference and published columns.

    Attributes:
        domain: The domains of its quasi-identifiers; None where it has none.
        linking: Columns of key and references.
        payload: Columns that are published as they are.
    """

    domain: Artifact | None
    linking: tuple[str, ...]
    payload: tuple[str, ...]

    @property
    def qids(self) -> list[str]:
        """The quasi-identifiers, in job order."""
        return [qid.name for qid in self.job.columns.quasi_identifiers]

    def encoded_schema(self) -> pa.Schema:
        """Return the Arrow schema of encoded rows.

        ``q0`` … are codes of quasi-identifiers, ``s0`` … of sensitive columns that a model looks at, ``c0`` … key and references, ``p0`` …
        what is published as it is.
        """
        codes = [pa.field(f"q{place}", pa.uint32()) for place in range(len(self.qids))]
        codes += [pa.field(f"s{place}", pa.uint32()) for place in range(len(self.job.privacy.columns))]
        kinds = [(f"c{place}", name) for place, name in enumerate(self.linking)]
        kinds += [(f"p{place}", name) for place, name in enumerate(self.payload)]
        return pa.schema(codes + [pa.field(called, working_type(self.columns.field(name).type)) for called, name in kinds])


def _carry(given: RowReading, chunk: Chunk, path: Path) -> int:
    """Write the rows of a chunk in their order: quasi-identifiers as codes, other columns as read."""
    coders, schema, rows = _coders(given), given.encoded_schema(), 0
    others = [*given.linking, *given.payload]
    # Keys hardly repeat, and codes are short: a dictionary of them costs more than it saves.
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        # A sensitive column is read once, as its values and for its codes.
        names = list(dict.fromkeys([*axis_names(given.job), *others]))
        plain = [name for name in others if name not in axis_names(given.job)]
        for batch in read_chunk(chunk, names, plain=plain):
            try:
                codes = coders.codes(batch.columns[: len(axis_names(given.job))]) if coders else []
            except LookupError:
                raise SourceError.changed(chunk.name) from None
            arrays = [pa.array(code).cast(pa.uint32()) for code in codes]
            arrays += [batch.column(name).cast(schema.field(len(codes) + place).type) for place, name in enumerate(others)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += batch.num_rows
    return rows


def _coders(given: RowReading) -> CellCoder | None:
    if given.domain is None:
        return None
    coding = load_coding(given.job, given.domain, given.store)
    return CellCoder.at(coding, coding.finest)


CARRIED = FileStep(
    "carried",
    make=_carry,
    reads=lambda given, chunk: [chunk.key, given.domain.sha256 if given.domain else None],
    settings=lambda given: [axis_names(given.job), given.linking, given.payload, given.encoded_schema().to_string()],
)
"""The rows of a chunk as codes, with key, references and what is published as it is."""


@dataclass(frozen=True)
class EncodedTable:
    """A table's rows in stored artefacts: quasi-identifiers as codes, other columns as values.

    Attributes:
        table: What was read.
        domain: Domains of its quasi-identifiers; None where it has none.
        chunks: Its rows, chunk by chunk.
    """

    table: TableSource
    domain: Artifact | None
    chunks: tuple[Artifact, ...]

    @property
    def rows(self) -> int:
        """Number of rows in the source."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def qids(self) -> list[str]:
        """The quasi-identifiers, in job order."""
        return [qid.name for qid in self.table.job.columns.quasi_identifiers]

    def coding(self, store: Store) -> Coding | None:
        """Return the cached domains and hierarchies of a table; None if it has no quasi-identifier."""
        return load_coding(self.table.job, self.domain, store) if self.domain else None

    def encoded_name(self, column: str) -> str:
        """Return the name of a key or reference column in the encoded rows."""
        return f"c{self.table.linking.index(column)}"

    def relation(self, store: Store) -> str:
        """Return the SQL relation of the encoded rows, with ``srow``, the row number in the source."""
        parts, first = [], 0
        for chunk in self.chunks:
            path = str(store.path(chunk)).replace("'", "''")
            read = f"read_parquet('{path}', file_row_number = true)"
            parts.append(f"SELECT * EXCLUDE (file_row_number), file_row_number + {first} AS srow FROM {read}")
            first += chunk.rows
        return f"({' UNION ALL '.join(parts)})"


def encode_rows(table: TableSource) -> EncodedTable:
    """Count the domains of a table and write its rows encoded, chunk by chunk; return their artefacts."""
    run, source = table.run, table.source
    domain = count_domains(run, source) if axis_names(table.job) else None
    given = RowReading(table.job, source.columns, run.store, domain, table.linking, tuple(source.payload))
    return EncodedTable(table, domain, tuple(run_for_items(run, CARRIED, given, source.chunks)))
