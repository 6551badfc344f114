"""The recoding of one node: what it publishes, what becomes of the rest, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from core.columns.node import Node
from core.evaluation.gcp_of_values import held_gcp
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.lattice.search import Found
from core.losses.losses import c_avg, certainty_penalty, dm
from core.privacy.promise import Promise
from core.recoding.recoding import Recoding, recode
from core.units.members import Whose
from core.units.node_tables import table_at
from core.units.sensitive_axes import without_sensitive
from schemas.job.job import Job
from schemas.release.remainder import Remainder
from tasks.counting.coding import Coding
from tasks.lattice.linked_people import Linked


class Local(Remainder):
    """What became of the records that fail at the node, and the nodes of the recoding's later stages."""

    stages: tuple[Node, ...]


class Made(NamedTuple):
    """A recoding and what it costs.

    Attributes:
        recoding: The recoding.
        suppressed: Records that are dropped or masked, and how many of them are ``masked``.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        suppressed_for: Suppressed records by what they lacked, where that was counted.
        local: What became of the records that fail at the node, where they are not simply dropped or masked.
    """

    recoding: Recoding
    suppressed: int
    masked: int
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int]
    local: Local | None = None


def recode_node(
    job: Job,
    coding: Coding,
    promise: Promise,
    found: Found,
    counted: Histogram,
    whose: Whose | None = None,
    linked: Linked | None = None,
) -> Made:
    """Makes the recoding of a node; what is too rare at it is dropped or masked, and what fails though it is large enough is dropped.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        promise: What every class must satisfy.
        found: The node.
        counted: Histogram of a root below it.
        whose: Whose its cells are; None where no person is named.
        linked: What the node publishes where k people share each set of classes.
    """
    chosen, classes = linked.at if linked else table_at(counted, found.node, coding.hierarchies, coding.sensitive, whose)
    rare, failing, units = promise.too_few(classes.units), classes.failing(promise), classes.units
    few = int(chosen.counts[rare].sum())
    if linked:
        chosen, failing, units = replace(chosen, counts=chosen.counts - linked.lost), linked.failing, linked.persons
    masks = job.suppression.masks
    # Who is masked must not follow from sensitive values: what is large enough and fails is left out. A mask that is no safe class itself
    # would give its records away.
    masked = rare if masks and rare.any() and not classes.union(rare).failing(promise)[0] else None
    recoding = recode(chosen, coding.hierarchies, failing, job.intervals, masks=masks, masked=masked)
    kept, records, suppressed = np.flatnonzero(~failing), coding.records, found.loss.suppressed
    groups, counts = [codes[kept] for codes in chosen.groups], chosen.counts[kept]
    ncp = {
        hierarchy.qid: certainty_penalty(hierarchy, domain, level, codes, counts, suppressed)
        for hierarchy, domain, level, codes in zip(coding.hierarchies, coding.domains, chosen.node, groups, strict=True)
    }
    loss = {
        "dm": dm(counts, suppressed, records),
        "dm_star": found.loss.dm_star,
        "dm_all": found.loss.dm_all,
        "gcp": sum(ncp.values()) / len(ncp),
        "precision": float(Lattice.allowed(coding.hierarchies).precision(chosen.node)),
        "c_avg": c_avg(int(units[kept].sum()), len(counts), job.privacy.k),
        "suppression_rate": suppressed / records,
    } | found.measured
    if linked is None and not any(counted.node):
        # Of cells at a coarser root nobody knows which values they hold.
        loss["gcp_held"] = held_gcp(without_sensitive(counted, coding.hierarchies), chosen, failing, coding.domains, coding.hierarchies)
    why = {what: number for what, number in (("k", few), ("linked" if linked else "spread", suppressed - few)) if number}
    return Made(recoding, suppressed, int(recoding.sizes.sum()) - (records - suppressed), loss, ncp, why)
