"""Which levels of a job's hierarchies the lattice is made of: all that may be published, fewer where the job says so, or one node."""

from __future__ import annotations

from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import Job
from schemas.job.method import full_domain
from tasks.counting.coding import Coding


def searched(job: Job, coding: Coding) -> tuple[Hierarchy, ...]:
    """Returns the axes of the lattice that is searched: those of the coding, within ``method.levels``.

    Raises:
        HierarchyError: a hierarchy has no such level, or none within that may be published.
    """
    levels = full_domain(job.method).levels
    if not levels:
        return coding.axes
    bounded = [_within(hierarchy, levels.get(hierarchy.qid)) for hierarchy in coding.hierarchies]
    return (*bounded, *coding.axes[len(bounded) :])


def _within(hierarchy: Hierarchy, levels: list[int] | None) -> Hierarchy:
    if levels is None:
        return hierarchy
    least, most = levels
    if most > hierarchy.top:
        raise HierarchyError.no_level(hierarchy.qid, "method.levels", most, hierarchy.top)
    if most < hierarchy.least:
        raise HierarchyError.tells(hierarchy.qid, "method.levels", most, hierarchy.least)
    return hierarchy.within(least, most)


def named_node(job: Job, coding: Coding) -> Node | None:
    """Returns the node that the job names, with the axes of sensitive columns; None if one is looked for.

    Raises:
        HierarchyError: a hierarchy has no such level, or one that tells what the job hides.
    """
    node = full_domain(job.method).node
    if node is None:
        return None
    for hierarchy, level in zip(coding.hierarchies, node, strict=True):
        if level > hierarchy.top:
            raise HierarchyError.no_level(hierarchy.qid, "method.node", level, hierarchy.top)
        if level < hierarchy.least:
            raise HierarchyError.tells(hierarchy.qid, "method.node", level, hierarchy.least)
    return (*node, *(0,) * len(coding.sensitive))
