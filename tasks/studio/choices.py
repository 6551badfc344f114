"""Costs of a job's choices on a sample, other methods, and a preview of a few classes."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Node
from core.hierarchies.hierarchy import build_hierarchy
from core.lattice.lattice import Lattice
from core.lattice.objectives import prices_of
from core.lattice.pareto_front import find_pareto_nodes
from core.lattice.search import Search
from core.mondrian.recoding import total_losses
from core.mondrian.replay import recode_cells
from core.recoding.recoding import recode
from core.units.class_table import table_at
from schemas.errors.base import PrivacyError, SkaldError
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.record_methods import KMemberMethod, MondrianMethod
from tasks.counting.coding import Coding
from tasks.lattice.promises import most_suppressed, named_node, promise_of, searched_axes
from tasks.mondrian.cells import cutting_of
from tasks.planning.pareto_page import ParetoFront, worded_pareto_front
from tasks.planning.pilot_runs import CodedPeople
from tasks.studio.sample import PeopleSample, value_text

MOST_NODES = 40_000
"""The most nodes of a lattice that is searched while the page waits."""
MOST_EFFORT, FEWEST_TRIED = 12_000_000, 400
"""People times quasi-identifiers to the power of three, which is about what clustering costs, and people that are tried in any case."""


class MethodPoint(NamedTuple):
    """Loss, suppression and risk of one method on a sample, or the fault why there is none.

    Attributes:
        words: A description.
        figures: The job's ``method`` section that selects it.
        gcp: Loss of the sample, 0 to 1; None where it cannot be tried, for the reason in ``fault``.
        suppressed: Share of the people who are left out.
        risk: Mean over the others of 1 / people in their class.
        own: Whether the job asks for this method.
        people: On how many it was tried.
    """

    name: str
    words: str
    figures: dict[str, object]
    gcp: float | None
    suppressed: float
    risk: float
    own: bool
    people: int
    fault: str = ""


class SampleClasses(NamedTuple):
    """Classes of a sample: labels, sizes, GCP and number of suppressed people."""

    labels: pa.Table
    sizes: NDArray[np.int64]
    gcp: float
    suppressed: int


def coded_people(job: Job, sample: PeopleSample) -> CodedPeople:
    """Return a sample coded by a job's hierarchies; raise ``PrivacyError`` if it has fewer than k people."""
    if sample.people < job.privacy.k:
        raise PrivacyError("The sample has fewer people than k, so that nothing can be tried on it.")
    qids, steps = job.columns.quasi_identifiers, job.columns.normalised
    names = [*(qid.name for qid in qids), *job.privacy.columns]
    domains = tuple(sample.domain(name, steps.get(name, [])) for name in names)
    hierarchies = tuple(build_hierarchy(qid, domain, job.folder) for qid, domain in zip(qids, domains, strict=False))
    coding = Coding(domains[: len(qids)], hierarchies, ("studio", uuid4().hex), domains[len(qids) :])
    return CodedPeople(job, coding, [sample.values(name, steps.get(name, [])) for name in names])


def sample_pareto_front(coded: CodedPeople) -> ParetoFront | None:
    """Return the Pareto front of lattice nodes on a sample; None for too large a lattice."""
    job, coding = coded.job, coded.coding
    axes = searched_axes(job, coding)
    if Lattice.allowed(axes).nodes > MOST_NODES:
        return None
    histogram, promise = coded.histogram(), promise_of(job, coding)
    prices = prices_of("gcp", coding.hierarchies, coding.domains, len(coding.sensitive))

    def search(most: int) -> Search:
        return Search(histogram, axes, promise, most, "gcp", sensitive=coding.sensitive, prices=prices)

    return worded_pareto_front(
        job, coding, find_pareto_nodes(search, coded.people, len(coding.hierarchies), most_suppressed(job, coded.people))
    )


def affordable_people(coded: CodedPeople) -> CodedPeople:
    """Return an evenly spaced subsample, small enough for slow methods, or the sample itself.

    The page waits for them. The order of the sample carries no information.
    """
    most = max(MOST_EFFORT // max(len(coded.coding.hierarchies), 1) ** 3, FEWEST_TRIED)
    if coded.people <= most:
        return coded
    places = pa.array(np.linspace(0, coded.people - 1, most).round().astype(np.int64))
    return replace(coded, columns=[column.take(places) for column in coded.columns])


def method_points(coded: CodedPeople) -> list[MethodPoint]:
    """Run methods other than full-domain recoding on a sample; return loss, suppression and risk of each.

    These are the job's own method, cuts, and clustering.
    """
    own = coded.job.method
    coded = affordable_people(coded)
    asked: list[tuple[str, dict[str, object], bool]] = []
    if own.name != "skald":
        said = {key: value for key, value in own.model_dump(mode="json", exclude_unset=True).items() if key != "name"}
        asked.append((own.name, {"name": own.name, **said}, True))
    if own.name != "mondrian":
        asked.append(("mondrian", {"name": "mondrian", "score": "ncp"}, False))
    if own.name != "kmember":
        asked.append(("kmember", {"name": "kmember"}, False))
    return [_point(coded, *one) for one in asked]


def _point(coded: CodedPeople, name: str, said: dict[str, object], own: bool) -> MethodPoint:
    """Run one method on a sample and return its loss, suppression and risk."""
    words = METHODS[name].words
    if not own:
        method = MondrianMethod(name="mondrian", score="ncp") if name == "mondrian" else KMemberMethod(name="kmember")
        coded = replace(coded, job=coded.job.model_copy(update={"method": method}))
    try:
        made = sample_classes(coded, None)
    except SkaldError as error:
        return MethodPoint(name, words, said, None, 0.0, 0.0, own, coded.people, str(error))
    released = int(made.sizes.sum())
    risk = len(made.sizes) / released if released else 0.0
    return MethodPoint(name, words, said, made.gcp, made.suppressed / max(coded.people, 1), risk, own, coded.people)


def sample_classes(coded: CodedPeople, node: Node | None) -> SampleClasses:
    """Return the classes of a sample by the job's method; at ``node`` or the best for full-domain.

    Args:
        node: Level of each column for full-domain recoding; the job's own node if left out.
    """
    job, coding = coded.job, coded.coding
    if job.method.name == "skald":
        return _at_node(coded, node)
    if isinstance(job.method, MondrianMethod):
        cells = coded.histogram()
        recoding, published = recode_cells(cutting_of(job, coding), cells)
        losses = total_losses([published.losses], len(coding.hierarchies), job.privacy.k, coded.people)
        return SampleClasses(recoding.labels, recoding.sizes, float(losses["gcp"]), 0)
    made = coded.recode_records()
    return SampleClasses(made.labels, made.sizes, float(made.loss["gcp"]), made.suppressed)


def _at_node(coded: CodedPeople, node: Node | None) -> SampleClasses:
    """Return the classes of a sample recoded at a lattice node."""
    job, coding = coded.job, coded.coding
    chosen = named_node(job, coding) if node is None else node
    if chosen is None:
        raise PrivacyError("No node of the sample keeps what the job promises within its limit.")
    cells, classes = table_at(coded.histogram(), tuple(chosen[: len(coding.hierarchies)]), coding.hierarchies, coding.sensitive, None)
    failing = classes.failing(promise_of(job, coding))
    made = recode(cells, coding.hierarchies, failing, job.intervals, masks=False, masked=None)
    return SampleClasses(made.labels, made.sizes, 0.0, int(cells.counts[failing].sum()))


def preferred_node(job: Job, front: ParetoFront | None) -> Node | None:
    """Return a job's named node, else the front's marked one, else that of least loss within the limit.

    A named node is returned whatever it suppresses. Else only nodes within the suppression limit count; None if there is none.
    """
    if named := job.full_domain.node:
        return tuple(named)
    limit = floor(Fraction(job.suppression.limit) * 10**9) / 10**9
    able = [one for one in front.nodes if one.suppressed <= limit] if front else []
    return tuple(min(able, key=lambda one: (not one.chosen, one.gcp)).node) if able else None


MOST_CLASSES = 10
_WORDS = re.compile(r"[^\s\[\](){},;|<>=]+")


class ShownClass(NamedTuple):
    """A class in the preview: its labels, None for hidden ones, and its number of people."""

    labels: list[str | None]
    people: int


class Preview(NamedTuple):
    """A few classes of a sample with their labels, and counts of all classes and people.

    Attributes:
        columns: Names of the published columns.
        shown: Some classes that enough people are in, from the largest to the smallest.
        persons_left_out: People in none.
        people: How many were tried.
    """

    columns: list[str]
    shown: list[ShownClass]
    classes: int
    smallest: int
    persons_left_out: int
    people: int


def preview_of(job: Job, sample: PeopleSample, made: SampleClasses, least: int) -> Preview:
    """Return a preview: up to ten classes of at least ``least`` people, rare labels hidden, and counts.

    Args:
        sample: The sample.
        made: Its classes.
        least: People who must be in a class, and share a value that a label names.
    """
    able = np.flatnonzero(made.sizes >= least)
    order = able[np.argsort(-made.sizes[able], kind="stable")]
    places = order[np.unique(np.linspace(0, len(order) - 1, min(MOST_CLASSES, len(order))).round().astype(int))] if len(order) else order
    rows = made.labels.take(places).to_pylist()
    # Labels that are made for a class may name a value of one of its people.
    rare = {name: _rare(job, sample, name, least) for name in made.labels.column_names}
    shown = [
        ShownClass([_label(one, rare[name]) for name, one in row.items()], int(made.sizes[place]))
        for row, place in zip(rows, places.tolist(), strict=True)
    ]
    return Preview(
        made.labels.column_names,
        shown,
        len(made.sizes),
        int(made.sizes.min()) if len(made.sizes) else 0,
        made.suppressed,
        int(made.sizes.sum()) + made.suppressed,
    )


class _Rare(NamedTuple):
    """The rare values of a column, and how labels are searched for them."""

    values: frozenset[str]
    text: bool
    whole: bool


def _rare(job: Job, sample: PeopleSample, column: str, least: int) -> _Rare:
    """Return the values of a column, as text, that fewer than ``least`` people share.

    Bounds of intervals count as values of their column.
    """
    names = [qid.name for qid in job.columns.quasi_identifiers]
    name = column if column in names else column.removesuffix("_low").removesuffix("_high")
    steps = job.columns.normalised.get(name, [])
    whole = job.method.name == "skald"
    return _Rare(sample.rare_values(name, least, steps), not whole and is_text(sample.domain(name, steps).values.type), whole)


def _label(value: object, rare: _Rare) -> str | None:
    """Return a label as text; None if it would disclose a rare value."""
    if value is None:
        return "null"
    label = value_text(value)
    named = label in rare.values or (not rare.whole and any(word in rare.values for word in _WORDS.findall(label)))
    return None if named or (rare.text and any(one and one in label for one in rare.values)) else label
