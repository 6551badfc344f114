"""Reading of a job's tables: sources, domains of quasi-identifiers, and rows encoded as numbers.

Keys, references and types are checked, and all faults reported at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import is_text, is_unpublishable, working_type
from schemas.errors.base import SourceError, counted, listed, verb_of
from schemas.errors.refusals import PolicyError
from schemas.errors.tables import RelationError
from schemas.job.job import Job
from schemas.job.policy import banned_faults
from schemas.relational.table_jobs import column_of_persons, lasting_key, persons_job, table_job, tables_policy_faults
from schemas.relational.tables_job import TablesJob
from tasks.counting.chunk_counts import ChunkReading, axis_names, qid_names
from tasks.counting.coding import CellCoder, Coding, load_coding
from tasks.counting.source_domains import count_domains
from tasks.engine.runs import Run, faults_under_policy, locked_run, named_policy
from tasks.engine.steps import run_for_item, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.extracts import at_one_moment, fixed_extract
from tasks.source.reading import read_chunk
from tasks.source.sources import read_source
from tasks.store.database import connect, parquet_sql
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.work_folder import check_folders_disjoint
from tasks.writing.pseudonyms import give_tokens, with_key_fingerprints


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
        return (*self.linking, *qid_names(self.job), *self.source.payload)


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
            own = replace(run, job=of_table)
            try:
                source = read_source(own)
            except SourceError as error:
                faults[name] = error
                continue
            if name == job.tree.unit and lasting_key(job):
                # A key that cannot be used is told of before hours are spent.
                source = with_key_fingerprints(persons_job(job), source)
            tables[name] = TableSource(name, of_table, own, source, tuple(spec.linking))
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

    def encoded_schema(self) -> pa.Schema:
        """Return the Arrow schema of encoded rows.

        ``q0`` … are codes of quasi-identifiers, ``s0`` … of sensitive columns that a model looks at, ``c0`` … key and references, ``p0`` …
        what is published as it is.
        """
        codes = [pa.field(f"q{place}", pa.uint32()) for place in range(len(self.job.columns.quasi_identifiers))]
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
        return qid_names(self.table.job)

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
            read = parquet_sql([store.path(chunk)], row_numbers=True)
            parts.append(f"SELECT * EXCLUDE (file_row_number), file_row_number + {first} AS srow FROM {read}")
            first += chunk.rows
        return f"({' UNION ALL '.join(parts)})"


def encode_rows(table: TableSource) -> EncodedTable:
    """Count the domains of a table and write its rows encoded, chunk by chunk; return their artefacts."""
    run, source = table.run, table.source
    domain = count_domains(run, source) if axis_names(table.job) else None
    given = RowReading(table.job, source.columns, run.store, domain, table.linking, tuple(source.payload))
    return EncodedTable(table, domain, tuple(run_for_items(run, CARRIED, given, source.chunks)))


@dataclass(frozen=True)
class TableSet:
    """All tables of a job with their rows encoded in artefacts, parents first.

    Attributes:
        run: The run, with the unit's job.
        tables: By name, parents first.
    """

    run: Run
    job: TablesJob
    tables: Mapping[str, EncodedTable]

    @property
    def store(self) -> Store:
        """The store of the run, which holds the encoded rows of all tables."""
        return self.run.store

    @property
    def key(self) -> list[object]:
        """The part of a step's key that all tables' rows determine: names, artefact keys and linking columns."""
        return [[name, [chunk.sha256 for chunk in table.chunks], table.table.linking] for name, table in self.tables.items()]

    @property
    def sources(self) -> dict[str, TableSource]:
        """The source of each table, by name."""
        return {name: table.table for name, table in self.tables.items()}

    def with_tokens(self) -> Self:
        """Give vault tokens to unit keys without one; return tables with the vault's id, or themselves.

        Nothing happens where the job has no vault. A vault gets its id with its first tokens, and the release's id follows from it: that
        is to be made again.
        """
        unit = self.job.tree.unit
        if lasting_key(self.job) is None:
            return self
        encoded = self.tables[unit]
        with self.run.phase("pseudonyms"):
            source = give_tokens(persons_job(self.job), encoded.table.source, self.run.spill)
        return replace(self, tables={**self.tables, unit: replace(encoded, table=replace(encoded.table, source=source))})


def check_linking_columns(job: TablesJob, tables: Mapping[str, TableSource]) -> None:
    """Raise ``RelationError`` for unfit types of keys and references, and names that would be joined."""
    faults = _joined_name_faults(job, tables)
    kinds = {name: {one: working_type(table.source.columns.field(one).type) for one in table.linking} for name, table in tables.items()}
    for name, mine in kinds.items():
        faults += [
            f"'{column}' of '{name}' is of type {kind}, which no key or reference can have; make it text or a number"
            for column, kind in mine.items()
            if is_unpublishable(kind)
        ]
        for other, columns in job.tables[name].referring.items():
            for column, theirs in zip(columns, job.tables[other].key, strict=True):
                pair = mine[column], kinds[other][theirs]
                fitting = pair[0] == pair[1] or any(all(map(alike, pair)) for alike in (pa.types.is_integer, is_text))
                if not (fitting or any(map(is_unpublishable, pair))):
                    faults.append(
                        f"'{column}' of '{name}' is of type {pair[0]} and '{theirs}' of '{other}', to which it refers, of {pair[1]}; "
                        "write both in one type"
                    )
    if faults:
        raise RelationError(faults)


def _joined_name_faults(job: TablesJob, tables: Mapping[str, TableSource]) -> list[str]:
    """Return a fault for each column of the unit whose name another column has in joined tables.

    Figures of joined tables are kept by these names: of two columns with one name, one would not be counted.
    """
    unit = job.tree.unit
    others = [(name, column) for name in job.tree.tables[1:] for column in tables[name].published_columns]
    taken = {column_of_persons(job, name, column): f"'{column}' of '{name}'" for name, column in others}
    return [
        f"'{column}' of '{unit}' is called as {taken[column]} is where the tables are joined; rename one of them"
        for column in tables[unit].published_columns
        if column in taken
    ]


def key_counts_sql(relation: str, columns: list[str]) -> str:
    """Return the SQL that counts rows with an incomplete key, and keys that name several rows.

    It is right because GROUP BY has each combination once, and count(*) FILTER looks at each row by itself.
    """
    lacking = " OR ".join(f"{column} IS NULL" for column in columns)
    return f"""
        SELECT (SELECT count(*) FROM {relation} WHERE {lacking}),
               (SELECT count(*) FROM (SELECT 1 FROM {relation} WHERE NOT ({lacking}) GROUP BY {", ".join(columns)} HAVING count(*) > 1))
    """


def orphans_sql(relation: str, mine: list[str], other: str, theirs: list[str]) -> str:
    """Return the SQL that counts rows whose complete reference finds no row.

    It is right because an anti join keeps each row on the left that has no partner, once.
    """
    whole = " AND ".join(f"m.{column} IS NOT NULL" for column in mine)
    same = " AND ".join(f"m.{own} = o.{their}" for own, their in zip(mine, theirs, strict=True))
    return f"SELECT count(*) FROM {relation} AS m ANTI JOIN {other} AS o ON {same} WHERE {whole}"


def rows_without_reference_sql(relation: str, references: list[list[str]]) -> str:
    """Return the SQL that counts rows without any complete reference, which belong to no person."""
    lacking = " AND ".join("(" + " OR ".join(f"{column} IS NULL" for column in columns) + ")" for columns in references)
    return f"SELECT count(*) FROM {relation} WHERE {lacking}"


def _check(given: TableSet, _: None, path: Path) -> int:
    """Count the faults of keys and references of all tables; write counts and names, but no values."""
    found = []
    with connect(given.run.job, given.run.spill) as connection:
        for name, table in given.tables.items():
            spec, relation = given.job.tables[name], table.relation(given.store)
            if spec.key:
                [(lacking, repeated)] = connection.execute(
                    key_counts_sql(relation, [table.encoded_name(one) for one in spec.key])
                ).fetchall()
                found.append({"table": name, "key": spec.key, "nulls": lacking, "repeats": repeated})
            for other, columns in spec.referring.items():
                theirs = given.tables[other]
                places = [theirs.encoded_name(one) for one in given.job.tables[other].key]
                statement = orphans_sql(relation, [table.encoded_name(one) for one in columns], theirs.relation(given.store), places)
                [(orphans,)] = connection.execute(statement).fetchall()
                found.append({"table": name, "columns": columns, "refers": other, "orphans": orphans})
            if spec.references:
                references = [[table.encoded_name(one) for one in columns] for columns in spec.referring.values()]
                [(nobody,)] = connection.execute(rows_without_reference_sql(relation, references)).fetchall()
                found.append({"table": name, "nobody": nobody})
    path.write_text(json.dumps(found))
    return len(found)


RELATED = FileStep("related", make=_check, reads=lambda given, _: given.key, suffix=".json")
"""What is wrong with keys and references, in counts."""


def relation_faults(given: TableSet) -> tuple[list[str], bool]:
    """Return faults of keys and references as sentences, and whether each key names one row.

    References can be followed only if it does.
    """
    made = run_for_item(given.run, RELATED, given, None, "keys and references")
    found = json.loads(given.store.path(made).read_text())
    return list(_sentences(found, refuse=given.job.orphans == "refuse")), not any(one_found.get("repeats") for one_found in found)


def _sentences(found: list[dict[str, object]], *, refuse: bool) -> Iterator[str]:
    for one_found in found:
        table, numbers = one_found["table"], {name: int(str(value)) for name, value in one_found.items() if isinstance(value, int)}
        key, columns = (listed(map(str, names)) if isinstance(names := one_found.get(part), list) else "" for part in ("key", "columns"))
        if nulls := numbers.get("nulls"):
            lacking = f"{counted(nulls, 'row')} of '{table}' {verb_of(nulls, 'have')} no whole key"
            yield f"{lacking} ({key}); give each one, or leave them out of the source"
        if repeats := numbers.get("repeats"):
            yield f"{counted(repeats, 'key')} of '{table}' ({key}) {verb_of(repeats, 'name')} several rows; a key must name one row"
        if (orphans := numbers.get("orphans")) and refuse:
            yield (
                f"{counted(orphans, 'row')} of '{table}' {verb_of(orphans, 'refer')} by {columns} to rows that "
                f"'{one_found['refers']}' does not have; mend them, "
                "or say orphans: drop, which leaves them out and counts them"
            )
        if (nobody := numbers.get("nobody")) and refuse:
            of = f"{counted(nobody, 'row')} of '{table}' {verb_of(nobody, 'have')} no reference at all"
            yield f"{of}, and so no person; mend them, or say orphans: drop"
