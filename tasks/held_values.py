"""GCP of a full-domain release as if every class published the values that it holds, as methods of local recoding count it too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.acceptance import dense
from core.class_labels import Sets, held_penalties
from core.coding import single_word
from core.lattice import Node
from core.recoding import SUPPRESSED
from core.rollups import roll_up
from core.sensitive import classes_of, without_sensitive
from schemas.job import Job
from tasks.artifacts import Artifact, Store
from tasks.coding import Coding
from tasks.histograms import load_histogram
from tasks.mondrian import bytes_of
from tasks.recodings import privacy_model


def held_gcp(job: Job, coding: Coding, histogram: Artifact, node: Node, store: Store) -> float | None:
    """Returns Σ over records and QIDs of the penalty of their class's own values over their number, 1 for suppressed records.

    Args:
        job: Gives the privacy models and the memory.
        coding: Of the run.
        histogram: Of the whole source at the finest node.
        node: Level of each QID in the release.
        store: Has the histogram.

    Returns:
        None where the cells do not fit the job's memory.
    """
    if bytes_of(coding, histogram.rows) > job.memory:
        return None
    counted = load_histogram(histogram, coding, coding.finest, store)
    rolled = roll_up(counted, (*node, *(0 for _ in coding.sensitive)), coding.axes)
    chosen = without_sensitive(rolled, coding.hierarchies)
    failing = privacy_model(job, coding).fails(chosen.counts, classes_of(rolled, coding.sensitive).spreads)
    cells = without_sensitive(counted, coding.hierarchies)
    columns = list(cells.groups)
    groups = [hierarchy.groups[level][codes] for hierarchy, level, codes in zip(coding.hierarchies, node, columns, strict=True)]
    # The cells of the node are ascending, so that the number of a class among them is its place.
    numbers: NDArray[np.int64] = np.unique(single_word(chosen.packing.pack(groups)), return_inverse=True)[1]
    sets = Sets.of(dense(np.where(failing[numbers], SUPPRESSED, numbers).astype(np.int32)))
    suppressed, sizes = int(chosen.counts[failing].sum()), chosen.counts[~failing]
    lost = sum(float(np.dot(held_penalties(codes, sets, domain), sizes)) for codes, domain in zip(columns, coding.domains, strict=True))
    return (lost / len(coding.domains) + suppressed) / coding.records
