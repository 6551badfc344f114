"""Where branch and bound gets good nodes from before it has proved them: greedy walks through the lattice, deterministic ones.

A dive goes from a passing node to finer ones, a climb from a failing node to coarser ones, one level of one QID at a time and the most
promising first; what a QID promises is known from when it was last looked at, and only the most promising is looked at again (as lazy
greedy maximisation does; Minoux 1978). So a walk of forty steps among fifteen QIDs costs about a hundred roll-ups and not six hundred.
Then the best node is spoilt, by one QID made coarser, and dived from anew (ruin and recreate; Schrimpf et al. 2000).
Scores are quotients and square roots, which every machine rounds alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, sqrt

from core.lattice.bounded_evaluations import Evaluations, NodeRollUp, Steps

# Fixed walks and no random restarts: the node that is found must not depend on a seed.
WALKS = (("dive", 0.5), ("climb", 1.0), ("climb", 0.5), ("dive", 1.0))
TINY = 1e-6


def changed(steps: Steps, qid: int, step: int) -> Steps:
    """Returns steps with that of one QID replaced."""
    return (*steps[:qid], step, *steps[qid + 1 :])


def hunt(nodes: Evaluations) -> Iterator[None]:
    """Looks for better and better nodes; yields after each walk, ends where no walk betters the best.

    Raises:
        SpentError: the effort is spent.
    """
    dive(nodes, nodes.top)
    yield
    for walk, weight in WALKS:
        dive(nodes, nodes.top, weight=weight) if walk == "dive" else dive(nodes, climb(nodes, nodes.bottom, weight))
        yield
    bettered = True
    while bettered:
        bettered = False
        for spoilt, qid in list(_spoilt(nodes)):
            before = nodes.best
            for weight in (0.0, 1.0):
                dive(nodes, dive(nodes, spoilt, qid, weight))
                yield
            if nodes.best != before:
                bettered = True
                break


def _spoilt(nodes: Evaluations) -> Iterator[tuple[Steps, int]]:
    """Makes one QID of the best node coarser, by one step first."""
    for more in range(1, max(nodes.top) + 1):
        for qid, step in enumerate(nodes.steps):
            if step + more <= nodes.top[qid]:
                yield changed(nodes.steps, qid, step + more), qid


def dive(nodes: Evaluations, start: Steps, frozen: int = -1, weight: float = 0.0) -> Steps:
    """Goes from a passing node to finer passing ones of lower rank, as far as there are any.

    Args:
        nodes: The lattice.
        start: A node that passes.
        frozen: A QID whose level stays.
        weight: How much a step counts for suppressing less, against lowering the value: 0 not at all, 1 as a quotient of the two.

    Raises:
        SpentError: the effort is spent.
    """
    current, seen = start, nodes.see(start)
    gains = {qid: inf for qid, step in enumerate(start) if step and qid != frozen}
    while gains:
        # The QID itself breaks ties, else the order in which gains were put in would decide.
        qid = max(gains, key=lambda qid: (gains[qid], -qid))
        finer = changed(current, qid, current[qid] - 1)
        found = nodes.see(finer)
        # What fails, fails at every finer node; what is no gain now may be one later, but is left for the next walk.
        if found.least > nodes.most_suppressed or nodes.rank(finer, found) >= nodes.rank(current, seen):
            del gains[qid]
            continue
        gains[qid] = _gain(nodes, seen, found, weight)
        if gains[qid] >= max(gains.values()):
            current, seen = finer, found
            if not current[qid]:
                del gains[qid]
    return current


def _gain(nodes: Evaluations, seen: NodeRollUp, found: NodeRollUp, weight: float) -> float:
    if seen.value == inf:
        return inf
    price = max(found.least - seen.least, 0) / (nodes.most_suppressed + 1) + 0.001
    return ((seen.value - found.value) / (found.value + TINY) + TINY**2) / _power(price, weight)


def climb(nodes: Evaluations, start: Steps, weight: float) -> Steps:
    """Goes from a node to coarser ones, cheap steps first (or those that also save many records, by ``weight``), until one passes.

    Raises:
        SpentError: the effort is spent.
    """
    current, seen = start, nodes.see(start)
    costs = {qid: 0.0 for qid, step in enumerate(start) if step < nodes.top[qid]}
    while seen.least > nodes.most_suppressed:
        qid = min(costs, key=lambda qid: (costs[qid], -qid))
        coarser = changed(current, qid, current[qid] + 1)
        found = nodes.see(coarser)
        # A model that looks at sensitive values may ask a coarser node to suppress more.
        saved = max(seen.least - found.least, 0) / (nodes.most_suppressed + 1) + TINY
        before = nodes.cost(current)
        costs[qid] = ((nodes.cost(coarser) - before) / (before + TINY) + TINY**2) / _power(saved, weight)
        if costs[qid] <= min(costs.values()):
            current, seen = coarser, found
            if current[qid] == nodes.top[qid]:
                del costs[qid]
    return current


def _power(base: float, weight: float) -> float:
    # Not base**weight: pow differs in the last bit between C libraries, a square root does not.
    return {0.0: 1.0, 0.5: sqrt(base), 1.0: base}[weight]
