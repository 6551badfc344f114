"""Manifests of releases: what was published and measured, for recodings by level and by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from core.columns.column_types import working_type
from core.columns.numbers import as_numbers
from core.lattice.search import LatticeMap
from core.recount.classes import Recount
from core.recount.linked import accepts_linking, reported_link_count
from core.recount.people import share_at_most
from core.units.losses import ClassSizes, Figures, journalist, marketer, release_risk, united_losses, without_masked
from schemas.job.job import Job
from schemas.release.evidence import PublishedFile
from schemas.release.figures import Kind, PopulationRisk, Remainder, Together, may_publish_count
from schemas.release.manifest import Linked, Manifest, OneValue, Persons, endpoints_of, pseudonym_sentence
from schemas.release.terms import NOT_FOR_NODES, Unreported
from tasks.counting.source_sizes import Sizes
from tasks.engine.progress import peak_rss
from tasks.engine.runs import Run, versions
from tasks.lattice.recodings import Outcome
from tasks.publication.reported_figures import (
    node_origin,
    optimality,
    reported_loss,
    reported_ncp,
    reported_optimality,
    reported_passthrough,
    reported_search,
)
from tasks.publication.staging import release_id
from tasks.records.outcomes import LocalOutcome
from tasks.release.manifest import keyed_job
from tasks.report.report import bands
from tasks.report.terms import lattice_figures, terms_of
from tasks.source.chunks import ChunkedSource

OF_SOURCE = ("t",)
"""Promises whose figures are measured against the whole source."""


class LabelFigures(NamedTuple):
    """Search figures, losses and reasons of a run, of which a release reports what labels disclose.

    Attributes:
        optimal: How far the search came, with numbers.
        search: What it counted.
        loss: Losses as they were measured there.
        suppressed_for: Suppressed records by what they lacked.
        drawn: What the search found out about the lattice.
        least_stars: How many stars records cannot do without.
    """

    optimal: str
    search: Mapping[str, Any]
    loss: Mapping[str, int | float]
    suppressed_for: Mapping[str, int] = {}
    drawn: LatticeMap | None = None
    least_stars: int | None = None


def make_manifest(
    run: Run,
    source: ChunkedSource,
    outcome: Outcome,
    files: Sequence[PublishedFile],
    recount: Recount,
    source_sizes: Sizes,
    tops: Sequence[int] = (),
    drawn: LatticeMap | None = None,
) -> Manifest:
    """Return the manifest of a lattice method's staged files; counts and risks come from the recount.

    ``source_sizes`` is of the source as it is; ``tops``, the last level of each QID in job order, and the map ``drawn`` are for the report.
    """
    job, qids = run.job, [qid.name for qid in run.job.columns.quasi_identifiers]
    least = outcome.local.least if outcome.local else None
    return _manifest(
        run,
        source,
        outcome,
        files,
        recount,
        source_sizes,
        LabelFigures(node_origin(job) or optimality(outcome), _searched(outcome), outcome.loss, outcome.suppressed_for, drawn, least),
        node=outcome.node,
        levels=dict(zip(qids, outcome.node, strict=True)),
        optimal=node_origin(job) or reported_optimality(outcome),
        tops=dict(zip(qids, tops, strict=False)),
        asked=terms_of(job, outcome.node, tops),
        suppressed_for=_reported_reasons(job, outcome),
        remainder=_reported_remainder(outcome),
    )


def _searched(outcome: Outcome) -> dict[str, Any]:
    return {
        "nodes": outcome.nodes,
        **({} if outcome.nodes_passing is None else {"passing": outcome.nodes_passing}),
        "evaluated": outcome.evaluated,
        **({} if outcome.bound is None else {"bound": outcome.bound}),
        "root_cells": outcome.cells,
        "root": list(outcome.root),
        "roots": [list(root) for root in outcome.roots],
    }


def _reported_reasons(job: Job, outcome: Outcome) -> dict[str, int]:
    """Return the reasons for suppression if k is all that records can lack; else none.

    Otherwise the reasons would follow from values that are not published.
    """
    lacking_k_alone = not (job.privacy.l or job.privacy.t or outcome.suppressed_for.get("linked"))
    return outcome.suppressed_for if lacking_k_alone else {}


def _reported_remainder(outcome: Outcome) -> Remainder | None:
    # The least number of stars is also one of records that are dropped afterwards.
    return Remainder.model_validate(outcome.local.model_dump(exclude={"stages"}) | {"least": None}) if outcome.local else None


def make_local_manifest(
    run: Run, source: ChunkedSource, outcome: LocalOutcome, files: Sequence[PublishedFile], recount: Recount
) -> Manifest:
    """Return the manifest of a local recoding's staged files; counts and risks come from the recount.

    So do losses that follow from class sizes, if nothing is suppressed.
    """
    # No fragment knows what the others publish: only in the files equal classes of two of them are seen to be one.
    loss = outcome.loss if outcome.suppressed else outcome.loss | united_losses(recount.sizes, recount.unit_sizes, run.job.privacy.k)
    return _manifest(
        run,
        source,
        outcome,
        files,
        recount,
        outcome.before,
        LabelFigures(NOT_FOR_NODES, outcome.search, loss),
        node=None,
        levels=None,
        optimal=NOT_FOR_NODES,
        asked=terms_of(run.job),
    )


def _manifest(
    run: Run,
    source: ChunkedSource,
    outcome: Outcome | LocalOutcome,
    files: Sequence[PublishedFile],
    recount: Recount,
    before: Sizes,
    found: LabelFigures,
    **own: Any,
) -> Manifest:
    """Return a manifest from the common figures of all methods and those of one method."""
    job = run.job
    run.untold = _untold(run, source, outcome, before, found)
    left = without_masked(recount.unit_sizes, *recount.fully_suppressed_units(outcome.masked))
    of_all = outcome.suppressed, outcome.masked, source.records
    return Manifest(
        release=release_id(job, source),
        name=job.name,
        job=keyed_job(job, run.secret),
        inputs=run.secret.keyed("inputs", source.digest),
        method=job.method.name,
        privacy=job.privacy.summary(),
        records=source.records,
        released=recount.records,
        suppressed=outcome.suppressed,
        masked=outcome.masked,
        classes=recount.classes,
        min_class=recount.min_class,
        loss=reported_loss(job, found.loss, recount, *of_all),
        ncp=reported_ncp(recount, *of_all),
        search=reported_search(found.search),
        files=tuple(files),
        versions=versions(),
        seconds={phase: round(spent, 3) for phase, spent in run.seconds.items()},
        peak_rss=peak_rss(),
        workers=run.workers,
        risk={"after": risk_after(recount, outcome.suppressed, outcome.masked)},
        # How far a class is from the whole source follows from records that are in no file.
        measured={promise: dict(columns) for promise, columns in recount.measured.items() if promise not in OF_SOURCE},
        passthrough=reported_passthrough(run.passthrough, recount),
        pseudonyms=pseudonym_sentence(job),
        persons=_persons(job, source.withheld, outcome, recount),
        person_sizes=bands(left, job.privacy.k) if recount.persons else (),
        linked=_linked(job, recount),
        published=dict(recount.published),
        one_value=_one_value(recount),
        population=_population(recount),
        passthrough_together=_together(job, recount, "insensitive"),
        sensitive_together=_together(job, recount, "sensitive"),
        pseudonyms_together=_together(job, recount, "pseudonyms"),
        endpoints=endpoints_of(job, _numerical(job, source), own["node"], recount.fully_suppressed_columns),
        **own,
    )


def _untold(run: Run, source: ChunkedSource, outcome: Outcome | LocalOutcome, before: Sizes, found: LabelFigures) -> Unreported:
    return Unreported(
        release=release_id(run.job, source),
        search=dict(found.search),
        optimal=found.optimal,
        loss=dict(found.loss),
        ncp=outcome.ncp,
        suppressed_for=dict(found.suppressed_for),
        risk=before.risk(),
        source_sizes=bands(before.by_size, run.job.privacy.k),
        passthrough=run.passthrough,
        most_records=outcome.people[1] if outcome.people else None,
        lattice=lattice_figures(found.drawn) if found.drawn else None,
        least_stars=found.least_stars,
    )


def _population(recount: Recount) -> PopulationRisk | None:
    if recount.population is None:
        return None
    rows, classes = recount.population
    held, fitting, number = np.array(classes, np.int64).T
    table = ClassSizes(held, number, np.maximum(held, fitting))
    lacking = int(table.classes[fitting < held].sum())
    return PopulationRisk.model_validate(
        journalist(table) | {"records": rows, "k_map": int(table.population.min()), "marketer": marketer(table), "lacking": lacking}
    )


def _together(job: Job, recount: Recount, kind: Kind) -> Together | None:
    found = recount.together.get(kind)
    unit: Literal["record", "person"] = "person" if recount.persons else "record"
    return Together.from_counts(found.counts, job.privacy.k, unit, recount.units) if found else None


def _one_value(recount: Recount) -> dict[str, OneValue]:
    every = max(recount.classes, 1)
    return {
        name: OneValue(classes=classes, records=records, share=classes / every) for name, (classes, records) in recount.one_value.items()
    }


def _numerical(job: Job, source: ChunkedSource) -> dict[str, bool]:
    """Return for each quasi-identifier whether it is a number or a date."""
    types = {qid.name: working_type(source.columns.field(qid.name).type) for qid in job.columns.quasi_identifiers}
    return {name: as_numbers(pa.array([], kind)) is not None for name, kind in types.items()}


def risk_after(recount: Recount, suppressed_records: int, masked_records: int) -> Figures:
    """Return the re-identification risk of written files, in persons where these were counted."""
    starred, of_them = recount.fully_suppressed_units(masked_records)
    return release_risk(recount.unit_sizes, starred, suppressed_records, of_them)


def _persons(job: Job, withheld: tuple[int, int], outcome: Outcome | LocalOutcome, recount: Recount) -> Persons | None:
    found = recount.persons
    if found is None or outcome.people is None:
        return None
    source, (lost, losers) = outcome.people[0], withheld
    return Persons(
        columns=tuple(job.columns.person),
        source=source if may_publish_count(found.released, job.privacy.k, source) else None,
        released=found.released,
        smallest_class=found.smallest,
        most_records=found.most_records,
        largest_share=share_at_most(found.largest_share),
        withheld=lost if job.columns.most_records is not None and may_publish_count(losers, job.privacy.k) else None,
    )


def _linked(job: Job, recount: Recount) -> tuple[Linked, ...]:
    return tuple(
        Linked(
            columns=one.columns,
            people=one.people,
            sets=one.sets,
            smallest=one.smallest,
            below_k=one.below_k,
            share=one.share,
            left_over=one.left_over,
            accepted=accepts_linking(job, one.columns),
        )
        for one in (reported_link_count(job, found) for found in recount.linked)
    )
