"""How the QIDs of a run are cut, worked out once for all fragments."""

from __future__ import annotations

from core.mondrian.axes import Order, axis_of
from core.mondrian.ranks import CutAxes
from schemas.job.job import Job
from tasks.counting.coding import Coding


def axes_of(job: Job, coding: Coding, order: Order = "listed") -> CutAxes:
    """Returns how each QID is cut.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        order: Of siblings, where it is free.

    Raises:
        HierarchyError: the hierarchy's file cannot be read.
    """
    qids = job.columns.quasi_identifiers
    of_qids = zip(qids, coding.domains, coding.hierarchies, strict=True)
    return coding.once(("axes", order), lambda: CutAxes.of(axis_of(*of, job.folder, order) for of in of_qids))
