"""The job of several tables (version 2): its model, and loading from YAML with all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator
from pydantic.json_schema import models_json_schema

from schemas.job.columns import Columns, QuasiIdentifier
from schemas.job.job import Job, load_job
from schemas.job.privacy import Attacks, AttackSettings, share_of_records
from schemas.job.source import Source, Target, Work, WorkAtHand
from schemas.reading.job_files import JobModel, is_of_tables, read_job
from schemas.reading.model import (
    MEMORY_SCHEMA,
    TABLES_VERSION,
    Choice,
    ExactDecimal,
    MethodSpec,
    StrictModel,
    TablesFormatVersion,
    Title,
    fault,
    job_name,
    memory_bytes,
)
from schemas.reading.regular_files import GivenJob
from schemas.registry.privacy_kinds import Closeness, Diversity
from schemas.relational.fitting import OF_ONE_TABLE, TableTree, column_list, table_faults, tree_of


def key_columns(value: object) -> object:
    """Return the columns of a key as a list; raise if there is none, or one is named twice."""
    columns = column_list(value)
    if not columns or len(set(columns)) < len(columns):
        raise fault("must be a column's name or a list of them, each once")
    return columns


KEY_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


class TableColumns(Columns):
    """The columns of one table of several, by role.

    Columns of its key and references need no role. The keys ``person``, ``most_records``, ``linkable`` and ``accept_untreated`` are for
    jobs of one table.
    """

    keys_elsewhere: ClassVar[Sequence[str]] = OF_ONE_TABLE
    quasi_identifiers: list[QuasiIdentifier] = Field(default_factory=list)
    """Columns that are generalised; none where nothing of the table singles people out but its numbers of rows."""


class RowsBound(StrictModel):
    """Maximum number of published rows per person."""

    most: Annotated[int, Field(ge=1)]
    """At most so many rows of a person are published; which of them is drawn by a keyed digest."""


class TableSpec(StrictModel):
    """Settings of one table of a job."""

    examples: ClassVar[Mapping[str, str]] = {
        "source": 'source: {path: "visit/*.parquet"}',
        "references": "references: {person_id: person}",
        "rows": "rows: {most: 20}",
        "columns": "columns: {insensitive: rest}",
    }
    source: Source
    """Where its rows are."""
    key: Annotated[list[str], BeforeValidator(key_columns), WithJsonSchema(KEY_SCHEMA)] = Field(default_factory=list)
    """The column that names a row, or a list of those that name it together; published as pseudonyms."""
    references: dict[str, str] = Field(default_factory=dict)
    """Which column refers to which table, as in ``person_id: person``; several columns as ``"a, b": person``."""
    rows: RowsBound | None = None
    """Bounds the rows of a person, where wanted."""
    columns: TableColumns = Field(default_factory=TableColumns)
    """Which column has which role."""

    @property
    def referring(self) -> dict[str, list[str]]:
        """Columns of the references, by the name of the referenced table."""
        return {table: column_list(columns) for columns, table in self.references.items()}

    @property
    def linking(self) -> list[str]:
        """Columns of the key and of the references, each once."""
        return list(dict.fromkeys([*self.key, *(column for columns in self.referring.values() for column in columns)]))


MOST_KNOWN_ROWS = 4
"""The most rows of each table that an intruder may be said to know: their choices are counted one by one."""


class KnownRows(StrictModel):
    """Bound on the rows of a person that an intruder knows, who does not know how many there are."""

    rows: Annotated[int, Field(ge=1, le=MOST_KNOWN_ROWS)]
    """At most so many rows of each table right below the unit, whole, with everything beneath them."""


def intruder_knowledge(value: object) -> object:
    """Return an intruder's knowledge, the word all or a ``KnownRows``; raise for other values."""
    if value == "all" or isinstance(value, KnownRows):
        return value
    if isinstance(value, Mapping):
        return KnownRows.model_validate(dict(value))
    raise fault("must be the word all, or the number of rows, as in knows: {rows: 2}")


class TablesPrivacy(StrictModel):
    """Privacy models that every history of the release must satisfy."""

    examples: ClassVar[Mapping[str, str]] = {"l": "l: {visit: {diagnosis: {distinct: 3}}}", "t": "t: {visit: {diagnosis: {t: 0.2}}}"}
    k: Annotated[int, Field(ge=1)]
    """Persons who share each history, at least."""
    knows: Annotated[Literal["all"] | KnownRows, BeforeValidator(intruder_knowledge)] = "all"
    """What an intruder knows of a person: all rows, or ``{rows: m}``, at most so many of each table right below the unit."""
    l: dict[str, dict[str, Diversity]] = Field(default_factory=dict)  # noqa: E741 - the model's own name
    """l-diversity by table and sensitive column."""
    t: dict[str, dict[str, Closeness]] = Field(default_factory=dict)
    """t-closeness by table and sensitive column."""

    @property
    def known_rows(self) -> int | None:
        """Number of rows of each table that an intruder knows, or None for all rows."""
        return self.knows.rows if isinstance(self.knows, KnownRows) else None


class TablesSuppression(StrictModel):
    """Limits of suppressed persons and withheld rows."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(0)
    """The greatest share of all persons that may be left out, with all their rows."""
    rows: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(0)
    """The greatest share of the other tables' rows that may be withheld of persons who stay."""


class TablesMethod(MethodSpec):
    """Settings of the search for the optimal levels of all tables, as one node of one lattice."""

    name: Literal["skald"] = "skald"
    """Chooses this algorithm."""
    objective: Literal["gcp", "gcp_covered"] = "gcp"
    """What is best: the least certainty penalty over all tables, range over range or values covered."""


class PersonsMethod(MethodSpec):
    """Settings of Mondrian over persons.

    It makes classes of persons, whose rows are aligned and published with one label in each column.
    """

    name: Literal["mondrian"] = "mondrian"
    """Chooses this algorithm."""
    objective: Literal["gcp", "gcp_covered"] = "gcp"
    """By which certainty penalty rows are aligned: range over range, or values covered."""


_METHODS = {"skald": TablesMethod, "mondrian": PersonsMethod}
TABLES_METHODS = tuple(_METHODS)
"""Names of the methods for several tables."""


class TablesJob(JobModel):
    """A complete job of several tables.

    Relative paths in it are relative to the folder of the job file.
    """

    uncounted: ClassVar[frozenset[str]] = frozenset(
        {"target", "artifacts", "work", "chunk_rows", "threads", "run_by", "attacks", "overlaps"}
    )
    examples: ClassVar[Mapping[str, str]] = {
        "tables": 'tables: {person: {source: {path: "person/*.parquet"}, key: person_id}}',
        "privacy": "privacy: {k: 50}",
        "method": "method: {name: skald}",
        "suppression": "suppression: {limit: 0.05, rows: 0.10}",
    }
    version: TablesFormatVersion
    """The version of the job format: 2."""
    name: Annotated[str, AfterValidator(job_name)]
    """Names the job's folder of artefacts: letters, digits, '_', '.', '-'."""
    tables: Annotated[dict[str, TableSpec], Field(min_length=1)]
    """The tables by name. One is the unit, with a row for each person; the others reach it by references."""
    privacy: TablesPrivacy
    """What every history must keep."""
    suppression: TablesSuppression = Field(default_factory=TablesSuppression)
    """How much may be left out; nothing unless it is said."""
    orphans: Literal["refuse", "drop"] = "refuse"
    """What becomes of rows whose reference finds nobody: the job is refused, or they are left out and counted."""
    method: Annotated[MethodSpec, Choice(_METHODS, "name")] = Field(default_factory=TablesMethod)
    """The algorithm and its settings."""
    memory: Annotated[int, BeforeValidator(memory_bytes), WithJsonSchema(MEMORY_SCHEMA)]
    """The memory budget for counts and buffers: 1GB, 512MB, 2GiB or a number of bytes."""
    target: Target
    """The folder that gets the releases, or an address in an object store such as s3://bucket/releases."""
    artifacts: Literal["keep", "delete"] = "keep"
    """Whether the artefacts, which hold raw values, stay for the next run."""
    attacks: Attacks = Field(default_factory=AttackSettings)
    """Whether the release is attacked before it is published, by joining its tables: sample, all (both attack everybody), off, or
    {refuse: true}."""
    overlaps: Literal["warn", "refuse"] = "warn"
    """What becomes of a release that, together with an earlier one, puts persons at risk, or cannot be compared with it."""
    work: Work | None = None
    """The folder of the artefacts, or a prefix of a bucket such as s3://bucket/prefix; .skald/<name> beside the job file unless it is
    said."""
    chunk_rows: Annotated[int, Field(ge=1)] = 250_000
    """Rows of a chunk, about."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """How many chunk tasks work at a time: as many as cores unless it is said."""
    run_by: Title | None = None
    """Who runs it, for manifest and report; nobody is named unless it is said."""
    _at_hand: WorkAtHand = PrivateAttr(default_factory=WorkAtHand)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        """Check that the parts of the job fit together."""
        tables = {name: dict(table) | {"columns": dict(table.columns)} for name, table in self.tables.items()}
        if faults := table_faults(self.model_dump(mode="python") | {"tables": tables}):
            raise fault(*faults)
        return self

    @property
    def at_hand(self) -> WorkAtHand:
        """Local folder of work in a bucket, shared by the jobs of all tables."""
        return self._at_hand

    @property
    def tree(self) -> TableTree:
        """Tree of the tables, by references."""
        tree, _ = tree_of({name: list(table.references.values()) for name, table in self.tables.items()})
        assert tree is not None
        return tree

    @property
    def can_bound(self) -> bool:
        """Whether a table below the unit may have several rows of a person."""
        return any(table.references and (table.rows is None or table.rows.most > 1) for table in self.tables.values())

    @property
    def is_local(self) -> bool:
        """Whether rows of one column may have labels of different levels."""
        return isinstance(self.method, PersonsMethod)

    @property
    def objective(self) -> str:
        """Name of the loss that the search minimises."""
        return str(getattr(self.method, "objective", "gcp"))


def load_tables_job(path: Path | GivenJob, overrides: Sequence[str] = ()) -> TablesJob:
    """Return the validated job of several tables with settings replaced, or raise ``JobError``.

    Args:
        path: The job file, or what a program gives in its place.
        overrides: Settings such as ``privacy.k=10``.
    """
    return read_job(TablesJob, TABLES_VERSION, path, overrides, table_faults)


def load_any_job(path: Path | GivenJob, overrides: Sequence[str] = ()) -> Job | TablesJob:
    """Return the validated job of one table or of several; as ``load_job`` and ``load_tables_job``."""
    return load_tables_job(path, overrides) if is_of_tables(path, overrides) else load_job(path, overrides)


def jobs_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of job files of one table or of several (draft 2020-12).

    Editors use it. The version decides which of both applies.
    """
    definitions = models_json_schema([(Job, "validation"), (TablesJob, "validation")])[1]["$defs"]
    of_tables = {"properties": {"version": {"const": TABLES_VERSION}}, "required": ["version"]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Job", "type": "object"}
    return head | {"if": of_tables, "then": {"$ref": "#/$defs/TablesJob"}, "else": {"$ref": "#/$defs/Job"}, "$defs": definitions}
