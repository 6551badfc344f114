"""Losses of recodings with several nodes and suppressed cells, value by value.

A suppressed cell costs as much as a suppressed record does in the same QID: NCP 1, all bits. ``suppressed`` are records that are withheld
in every QID, dropped or masked. Records that are published with some cells suppressed, or at the levels of a further pass, are not among
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.lattice.objectives import WEIGHTED, Pricing, objective_of
from core.local_suppression.recoding import RecodedPart
from core.units.losses import c_avg, dm, group_penalties, sum_of_squares

Floats = NDArray[np.float64]
Price = Callable[[Hierarchy, Domain, int], Floats]
"""What a record of each group at a level costs in one QID, shape (groups,)."""


@dataclass(frozen=True, eq=False)
class SuppressionCosts:
    """Counts of suppressed records and cells, and the losses of a recoding.

    Attributes:
        suppressed: Records that are dropped or masked.
        masked: How many of them are published.
        records_with_suppressed_cells: Other records with a suppressed cell.
        suppressed_cells: Suppressed cells, those of masked records included.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, in job order.
    """

    suppressed: int
    masked: int
    records_with_suppressed_cells: int
    suppressed_cells: int
    loss: dict[str, int | float]
    ncp: list[float]


def costs_of(
    parts: Sequence[RecodedPart],
    classes: NDArray[np.int32],
    domains: Sequence[Domain],
    hierarchies: Sequence[Hierarchy],
    k: int,
    unpublished: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
) -> SuppressionCosts:
    """Return counts of suppressed records and cells, and the losses, of a locally transformed release.

    Args:
        parts: The node of all, then further passes, then records with suppressed cells.
        classes: Shape (cells of all parts,), the class of each.
        domains: One per QID, of the source.
        hierarchies: One per QID.
        k: Fewest persons or records of a class.
        unpublished: Shape (cells,), records of the cells that are in no part.
        persons: Shape (classes,), where k counts them.
    """
    records, dropped = domains[0].records, int(unpublished.sum())
    counts = np.concatenate([part.cells.counts for part in parts])
    # What the node of all publishes is not suppressed, even if all of it is withheld by its levels.
    first = np.zeros(parts[0].cells.cells, np.bool_)
    masks = np.concatenate([first, *(part.withheld(hierarchies).all(axis=1) for part in parts[1:])])
    some = np.concatenate([part.suppressed_cells.any(axis=1) for part in parts]) & ~masks
    stars = np.concatenate([part.suppressed_cells.sum(axis=1) for part in parts])
    masked = int(counts[masks].sum())
    suppressed = masked + dropped
    sizes = np.bincount(classes[~masks], weights=counts[~masks]).astype(np.int64)
    # A class that holds nothing but masked records is the mask, which is charged as suppressed.
    kept = np.flatnonzero(sizes)
    sizes, units = sizes[kept], records - suppressed if persons is None else int(persons[kept].sum())
    charged = [part_charge(parts, qid, group_penalties, 1.0, domains, hierarchies) for qid in range(len(hierarchies))]
    ncp = [(charge + dropped) / records for charge in charged]
    loss: dict[str, int | float] = {
        "dm": dm(sizes, suppressed, records),
        "dm_star": sum_of_squares(sizes) + suppressed * suppressed,
        "dm_all": sum_of_squares(sizes) + masked * masked + sum_of_squares(unpublished),
        "gcp": sum(ncp) / len(ncp),
        "precision": _precision(parts, masks, hierarchies),
        "c_avg": c_avg(units, len(sizes), k),
        "suppression_rate": suppressed / records,
    }
    return SuppressionCosts(suppressed, masked, int(counts[some].sum()), int(np.dot(stars, counts)), loss, ncp)


def part_charge(
    parts: Sequence[RecodedPart], qid: int, price: Price, star: float, domains: Sequence[Domain], hierarchies: Sequence[Hierarchy]
) -> float:
    """Return the summed loss of the published records in one QID; a suppressed cell costs ``star``."""
    total = 0.0
    for part in parts:
        prices = price(hierarchies[qid], domains[qid], part.cells.node[qid])
        total += float(np.dot(np.where(part.suppressed_cells[:, qid], star, prices[part.cells.codes[:, qid]]), part.cells.counts))
    return total


def objective_value(
    objective: str, parts: Sequence[RecodedPart], domains: Sequence[Domain], hierarchies: Sequence[Hierarchy], dropped_records: int,
    weights: Sequence[float] = (),
) -> dict[str, float]:  # fmt: skip
    """Return ``{objective: its loss per record and QID}``; empty if every release reports that loss."""
    records = domains[0].records
    priced = objective_of(objective)
    if not isinstance(priced, Pricing) or priced.groups is None or not (priced.is_reported or weights):
        return {}
    total = 0.0
    for qid, (domain, weight) in enumerate(zip(domains, weights or (1.0,) * len(domains), strict=True)):
        star = priced.withheld(domain)
        cost = part_charge(parts, qid, priced.groups, star, domains, hierarchies) + dropped_records * star
        if priced.relative:
            values = np.append(domain.counts, domain.nulls)[: domain.size]
            cost -= float(np.dot(values, priced.groups(hierarchies[qid], domain, 0)))
        total += weight * cost
    return {WEIGHTED if weights else objective: total / (records * (sum(weights) if weights else len(domains)))}


def _precision(parts: Sequence[RecodedPart], masks: NDArray[np.bool_], hierarchies: Sequence[Hierarchy]) -> float:
    """Return Sweeney's precision of the records that are not suppressed: 1 − mean(level / last level).

    A suppressed cell counts as the last level.
    """
    lost, records, start = 0.0, 0, 0
    for part in parts:
        kept = ~masks[start : start + part.cells.cells]
        start += part.cells.cells
        shares = np.array([level / max(hierarchy.top, 1) for hierarchy, level in zip(hierarchies, part.cells.node, strict=True)])
        counts = part.cells.counts[kept]
        lost += float(np.dot(np.where(part.suppressed_cells[kept], 1.0, shares).sum(axis=1), counts))
        records += int(counts.sum())
    return 1 - lost / (records * len(hierarchies)) if records else 0.0
