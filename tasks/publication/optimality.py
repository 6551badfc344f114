"""How far a search came, in words: with numbers for whoever ran it, and without them for whoever gets the release."""

from __future__ import annotations

from math import ceil

from schemas.errors.base import counted
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.release.terms import OWN_NODE
from tasks.lattice.recodings import Outcome


def optimality(outcome: Outcome) -> str:
    """Returns ``certified``, or how many nodes memory or effort left unexamined, and how much better one of them can be."""
    unexamined, roots = outcome.unexamined, outcome.roots
    if outcome.linked:
        return f"best of {counted(outcome.linked, 'node')} tried, a step at a time from the best for single records; others could be better"
    if not unexamined:
        return "certified"
    if outcome.bound is not None:
        return _reached(outcome)
    return (
        f"best of the nodes above {counted(len(roots), 'root')}; {counted(unexamined, 'finer node')} could be better and lie above none: "
        "raise memory or method.roots to examine them"
    )


def reported_optimality(outcome: Outcome) -> str:
    """Returns the same without numbers: they follow from records that no label tells of."""
    if outcome.linked:
        return "best of the nodes tried, a step at a time from the best for single records; others could be better"
    if not outcome.unexamined:
        return "certified"
    if outcome.bound is not None and (outcome.whole or not any(outcome.root)):
        return "best of the nodes counted; others could be better: raise method.effort"
    if outcome.bound is not None:
        return "best of the nodes counted; others could be better: raise memory or method.effort"
    return "best of the nodes above its roots; finer ones could be better and lie above none: raise memory or method.roots to examine them"


def taken(job: Job) -> str | None:
    """Returns whose node it is where none was looked for."""
    first = " before its rounds" if job.suppression.rounds else ""
    if job.replay is not None:
        return f"replay of {job.replay.name}{first}, and no other choice was examined"
    return f"{OWN_NODE}{first}, and no other choice was examined" if full_domain(job.method).node is not None else None


def _reached(outcome: Outcome) -> str:
    """Returns how far branch and bound came, the gap rounded up."""
    least = f"at most {ceil(outcome.gap * 1000) / 10:,} % above " if outcome.gap is not None else "at an unknown distance from "
    left = counted(outcome.unexamined, "node")
    if outcome.whole or not any(outcome.root):
        return f"best of {counted(outcome.evaluated, 'node')} counted, {least}the optimum; {left} could be better: raise method.effort"
    if outcome.gap == 0:
        return f"best of the nodes above 1 root; {left} could be better and are not above it: raise memory"
    return (
        f"best of {counted(outcome.evaluated, 'node')} counted, {least}the best above its root; {left} could be better: "
        "raise memory or method.effort"
    )
