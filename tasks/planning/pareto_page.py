"""A job's lattice searched without a release: for its picture, and the page of its Pareto front.

The artefacts of the job's run are used, and only what is missing is counted.
"""

from __future__ import annotations

from core.charts.chart import DARK_STYLE, ChartStyle
from core.charts.scatter import ChartPoint, scatter_chart
from core.hierarchies.hierarchy import Hierarchy
from core.lattice.lattice import BYTES_PER_CELL, LARGEST, Lattice
from core.lattice.objectives import prices_of
from core.lattice.pareto_front import ParetoNode, find_pareto_nodes
from core.lattice.search import LatticeMap, Search
from schemas.errors.methods import NoLatticeError
from schemas.job.job import Job
from schemas.job.method import SkaldMethod
from schemas.reading.model import FrozenModel
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.hierarchy_kinds import hierarchy_kind
from tasks.counting.chunk_counts import count_histograms, count_pairs
from tasks.counting.coding import Coding, load_coding
from tasks.counting.histograms import load_histogram
from tasks.counting.person_cells import PersonsOfSource
from tasks.counting.source_domains import count_domains
from tasks.counting.source_sizes import merge_histograms
from tasks.lattice.optimum import SearchRequirements, memory_for_cells
from tasks.lattice.promises import most_suppressed, no_class_error, promise_of, searched_axes
from tasks.lattice.recodings import check_hierarchies, choose_root, count_enough_persons, read_map, search_lattice
from tasks.report.page import page, percent
from tasks.source.extracts import open_run
from tasks.source.sources import read_source

TEMPLATE = "front.html"
OPTIMAL, SEEN = ChartStyle(0), ChartStyle(1, quiet=True)


class ShownNode(FrozenModel):
    """A node on the page: its figures, and the level of each QID in words."""

    node: list[int]
    gcp: float
    suppressed: float
    risk: float
    optimal: bool
    chosen: bool
    steps: list[str]


class ParetoFront(FrozenModel):
    """The figures of the Pareto page: job, k, quasi-identifiers and nodes, without values of the data."""

    name: str
    records: int
    k: int
    unit: str
    qids: list[str]
    nodes: list[ShownNode]

    @property
    def has_current_optimum(self) -> bool:
        """Return whether a node is marked as the job's optimum; none is unless its objective is GCP."""
        return any(one.chosen for one in self.nodes)


def measure_pareto_front(job: Job) -> ParetoFront:
    """Search the Pareto front of a job's lattice without a release; raise if no node passes."""
    if job.method.name != "skald":
        raise NoLatticeError.other_method(job.method.name)
    check_hierarchies(job)
    with open_run(job) as run:
        source = read_source(run)
        domain = count_domains(run, source, count_cells=True)
        coding = load_coding(job, domain, run.store)
        axes = searched_axes(job, coding)
        if Lattice.allowed(axes).nodes > LARGEST:
            raise NoLatticeError.too_large(LARGEST)
        root = choose_root(job, coding)
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        histogram = load_histogram(merge_histograms(run, domain, root, parts), coding, root, run.store)
        people = PersonsOfSource(coding, parts, pairs, run.store, job.memory) if job.columns.person else None
        count_enough_persons(job, people, histogram)
        promise = promise_of(job, coding)
        persons = SearchRequirements(promise, people).persons_of_cells(histogram)
        prices = prices_of("gcp", coding.hierarchies, coding.domains, len(coding.sensitive))
        cells = memory_for_cells(job) // BYTES_PER_CELL

        def search(most: int) -> Search:
            """Return the search for the best node that suppresses at most so many records."""
            return Search(histogram, axes, promise, most, "gcp", cells, coding.sensitive, prices, persons)

        found = find_pareto_nodes(search, coding.records, len(coding.hierarchies), most_suppressed(job, coding.records))
        if not found:
            raise no_class_error(job, coding)
    return worded_pareto_front(job, coding, found)


def worded_pareto_front(job: Job, coding: Coding, found: list[ParetoNode]) -> ParetoFront:
    """Return Pareto nodes as the page's figures, with what the job's own search takes marked.

    That is its named node, or what a search for the least GCP ends in: without weights, and of people who are not linked.
    """
    method = job.full_domain
    named, searched = method.node, method.objective == "gcp" and method.linked == "tell" and not method.weights
    specs = [qid.hierarchy for qid in job.columns.quasi_identifiers]
    nodes = [
        ShownNode(
            node=list(one.node), gcp=one.gcp, suppressed=one.suppressed, risk=one.risk, optimal=one.optimal,
            chosen=list(one.node) == named if named else searched and one.chosen,
            steps=[level_mark(*at) for at in zip(specs, coding.hierarchies, one.node, strict=True)],
        )
        for one in found
    ]  # fmt: skip
    unit = "person" if job.columns.person else "record"
    names = [qid.name for qid in job.columns.quasi_identifiers]
    return ParetoFront(name=job.name, records=coding.records, k=job.privacy.k, unit=unit, qids=names, nodes=nodes)


def level_mark(spec: HierarchySpec, hierarchy: Hierarchy, level: int) -> str:
    """Return a short mark of a level for a table, such as a width, ``values`` or ``*``."""
    if hierarchy.is_suppressed_level(level):
        return "*"
    steps = hierarchy_kind(spec).marks(spec)
    # A first step that merges nothing is no level of its own.
    place_of_step = level - 1 + len(steps) - (hierarchy.top - 1)
    return "values" if level == 0 else steps[place_of_step] if 0 <= place_of_step < len(steps) else f"level {level}"


def render_pareto_page(front: ParetoFront) -> str:
    """Return the HTML page of a Pareto front; equal fronts give equal pages."""
    pairs = (("Loss and suppression", "suppressed records", "suppressed"), ("Loss and risk", "mean risk of a released record", "risk"))
    drawn = []
    for title, axis, name in pairs:
        points = [
            ChartPoint(getattr(one, name), one.gcp, str(number), OPTIMAL if one.optimal else SEEN, one.chosen)
            for number, one in enumerate(front.nodes, 1)
        ]
        drawn.append(scatter_chart(title, points, axis, percent).inline())
    return page(TEMPLATE, front=front, charts=drawn, dark=DARK_STYLE)


def lattice_of(job: Job) -> LatticeMap:
    """Return the lattice map of a job, from stored artefacts or a new search; raise if there is none."""
    if not isinstance(job.method, SkaldMethod):
        raise NoLatticeError.other_method(job.method.name)
    check_hierarchies(job)
    with open_run(job) as run:
        source = read_source(run)
        domain = count_domains(run, source, count_cells=True)
        root = choose_root(job, load_coding(job, domain, run.store))
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        found = search_lattice(run, domain, root, merge_histograms(run, domain, root, parts), parts, pairs)
        drawn = read_map(found.outcome, run.store)
    if drawn is None:
        raise NoLatticeError.without_nodes()
    return drawn
