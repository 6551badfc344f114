"""The recoding of one node: what it publishes, what becomes of the rest, and what that costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.columns.node import Node
from core.histograms.histogram import Histogram
from core.histograms.rollups import roll_up
from core.lattice.lattice import Lattice
from core.lattice.search import Found
from core.losses.losses import c_avg, certainty_penalty, dm
from core.privacy.class_tables import classes_of, without_sensitive
from core.privacy.models import PrivacyModel
from core.recoding.recoding import Recoding, recode
from schemas.job.job import Job
from schemas.release.manifest import Remainder
from tasks.counting.coding import Coding


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


def recode_node(job: Job, coding: Coding, model: PrivacyModel, found: Found, counted: Histogram) -> Made:
    """Makes the recoding of a node; what fails at it is dropped or masked.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        model: What every class must satisfy.
        found: The node.
        counted: Histogram of a root below it.
    """
    cells = roll_up(counted, found.node, coding.axes)
    chosen, spreads = without_sensitive(cells, coding.hierarchies), classes_of(cells, coding.sensitive).spreads
    recoding = recode(chosen, coding.hierarchies, model, job.suppression.treatment, job.intervals, spreads)
    kept = np.flatnonzero(~model.fails(chosen.counts, spreads))
    groups, counts = [codes[kept] for codes in chosen.groups], chosen.counts[kept]
    lost = np.delete(chosen.counts, kept)
    records, suppressed, few = coding.records, found.loss.suppressed, int(lost[lost < job.privacy.k].sum())
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
        "c_avg": c_avg(records - suppressed, len(counts), job.privacy.k),
        "suppression_rate": suppressed / records,
    } | found.measured
    why = {what: number for what, number in (("k", few), ("spread", suppressed - few)) if number}
    return Made(recoding, suppressed, int(recoding.sizes.sum()) - (records - suppressed), loss, ncp, why)
