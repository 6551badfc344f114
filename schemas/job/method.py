"""Settings of the algorithms, one model per method, and the registries of methods and of objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from schemas.errors.base import counted, nearest
from schemas.job.columns import names
from schemas.job.record_methods import (
    CanonMethod,
    ClusteringMethod,
    KMemberMethod,
    MondrianCofMethod,
    MondrianMethod,
    RaydenMethod,
    clustering_faults,
    mondrian_faults,
    ways_faults,
)
from schemas.reading.model import Choice, ExactDecimal, MethodSpec, alternatives, fault
from schemas.reading.registry import Code, OneOf, Registry, Schemas


@dataclass(frozen=True)
class Objective:
    """A registry entry for one objective of the lattice search.

    Attributes:
        name: How a job calls it.
        code: A `core.lattice.objectives.Counting` or `core.lattice.objectives.Pricing`.
        measure: What it measures, for plan, report and certificate; it follows "a smaller loss by".
        loss: Title and meaning of a loss that releases tell only where it is minimised, for the report.
        weighed: Whether it adds up what each QID loses, so that these can have weights.
    """

    name: str
    code: Code
    measure: str
    loss: tuple[str, str] | None = None
    weighed: bool = False


OBJECTIVES = Registry(
    "objective",
    Objective("dm_star", Code("core.lattice.objectives:DM_STAR"), "DM* (eq. 4 of the SKALD paper)"),
    Objective("dm_all", Code("core.lattice.objectives:DM_ALL"), "DM over all cells (El Emam; ARX)"),
    Objective("c_avg", Code("core.lattice.objectives:C_AVG"), "mean class size (C_avg)"),
    Objective("precision", Code("core.lattice.objectives:PRECISION"), "lack of precision (Sweeney's 1 - Prec)", weighed=True),
    Objective("gcp", Code("core.lattice.objectives:GCP"), "certainty penalty (GCP, range over range)", weighed=True),
    Objective(
        "gcp_covered",
        Code("core.lattice.objectives:GCP_COVERED"),
        "certainty penalty (GCP, values covered)",
        loss=("GCP, values covered", "the same, of numbers too the share of distinct values that a group covers"),
        weighed=True,
    ),
    Objective(
        "entropy",
        Code("core.lattice.objectives:ENTROPY"),
        "non-uniform entropy",
        loss=("Entropy", "non-uniform entropy per value, in bits: what a value can no longer tell"),
        weighed=True,
    ),
)
"""The known objectives by name. A further one is one more entry."""

DEFAULT_OBJECTIVE = "gcp"
"""What a job minimises that names nothing: it counts what columns lose, where DM* counts only how large classes are."""


MOST_WEIGHT = 1_000_000
Level = Annotated[int, Field(ge=0)]


def level_range(levels: list[int]) -> list[int]:
    """Return the least and the greatest level of a QID; raise unless they are two, in this order."""
    if len(levels) != 2 or levels[0] > levels[1]:
        raise fault("must be the least and the most level, as in [0, 3]")
    return levels


def checked_weight(value: Decimal) -> Decimal:
    """Return a quasi-identifier's weight; raise unless it is from 0 to a million."""
    if not 0 <= value <= MOST_WEIGHT:
        raise fault(f"must be a number from 0 to {MOST_WEIGHT:,}")
    return value


class SkaldMethod(MethodSpec):
    """Settings of the search for the optimal full-domain node under a memory budget (papers/skald.txt)."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"linked", "node", "levels", "weights"})
    examples: ClassVar[Mapping[str, str]] = {"weights": "weights: {age: 2}", "levels": "levels: {age: [0, 3]}"}
    name: Literal["skald"] = "skald"
    """Chooses this algorithm."""
    root: Literal["occupied", "dense"] = "occupied"
    """What bounds the root histogram: its occupied cells, or the paper's product of the axes (eq. 3)."""
    objective: Annotated[str, OneOf(OBJECTIVES)] = DEFAULT_OBJECTIVE
    """What the chosen node has least of: certainty penalty (range over range, or values covered), eq. 4 of the paper, the sum over all
    cells as El Emam and ARX have it, mean class size, precision, non-uniform entropy."""
    weights: dict[str, Annotated[ExactDecimal, AfterValidator(checked_weight)]] = Field(default_factory=dict)
    """How much a QID counts in an objective that adds up what each of them loses (certainty penalty, precision, entropy): a number by
    name, 1 for those that are not named. Losses of the release are told without weights, and what was minimised beside them."""
    levels: dict[str, Annotated[list[Level], AfterValidator(level_range)]] = Field(default_factory=dict)
    """The least and the most level of a QID, both included, by its name, as in ``age: [0, 3]``: only nodes within are looked at."""
    node: Annotated[list[Level], Field(min_length=1)] | None = None
    """Takes this node, a level for each QID in job order, instead of a search; refused if it does not keep the promise."""
    roots: Annotated[int, Field(ge=1, le=100)] = 3
    """Root histograms that are counted at most where the finest does not fit the memory; 1 is the paper's, more examine more nodes."""
    effort: Annotated[int, Field(ge=1, le=100_000_000)] = 20_000
    """Nodes that are rolled up at most in a lattice too large to hold; then the best found is taken, with a bound on what it misses.
    Twice as many where they cost half: of sixteen quasi-identifiers at most, and of half a million cells."""
    linked: Literal["tell", "keep"] = "tell"
    """What becomes of records that pseudonyms show to be one person's: it is told how many people share the set of combinations that they
    are in, or that is kept at k: records are suppressed until it is, and levels are coarser if these were more than the limit allows."""

    def weights_of(self, qids: Sequence[str]) -> tuple[float, ...]:
        """Return the weight of each QID, by default 1; empty where the job sets no weights."""
        return tuple(float(self.weights.get(name, 1)) for name in qids) if self.weights else ()


def full_domain_faults(method: Mapping[str, Any], qids: object, intervals: object) -> list[str]:
    """Return a message for each conflict between full-domain settings and the columns.

    Both may be validated or raw; each message has its location.
    """
    known, faults = list(names(qids)), []
    for setting in ("weights", "levels"):
        named = method.get(setting)
        unexpected = [str(name) for name in named if name not in known] if isinstance(named, Mapping) else []
        faults += [f"method.{setting}: '{name}' is no quasi-identifier{nearest(name, known)}" for name in unexpected]
    weights, node = method.get("weights"), method.get("node")
    if isinstance(weights, Mapping) and weights:
        faults += _weight_faults(weights, known, method)
    if isinstance(node, list):
        if known and len(node) != len(known):
            there = counted(len(known), "quasi-identifier")
            faults.append(f"method.node: has {counted(len(node), 'level')} for {there}; give one for each")
        chosen = [setting for setting in ("weights", "levels") if method.get(setting)]
        faults += [f"method.{setting}: a node that is named is not looked for; leave {setting} or node out" for setting in chosen]
    return faults


def _weight_faults(weights: Mapping[str, Any], known: Sequence[str], method: Mapping[str, Any]) -> list[str]:
    """Return the faults of the weights of quasi-identifiers."""
    faults, weighed = [], [name for name, objective in OBJECTIVES.items() if objective.weighed]
    if method.get("objective", DEFAULT_OBJECTIVE) not in weighed:
        faults.append(f"method.weights: the objective counts classes and not columns; use objective: {alternatives(weighed)}")
    if set(known) <= set(weights) and not any(weights.values()):
        faults.append("method.weights: all are 0, so that every node would be as good as any; give one a weight")
    return faults


@dataclass(frozen=True)
class MethodEntry:
    """A registry entry for one anonymisation algorithm.

    Attributes:
        name: How a job calls it; its deployment has the same name.
        schema: Its settings; the docstrings are its part of the reference.
        flow: The flow that runs a job with it: ``(job_file, settings)`` to a `tasks.publication.verify_and_publish.PublishedRelease`.
        words: What it does, a sentence for report and comparison.
        suppressed: Why it suppresses records, where it does not count reasons.
        one_level: Whether it publishes one level for each whole column, so that stars and rounds go with it.
        replays: Whether its releases can be applied to other data.
        counts_persons: Whether k is of persons where the job names them.
        compiled: Whether privacy models are asked in compiled code alone, so that it takes those that are known there and no others.
        ways: Whether the job says of each QID how the values of a class are published.
        partition: Of a method that recodes single records, what makes classes of them: ``(job, codes, coding)`` to a
            `tasks.records.partitions.Partitioned`; if it counts persons, ``(job, codes, coding, unit)``, a `core.units.unit.Unit`.
        faults: What does not fit between its settings and the rest of a job: ``(method, quasi_identifiers, intervals)`` to sentences.
    """

    name: str
    schema: type[MethodSpec]
    flow: Code
    words: str
    suppressed: str = "in no class that keeps the promise"
    one_level: bool = False
    replays: bool = False
    counts_persons: bool = False
    compiled: bool = False
    ways: bool = False
    partition: Callable[..., Any] | None = None
    faults: Callable[[Mapping[str, Any], object, object], list[str]] = lambda method, qids, intervals: []


ALONE = "too few like them for a class, or in a class that could not keep a further promise"
METHODS = Registry(
    "method",
    MethodEntry(
        "skald",
        SkaldMethod,
        Code("flows.skald:skald"),
        "One level for each whole column: of all combinations of levels that keep the promise, the one with the least loss.",
        one_level=True,
        replays=True,
        counts_persons=True,
        faults=full_domain_faults,
    ),
    MethodEntry(
        "mondrian",
        MondrianMethod,
        Code("flows.mondrian:mondrian"),
        "Mondrian: the records are cut again and again along one quasi-identifier, as long as both sides keep the promise.",
        replays=True,
        counts_persons=True,
        compiled=True,
        ways=True,
        faults=mondrian_faults,
    ),
    MethodEntry(
        "kmember",
        KMemberMethod,
        Code("flows.records:kmember"),
        "k-member clustering: classes of k records or few more that cost least as they are published, bettered by moves and swaps.",
        ALONE,
        counts_persons=True,
        ways=True,
        partition=Code("tasks.records.partitions:partition_by_kmember"),
        faults=ways_faults,
    ),
    MethodEntry(
        "rayden",
        RaydenMethod,
        Code("flows.records:rayden"),
        "RAYDEN: a tree of nearest records under Gower's distance; outliers are parted among themselves.",
        ALONE,
        counts_persons=True,
        partition=Code("tasks.records.partitions:partition_by_rayden"),
    ),
    MethodEntry(
        "canon",
        CanonMethod,
        Code("flows.records:canon"),
        "CANON: a tree of nearest records under the distance of the numerical quasi-identifiers.",
        ALONE,
        counts_persons=True,
        partition=Code("tasks.records.partitions:partition_by_canon"),
    ),
    MethodEntry(
        "mondrian_cof",
        MondrianCofMethod,
        Code("flows.records:mondrian_cof"),
        "Mondrian, then outliers of its classes are parted among themselves.",
        ALONE,
        counts_persons=True,
        partition=Code("tasks.records.partitions:partition_by_mondrian_cof"),
    ),
    MethodEntry(
        "clustering",
        ClusteringMethod,
        Code("flows.records:clustering"),
        "Semantic clustering: records with equal groups are taken together, level by level.",
        ALONE,
        counts_persons=True,
        partition=Code("tasks.records.partitions:partition_by_clustering"),
        faults=clustering_faults,
    ),
)
"""The known methods by name. A further one is one more entry."""


def checked_method(value: object) -> object:
    """Return the value of ``method`` unchanged; raise if it is only a name."""
    if isinstance(value, str):
        meant = value if value in METHODS else next(iter(METHODS))
        raise fault(f"must be a mapping, as in method: {{name: {meant}}}" + ("" if value in METHODS else nearest(value, METHODS)))
    return value


Method = Annotated[MethodSpec, Choice(Schemas(METHODS), "name"), BeforeValidator(checked_method)]


def one_level(method: Mapping[str, Any]) -> bool:
    """Return whether a method publishes each column at one level for all records.

    The method may be validated or raw; True for unknown methods.
    """
    entry = METHODS.get(str(method.get("name", "skald")))
    return entry is None or entry.one_level


def has_ways(method: Mapping[str, Any]) -> bool:
    """Return whether a method has a setting ``generalisation`` per quasi-identifier.

    The method may be validated or raw.
    """
    entry = METHODS.get(str(method.get("name", "skald")))
    return entry is not None and entry.ways
