"""Contents of a release's report, as in ``report.json`` and ``report.html``.

It holds names, counts and texts. Of cell values it holds those of a few published records that k records share (`Example`), and no other.
"""

from __future__ import annotations

from typing import Any, Literal

from schemas.job.identifiers import ColumnPublication
from schemas.job.privacy import AttackFigures
from schemas.reading.model import FrozenModel
from schemas.release.figures import PassedColumn, RepeatedColumn, Together
from schemas.release.manifest import Persons
from schemas.release.terms import Band, LatticeFigures


class RequestedTerms(FrozenModel):
    """Settings that the job requested.

    Attributes:
        promises: What every class must keep, a sentence each.
        privacy: The same as the job's figures, without hierarchies.
        limit: Greatest share of records that may be suppressed, as it is written.
        most_suppressed: How many records that is.
        treatment: ``drop``, ``mask`` or ``cell``, and ``treatment_words`` what that does to the records that fail.
        method: The algorithm, and ``method_words`` what it does.
        identifiers, quasi_identifiers, sensitive, insensitive: Columns by role; ``insensitive`` may be the word ``rest``.
        withheld: Columns that are not published and name nobody.
        memory: The budget in bytes.
        pseudonyms: What is published in the place of identifiers, in words, by column; ``identifiers`` are those that are left out.
        source: What the source is, as in ``CSV files``; empty for older releases.
    """

    promises: tuple[str, ...]
    privacy: dict[str, Any]
    limit: str
    most_suppressed: int
    treatment: str
    treatment_words: str
    method: str
    method_words: str
    identifiers: tuple[str, ...]
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    insensitive: tuple[str, ...] | Literal["rest"]
    memory: int
    pseudonyms: dict[str, str] = {}
    source: str = ""
    withheld: tuple[str, ...] = ()


class Proof(FrozenModel):
    """A promise of the job, and the count in the written files that proves it.

    Attributes:
        model: The privacy model.
        column: The sensitive column that it is about; None for k-anonymity.
        sentence: The promise in words.
        asked: The bound, as in ``≥ 5``.
        measured: The worst of all classes; None where it was not kept.
    """

    model: str
    column: str | None
    sentence: str
    asked: str
    measured: str | None


class CameOut(FrozenModel):
    """Counts of the published records and classes, recounted from the written files.

    Attributes:
        records: N, records of the source.
        released: Records in the data files, ``masked`` among them.
        suppressed: Records that were dropped or masked.
        masked: How many of them are published with ``*`` in every quasi-identifier.
        classes: Equivalence classes.
        min_class: Size of the smallest, in ``unit``, and of ``mean_class`` and ``bands`` too.
        mean_class: Of a class on average.
        bands: Classes by size.
        source_bands: The same of the source as it is; empty where that was not counted.
        why_suppressed: How many records were suppressed, why and how, a sentence each.
        files: Number of data files.
        remainder: What became of records that fail at the levels of the columns, a sentence each; empty where they are just suppressed.
        unit: What classes are counted in: ``record`` or ``person``.
        persons: How many there are, where the job names them.
        repeats: Identifiers that repeat although it names none.
        warnings: What that means, a sentence each.
    """

    records: int
    released: int
    suppressed: int
    masked: int
    classes: int
    min_class: int
    mean_class: float
    bands: tuple[Band, ...]
    source_bands: tuple[Band, ...]
    why_suppressed: tuple[str, ...]
    files: int
    remainder: tuple[str, ...] = ()
    unit: Literal["record", "person"] = "record"
    persons: Persons | None = None
    repeats: dict[str, RepeatedColumn] = {}
    warnings: tuple[str, ...] = ()


class ReportedQid(FrozenModel):
    """Hierarchy, level and loss of one quasi-identifier.

    Attributes:
        name: The column.
        hierarchy: How its values can be grouped.
        level: The level that is published, of ``top``, where all is one group; None where classes have labels of their own.
        meaning: The level in words.
        ncp: Normalised certainty penalty, 0 (kept) to 1 (withheld); None where it was not counted.
    """

    name: str
    hierarchy: str
    level: int | None
    top: int | None
    meaning: str
    ncp: float | None


class Figure(FrozenModel):
    """Name, title, value and meaning of one figure."""

    name: str
    title: str
    value: int | float
    meaning: str


class RiskFigure(FrozenModel):
    """A risk before and after anonymisation, each None if not counted.

    ``share`` separates fractions from counts.
    """

    name: str
    title: str
    before: int | float | None
    after: int | float | None
    share: bool
    meaning: str


class ReportedFile(FrozenModel):
    """A data file: its path in the release, its records, its SHA-256 in hex."""

    path: str
    rows: int
    sha256: str


class Limit(FrozenModel):
    """A limit of the release's promises, and the paper that showed it."""

    text: str
    source: str


class PublishedColumn(FrozenModel):
    """Name, role and treatment of one column of the data files.

    Attributes:
        name: Its name there.
        role: ``quasi-identifier``, ``sensitive``, ``insensitive`` or ``pseudonym``.
        published: What was done to its values, in words.
        distinct: How many different values the source has, where the column is published untreated and was measured.
    """

    name: str
    role: Literal["quasi-identifier", "sensitive", "insensitive", "pseudonym"]
    published: str
    distinct: int | None = None


class Example(FrozenModel):
    """A published record whose shown values at least k records of the data files share.

    Attributes:
        values: As text, by column, null being none; a column that is not in it is not shown, because fewer than k share its value.
    """

    values: dict[str, str | None]


class ReportedAttack(FrozenModel):
    """An attack on the release, with its result in words and figures.

    Attributes:
        title: What it is called.
        attacker: Who attacks.
        meaning: What came of it, in a sentence.
        figures: What was guessed.
    """

    title: str
    attacker: str
    meaning: str
    figures: AttackFigures


class Criterion(FrozenModel):
    """One of the three criteria of the Article 29 Working Party, with the measured answer.

    The working party judges an anonymisation by three questions.

    Attributes:
        name: As the opinion calls it.
        question: What it asks, in plain words.
        answer: In a few words.
        kept: Whether nothing that was measured speaks against it.
        figures: What was measured, a sentence each.
    """

    name: str
    question: str
    answer: str
    kept: bool
    figures: tuple[str, ...]


class Report(FrozenModel):
    """Contents of the report of one release, as in ``report.json``.

    Attributes:
        format: Version of this format.
        release: The release id.
        name: The job's name.
        asked: What the job asked for.
        came_out: What was published.
        proofs: Every promise with what was counted in the written files.
        qids: One entry per quasi-identifier, in job order.
        losses: What the release lost.
        risk: Re-identification risk before and after.
        risk_basis: What it was counted from.
        source_name: What the source is called, if the job says so.
        run_by: Who ran it, if the job says so.
        created: When it was made, UTC, if the manifest says so.
        columns: What is published, a column each.
        examples: Up to three published records, as far as k share them.
        criteria: Singling out, linkability and inference.
        attacks: Attacks on the release, and ``attacked`` how they were played, a sentence each.
        attacked: See ``attacks``.
        maximum_risk: The strictest published maximum that the release keeps, in words; empty without a risk.
        optimal: As in the manifest.
        certificate: The same in plain words, a sentence each.
        advice: What to do next where columns are withheld, a sentence each.
        lattice: What the search found out about the lattice, where it kept that.
        verified: How it was verified, a sentence each.
        increment: What was counted before this run, a sentence each.
        passthrough_together: What untreated columns tell together, as in the manifest.
        together: What columns tell together, a sentence each.
        published: What columns lost that are published otherwise than they are.
        passthrough: What was found of each column that is published besides the quasi-identifiers.
        policy: SHA-256 of the policy that the job was held against, if the run had one.
        limits: What it does not promise; what other releases of the same source tell comes first.
        job: Digest of the job.
        inputs: Digest of the source.
        files: The data files with their digests.
        versions: Of what made it.
        seconds: Wall time per phase.
        peak_rss: Largest resident size, bytes.
    """

    format: Literal[1] = 1
    release: str
    name: str
    asked: RequestedTerms
    came_out: CameOut
    proofs: tuple[Proof, ...]
    qids: tuple[ReportedQid, ...]
    losses: tuple[Figure, ...]
    risk: tuple[RiskFigure, ...]
    maximum_risk: str
    optimal: str
    certificate: tuple[str, ...]
    advice: tuple[str, ...] = ()
    lattice: LatticeFigures | None
    verified: tuple[str, ...]
    limits: tuple[Limit, ...]
    job: str
    inputs: str
    files: tuple[ReportedFile, ...]
    versions: dict[str, str]
    seconds: dict[str, float]
    peak_rss: int
    increment: tuple[str, ...] = ()
    risk_basis: str = "Counted from class sizes"
    policy: str | None = None
    passthrough_together: Together | None = None
    together: tuple[str, ...] = ()
    passthrough: dict[str, PassedColumn] = {}
    published: dict[str, ColumnPublication] = {}
    source_name: str | None = None
    run_by: str | None = None
    created: str | None = None
    columns: tuple[PublishedColumn, ...] = ()
    examples: tuple[Example, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    attacks: tuple[ReportedAttack, ...] = ()
    attacked: tuple[str, ...] = ()
