"""What a manifest keeps of its job for the report: roles, words for hierarchies and levels, the limit; never a cell value."""

from __future__ import annotations

from collections.abc import Sequence

from core.columns.node import Node
from core.lattice.map import STATUSES, DrawnNode, LatticeMap
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.method import SkaldMethod
from schemas.reading.model import plain
from schemas.release.manifest import published_columns
from schemas.release.report import Report
from schemas.release.terms import LatticeFigures, QidTerms, Terms
from tasks.report.wording import LOCAL, hierarchy_words, level_words


def terms_of(job: Job, node: Node | None = None, tops: Sequence[int] = ()) -> Terms:
    """Returns what a job asked, fit to be published.

    Args:
        job: The job.
        node: The level of each QID that is published; None where every class has labels of its own.
        tops: The last level of each QID.
    """
    columns, asked = job.columns, []
    for place, qid in enumerate(columns.quasi_identifiers):
        published = LOCAL if node is None else level_words(qid.hierarchy, node[place], tops[place] if tops else None)
        names = tuple(published_columns(job, qid))
        asked.append(QidTerms(name=qid.name, columns=names, hierarchy=hierarchy_words(qid.hierarchy), published=published))
    return Terms(
        limit=plain(job.suppression.limit),
        treatment=job.suppression.treatment,
        rounds=job.suppression.rounds,
        objective=job.method.objective if isinstance(job.method, SkaldMethod) else None,
        # Those that are published as pseudonyms are told by treatment, since these here are said to be left out.
        identifiers=tuple(columns.dropped),
        quasi_identifiers=tuple(asked),
        sensitive=tuple(columns.sensitive),
        insensitive=columns.insensitive if isinstance(columns.insensitive, str) else tuple(columns.insensitive),
        memory=job.memory,
        tries_next=job.tries_next,
        withheld=tuple(columns.withheld),
        accept_untreated=columns.accept_untreated,
        source=FORMATS[job.source.format].words,
    )


def lattice_figures(drawn: LatticeMap) -> LatticeFigures:
    """Returns a lattice's map as a manifest holds it."""
    return LatticeFigures(
        levels=drawn.levels,
        heights={status: tuple(row[status] for row in drawn.heights) for status in STATUSES},
        nodes={" ".join(map(str, one.node)): one.status for one in drawn.drawn},
        whole=drawn.whole,
    )


def map_of_report(report: Report) -> LatticeMap | None:
    """Returns the map of the lattice that a report holds, or None if it holds none."""
    figures, node = report.lattice, tuple(qid.level for qid in report.qids if qid.level is not None)
    # Classes with labels of their own are at no node, so that there is none to mark.
    if figures is None or len(node) < len(report.qids):
        return None
    rows = zip(*(figures.heights[status] for status in STATUSES), strict=True)
    return LatticeMap(
        name=report.name,
        qids=tuple(qid.name for qid in report.qids),
        levels=figures.levels,
        node=node,
        heights=tuple(dict(zip(STATUSES, row, strict=True)) for row in rows),
        drawn=tuple(DrawnNode(tuple(map(int, place.split())), status) for place, status in figures.nodes.items()),
        whole=figures.whole,
    )
