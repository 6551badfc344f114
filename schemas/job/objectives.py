"""Registry of the objectives that the lattice search can minimise, with code and texts."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.reading.registry import Code, Loadable, Registry


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
    code: Loadable
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
