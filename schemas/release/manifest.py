"""Manifest of a release: published columns, and the levels that it claims for its labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from schemas.errors.base import verb_of
from schemas.job.columns import REST, QuasiIdentifier
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.privacy import AttackBasis, AttackFigures
from schemas.reading.model import FrozenModel
from schemas.registry.hierarchies import WidthsHierarchy
from schemas.registry.treatment_kinds import treatment_kind
from schemas.release.evidence import Document, PublishedFile
from schemas.release.figures import Kind, PassedColumn, PopulationRisk, Remainder, RepeatedColumn, Together, stated_count_text
from schemas.release.increments import Increment, Joined, Overlap, SourceDigest
from schemas.release.terms import Band, LatticeFigures, Terms

MASK = "*"
FORMAT = 2
"""The format of manifests: since 2 they list every other file of their release, and bear a digest of themselves."""


class Persons(FrozenModel):
    """Counts of the persons in a release.

    Attributes:
        columns: What names a person in the source.
        source: How many there are in it; None where fewer than k of them have no record in the data files, whose number would follow.
        released: How many have a record in the data files.
        smallest_class: How many the smallest class has.
        most_records: How many records in the data files k of them have, or more: the k-th largest number.
        largest_share: No person holds more of the records of any class: rounded up to 0.05, 0.1, 0.25, 0.5, 0.75 or 1. None in releases
            of earlier versions.
        withheld: Records beyond ``columns.most_records`` of a person, which are in no other count. None where the job does not bound
            them, or fewer than k persons lost any.
    """

    columns: tuple[str, ...]
    source: int | None
    released: int
    smallest_class: int
    most_records: int
    largest_share: float | None = None
    withheld: int | None = None


class Linked(FrozenModel):
    """Risk by pseudonyms that link the records of a person.

    It counts the sets of all combinations that a person's records are in, people from 1 to k - 1 as k where pseudonyms do not show them.

    Attributes:
        columns: Whose equal values link records: one column, or several that name a person together.
        people: Different people with a pseudonym; where the job names no person, each pseudonym counts as one.
        sets: Different sets.
        smallest: How many people share the set that fewest share.
        below_k: People who share one of theirs with fewer than k, and their ``share`` of all.
        share: See ``below_k``.
        left_over: People without a pseudonym in a combination of fewer than k, apart from those whom links show elsewhere too.
        accepted: Whether the job accepts that some are below k (``columns.linkable``).
    """

    columns: tuple[str, ...]
    people: int
    sets: int
    smallest: int
    below_k: int
    share: float
    left_over: int = 0
    accepted: bool


def left_over_clause(people: int, most: int = 0) -> str:
    """Return the clause on people without a pseudonym left over, at most so many if ``most``, or no text."""
    if not people:
        return ""
    left = f"{stated_count_text(people, most)} without a pseudonym {verb_of(people, 'are')} left over"
    return f", and {left} where links show others elsewhere"


class OneValue(FrozenModel):
    """Counts of classes in which all known values of a sensitive column are equal.

    A null is no value. Besides the classes it has their records, and the share of all classes that they are.
    """

    classes: int
    records: int
    share: float


class Manifest(FrozenModel):
    """Description and measurements of a release, with counts, names and digests.

    It never holds a cell value.

    Attributes:
        format: Of the manifest; 1 is that of versions that did not say so.
        passthrough_together: What untreated columns tell together, sensitive ones left out; null where there are none.
        release: The release id, made of the digests of job and inputs, keyed with the secret of the work folder like every digest of them.
        name: The job's name.
        job, inputs: Digests of the job and of the source files, keyed.
        method, privacy: The algorithm, and what was promised.
        records: N, records of the source.
        released: Records in the data files.
        suppressed: Records that are dropped or masked.
        masked: How many of the suppressed are published with ``*``.
        classes: Published equivalence classes, as recounted from the files.
        min_class: Size of the smallest, as recounted, in persons where they are named.
        node: Level of each QID in job order; null for local recoding.
        levels: Level by QID.
        tops: Last level, ``*``, by QID; empty for local recoding.
        loss, ncp: Losses by name, and normalised certainty penalty by QID: figures of labels (docs/methods/privacy.md).
        risk: Re-identification risk ``after``, of the classes in the data files (in earlier versions ``before``, too). Suppressed records
            are stated in it, never averaged in. Where persons are named, sizes, means, shares and ``records`` are of them, once for each of
            their classes.
        optimal: ``certified``, or what was not excluded.
        search: Nodes of the lattice; what else a search counts is told in releases of earlier versions alone.
        files: The data files.
        versions: Of what made it.
        seconds: Wall time per phase.
        peak_rss: Largest resident size of the process, bytes.
        workers: Chunk tasks that worked at a time; 0 where it was not noted yet.
        asked: What the job asked, for the report.
        measured: By promise (``l``) and sensitive column, the worst that the recount found in a class, in the unit of the promise.
        suppressed_for: Suppressed records by what they lacked, where that can be nothing but ``k`` records.
        source_sizes: Classes of the source as it is, by size in the unit of k; in releases of earlier versions.
        columns: DuckDB's types of the columns, where the files do not tell them (CSV).
        lattice: What the search found out about the lattice; in releases of earlier versions.
        pseudonyms: What stands for identifiers, by column. Releases with one key or vault are linked by them; who holds it undoes them.
        sources: The source's files by digest, keyed.
        hierarchies: Digest of each QID's hierarchy, keyed, in job order.
        increment: What became of the source since the last release, and what of it had been counted before.
        overlaps: Releases of some of the same records, newest first (null: not looked for); ``unmeasured_overlaps`` counts others, and
            ``joined`` says what releases with the same pseudonyms disclose together (null: not looked for).
        evolved: By column that files of the source write differently, what was made of it.
        remainder: What became of the records that fail at ``node``, with rounds or ``treatment: cell``; else null: they are suppressed.
        persons: Of jobs that name them; null where every record counts as a person of its own.
        person_sizes: Classes of the data files by persons, as recounted, without that of masked records; ``records`` of a band counts
            persons too. Empty where none are named.
        repeats: Identifiers whose values repeat although the job names no person, so that classes of k records may be of fewer than k
            persons and no maximum risk is claimed; empty where none does, persons are named, or the job says that every record is one.
        linked: What pseudonyms show that link records, by column; null where it was not counted yet.
        replay_of: The release whose recoding was applied; None where one was looked for.
        passthrough: By column that is published besides the quasi-identifiers, how many values it has, how many records are alone with
            theirs, and what it looks like that may tell who people are.
        sensitive_together, pseudonyms_together: The same of the sensitive columns, and of the pseudonyms.
        endpoints: By quasi-identifier whose published ranges end at values of the data, whether these are ``shared`` by k people or may be
            ``observed``, which is to say somebody's own.
        one_value: By sensitive column, the classes of the data files in which all who have a value hold the same one, as recounted.
        population: Risk in the population that the job names; null where it names none.
        policy: SHA-256 of the policy that the job was held against; null where the run had none. ``created``: when it was made, UTC.
        source_name, run_by: What the job calls its source, and who ran it, if the job says so.
        documents: The other files of the release, signature and manifest excepted: they are made of all of the manifest that comes before.
        signed_by: The key of the signature beside the manifest, ``ed25519:`` and the public key in hex; null where there is none.
        published: By column that is published otherwise than it is, how, and what that lost.
        attacks: What attacks on people as the labels show them came to, and ``attacked`` what they were played with; empty and null where
            the job turned them off, or an earlier version made the release.
        seal: SHA-256 of the manifest's own file without these digits.
    """

    format: int = 1
    passthrough_together: Together | None = None
    release: str
    name: str
    job: str
    inputs: str
    method: str
    privacy: dict[str, Any]
    records: int
    released: int
    suppressed: int
    masked: int
    classes: int
    min_class: int
    node: tuple[int, ...] | None
    levels: dict[str, int] | None
    loss: dict[str, int | float]
    ncp: dict[str, float]
    optimal: str
    search: dict[str, int | float | list[int] | list[list[int]]]
    files: tuple[PublishedFile, ...]
    versions: dict[str, str]
    seconds: dict[str, float]
    peak_rss: int
    # From here on fields that came later: without defaults older releases could not be read.
    risk: dict[str, dict[str, int | float]] = {}
    workers: int = 0
    tops: dict[str, int] = {}
    asked: Terms
    measured: dict[str, dict[str, float]] = {}
    suppressed_for: dict[str, int] = {}
    source_sizes: tuple[Band, ...] = ()
    columns: dict[str, str] = {}
    lattice: LatticeFigures | None = None
    pseudonyms: dict[str, str] = {}
    sources: tuple[SourceDigest, ...] = ()
    hierarchies: dict[str, str] = {}
    increment: Increment | None = None
    overlaps: tuple[Overlap, ...] | None = ()
    unmeasured_overlaps: int = 0
    joined: tuple[Joined, ...] | None = None
    evolved: dict[str, str] = {}
    replay_of: str | None = None
    remainder: Remainder | None = None
    persons: Persons | None = None
    person_sizes: tuple[Band, ...] = ()
    published: dict[str, ColumnPublication] = {}
    attacks: tuple[AttackFigures, ...] = ()
    attacked: AttackBasis | None = None
    repeats: dict[str, RepeatedColumn] = {}
    linked: tuple[Linked, ...] | None = None
    policy: str | None = None
    passthrough: dict[str, PassedColumn] = {}
    sensitive_together: Together | None = None
    pseudonyms_together: Together | None = None
    one_value: dict[str, OneValue] = {}
    population: PopulationRisk | None = None
    endpoints: dict[str, Literal["observed", "shared"]] = {}
    created: str | None = None
    source_name: str | None = None
    run_by: str | None = None
    # These stay last: what is before them is known when they are made.
    documents: tuple[Document, ...] = ()
    signed_by: str | None = None
    seal: str = ""

    @property
    def listed(self) -> dict[str, str]:
        """SHA-256 of each other file of the release, by path."""
        return {one.path: one.sha256 for one in self.documents} | {one.path: one.sha256 for one in self.files}

    @property
    def unit(self) -> str:
        """Unit that k counts: ``person`` or ``record``."""
        return "person" if self.persons else "record"

    def together(self, kind: Kind) -> Together | None:
        """Return the joint risk of columns of a kind, or None if there are none or it was not counted."""
        return {
            "insensitive": self.passthrough_together,
            "sensitive": self.sensitive_together,
            "pseudonyms": self.pseudonyms_together,
        }[kind]

    @property
    def compositions(self) -> list[Overlap | Joined]:
        """Comparisons with earlier releases: first by shared records, then by shared pseudonyms."""
        return [*(self.overlaps or ()), *(self.joined or ())]

    @property
    def has_untreated_columns(self) -> bool:
        """Whether columns that are not sensitive are published unchanged, as far as the manifest says."""
        return any(name not in self.asked.sensitive for name in self.passthrough)

    @property
    def levels_of_all(self) -> dict[str, int] | None:
        """Level by QID of all published labels except ``*``; None if a QID's labels have several or no levels."""
        return None if self.remainder and self.remainder.rounds else self.levels

    @property
    def failed(self) -> int:
        """Number of records that fail at the global node, whatever their treatment.

        The limit of suppression applies to this number.
        """
        return self.remainder.records if self.remainder else self.suppressed


def published_qids(job: Job) -> list[str]:
    """Return the published column names of all QIDs, in order."""
    return [name for qid in job.columns.quasi_identifiers for name in published_columns(job, qid)]


def published_columns(job: Job, qid: QuasiIdentifier) -> list[str]:
    """Return the published column names of one QID: its own, or two of bounds."""
    two = job.intervals == "bounds" and qid.hierarchy.ranged
    return [f"{qid.name}_low", f"{qid.name}_high"] if two else [qid.name]


def published_payload(job: Job) -> list[str] | None:
    """Return the published columns besides QIDs, in order; None if ``insensitive: rest`` leaves them open.

    Only the source knows them then.
    """
    if job.columns.insensitive == REST:
        return None
    return [*job.columns.sensitive, *job.columns.insensitive, *(one.name for one in job.columns.pseudonyms)]


def pseudonym_sentence(job: Job) -> dict[str, str]:
    """Return a description of each published identifier's pseudonyms, by column."""
    return {one.name: treatment_kind(one.treatment).words for one in job.columns.pseudonyms}


class ClaimedLevels(FrozenModel):
    """Levels by quasi-identifier that a release claims for its labels.

    Attributes:
        levels: By quasi-identifier, each level that one of its labels may be of, ascending; empty where that is any.
        tops: By quasi-identifier, the last level that there is; those that are not known are left out.
        starred: Whether ``*`` may stand in single cells.
    """

    levels: dict[str, tuple[int, ...]]
    tops: dict[str, int]
    starred: bool


def claimed_levels(
    names: Sequence[str], nodes: Sequence[Sequence[int]], tops: Sequence[int] = (), *, has_suppressed_cells: bool
) -> ClaimedLevels:
    """Return the claimed levels of a release whose records are published at the given nodes.

    Args:
        nodes: A level for each of them.
        tops: The last level of each, if that is known.
    """
    levels = {name: tuple(sorted({node[place] for node in nodes})) for place, name in enumerate(names)}
    return ClaimedLevels(levels=levels, tops=dict(zip(names, tops, strict=False)), starred=has_suppressed_cells)


def claim_of(manifest: Manifest) -> ClaimedLevels | None:
    """Return the levels that a manifest claims by quasi-identifier, None if each class has its own labels."""
    if manifest.levels is None:
        return None
    remainder, names = manifest.remainder, list(manifest.levels)
    rounds = [one.node for one in remainder.rounds if len(one.node) == len(names)] if remainder else []
    nodes = [tuple(manifest.levels.values()), *rounds]
    claim = claimed_levels(names, nodes, has_suppressed_cells=remainder is not None and remainder.stars > 0)
    return claim.model_copy(update={"tops": manifest.tops})


NULL_MEMBER = "null"
"""What stands for a null among values, as in ``{a, b, null}``; a value that could be read as it is in quotes there."""


RANGED = ("widths", "date")
"""The kinds of hierarchy that only numbers and dates have."""
Endpoints = Literal["observed", "shared"]
SENTENCES: Mapping[Endpoints, str] = {
    "shared": "ranges end at values that k {unit}s have, at edges of bins with k {unit}s at or beyond them, or are open",
    "observed": "ranges end at the least and the greatest value in them, which may be those of a single {unit}",
}


def has_class_ranges(job: Job, qid: QuasiIdentifier) -> bool:
    """Return whether classes have ranges of their own for a QID, if its values are numbers or dates.

    Dates count as numbers.
    """
    if METHODS[job.method.name].one_level:
        return False
    ways: Any = getattr(job.method, "generalisation", None)
    way = ways.get(qid.name) if isinstance(ways, dict) else ways
    # What may not be published exactly goes by its hierarchy; only some methods can be told to do so of numbers too.
    return way == "interval" or (not qid.hides and (not METHODS[job.method.name].ways or way is None))


def has_rank_bins(qid: QuasiIdentifier) -> bool:
    """Return whether a quasi-identifier has bins of ranks.

    Such bins end at values of the source.
    """
    return isinstance(qid.hierarchy, WidthsHierarchy) and qid.hierarchy.encode


def endpoints_of(job: Job, numerical: Mapping[str, bool], node: tuple[int, ...] | None, withheld: Collection[str]) -> dict[str, Endpoints]:
    """Return ``shared`` or ``observed`` for each quasi-identifier whose ranges end at data values.

    Args:
        numerical: By quasi-identifier, whether its values are numbers or dates.
        node: The level of each quasi-identifier; None where classes have labels of their own.
        withheld: Columns in which the files hold nothing but ``*``: no range of theirs ends anywhere.
    """
    found: dict[str, Endpoints] = {}
    for place, qid in enumerate(job.columns.quasi_identifiers):
        if qid.name in withheld:
            continue
        if has_class_ranges(job, qid) and numerical[qid.name]:
            found[qid.name] = "shared" if job.shared_ends else "observed"
        elif has_rank_bins(qid) and (node is None or node[place]):
            found[qid.name] = "observed"
    return found


def endpoint_sentences(endpoints: Mapping[str, Endpoints], unit: str) -> tuple[str, ...]:
    """Return a sentence for each kind of range ends, with the names of its quasi-identifiers."""
    told = []
    for way, words in SENTENCES.items():
        if names := [f"'{name}'" for name, mine in endpoints.items() if mine == way]:
            told.append(f"{', '.join(names)}: {words.format(unit=unit)}.")
    return tuple(told)
