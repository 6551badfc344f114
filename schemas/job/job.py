"""The job of one table: its model, checks, digests and loading from YAML with all faults at once."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from schemas.errors.base import JobError, nearest
from schemas.job.columns import REST, ROLES, Columns, Population, QuasiIdentifier, names, publish_settings, role_faults
from schemas.job.fitting import (
    hidden_faults,
    linkable_faults,
    linked_faults,
    person_column_names,
    person_faults,
    rank_faults,
    replay_faults,
    suppression_faults,
)
from schemas.job.identifiers import Identifier, counts_people, subject_faults
from schemas.job.method import METHODS, Method, SkaldMethod
from schemas.job.output import Output, partition_faults, published_names
from schemas.job.privacy import Attacks, AttackSettings, Privacy, Suppression, uncompiled_faults
from schemas.job.source import Source, Target, Work, WorkAtHand
from schemas.reading.job_files import JobModel, names_tables, read_job
from schemas.reading.model import MEMORY_SCHEMA, OF_TABLES, FormatVersion, PathText, StrictModel, Title, fault, job_name, memory_bytes
from schemas.reading.registry import call_on_change
from schemas.reading.regular_files import GivenJob
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.hierarchy_kinds import Hierarchy
from schemas.registry.privacy_kinds import DISTANCE_SCHEMAS


class Job(JobModel):
    """A job of one table, validated; relative paths in it are relative to the job file's folder."""

    # Neither place nor pace changes a byte of a release. Memory is counted: it bounds what can be searched.
    uncounted: ClassVar[frozenset[str]] = frozenset(
        {"target", "artifacts", "work", "chunk_rows", "threads", "run_by", "overlaps", "attacks"}
    )
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"worker_memory"})
    examples: ClassVar[Mapping[str, str]] = {
        "columns": "columns: {quasi_identifiers: [{name: age, hierarchy: {widths: [5, 10]}}]}",
        "source": 'source: {path: "data/*.parquet"}',
        "privacy": "privacy: {k: 50}",
        "suppression": "suppression: {limit: 0.01, treatment: drop}",
        "method": "method: {name: skald}",
        "output": "output: {format: csv}",
        "population": "population: {path: register.parquet}",
    }
    version: FormatVersion
    """The version of the job format: 1."""
    name: Annotated[str, AfterValidator(job_name)]
    """Names the job's folder of artefacts: letters, digits, '_', '.', '-'."""
    source: Source
    """Where the records are."""
    columns: Columns
    """Which column has which role."""
    privacy: Privacy
    """What every equivalence class must keep."""
    suppression: Suppression = Field(default_factory=Suppression)
    """How many records may be taken out, and how; none unless it is said."""
    method: Method
    """The algorithm and its settings."""
    memory: Annotated[int, BeforeValidator(memory_bytes), WithJsonSchema(MEMORY_SCHEMA)]
    """The memory budget for counts and buffers: 1GB, 512MB, 2GiB or a number of bytes, always bytes once it is read. The program itself and
    Prefect come on top, up to half a gigabyte. A million records, wide ones or several tables may need 256MB or more."""
    worker_memory: Annotated[int, BeforeValidator(memory_bytes), WithJsonSchema(MEMORY_SCHEMA)] | None = None
    """The same for each worker of a cluster, which holds chunks while `memory` is for what is merged and searched; as much unless it is
    said."""
    target: Target
    """The folder that gets the releases, or an address in an object store such as s3://bucket/releases."""
    output: Output = Field(default_factory=Output)
    """How the released records are written; Parquet unless it is said."""
    artifacts: Literal["keep", "delete"] = "keep"
    """Whether the artefacts, which hold raw values, stay for the next run."""
    overlaps: Literal["warn", "refuse"] = "warn"
    """What becomes of a release that tells more together with an earlier one: warn, or refuse it (exit code 3)."""
    attacks: Attacks = Field(default_factory=AttackSettings)
    """How the release is attacked before it is published: sample, all, off, or {sample: 2000, seed: 1, refuse: true}. It is attacked on a
    sample unless it is said."""
    intervals: Literal["text", "bounds"] = "text"
    """Whether an interval is published as text or as two columns."""
    population: Population | None = None
    """A table of the population that the source's people were drawn from: the risk of the release in it is measured too."""
    endpoints: Literal["observed", "shared"] | None = None
    """Where the range of a class of numbers or dates ends: at its least and greatest value, each of which is somebody's, or at a value
    that k people have or a bin's edge, with k people at or beyond it. Shared unless it is said. Bins of a hierarchy end where they do."""
    work: Work | None = None
    """The folder of the artefacts, or a prefix of a bucket such as s3://bucket/prefix; .skald/<name> beside the job file unless it is
    said."""
    chunk_rows: Annotated[int, Field(ge=1)] = 250_000
    """Rows of a chunk, about."""
    rows_per_file: Annotated[int, Field(ge=1)] = 1_000_000
    """Records of a data file of the release, about."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """How many chunk tasks work at a time: as many as cores unless it is said, at most four for each and as many as memory has room for."""
    replay: PathText | None = None
    """An earlier release, of the target or as a folder, whose classes are applied and verified; others are looked for unless it is said."""
    run_by: Title | None = None
    """Who runs it, for manifest and report; nobody is named unless it is said."""
    _at_hand: WorkAtHand = PrivateAttr(default_factory=WorkAtHand)
    _method_of_several: str = PrivateAttr(default="")
    _may_be_empty: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        """Check that the parts of the job fit together."""
        if faults := fit_faults(dict(self)):
            raise fault(*faults)
        return self

    def canonical(self) -> dict[str, Any]:
        """Return the settings that determine a release's content as JSON data.

        Of a replayed release its id counts. Older jobs keep their digest.
        """
        content = super().canonical()
        if not content["output"]:
            del content["output"]
        del content["endpoints"]
        if self.population is None:
            del content["population"]
        # One level for a whole column has the hierarchy's bins and no ranges of classes.
        if self.shared_ends and not METHODS[self.method.name].one_level:
            content["endpoints"] = "shared"
        replay = content.pop("replay")
        # By its id: the same release may be named or given as a folder.
        return content if replay is None else content | {"replay": Path(replay).name}

    @property
    def is_of_several(self) -> bool:
        """Whether this is one table of a job of several tables.

        Persons are counted in it whatever the table says.
        """
        return bool(self._method_of_several)

    @property
    def may_be_empty(self) -> bool:
        """Whether the source may have no record, as a table that references others may."""
        return self._may_be_empty

    @property
    def method_named(self) -> str:
        """Name of the method in the job file, also for one table of several."""
        return self._method_of_several or self.method.name

    @property
    def task_memory(self) -> int:
        """Memory in bytes that one task of chunks may take, on any worker."""
        return min(self.memory, self.worker_memory or self.memory)

    def with_task_memory(self) -> Self:
        """Return the job, or a copy whose ``memory`` is lowered to that of one task of chunks."""
        return self if self.task_memory == self.memory else self.model_copy(update={"memory": self.task_memory})

    @property
    def shared_ends(self) -> bool:
        """Return whether published ranges may end only at bounds that k people reach or exceed.

        Otherwise they end at values of their own records.
        """
        return self.endpoints != "observed"

    @property
    def full_domain(self) -> SkaldMethod:
        """The settings of the lattice search: the job's own, or defaults for other methods."""
        return self.method if isinstance(self.method, SkaldMethod) else SkaldMethod()

    @property
    def tries_next(self) -> bool:
        """Whether a cut that l or t refuses is replaced by the next best cut.

        This discloses something about sensitive values to persons who know the algorithm.
        """
        return bool(self.privacy.columns) and getattr(self.method, "refused", "stop") == "next"

    @property
    def target_path(self) -> Path:
        """Absolute path of the folder that gets the releases.

        For an object store, the folder in which they are made before they are copied.
        """
        return self.work_path / "outbox" if isinstance(self.target, str) else self.resolve(self.target)

    @property
    def target_address(self) -> str | None:
        """Address in an object store that gets the releases; None where a folder does."""
        return self.target if isinstance(self.target, str) else None

    @property
    def target_location(self) -> str:
        """The path or address of the target."""
        return self.target_address or str(self.target_path)

    def release_location(self, release: str) -> str:
        """Return the final folder or address of a release."""
        return f"{self.target_location}/{release}"

    @property
    def work_path(self) -> Path:
        """Absolute path of the artefacts' folder; raises ``JobError`` if work is in a bucket without one.

        For work in a bucket, the local folder with its copy.
        """
        if not isinstance(self.work, str):
            return self.resolve(self.work or Path(".skald", self.name))
        if self._at_hand.folder is None:
            # Never a folder in its place, of which nobody else would know.
            raise JobError(self.name, [f"work is '{self.work}', and this does not work in a bucket yet; set 'work' to a folder"])
        return self._at_hand.folder

    @property
    def work_address(self) -> str | None:
        """Address prefix of the bucket that holds the artefacts; None where a folder does."""
        return self.work if isinstance(self.work, str) else None

    @property
    def work_location(self) -> str:
        """Location of the artefacts for other runs and machines: an absolute path or an address."""
        return self.work_address or str(self.work_path)

    def set_local_work(self, folder: Path | None) -> None:
        """Set the local folder of work in a bucket, for all jobs that share it; None when the work ends."""
        self._at_hand.folder = folder

    @property
    def replay_path(self) -> Path:
        """Folder of the release that ``replay`` names: in the target, or else relative to the job file."""
        assert self.replay is not None
        known = self.target_path / self.replay
        return known if known.is_dir() else self.resolve(self.replay)

    @property
    def source_pattern(self) -> list[str]:
        """Absolute paths and patterns of the source; addresses (``s3://…``) are unchanged."""
        # Only what the job writes is a pattern: a bracket in a folder's name above it stands for itself.
        anchor = Path(glob.escape(str(self.folder)))
        return [path if "://" in path else str(anchor / path) for path in self.source.path]

    @property
    def hierarchies(self) -> list[HierarchySpec]:
        """Hierarchies of the quasi-identifiers and of the t-closeness models."""
        found = [qid.hierarchy for qid in self.columns.quasi_identifiers]
        return found + [one.hierarchy for one in self.privacy.t.values() if one.hierarchy is not None]

    def resolve(self, path: Path) -> Path:
        """Return a path of the job, such as that of a hierarchy file, as an absolute path."""
        return self.folder / path


def fit_faults(job: Mapping[str, Any]) -> list[str]:
    """Return a message for each conflict between parts of a job, validated or raw."""
    read = {part: _mapping(job.get(part)) for part in ("columns", "method", "suppression", "privacy")}
    columns, method, privacy = read["columns"], read["method"], read["privacy"]
    entry = METHODS.get(str(method.get("name")))
    faults = suppression_faults(read["suppression"], method, job.get("intervals"))
    faults += linkable_faults(columns)
    faults += linked_faults(read)
    faults += person_faults(columns, method, privacy)
    known = {name for role in ROLES for name in names(columns.get(role))} | set(person_column_names(columns))
    sensitive = list(names(columns.get("sensitive")))
    for kind in ("l", "t"):
        lacking = [name for name in _mapping(privacy.get(kind)) if name not in sensitive]
        faults += [f"privacy.{kind}: column '{name}' is not under columns.sensitive{nearest(name, sensitive)}" for name in lacking]
    faults += uncompiled_faults(privacy, method.get("name"))
    faults += hidden_faults(method, columns.get("quasi_identifiers"), job.get("intervals"))
    faults += rank_faults(job.get("endpoints"), columns.get("quasi_identifiers"), method)
    known_subject = known if columns.get("insensitive") != REST else None
    faults += subject_faults(columns.get("identifiers"), known_subject)
    if entry:
        faults += entry.faults(method, columns.get("quasi_identifiers"), job.get("intervals"))
    if isinstance(wanted := _mapping(job.get("output")).get("partition_by"), list) and wanted:
        published = published_names(columns.get("quasi_identifiers"), job.get("intervals") == "bounds")
        others = [name for role in ROLES if role != "quasi_identifiers" for name in names(columns.get(role))]
        faults += partition_faults([name for name in wanted if isinstance(name, str)], published, others)
    if ways := dict(publish_settings(columns)):
        faults += [f"column '{name}' names persons and cannot have publish too" for name in person_column_names(columns) if name in ways]
    if job.get("replay") is not None:
        anew = [name for name, way in ways.items() if counts_people(way)]
        faults += replay_faults(method, anew, replays=bool(entry and entry.replays))
    if columns.get("insensitive") != REST and known:
        typed = [name for name in _mapping(_mapping(job.get("source")).get("types")) if name not in known]
        faults += [f"source.types: column '{name}' has no role in columns{nearest(name, known)}; give it one" for name in typed]
    return faults


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a part of a job as a mapping; empty if it is neither a model nor a mapping."""
    if isinstance(value, StrictModel):
        return dict(value)
    return value if isinstance(value, Mapping) else {}


def load_job(path: Path | GivenJob, overrides: Sequence[str] = ()) -> Job:
    """Return the validated job of a YAML file with settings replaced, or raise ``JobError``.

    Args:
        path: the job file, or what a program gives in its place.
        overrides: settings such as ``privacy.k=10`` or ``columns.quasi_identifiers.0.name=age``; the value is read as YAML.
    """
    return read_job(Job, 1, path, overrides, partial(_faults_between, path))


def _faults_between(path: Path | GivenJob, data: dict[str, Any]) -> list[str]:
    """Return the conflicts between parts of a raw job; raise if it is a job of several tables."""
    if names_tables(data) and "tables" in data:
        # Whatever else it says is right there, and wrong in a job of one table.
        raise JobError(str(path), [f"version: {OF_TABLES}"])
    return [f"columns: {sentence}" for sentence in role_faults(_mapping(data.get("columns")))] + fit_faults(data)


def _rebuild() -> None:
    """Rebuild the job's models after a registry changed, inner models first."""
    for distance in DISTANCE_SCHEMAS.values():
        distance.model_rebuild(force=True)
    for model in (Privacy, QuasiIdentifier, Identifier, Columns, Source, SkaldMethod, Job):
        model.model_rebuild(force=True)


call_on_change(_rebuild)


def job_digest(job: Job) -> str:
    """Return the SHA-256, in hex, of the settings and hierarchy files that determine a release's content.

    That is ``job.canonical()`` and the bytes of the hierarchy files. How the job is written down, where source, target and
    hierarchy files lie, and what only concerns the work (chunks, threads, artefacts) does not matter.
    """
    content = job.canonical()
    content["columns"]["quasi_identifiers"] = quasi_identifiers_content(job)
    content["privacy"] = privacy_content(job)
    return digest_of(content)


def quasi_identifiers_digest(job: Job) -> str:
    """Return the SHA-256, in hex, of the quasi-identifiers and their hierarchies, files included."""
    return digest_of(quasi_identifiers_content(job))


def hierarchy_digests(job: Job) -> dict[str, str]:
    """Return the first 32 hex digits of each quasi-identifier's digest, hierarchy included, by name.

    Where two digests are equal, levels mean the same.
    """
    qids = job.columns.quasi_identifiers
    return {qid.name: digest_of(content)[:32] for qid, content in zip(qids, quasi_identifiers_content(job), strict=True)}


def quasi_identifiers_content(job: Job) -> list[dict[str, Any]]:
    """Return the quasi-identifiers as JSON data, each hierarchy file as digest, or raise ``JobError``."""
    contents, faults = [], []
    for position, qid in enumerate(job.columns.quasi_identifiers):
        content = qid.canonical()
        faults += _digested(job, qid.hierarchy, content, f"quasi_identifiers[{position}] '{qid.name}'")
        contents.append(content)
    if faults:
        raise JobError(str(job.folder), faults)
    return contents


def privacy_content(job: Job) -> dict[str, Any]:
    """Return the privacy models as JSON data, each hierarchy file as digest, or raise ``JobError``."""
    content, faults = job.privacy.canonical(), []
    for column, closeness in job.privacy.t.items():
        faults += _digested(job, closeness.hierarchy, content["t"][column], f"privacy.t '{column}'")
    if faults:
        raise JobError(str(job.folder), faults)
    return content


def _digested(job: Job, hierarchy: Hierarchy | None, content: dict[str, Any], place: str) -> list[str]:
    """Replace a hierarchy file's path by its digest, and return the faults of reading it."""
    if hierarchy is None or hierarchy.listed_in is None:
        return []
    file: Path = getattr(hierarchy, hierarchy.listed_in)
    try:
        content["hierarchy"][hierarchy.listed_in] = hashlib.sha256(hierarchy.file_content(job.folder)).hexdigest()
    except OSError as error:
        return [f"{place}: hierarchy file '{file}': {error.strerror or 'it cannot be read'}; check the path"]
    return []


def digest_of(content: object) -> str:
    """Return the SHA-256, in hex, of JSON data, independent of the order of keys."""
    # Escaped, without blanks, keys sorted: one spelling for the same data on every machine.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
