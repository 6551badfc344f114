"""The hierarchy of a quasi-identifier over the people of a sample: groups of each level, and whom each level leaves alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from core.columns.coding import Coder
from core.exposure.singled_out import LevelStanding, Numbers, level_standings, summed_digests
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from schemas.errors.base import SkaldError
from schemas.hierarchies.kinds import entry_of
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from tasks.planning.pareto_page import level_mark
from tasks.studio.sample import PeopleSample, value_text

MOST_SHOWN = 12


class ShownLevel(NamedTuple):
    """A level of a hierarchy.

    Attributes:
        mark: What it publishes, shortly.
        standing: Its groups, and whom it leaves alone.
        shown: Labels of groups that enough people share, with how many do; the largest first.
        others: How many groups are not shown.
    """

    mark: str
    standing: LevelStanding
    shown: list[tuple[str, int]]
    others: int


class ShownHierarchy(NamedTuple):
    """A hierarchy over a sample, or why it does not fit the values: the sentence of the error."""

    name: str
    kind: str
    words: str
    levels: list[ShownLevel]
    fault: str = ""


def shown_hierarchy(job: Job, qid: QuasiIdentifier, sample: PeopleSample, least: int) -> ShownHierarchy:
    """Returns the levels of a quasi-identifier's hierarchy.

    Args:
        job: The job.
        qid: One of its quasi-identifiers.
        sample: Of its source.
        least: People who must share a label for it to be shown.
    """
    kind, words = qid.hierarchy.kind, entry_of(qid.hierarchy).words(qid.hierarchy)
    steps = job.columns.normalised.get(qid.name, [])
    domain = sample.domain(qid.name, steps)
    try:
        hierarchy = build_hierarchy(qid, domain, job.folder)
    except SkaldError as error:
        return ShownHierarchy(qid.name, kind, words, [], str(error))
    values = sample.values(qid.name, steps)
    groups = [Coder(domain, one).code(values).astype(np.int64) for one in hierarchy.groups]
    known = [sample.digests[one.name] for one in job.columns.quasi_identifiers if one.name in sample.digests and one.name != qid.name]
    others = summed_digests(known, sample.people)
    standings = level_standings(groups, others, sample.names.index(qid.name), job.privacy.k)
    hidden = sample.rare(qid.name, least, steps)
    levels = [_level(qid, hierarchy, number, one, standings[number], least, hidden) for number, one in enumerate(groups)]
    return ShownHierarchy(qid.name, kind, words, levels)


def _level(
    qid: QuasiIdentifier, hierarchy: Hierarchy, level: int, groups: Numbers, standing: LevelStanding, least: int, hidden: frozenset[str]
) -> ShownLevel:
    labels = hierarchy.labels[level]
    counts = np.bincount(groups, minlength=len(labels))
    kept = np.flatnonzero(counts >= least)
    order = kept[np.argsort(-counts[kept], kind="stable")][:MOST_SHOWN]
    texts = labels.take(pa.array(order)).to_pylist()
    named = [("null" if text is None else value_text(text), int(counts[place])) for text, place in zip(texts, order.tolist(), strict=True)]
    # A group of many may be called as a value of few.
    shown = [one for one in named if one[0] not in hidden]
    return ShownLevel(level_mark(qid.hierarchy, hierarchy, level), standing, shown, int(np.count_nonzero(counts)) - len(shown))
