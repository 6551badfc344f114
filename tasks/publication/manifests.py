"""Manifests: what a release is and what was measured, for recodings by levels and for those of single records."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from core.columns.column_types import working_type
from core.columns.numbers import as_numbers
from core.lattice.map import LatticeMap
from core.losses.losses import united
from core.privacy.risk import ClassSizes, Figures, journalist, marketer, release_risk, without_masked
from core.recount.classes import Recount
from core.recount.linked import is_accepted
from core.recount.people import share_at_most
from schemas.errors.base import counted
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.release.endpoints import endpoints_of
from schemas.release.files import PublishedFile
from schemas.release.manifest import Linked, Manifest, OneValue, Persons, pseudonym_words
from schemas.release.population import PopulationRisk
from schemas.release.remainder import Remainder
from schemas.release.together import Kind, Together
from tasks.counting.source_sizes import Sizes
from tasks.engine.peak_memory import peak_rss
from tasks.engine.runs import Run
from tasks.engine.versions import versions
from tasks.lattice.recodings import Outcome
from tasks.publication.staging import release_id
from tasks.records.outcomes import LocalOutcome
from tasks.release.keyed import keyed_job
from tasks.report.report import bands
from tasks.report.terms import lattice_figures, terms_of
from tasks.source.chunks import Source

OWN_NODE = "node that the job names"
"""How ``optimal`` begins where no node was looked for."""
NOT_FOR_NODES = "not a choice of levels: every class has labels of its own"


def make_manifest(
    run: Run,
    source: Source,
    outcome: Outcome,
    files: Sequence[PublishedFile],
    recount: Recount,
    before: Sizes,
    tops: Sequence[int] = (),
    drawn: LatticeMap | None = None,
) -> Manifest:
    """Returns the manifest of staged files; counts and the risk are the recount's, not the search's.

    ``before`` is of the source as it is; ``tops``, the last level of each QID in job order, and the map ``drawn`` are for the report.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        SecretError: that of the environment is weak, or the file holds none.
        StorageError: the secret of the work folder cannot be made.
    """
    job, qids = run.job, [qid.name for qid in run.job.columns.quasi_identifiers]
    return _manifest(
        run,
        source,
        outcome,
        files,
        recount,
        before,
        node=outcome.node,
        levels=dict(zip(qids, outcome.node, strict=True)),
        loss=outcome.loss,
        optimal=_taken(job) or optimality(outcome),
        search={
            "nodes": outcome.nodes,
            **({} if outcome.passing is None else {"passing": outcome.passing}),
            "evaluated": outcome.evaluated,
            **({} if outcome.bound is None else {"bound": outcome.bound}),
            "root_cells": outcome.cells,
            "root": list(outcome.root),
            "roots": [list(root) for root in outcome.roots],
        },
        tops=dict(zip(qids, tops, strict=False)),
        asked=terms_of(job, outcome.node, tops),
        suppressed_for=outcome.suppressed_for,
        remainder=Remainder.model_validate(outcome.local.model_dump(exclude={"stages"})) if outcome.local else None,
        lattice=lattice_figures(drawn) if drawn else None,
    )


def make_local_manifest(run: Run, source: Source, outcome: LocalOutcome, files: Sequence[PublishedFile], recount: Recount) -> Manifest:
    """Returns the manifest of staged files of a local recoding; counts are the recount's, and so is what follows from class sizes.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        SecretError: that of the environment is weak, or the file holds none.
        StorageError: the secret of the work folder cannot be made.
    """
    # No fragment knows what the others publish: only in the files equal classes of two of them are seen to be one.
    loss = outcome.loss if outcome.suppressed else outcome.loss | united(recount.sizes, recount.unit_sizes, run.job.privacy.k)
    return _manifest(
        run,
        source,
        outcome,
        files,
        recount,
        outcome.before,
        node=None,
        levels=None,
        loss=loss,
        optimal=NOT_FOR_NODES,
        search=dict(outcome.search),
        asked=terms_of(run.job),
    )


def _manifest(
    run: Run,
    source: Source,
    outcome: Outcome | LocalOutcome,
    files: Sequence[PublishedFile],
    recount: Recount,
    before: Sizes,
    **own: Any,
) -> Manifest:
    """Returns what the manifests of all methods have in common, with what is a method's own."""
    job, known = run.job, before.risk()
    left = without_masked(recount.unit_sizes, *recount.starred(outcome.masked))
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
        ncp=outcome.ncp,
        files=tuple(files),
        versions=versions(),
        seconds={phase: round(spent, 3) for phase, spent in run.seconds.items()},
        peak_rss=peak_rss(),
        workers=run.workers,
        risk=({"before": known} if known else {}) | {"after": risk_after(recount, outcome.suppressed, outcome.masked)},
        measured={promise: dict(columns) for promise, columns in recount.measured.items()},
        source_sizes=bands(before.by_size, job.privacy.k),
        pseudonyms=pseudonym_words(job),
        persons=_persons(job, outcome, recount),
        person_sizes=bands(left, job.privacy.k) if recount.persons else (),
        linked=_linked(job, recount),
        one_value=_one_value(recount),
        unread=recount.unread,
        population=_population(recount),
        passthrough_together=_together(job, recount, "insensitive"),
        sensitive_together=_together(job, recount, "sensitive"),
        pseudonyms_together=_together(job, recount, "pseudonyms"),
        endpoints=endpoints_of(job, _numerical(job, source), own["node"], recount.nothing_but_stars),
        **own,
    )


def _population(recount: Recount) -> PopulationRisk | None:
    if recount.population is None:
        return None
    rows, classes = recount.population
    pairs = sorted(classes)
    held, fitting = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    table = ClassSizes(held, np.array([classes[pair] for pair in pairs], np.int64), np.maximum(held, fitting))
    lacking = int(table.classes[fitting < held].sum())
    return PopulationRisk.model_validate(
        journalist(table) | {"records": rows, "k_map": int(table.population.min()), "marketer": marketer(table), "lacking": lacking}
    )


def _together(job: Job, recount: Recount, kind: Kind) -> Together | None:
    found = recount.together.get(kind)
    unit: Literal["record", "person"] = "person" if recount.persons else "record"
    return Together.told(found.counts, job.privacy.k, unit, recount.units) if found else None


def _one_value(recount: Recount) -> dict[str, OneValue]:
    every = max(recount.classes, 1)
    return {
        name: OneValue(classes=classes, records=records, share=classes / every) for name, (classes, records) in recount.one_value.items()
    }


def _numerical(job: Job, source: Source) -> dict[str, bool]:
    """Returns which quasi-identifiers are numbers or dates, by name."""
    types = {qid.name: working_type(source.columns.field(qid.name).type) for qid in job.columns.quasi_identifiers}
    return {name: as_numbers(pa.array([], kind)) is not None for name, kind in types.items()}


def risk_after(recount: Recount, suppressed: int, masked: int) -> Figures:
    """Returns the risk of written files, by persons where these were counted."""
    starred, of_them = recount.starred(masked)
    return release_risk(recount.unit_sizes, starred, suppressed, of_them)


def _persons(job: Job, outcome: Outcome | LocalOutcome, recount: Recount) -> Persons | None:
    found = recount.persons
    if found is None or outcome.people is None:
        return None
    return Persons(
        columns=tuple(job.columns.person),
        source=outcome.people[0],
        released=found.released,
        smallest_class=found.smallest,
        most_records=found.most_records,
        largest_share=share_at_most(found.largest_share),
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
            accepted=is_accepted(job, one.columns),
        )
        for one in recount.linked
    )


def optimality(outcome: Outcome) -> str:
    """Returns ``certified``, or how many nodes memory or effort left unexamined, and how much better one of them can be."""
    unexamined, roots = outcome.unexamined, outcome.roots
    if outcome.linked:
        return f"best of {counted(outcome.linked, 'node')} tried, a step at a time from the best for single records; others could be better"
    if not unexamined:
        return "certified"
    if outcome.bound is not None:
        return _reached(outcome)
    return (
        f"best of the nodes above {counted(len(roots), 'root')}; {counted(unexamined, 'finer node')} could be better and lie above none: "
        "raise memory or method.roots to examine them"
    )


def _taken(job: Job) -> str | None:
    """Returns whose node it is where none was looked for."""
    first = " before its rounds" if job.suppression.rounds else ""
    if job.replay is not None:
        return f"replay of {job.replay.name}{first}, and no other choice was examined"
    return f"{OWN_NODE}{first}, and no other choice was examined" if full_domain(job.method).node is not None else None


def _reached(outcome: Outcome) -> str:
    """Returns how far branch and bound came, the gap rounded up."""
    least = f"at most {ceil(outcome.gap * 1000) / 10:,} % above " if outcome.gap is not None else "at an unknown distance from "
    left = counted(outcome.unexamined, "node")
    if outcome.whole or not any(outcome.root):
        return f"best of {counted(outcome.evaluated, 'node')} counted, {least}the optimum; {left} could be better: raise method.effort"
    if outcome.gap == 0:
        return f"best of the nodes above 1 root; {left} could be better and are not above it: raise memory"
    return (
        f"best of {counted(outcome.evaluated, 'node')} counted, {least}the best above its root; {left} could be better: "
        "raise memory or method.effort"
    )
