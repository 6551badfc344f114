"""The studio's table of source columns: role, reason, uniqueness, and values shared by k people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from core.columns.coding import Coder
from core.evaluation.singled_out import (
    LevelUniqueness,
    Numbers,
    SampleUniqueness,
    column_uniqueness,
    level_uniqueness,
    sample_uniqueness,
    summed_digests,
)
from core.formats.proposals import ColumnProfile, propose_role
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from schemas.errors.base import SkaldError
from schemas.job.columns import REST, ROLES, QuasiIdentifier
from schemas.job.job import Job
from schemas.registry.hierarchy_kinds import hierarchy_kind
from tasks.planning.pareto_page import level_mark
from tasks.studio.job_text import comments_behind
from tasks.studio.sample import PeopleSample, value_text

MOST_EXAMPLES, LONGEST = 3, 40
NO_ROLE = "none"


class ColumnRow(NamedTuple):
    """A column's row in the studio's table: role, reason, type, examples and uniqueness.

    Attributes:
        name: Of the column.
        role: Of the job, in the singular; ``none`` where the job does not name it.
        person: Whether it names the person of a record.
        why: The comment of the job file, else a reason from name and counts.
        is_question: Whether the file marks the role as undecided.
        kind: Of its values.
        publish: How its values are published, such as ``shared``; empty where nothing is set.
        distinct: Different values in the sample.
        examples: Values that enough people share, with how many do.
        rarer: Different values that are not shown because fewer share them.
        alone: Share of people who are unique by it; ``together``: by it and the quasi-identifiers; ``without``: by those alone.
    """

    name: str
    role: str
    person: bool
    why: str
    is_question: bool
    kind: str
    publish: str
    distinct: int
    examples: list[tuple[str, int]]
    rarer: int
    alone: float
    together: float
    without: float


class RiskBefore(NamedTuple):
    """Uniqueness of a sample's people by all quasi-identifiers together, and their number."""

    standing: SampleUniqueness
    people: int


SINGULAR = {role: role.rstrip("s") for role in ROLES} | {"withheld": "withheld", "sensitive": "sensitive", "insensitive": "insensitive"}


def column_rows(job: Job, text: str, sample: PeopleSample, least: int) -> list[ColumnRow]:
    """Return one row for the studio's table per column of the source, in its order.

    Args:
        job: The job.
        text: Of its file.
        sample: Of its source.
        least: People who must share a value for it to be shown.
    """
    known = [qid.name for qid in job.columns.quasi_identifiers if qid.name in sample.digests]
    standings = column_uniqueness(sample.digests, known, job.privacy.k)
    said, roles = _said(text), job.columns.roles()
    rest = SINGULAR["insensitive"] if job.columns.insensitive == REST else NO_ROLE
    rows = []
    for profile in sample.profiles:
        name, found = profile.name, standings[profile.name]
        counts = sample.domain(name).counts
        shown = [(_short(value), count) for value, count in sample.shared_values(name, least, MOST_EXAMPLES)]
        asked, why = _why(said.get(name, ""), profile)
        people = max(sample.people, 1)
        rows.append(
            ColumnRow(
                name, SINGULAR[roles[name]] if name in roles else rest, name in job.columns.person, why, asked, profile.kind,
                _way(job, name), len(counts), shown, int((counts < least).sum()),
                found.own.alone / people, found.together.alone / people, found.without.alone / people,
            )
        )  # fmt: skip
    return rows


def risk_before(job: Job, sample: PeopleSample) -> RiskBefore:
    """Return how many people of the sample are unique, or below k, by all QIDs, and their number."""
    known = [sample.digests[qid.name] for qid in job.columns.quasi_identifiers if qid.name in sample.digests]
    return RiskBefore(sample_uniqueness(summed_digests(known, sample.people), job.privacy.k), sample.people)


def _way(job: Job, name: str) -> str:
    """Return how a column is published: a way's name, ``changed``, or empty."""
    way = job.columns.ways.get(name)
    return "" if way is None else way if isinstance(way, str) else "changed"


def _said(text: str) -> dict[str, str]:
    """Return the comment of each column in the job file."""
    found: dict[str, str] = {}
    for role in ROLES:
        found |= comments_behind(text, ("columns", role))
    return found


def _why(comment: str, profile: ColumnProfile) -> tuple[bool, str]:
    """Return whether a column's role is undecided, and the reason for the role."""
    asked = comment.startswith("DECIDE, ")
    said = comment.removeprefix("DECIDE, ").removeprefix("accepted, ").split("; alone by it ")[0]
    return asked, said or propose_role(profile).reason


def _short(value: str) -> str:
    """Shorten a text to ``LONGEST`` characters."""
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"


MOST_SHOWN = 12


class ShownLevel(NamedTuple):
    """A level of a hierarchy on the page: mark, uniqueness, shown labels and number of others.

    Attributes:
        mark: A short mark of what it publishes.
        standing: Its groups, and the people who are unique at it.
        shown: Labels of groups that enough people share, with how many do; the largest first.
        others: How many groups are not shown.
    """

    mark: str
    standing: LevelUniqueness
    shown: list[tuple[str, int]]
    others: int


class ShownHierarchy(NamedTuple):
    """Levels of a hierarchy on a sample for the page, or the fault if it does not fit the values."""

    name: str
    kind: str
    words: str
    levels: list[ShownLevel]
    fault: str = ""


def shown_hierarchy(job: Job, qid: QuasiIdentifier, sample: PeopleSample, least: int) -> ShownHierarchy:
    """Return a QID's hierarchy on a sample for the page, rare labels hidden; a misfit as its fault.

    Args:
        job: The job.
        qid: One of its quasi-identifiers.
        sample: Of its source.
        least: People who must share a label for it to be shown.
    """
    kind, words = qid.hierarchy.kind, hierarchy_kind(qid.hierarchy).words(qid.hierarchy)
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
    standings = level_uniqueness(groups, others, sample.names.index(qid.name), job.privacy.k)
    hidden = sample.rare_values(qid.name, least, steps)
    levels = [_level(qid, hierarchy, number, one, standings[number], least, hidden) for number, one in enumerate(groups)]
    return ShownHierarchy(qid.name, kind, words, levels)


def _level(
    qid: QuasiIdentifier, hierarchy: Hierarchy, level: int, groups: Numbers, standing: LevelUniqueness, least: int, hidden: frozenset[str]
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
