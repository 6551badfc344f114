"""Figures of a run that its release reports: those that follow from the published records alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from core.recount.classes import Recount
from core.recount.labels.label_losses import DIGITS
from schemas.errors.base import counted
from schemas.job.job import Job
from schemas.job.method import OBJECTIVES
from schemas.release.figures import PassedColumn, may_publish_count
from schemas.release.increments import Increment, SourceDigest
from schemas.release.terms import OWN_NODE
from tasks.composition.release_history import Entry, last_entry
from tasks.counting.chunk_counts import DOMAINS, HISTOGRAMS, ChunkReading
from tasks.engine.runs import Run
from tasks.lattice.recodings import Outcome
from tasks.release.manifest import keyed_file
from tasks.source.chunks import ChunkedSource
from tasks.store.keys import FolderSecret

Figure = int | float
OF_SIZES = frozenset({"dm", "dm_star", "c_avg", "suppression_rate", "precision"})
"""Losses that follow from class sizes, from levels and from how many records are suppressed."""
TAXONOMIC = frozenset({"numerical_loss", "categorical_loss", "total_loss"})
SEARCH_FIGURES = ("nodes", "orders_learnt")
"""What is told of a search: how many nodes its lattice has, and of how many hierarchies the order of siblings was learnt."""


def reported_ncp(recount: Recount, suppressed_records: int, masked_records: int, source_records: int) -> dict[str, float]:
    """Return the NCP of each quasi-identifier over all source records, dropped ones counting as 1.

    Args:
        recount: Of the data files.
        suppressed_records: Records that are dropped or masked.
        masked_records: How many of them are in the files.
    """
    dropped = suppressed_records - masked_records
    return {name: round((one.penalty + dropped) / source_records, DIGITS) for name, one in recount.losses.items()}


def reported_loss(
    job: Job, losses: Mapping[str, Figure], recount: Recount, suppressed_records: int, masked_records: int, source_records: int
) -> dict[str, Figure]:
    """Return by name the losses a release may report: those that follow from its labels and sizes.

    ``gcp`` is the mean of ``ncp`` over the quasi-identifiers. ``gcp_held`` is no more than it, which is what is told: no label says what a
    class holds of it. ``dm_all`` is told where nothing is suppressed, and is ``dm`` then.

    Args:
        losses: Losses as they were measured where classes were made.
        recount: Of the data files.
        suppressed_records: Records that are dropped or masked.
        masked_records: How many of them are in the files.
    """
    ncp = reported_ncp(recount, suppressed_records, masked_records, source_records)
    gcp = round(sum(ncp.values()) / max(len(ncp), 1), DIGITS)
    told = {name: value for name, value in losses.items() if name in OF_SIZES or (name in OBJECTIVES and _of_labels(name))}
    told |= {"gcp": gcp, "gcp_held": gcp}
    if "ncp" in losses:
        told["ncp"] = round(sum(ncp.values()) * source_records, DIGITS)
    if "dm_all" in losses and not suppressed_records:
        told["dm_all"] = losses["dm_all"]
    if losses.keys() >= TAXONOMIC:
        told |= _taxonomic(recount, masked_records)
    if weights := _weights(job):
        told["weighted"] = round(sum(weights[name] * value for name, value in ncp.items()) / sum(weights.values()), DIGITS)
    return {name: told[name] for name in (*losses, *told) if name in told}


def _of_labels(objective: str) -> bool:
    """Return whether an objective's value follows from labels, so that it may be reported."""
    return bool(getattr(OBJECTIVES[objective].code.load(), "is_reported", False))


def _weights(job: Job) -> dict[str, float]:
    """Return the weight of each quasi-identifier if a weighted penalty was minimised; else nothing."""
    given: Mapping[str, Any] = getattr(job.method, "weights", None) or {}
    if getattr(job.method, "objective", None) != "gcp" or not given:
        return {}
    return {qid.name: float(given.get(qid.name, 1)) for qid in job.columns.quasi_identifiers}


def _taxonomic(recount: Recount, masked: int) -> dict[str, float]:
    """Return the three losses of semantic clustering over published records that are not masked.

    See papers/semantic-clustering.txt, Algorithms 11 to 13.
    """
    records = max(recount.records - masked, 1)
    numerical = sum((one.penalty - masked) / records for one in recount.losses.values() if one.numeric)
    named = [(one.leaves - masked) / records for one in recount.losses.values() if not one.numeric]
    categorical = sum(named) / max(len(named), 1)
    figures = {"numerical_loss": numerical, "categorical_loss": categorical, "total_loss": (numerical + categorical) / 2}
    return {name: round(value, DIGITS) for name, value in figures.items()}


def reported_search(search_figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the search figures that a manifest may publish: ``nodes`` and ``orders_learnt``."""
    return {name: search_figures[name] for name in SEARCH_FIGURES if name in search_figures}


def reported_passthrough(columns: Mapping[str, PassedColumn], recount: Recount) -> dict[str, PassedColumn]:
    """Return untreated columns' figures with counts of the published records in place of the source's."""
    told = {}
    for name, one in columns.items():
        distinct, alone, values = recount.passed.get(name, (one.distinct, one.unique_records, one.values))
        looked_at = min(one.looked_at, distinct)
        told[name] = one.model_copy(update={"distinct": distinct, "unique_records": alone, "values": values, "looked_at": looked_at})
    return told


def optimality(outcome: Outcome) -> str:
    """Return ``certified``, or a sentence on unexamined nodes and how much better they can be."""
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


def reported_optimality(outcome: Outcome) -> str:
    """Return a sentence on optimality without numbers, for publication."""
    if outcome.linked:
        return "best of the nodes tried, a step at a time from the best for single records; others could be better"
    if not outcome.unexamined:
        return "certified"
    if outcome.bound is not None and (outcome.lattice_is_complete or not any(outcome.root)):
        return "best of the nodes counted; others could be better: raise method.effort"
    if outcome.bound is not None:
        return "best of the nodes counted; others could be better: raise memory or method.effort"
    return "best of the nodes above its roots; finer ones could be better and lie above none: raise memory or method.roots to examine them"


def node_origin(job: Job) -> str | None:
    """Return a sentence on the origin of a node that was not searched for; None if it was."""
    first = " before its rounds" if job.suppression.rounds else ""
    if job.replay is not None:
        return f"replay of {job.replay.name}{first}, and no other choice was examined"
    return f"{OWN_NODE}{first}, and no other choice was examined" if job.full_domain.node is not None else None


def _reached(outcome: Outcome) -> str:
    """Return a sentence on how far branch and bound came, with the gap rounded up."""
    least = f"at most {ceil(outcome.gap * 1000) / 10:,} % above " if outcome.gap is not None else "at an unknown distance from "
    left = counted(outcome.unexamined, "node")
    if outcome.lattice_is_complete or not any(outcome.root):
        return f"best of {counted(outcome.evaluated, 'node')} counted, {least}the optimum; {left} could be better: raise method.effort"
    if outcome.gap == 0:
        return f"best of the nodes above 1 root; {left} could be better and are not above it: raise memory"
    return (
        f"best of {counted(outcome.evaluated, 'node')} counted, {least}the best above its root; {left} could be better: "
        "raise memory or method.effort"
    )


def increment_of(run: Run, source: ChunkedSource) -> Increment:
    """Return how the source differs from the last release's, and how many chunks are already counted."""
    reading = ChunkReading.of(run, source)
    keys = [(DOMAINS.key(reading, chunk), chunk.rows) for chunk in source.chunks]
    # That there is a record is enough to tell: to see whether all is whole would be to read all that was ever counted.
    there = (run.store.recorded(step, [key for key, _ in keys]) for step in (DOMAINS.name, HISTOGRAMS.name))
    domains, histograms = ([rows for (_, rows), one in zip(keys, found, strict=True) if one] for found in there)
    last = last_entry(run.job, run.store)
    return Increment.model_validate(
        (_files(source, last) if last else {"since": None})
        | {
            "chunks": len(source.chunks),
            "domains_reused": len(domains),
            "histograms_reused": len(histograms),
        }
        | _reused(run.job, source.records, sum(domains), sum(histograms))
    )


def _reused(job: Job, records: int, domains: int, histograms: int) -> dict[str, int | None]:
    """Return how many records were not counted again; None where that could reveal fewer than k."""
    told = {"domains_records": domains if may_report_part(job, domains, records) else None}
    # What lies between both follows, too.
    between = told["domains_records"] is None or may_publish_count(abs(domains - histograms), job.privacy.k)
    told["histograms_records"] = histograms if between and may_report_part(job, histograms, records) else None
    return told


def may_report_part(job: Job, record_count: int, *totals: int) -> bool:
    """Return whether the record count of a part of the source may be published beside ``totals``.

    Whose they are nobody counted: where k counts people only none of the records, or all of them, are surely of none or of k.

    Args:
        record_count: Of the part.
        *totals: That are told, too, and hold the part.
    """
    if job.columns.person:
        return record_count == 0 or all(record_count == total for total in totals)
    return may_publish_count(record_count, job.privacy.k, *totals)


def _files(source: ChunkedSource, last: Entry) -> dict[str, str | int]:
    names, contents = {name for name, _, _ in last.files}, {digest for _, digest, _ in last.files}
    here, digests = {file.name for file in source.files}, {file.digest for file in source.files}
    unchanged = sum(file.digest in contents for file in source.files)
    # By content and not by name or time: a file that was moved or touched is not new.
    changed = sum(file.digest not in contents and file.name in names for file in source.files)
    gone = sum(name not in here and digest not in digests for name, digest, _ in last.files)
    new = len(source.files) - unchanged - changed
    return {"since": last.release, "unchanged": unchanged, "new": new, "changed": changed, "removed": gone}


def source_digests(job: Job, source: ChunkedSource, secret: FolderSecret) -> tuple[SourceDigest, ...]:
    """Return the keyed digests of source files for a manifest, in an order that reveals nothing."""
    told = all(may_report_part(job, file.rows, source.records) for file in source.files)
    digests = sorted((file.rows, keyed_file(file.digest, secret)) for file in source.files)
    return tuple(SourceDigest(digest=digest, records=rows if told else None) for rows, digest in digests)
