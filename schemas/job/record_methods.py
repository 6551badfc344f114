"""What a job may say about the algorithms that recode single records (papers/rayden.txt, papers/semantic-clustering.txt)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from schemas.job.mondrian import Fragments, Generalising
from schemas.reading.model import ExactDecimal, MethodSpec, StrictModel, fault


def deviations(value: Decimal) -> Decimal:
    """Return how many standard deviations above the mean a threshold lies."""
    if value < 0:
        raise fault("must be a number of standard deviations, 0 or more")
    return value


class _Shared(MethodSpec):
    """What becomes of records that are too many to be held at once, and of finished classes."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"exchange"})
    fragments: Fragments = Field(default_factory=Fragments)
    """Fragments of the source that are anonymised alone; made where the memory asks for it, or for several workers."""
    exchange: bool = False
    """Whether records of finished classes then move and change places as long as the labels that are published cost less by it, as those of
    kmember do. The paper has no such step."""


class _Labels(_Shared):
    """How classes are published; numbers and dates always as the range of their values."""

    generalisation: Literal["hierarchy", "set"] = "hierarchy"
    """Whether other values are published as their lowest common ancestor, or as the set of them, which loses less and shows more."""


class _Tree(StrictModel):
    """How the records are parted by their distance to vantage points."""

    split: Literal["multiple", "median"] = "multiple"
    """Where a part is cut: at the multiple of k nearest to the median, which leaves classes of k, or at the median itself."""
    vantage: Literal["random", "farthest", "seed"] = "random"
    """The vantage point: a record at random, the one farthest from such a one, or one drawn as seeds of clusters are."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of all that is drawn at random; the same seed makes the same release."""


class _Outliers(StrictModel):
    """What is an outlier, and what becomes of it."""

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
    """A VP-tree on Gower distance, and outliers partitioned among themselves (papers/rayden.txt)."""

    name: Literal["rayden"] = "rayden"
    """Chooses this algorithm."""


class CanonMethod(_Tree, _Labels):
    """The same tree on the numerical quasi-identifiers alone, under Euclid's distance, without an outlier step."""

    name: Literal["canon"] = "canon"
    """Chooses this algorithm."""


class MondrianCofMethod(_Outliers, _Labels):
    """Strict Mondrian, and outliers of its classes partitioned among themselves by Mondrian again."""

    name: Literal["mondrian_cof"] = "mondrian_cof"
    """Chooses this algorithm."""


class ClusteringMethod(_Shared):
    """Level-wise semantic clustering (papers/semantic-clustering.txt)."""

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
    """Return what does not fit between the settings of semantic clustering, each with its place."""
    if method.get("exchange") and method.get("generalisation") == "level":
        return [
            "method.exchange: generalisation: level publishes the groups that made a block, and after an exchange none did; say one of both"
        ]
    return []


class KMemberMethod(Generalising):
    """Greedy k-member clustering (Byun et al. 2007) bettered by local exchange, priced by the labels that are published: least loss."""

    name: Literal["kmember"] = "kmember"
    """Chooses this algorithm."""
    effort: Annotated[int, Field(ge=1, le=100)] = 1
    """How much is tried: blocks so many times as large, and more often cut otherwise. More lose less and take so many times as long, or
    longer."""
    block: Annotated[int, Field(ge=100, le=100_000)] | None = None
    """About how many records are clustered together. Larger ones lose less; what they take grows with them. A size that fits the number
    of records unless it is said."""
    fragments: Fragments = Field(default_factory=Fragments)
    """Fragments of the source that are anonymised alone; made where the memory asks for it, or for several workers."""
