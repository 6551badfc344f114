"""What a draft would lose, tried on a sample in memory: which columns it can take as quasi-identifiers, and by which method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa

from core.formats.proposals import Kind, Proposal
from core.hierarchies.hierarchy import build_hierarchy
from core.histograms.histogram import Histogram, count_cells
from schemas.errors.base import SkaldError
from schemas.job.job import load_job
from schemas.reading.given import GivenJob
from tasks.counting.coding import CellCoder, Coding
from tasks.planning.column_values import counted_values, typed
from tasks.planning.outlook import WRITE, Way, expected_gcp

GOOD = 0.4
"""GCP up to which columns that nobody has decided on are taken as quasi-identifiers."""
MOST_QIDS = 12
NEARLY = 1.1
"""How much more one level for each whole column may lose than cuts, before these are proposed: a reader understands it at once."""
TRIED: tuple[Way, ...] = ("least GCP", "mondrian, score: ncp")


class Trial(NamedTuple):
    """What came of a draft.

    Attributes:
        taken: Undecided columns that are quasi-identifiers in it.
        method: The line of the job that asks for the way that lost least.
        gcp: What that lost on the sample; None where nothing could be tried.
    """

    taken: tuple[Proposal, ...]
    method: str
    gcp: float | None


def best_draft(
    connection: duckdb.DuckDBPyConnection,
    known: int,
    open_ones: Sequence[Proposal],
    text: Callable[[Sequence[Proposal]], str],
    folder: Path,
) -> Trial:
    """Returns the draft with most of the undecided columns that still publishes something.

    Args:
        connection: Has the table ``sample``.
        known: How many quasi-identifiers there are without them.
        open_ones: Undecided columns with a hierarchy, what gives least away first.
        text: Returns the job with some of them as quasi-identifiers.
        folder: To which the job's paths are relative.
    """
    able = list(open_ones[: max(MOST_QIDS - known, 0)])
    tried: list[Trial] = []
    while able or known:
        lost = _lost(connection, text(able), folder)
        tried.append(_chosen(tuple(able), lost))
        if not able or (lost and min(lost.values()) <= GOOD) or (len(able) == 1 and not known):
            break
        able = able[: len(able) - max(len(able) // 4, 1)]
    measured = [one for one in tried if one.gcp is not None]
    if not measured:
        return Trial(tuple(open_ones[: max(MOST_QIDS - known, 0)]), WRITE["least GCP"], None)
    good = [one for one in measured if one.gcp is not None and one.gcp <= GOOD]
    return good[0] if good else min(measured, key=lambda one: one.gcp or 0.0)


def _chosen(taken: tuple[Proposal, ...], lost: dict[Way, float]) -> Trial:
    if not lost:
        return Trial(taken, WRITE["least GCP"], None)
    least = min(lost.values())
    way = next(way for way in TRIED if lost[way] <= NEARLY * least)
    return Trial(taken, WRITE[way], lost[way])


def _lost(connection: duckdb.DuckDBPyConnection, text: str, folder: Path) -> dict[Way, float]:
    """Returns GCP of each way on the sample; nothing where the draft cannot be read, or does not fit the values."""
    try:
        job = load_job(GivenJob(text, folder))
        qids = job.columns.quasi_identifiers
        kinds = [cast(Kind | None, job.source.types.get(qid.name)) for qid in qids]
        named = [(qid.name, kind) for qid, kind in zip(qids, kinds, strict=True)]
        # Where persons are named the sample has one record of each, so that records are persons.
        counted = (counted_values(connection, "sample", *one) for one in named)
        domains = tuple(replace(domain, persons=domain.counts) if job.columns.person else domain for domain in counted)
        hierarchies = tuple(build_hierarchy(qid, domain, job.folder) for qid, domain in zip(qids, domains, strict=True))
        guarded = tuple(counted_values(connection, "sample", name, None) for name in job.privacy.columns)
        coding = Coding(domains, hierarchies, ("trial", uuid4().hex), guarded)
        columns = connection.sql(f"SELECT {', '.join(typed(*one) for one in named)} FROM sample").to_arrow_table()
        sample = _cells(coding, [column.combine_chunks() for column in columns.columns])
        if sample.records < job.privacy.k:
            return {}
        return {way: expected_gcp(job, coding, way, sample) for way in TRIED}
    except (SkaldError, duckdb.Error):
        # A draft is a draft: its run will say in a sentence what is wrong with it.
        return {}


def _cells(coding: Coding, columns: Sequence[pa.Array]) -> Histogram:
    node = (0,) * len(coding.hierarchies)
    coder = CellCoder.at(coding, node)
    words = coder.cells(columns)
    return Histogram(node, coder.packing, *count_cells(words, coder.packing.product, np.ones(len(words[0]), np.int64)))
