"""The algorithms that a job can ask for, one model each, told apart by their name."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from schemas.job.mondrian import MondrianMethod
from schemas.job.record_methods import CanonMethod, ClusteringMethod, MondrianCofMethod, RaydenMethod
from schemas.reading.model import Choice, StrictModel


class SkaldMethod(StrictModel):
    """The optimal full-domain node under a memory budget (papers/skald.txt)."""

    name: Literal["skald"] = "skald"
    """Chooses this algorithm."""
    root: Literal["occupied", "dense"] = "occupied"
    """What bounds the root histogram: its occupied cells, or the paper's product of the axes (eq. 3)."""
    objective: Literal["dm_star", "dm_all", "c_avg", "precision", "gcp", "gcp_covered", "entropy"] = "dm_star"
    """What is best: eq. 4 of the paper, the sum over all cells as El Emam and ARX have it, mean class size, precision, certainty penalty
    (range over range, or values covered), non-uniform entropy."""
    roots: Annotated[int, Field(ge=1, le=100)] = 3
    """Root histograms that are counted at most where the finest does not fit the memory; 1 is the paper's, more examine more nodes."""
    effort: Annotated[int, Field(ge=1, le=100_000_000)] = 20_000
    """Nodes that are rolled up at most in a lattice too large to hold; then the best found is taken, with a bound on what it misses."""


# A further algorithm is one more model above, one more member of the union and one more entry of the table.
AnyMethod: TypeAlias = SkaldMethod | MondrianMethod | RaydenMethod | CanonMethod | MondrianCofMethod | ClusteringMethod
METHODS: dict[str, type[StrictModel]] = {
    "skald": SkaldMethod,
    "mondrian": MondrianMethod,
    "rayden": RaydenMethod,
    "canon": CanonMethod,
    "mondrian_cof": MondrianCofMethod,
    "clustering": ClusteringMethod,
}
"""The known methods by name."""

Method = Annotated[AnyMethod, Choice(METHODS, "name")]


def full_domain(method: AnyMethod) -> SkaldMethod:
    """Returns the settings of the lattice search: the job's own, or the defaults where it asks for another algorithm."""
    return method if isinstance(method, SkaldMethod) else SkaldMethod()
