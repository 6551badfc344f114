"""The Pareto front of lattice nodes in information loss, suppression and re-identification risk.

For every limit of suppression in ``SHARES`` the node of least GCP is searched exactly; all other nodes that these searches counted are
candidates as well. So the best node of each limit is an optimum, and the nodes between are the best that were counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.lattice.search import Search

SHARES = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Of the records: how many may be suppressed."""
MOST_COUNTED = 150
"""Nodes whose classes are counted for their risk."""
MOST_SHOWN = 24
SURELY = 1e-12


@dataclass(frozen=True)
class ParetoNode:
    """A node that no other one beats in all of loss, suppression and risk.

    Attributes:
        node: Level of each QID.
        gcp: Mean penalty of all records, 1 for a suppressed one.
        suppressed: Share of the records in classes that fail.
        risk: Mean over the released of 1 / size of their class, what k counts: that of a prosecutor.
        optimal: Whether no node that suppresses as little has a lower GCP.
        chosen: Whether a search within what the job itself allows to suppress ends in it.
    """

    node: Node
    gcp: float
    suppressed: float
    risk: float
    optimal: bool
    chosen: bool = False


def find_pareto_nodes(
    make_search: Callable[[int], Search], record_count: int, qid_count: int, allowed: int | None = None
) -> list[ParetoNode]:
    """Return some nodes of the Pareto front in loss, suppression and risk, in order of GCP.

    Args:
        make_search: Makes the search for the least GCP, given how many records may be suppressed.
        record_count: How many there are.
        qid_count: How many axes of the lattice are QIDs; those of sensitive columns come after them.
        allowed: How many records the job itself allows to suppress, which is searched too.
    """
    seen: dict[Node, tuple[float, int]] = {}
    least: dict[int, float] = {}
    search, chosen = None, None
    limits = [*(floor(share * record_count) for share in SHARES), *(() if allowed is None else (allowed,))]
    for most in limits:
        search = make_search(most)
        search.most_priced = max(limits)
        if found := search.run():
            least[most] = float(search.values[found.node])
            chosen = found.node if most == allowed else chosen
        seen |= {node: (float(value), search.losses[node].suppressed) for node, value in search.values.items() if value < inf}
    if search is None or not seen:
        return []
    within = {node: each for node, each in seen.items() if each[1] <= max(limits)}
    # Of nodes that cost the same a search tells one; another of them may be of less risk, and is as good.
    best = {
        node
        for node, (value, suppressed) in within.items()
        if any(suppressed <= most and value <= lowest * (1 + SURELY) for most, lowest in least.items())
    }
    counted = sorted(within, key=lambda node: (node not in best, within[node], node))[:MOST_COUNTED]
    figures = [(within[node][0] / (record_count * qid_count), within[node][1] / record_count, search.risk(node)) for node in counted]
    kept = np.flatnonzero(_unbeaten(np.array(figures)))
    nodes = [
        ParetoNode(counted[place][:qid_count], *figures[place], counted[place] in best, counted[place] == chosen) for place in kept.tolist()
    ]
    return _thinned(sorted(nodes, key=lambda one: (one.gcp, one.suppressed, one.node)))


def _unbeaten(figures: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the rows that no other row dominates, shape (rows,).

    A row dominates another if it is nowhere higher and somewhere lower; of equal rows the first stays.
    """
    kept = np.ones(len(figures), np.bool_)
    for row, mine in enumerate(figures):
        nowhere_higher = (figures <= mine + SURELY).all(axis=1)
        lower = (figures < mine - SURELY).any(axis=1)
        equal = ~lower & nowhere_higher
        kept[row] = not (nowhere_higher & lower).any() and not equal[:row].any()
    return kept


def _thinned(nodes: Sequence[ParetoNode]) -> list[ParetoNode]:
    """Return all optimal nodes and, up to ``MOST_SHOWN`` nodes in all, others evenly spread."""
    others = [one for one in nodes if not one.optimal]
    room = max(MOST_SHOWN - (len(nodes) - len(others)), 0)
    places = set(np.linspace(0, len(others) - 1, room).round().astype(int).tolist())
    shown = {one.node for place, one in enumerate(others) if place in places}
    return [one for one in nodes if one.optimal or one.node in shown]
