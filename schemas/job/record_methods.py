"""Settings of methods that recode single records: VP-tree, clustering and k-member.

Papers: papers/rayden.txt, papers/semantic-clustering.txt.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from schemas.job.mondrian import Fragments, Generalising
from schemas.reading.model import ExactDecimal, MethodSpec, StrictModel, fault


def deviations(value: Decimal) -> Decimal:
    """Check that a threshold is 0 or more standard deviations above the mean, and return it."""
    if value < 0:
        raise fault("must be a number of standard deviations, 0 or more")
    return value


class _Shared(MethodSpec):
    """Settings for fragments, and for exchange between finished classes."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"exchange"})
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
    """A VP-tree on Gower distance, and outliers partitioned among themselves (papers/rayden.txt)."""

    name: Literal["rayden"] = "rayden"
    """Chooses this algorithm."""


class CanonMethod(_Tree, _Labels):
    """A VP-tree on the numerical quasi-identifiers alone, without an outlier step.

    Its distance is Euclid's.
    """

    name: Literal["canon"] = "canon"
    """Chooses this algorithm."""


class MondrianCofMethod(_Outliers, _Labels):
    """Strict Mondrian, whose outliers Mondrian partitions again among themselves.

    The outliers are those of its classes.
    """

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
    """Return the conflicts between the settings of semantic clustering, each with its location."""
    if method.get("exchange") and method.get("generalisation") == "level":
        return [
            "method.exchange: generalisation: level publishes the groups that made a block, and after an exchange none did; say one of both"
        ]
    return []


class KMemberMethod(Generalising):
    """Greedy k-member clustering (Byun et al. 2007) with local exchange.

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
    fragments: Fragments = Field(default_factory=Fragments)
    """Fragments of the source that are anonymised alone; made where the memory asks for it, or for several workers."""
