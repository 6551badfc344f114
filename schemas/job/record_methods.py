"""Settings of methods that recode single records: Mondrian, VP-tree, clustering and k-member.

Mondrian is centralised or in fragments (papers/distributed-mondrian.txt).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from schemas.errors.base import counted, nearest
from schemas.job.columns import named_entries, names
from schemas.reading.model import ExactDecimal, MethodSpec, StrictModel, alternatives, fault, part_of
from schemas.registry.hierarchy_kinds import HIERARCHIES, kind_of

Generalisation: TypeAlias = Literal["hierarchy", "prefix", "set", "interval"]
GENERALISATIONS: tuple[Generalisation, ...] = ("hierarchy", "prefix", "set", "interval")


def sample_share(value: Decimal) -> Decimal:
    """Return a sample's share of the records; raise unless it is above 0 and at most 1."""
    if not 0 < value <= 1:
        raise fault("must be a share of the records, above 0 and at most 1")
    return value


def generalisation(value: object) -> object:
    """Return the form of generalisation, one for all QIDs or by name; raise if a form is unknown."""
    named = value if isinstance(value, dict) else {"": value}
    if not all(isinstance(name, str) for name in named):
        raise fault("must name quasi-identifiers as text; put the names in quotes")
    if wrong := [way for way in named.values() if way not in GENERALISATIONS]:
        # A hint names what is known; what was written there is not shown.
        hint = nearest(wrong[0], GENERALISATIONS) if isinstance(wrong[0], str) else ""
        many = f" ({counted(len(wrong), 'setting')} at fault)" if isinstance(value, dict) else ""
        raise fault(f"must be {alternatives(GENERALISATIONS)}, or one of these per quasi-identifier{hint}{many}")
    return value


_WAY: dict[str, Any] = {"enum": list(GENERALISATIONS)}
Ways = Annotated[
    Generalisation | dict[str, Generalisation],
    BeforeValidator(generalisation),
    WithJsonSchema({"anyOf": [_WAY, {"type": "object", "additionalProperties": _WAY}]}),
]


class Generalising(MethodSpec):
    """Settings of how a method publishes the values of a class, per quasi-identifier."""

    generalisation: Ways | None = None
    """How the values of a class are published. If left out: numbers and dates as intervals, all else, and what may not be published
    exactly, by its hierarchy."""

    def way_of(self, qid: str) -> Generalisation | None:
        """Return the form in which a quasi-identifier is generalised; None where the job sets none for it."""
        return self.generalisation.get(qid) if isinstance(self.generalisation, dict) else self.generalisation


_FRAGMENTS_EXAMPLE = {"fragments": "fragments: {count: 4}"}


class Fragments(StrictModel):
    """Settings for dividing the records into fragments that are anonymised separately."""

    count: Annotated[int, Field(ge=1, le=4096)] = 1
    """How many fragments; more than one worker takes them from a queue. The memory may ask for more."""
    cut: Literal["quantile", "multidimensional"] = "multidimensional"
    """Along one quasi-identifier (Fig. 4), or as Mondrian itself cuts (Fig. 5), which rounds the count up to a power of two."""
    sample: Annotated[ExactDecimal, AfterValidator(sample_share)] = Decimal("0.01")
    """The share of the records from which the thresholds are taken."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which records are in the sample."""


class MondrianMethod(Generalising):
    """Settings of multidimensional local recoding by recursive cuts (papers/distributed-mondrian.txt)."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"refused"})
    name: Literal["mondrian"] = "mondrian"
    """Chooses this algorithm."""
    mode: Literal["strict", "median", "relaxed"] = "strict"
    """Equal values stay together, cut at the median or just below it, or at the median only (the paper); or they are shared out evenly."""
    score: Literal["representativity", "entropy", "span", "normalised_span", "ncp"] = "representativity"
    """What chooses the quasi-identifier of a cut: eq. 1, another score, or the cut itself that lowers the NCP most."""
    order: Literal["learnt", "listed"] | None = None
    """In which order siblings of listed hierarchies are cut: learnt from how many records each has, or as they are listed (the paper). If
    left out it is learnt for ``score: ncp`` alone."""
    refused: Literal["stop", "next"] = "stop"
    """What follows where l or t refuse the best cut that k allows: nothing, so that whoever knows the algorithm learns no value by it; or
    the next best cut is tried (the paper), which makes more classes and can tell."""
    spans: Literal["dataset", "fragment"] = "dataset"
    """Whether a score is relative to the whole dataset or, to the paper's letter, to the worker's fragment."""
    examples: ClassVar[Mapping[str, str]] = _FRAGMENTS_EXAMPLE
    fragments: Fragments = Field(default_factory=Fragments)
    """How the records are shared out before they are anonymised; in one piece unless it is said or the memory asks for it."""

    @property
    def learns_order(self) -> bool:
        """Whether the order of sibling values is learnt from the data."""
        return self.order == "learnt" or (self.order is None and self.score == "ncp")

    def canonical(self) -> dict[str, Any]:
        """Return the settings that determine the cuts as JSON data.

        Of ``order`` only counts whether it is learnt, so that jobs with listed orders keep their digest.
        """
        content = super().canonical()
        del content["order"]
        return content | ({"order": "learnt"} if self.learns_order else {})


def mondrian_faults(method: Mapping[str, Any], qids: object, intervals: object) -> list[str]:
    """Return a message for each conflict between Mondrian's settings and the rest of a job.

    Both may be validated or raw; each message has its location.
    """
    faults = ways_faults(method, qids, intervals)
    if method.get("score") == "ncp" and method.get("mode", "strict") != "strict":
        faults.append("method.mode: score: ncp chooses cuts off the median too, so that only mode: strict goes with it")
    return faults


def ways_faults(method: Mapping[str, Any], qids: object, intervals: object) -> list[str]:
    """Return a message for each conflict of ``method.generalisation`` with columns or ``intervals``.

    Each message has its location.
    """
    ways, known, faults = method.get("generalisation"), list(names(qids)), []
    if isinstance(ways, Mapping):
        unexpected = [str(name) for name in ways if name not in known]
        faults += [f"method.generalisation: '{name}' is no quasi-identifier{nearest(name, known)}" for name in unexpected]
    if intervals == "bounds":
        chosen = {name: ways.get(name) if isinstance(ways, Mapping) else ways for name in _with_bounds(qids)}
        # Not yet read: what is no text is refused for that.
        other = [name for name, way in chosen.items() if isinstance(way, str) and way != "interval"]
        faults += [f"method.generalisation: '{name}' is published as bounds (intervals: bounds), so it must be interval" for name in other]
    return faults


def _with_bounds(qids: object) -> Iterator[str]:
    """Yield the quasi-identifiers that can be published as lower and upper bounds."""
    for name, qid in named_entries(qids):
        kind = kind_of(part_of(qid, "hierarchy"))
        if kind is not None and HIERARCHIES[kind].schema.ranged:
            yield name


def deviations(value: Decimal) -> Decimal:
    """Return a number of standard deviations; raise if it is negative."""
    if value < 0:
        raise fault("must be a number of standard deviations, 0 or more")
    return value


class _Shared(MethodSpec):
    """Settings for fragments, and for exchange between finished classes."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"exchange"})
    examples: ClassVar[Mapping[str, str]] = _FRAGMENTS_EXAMPLE
    fragments: Fragments = Field(default_factory=Fragments)
    """Fragments of the source that are anonymised alone; made where the memory asks for it, or for several workers."""
    exchange: bool = False
    """Whether records of finished classes then move and change places as long as the labels that are published cost less by it, as those of
    kmember do. The paper has no such step."""


class _Labels(_Shared):
    """Settings of how the values of a class are published.

    Numbers and dates are always published as the range of their values.
    """

    generalisation: Literal["hierarchy", "set"] = "hierarchy"
    """Whether other values are published as their lowest common ancestor, or as the set of them, which loses less and shows more."""


class _Tree(StrictModel):
    """Settings of how a VP-tree divides the records by distance to vantage points."""

    split: Literal["multiple", "median"] = "multiple"
    """Where a part is cut: at the multiple of k nearest to the median, which leaves classes of k, or at the median itself."""
    vantage: Literal["random", "farthest", "seed"] = "random"
    """The vantage point: a record at random, the one farthest from such a one, or one drawn as seeds of clusters are."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of all that is drawn at random; the same seed makes the same release."""


class _Outliers(StrictModel):
    """Settings of which records are outliers, and how they are treated."""

    alpha: Annotated[ExactDecimal, AfterValidator(deviations)] = Decimal(2)
    """An outlier's factor is more than so many standard deviations above the mean of its partition."""
    chaining: Literal["paper", "tang"] = "paper"
    """The weights of the outlier factor: the paper's, which grow along the chain, or those of Tang et al. 2002, which shrink."""
    outliers: Literal["bounded", "freely"] = "bounded"
    """Whether outliers leave a partition only while k records stay, or freely; then what is left of it joins the nearest partition."""
    pool: Literal["join", "suppress"] = "join"
    """What becomes of an outlier pool of fewer than k records: it joins the nearest partitions or is suppressed."""
    categories: Literal["hierarchy", "equal"] = "hierarchy"
    """Whether two values that are no numbers are as far apart as their lowest common ancestor is high, or all equally, as in the paper."""
    missing: Literal["differs", "ignored"] = "differs"
    """Whether a missing value is as far from any other as can be, or no distance off."""


class RaydenMethod(_Tree, _Outliers, _Labels):
    """Settings of a VP-tree on Gower distance whose outliers are partitioned again (papers/rayden.txt)."""

    name: Literal["rayden"] = "rayden"
    """Chooses this algorithm."""


class CanonMethod(_Tree, _Labels):
    """Settings of a VP-tree on the numerical quasi-identifiers alone, without an outlier step.

    Its distance is Euclid's.
    """

    name: Literal["canon"] = "canon"
    """Chooses this algorithm."""


class MondrianCofMethod(_Outliers, _Labels):
    """Settings of strict Mondrian, whose outliers Mondrian partitions again among themselves.

    The outliers are those of its classes.
    """

    name: Literal["mondrian_cof"] = "mondrian_cof"
    """Chooses this algorithm."""


class ClusteringMethod(_Shared):
    """Settings of level-wise semantic clustering (papers/semantic-clustering.txt)."""

    name: Literal["clustering"] = "clustering"
    """Chooses this algorithm."""
    start: Literal["values", "parents"] = "values"
    """What is compared first: the values themselves, or their parents as in the paper's listing."""
    distance: Literal["scaled", "raw"] = "scaled"
    """Whether numerical values are divided by their range before they are summed."""
    generalisation: Literal["hierarchy", "set", "level"] = "hierarchy"
    """What a block publishes for values that are no numbers: their lowest common ancestor, the set of them, or, as in the listing, the
    group of the level that made the block."""


def clustering_faults(method: Mapping[str, Any], _qids: object, _intervals: object) -> list[str]:
    """Return a message for each conflict between the settings of semantic clustering."""
    if method.get("exchange") and method.get("generalisation") == "level":
        return [
            "method.exchange: generalisation: level publishes the groups that made a block, and after an exchange none did; say one of both"
        ]
    return []


class KMemberMethod(Generalising):
    """Settings of greedy k-member clustering (Byun et al. 2007) with local exchange.

    Its cost is the loss of the published labels, the least of all methods.
    """

    name: Literal["kmember"] = "kmember"
    """Chooses this algorithm."""
    effort: Annotated[int, Field(ge=1, le=100)] = 1
    """How much is tried: blocks so many times as large, and more often cut otherwise. More lose less and take so many times as long, or
    longer."""
    block: Annotated[int, Field(ge=100, le=100_000)] | None = None
    """About how many records are clustered together. Larger ones lose less; what they take grows with them. A size that fits the number
    of records unless it is said."""
    examples: ClassVar[Mapping[str, str]] = _FRAGMENTS_EXAMPLE
    fragments: Fragments = Field(default_factory=Fragments)
    """Fragments of the source that are anonymised alone; made where the memory asks for it, or for several workers."""
