"""Plan of a run: release id, sizes, lattice, memory and uniqueness, without a release."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from core.columns.domains import Node
from core.lattice.lattice import Lattice, bins, most_cells
from core.units.losses import Figures
from schemas.job.formats import FORMATS
from schemas.job.identifiers import treatment_sentence
from schemas.job.job import Job
from schemas.job.method import METHODS, OBJECTIVES, SkaldMethod
from schemas.job.privacy import SUPPRESSIONS
from schemas.reading.model import FrozenModel
from schemas.release.figures import PassedColumn, RepeatedColumn
from schemas.release.manifest import Manifest, pseudonym_sentence
from tasks.counting.chunk_counts import DOMAINS, HISTOGRAMS, ChunkReading, count_histograms, count_pairs
from tasks.counting.coding import Coding, DomainTable, load_coding
from tasks.counting.repeats import find_repeating_identifiers, note_spellings_of_persons
from tasks.counting.source_domains import count_domains
from tasks.counting.source_sizes import MOST_ROWS, CellFiles, count_sizes, merge_histograms
from tasks.counting.uniqueness import Contributors, CountedPersons, Exposed, contributors_to_uniqueness
from tasks.counting.untreated_figures import check_published, measure_untreated_columns
from tasks.engine.runs import Run, policy_in_force
from tasks.lattice.promises import check_promise, most_suppressed, searched_axes
from tasks.lattice.recodings import check_hierarchies, choose_root
from tasks.planning.forecast import Forecast, forecast_of
from tasks.planning.local_plan import LocalPlan, forecast_local_run
from tasks.publication.staging import release_id, signer_of
from tasks.publication.target import job_target
from tasks.report.sentences import TRIED_NEXT, proofs
from tasks.report.terms import UnitWording, hierarchy_text
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.extracts import forget_extract, open_run
from tasks.source.locations import find_names
from tasks.source.sources import read_source
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.writing.pseudonyms import lacks_vault, prefect_stores_secrets, with_key_fingerprints


class Uniqueness(NamedTuple):
    """Exposed records and risk of the source, a sentence on what was not counted, and a loss forecast."""

    contributors: Contributors | None
    risk: Figures
    not_counted: str
    forecast: Forecast | None = None


def uniqueness_of(run: Run, source: ChunkedSource, domain: Artifact, local: LocalPlan | None) -> Uniqueness:
    """Count exposed records and risk of the source and return them, or a sentence on why they were not.

    A search of the lattice would count it in any case. For other methods it is left alone where a sample says that it is too much.
    """
    coding = load_coding(run.job, domain, run.store)
    root = choose_root(run.job, coding)
    if local and local.distinct * source.records > MOST_ROWS:
        return Uniqueness(None, {}, _too_many(round(local.distinct * source.records)))
    pairs = count_pairs(run, source)
    parts = count_histograms(run, source)
    # At a coarser root records that differ look alike, so that who stands out is counted from the chunks' own cells.
    forecast = forecast_of(run.job, coding, parts, run.store)
    files = [merge_histograms(run, domain, root, parts)] if root == coding.finest and not pairs else parts
    sizes = count_sizes(run, domain, root, files[0], parts, pairs)
    if sizes is None:
        return Uniqueness(None, {}, _too_many(sum(part.rows for part in pairs or parts)), forecast)
    contributors, risk = contributors_to_uniqueness(DomainTable.of(run, domain), CellFiles(files, pairs), sizes)
    return Uniqueness(contributors, risk, _sampled(contributors), forecast)


def _sampled(found: Contributors) -> str:
    if not found.without:
        return "There are too many combinations to count them once more without each quasi-identifier."
    if found.sampled == 1:
        return ""
    sample = f"estimated from one in {found.sampled} combinations"
    return f"The figures without a quasi-identifier are {sample}. Those with all quasi-identifiers are exact."


def _too_many(cells: int) -> str:
    return f"{cells:,} combinations, or about so many, are too many to add up, so how unique records are is not known."


class PlannedQid(FrozenModel):
    """Values, groups at each level, and exposure without it, of one quasi-identifier in a plan.

    Attributes:
        name: The column.
        values: Distinct values, without ``nulls``, which are counted apart.
        groups: How many there are at each level.
        hierarchy: How values can be grouped, in words.
        without: Records exposed without the column, where they were counted.
    """

    name: str
    values: int
    nulls: int
    hierarchy: str
    groups: tuple[int, ...]
    without: Exposed | None = None


class Plan(FrozenModel):
    """What a run would do and face: source, promises, search or fragments, memory, risk and warnings.

    Attributes:
        release: The id that the release would have; null where a run makes the vault that the id follows from.
        exists: Whether it is published already.
        method: Name of the algorithm, and its ``aim``: what it makes as small as can be, or how it works.
        files: Number of files, and ``chunks`` they are cut into.
        domains_to_scan: Chunks that phase 1 had not yet counted when the plan was made.
        histograms_to_scan: Chunks that phase 2 had not yet counted when the plan was made; null for methods that need no histogram.
        records: N.
        most_suppressed: Records that the limit allows to suppress, and ``suppression`` what becomes of them, in words.
        qids: One entry per QID.
        nodes: Nodes of the complete lattice; null for methods that search none, as are all fields of its root.
        root: The finest node whose histogram fits the memory, with at most ``cells`` occupied cells of ``bins`` (eq. 1).
        memory: Bytes.
        local: What a method that searches no lattice would do.
        source_bytes: Size of the source's files.
        unit: What k counts: ``record`` or ``person``.
        persons: Of the source, where the job names them and they were counted.
        exposed: Exposed records of the source, or persons; None where they were not counted.
        risk: Re-identification risk of the source as it is, where it was counted.
        not_counted: Why something of these was not counted, or was estimated, in a sentence.
        repeats: Identifiers whose values repeat although no person is named.
        source: What the source is, as in ``CSV files``.
        promises: What every class is to keep, with its bound.
        pseudonyms: What would be published in the place of identifiers, in words, by column.
        published: How columns would be published that are no quasi-identifiers and not published as they are, in words.
        passthrough: What was found of what each such column, and each that is published as it is, would publish.
        forecast: What one node and Mondrian would lose, measured on samples; null where it was not.
        warnings: What the job's settings give away, in sentences.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    release: str | None
    exists: bool
    method: str
    aim: str
    files: int
    chunks: int
    domains_to_scan: int
    histograms_to_scan: int | None
    records: int
    most_suppressed: int
    qids: tuple[PlannedQid, ...]
    nodes: int | None = None
    root: Node | None = None
    cells: int | None = None
    bins: int | None = None
    memory: int
    local: LocalPlan | None = None
    source_bytes: int
    unit: Literal["record", "person"] = "record"
    persons: CountedPersons | None = None
    exposed: Exposed | None = None
    risk: Figures = {}
    not_counted: str = ""
    repeats: dict[str, RepeatedColumn] = {}
    source: str
    promises: tuple[str, ...]
    pseudonyms: dict[str, str]
    suppression: str
    published: dict[str, str] = {}
    passthrough: dict[str, PassedColumn] = {}
    forecast: Forecast | None = Field(None, serialization_alias="outlook")
    warnings: tuple[str, ...] = ()


def find_existing_release(job: Job) -> Manifest | None:
    """Return the manifest of the job's published release, without counting; None if none or not known yet.

    The source's digests are kept for the run, so that nothing is read twice.
    Without any release of the job in the target, they are not even taken; nor where a key is in Prefect, which is not started yet.
    """
    # Here too, because what a policy refuses needs no server to be started.
    policy_in_force(job)
    # A key that cannot be used signs nothing later, which whoever named it must know.
    signer_of(job)
    check_hierarchies(job)
    find_names(job)
    if prefect_stores_secrets(job) or not job_target(job).may_hold_release():
        return None
    with open_run(job, goes_on=True) as run:
        source = with_key_fingerprints(job, read_source(run))
        check_published(run, source)
        found = job_target(job).recall(release_id(job, source), run)
        if found:
            forget_extract(job, run.store)
            run.remove_unneeded_artifacts()
        return found


def make_plan(job: Job, *, quick: bool = False) -> Plan:
    """Return the plan of a run, counting domains and cells as needed; the run reuses these counts.

    Args:
        quick: Whether to leave out how unique the records are, which needs the counts of phase 2.
    """
    check_hierarchies(job)
    with open_run(job) as run:
        source = with_key_fingerprints(job, read_source(run))
        check_published(run, source)
        passthrough, source = measure_untreated_columns(run, source)
        # Asked before they are counted, after which none would be missing.
        uncounted = _uncounted(run, source, DOMAINS)
        domain = count_domains(run, source)
        coding = load_coding(job, domain, run.store)
        release = release_id(job, source)
        method = _of_lattice(run, source, coding) if isinstance(job.method, SkaldMethod) else _of_records(run, source, domain, coding)
        unique = Uniqueness(None, {}, "") if quick else uniqueness_of(run, source, domain, method.get("local"))
        if not quick:
            note_spellings_of_persons(run, source)
        return Plan(
            release=None if lacks_vault(source) else release,
            exists=job_target(job).is_published(release),
            method=job.method.name,
            aim=aim_of(job),
            files=len(source.files),
            chunks=len(source.chunks),
            domains_to_scan=uncounted,
            records=source.records,
            most_suppressed=most_suppressed(job, source.records),
            qids=_qids(job, coding, unique),
            memory=job.memory,
            source_bytes=sum(file.stat[0] if file.stat else file.path.stat().st_size if file.path else 0 for file in source.files),
            unit=UnitWording.of_job(job).one,
            persons=unique.contributors.persons if unique.contributors else None,
            exposed=unique.contributors.whole if unique.contributors else None,
            risk=unique.risk,
            not_counted=unique.not_counted,
            forecast=unique.forecast,
            repeats={} if quick else find_repeating_identifiers(run, source),
            passthrough=passthrough,
            **method,
            **_in_words(job),
        )


def _in_words(job: Job) -> dict[str, Any]:
    """Return the plan's sentences on source, promises, pseudonyms, published columns and suppression."""
    unit = UnitWording.of_job(job)
    proven = proofs(job.privacy.summary(), {}, 0, unit)
    whose = " persons" if unit.of_persons else ""
    promised = [(one.model, f" of '{one.column}'" if one.column else "", one.asked, "" if one.column else whose) for one in proven]
    return {
        "source": FORMATS[job.source.format].words,
        "promises": tuple(f"{model}{of} {asked}{whose}" for model, of, asked, whose in promised),
        "pseudonyms": pseudonym_sentence(job),
        "published": {name: treatment_sentence(way, job.privacy.k) for name, way in job.columns.ways.items()},
        "warnings": (TRIED_NEXT,) if job.tries_next else (),
        "suppression": SUPPRESSIONS[job.suppression.treatment].words,
    }


def _qids(job: Job, coding: Coding, unique: Uniqueness) -> tuple[PlannedQid, ...]:
    without = unique.contributors.without if unique.contributors else {}
    return tuple(
        PlannedQid(
            name=qid.name,
            values=len(domain.values),
            nulls=domain.nulls,
            hierarchy=hierarchy_text(qid.hierarchy),
            groups=tuple(map(len, hierarchy.labels)),
            without=without.get(domain.qid),
        )
        for qid, domain, hierarchy in zip(job.columns.quasi_identifiers, coding.domains, coding.hierarchies, strict=True)
    )


def aim_of(job: Job) -> str:
    """Return the objective of the job's method, or how it works, in words."""
    if isinstance(job.method, SkaldMethod):
        weighed = ", QIDs by their weights" if job.method.weights else ""
        return "the node that the job names" if job.method.node else f"the least {OBJECTIVES[job.method.objective].measure}{weighed}"
    return METHODS[job.method.name].words


def _of_lattice(run: Run, source: ChunkedSource, coding: Coding) -> dict[str, Any]:
    """Return the plan's entries on a lattice and its root."""
    root = choose_root(run.job, coding)
    # What no class can keep ends the run, however many records it suppresses.
    check_promise(run.job, coding, may_suppress=True)
    return {
        "histograms_to_scan": _uncounted(run, source, HISTOGRAMS),
        "nodes": Lattice.allowed(searched_axes(run.job, coding)).nodes,
        # The axes of sensitive columns come after those of the QIDs and always stay at level 0: of no interest in a plan.
        "root": root[: len(coding.hierarchies)],
        "cells": most_cells(coding.axes, root, source.records),
        "bins": bins(coding.axes, root),
    }


def _of_records(run: Run, source: ChunkedSource, domain: Artifact, coding: Coding) -> dict[str, Any]:
    """Return the plan's entries on a method of local recoding."""
    local = forecast_local_run(run, source, domain, coding)
    # Only cuts of cells in one piece begin with the histogram of phase 2; fragments and records are read from the source.
    whole = local.rows == "cells" and not local.parted
    return {"local": local, "histograms_to_scan": _uncounted(run, source, HISTOGRAMS) if whole else None}


def _uncounted(run: Run, source: ChunkedSource, step: FileStep[ChunkReading, Chunk]) -> int:
    reading = ChunkReading.of(run, source)
    return sum(step.find(reading, chunk) is None for chunk in source.chunks)
