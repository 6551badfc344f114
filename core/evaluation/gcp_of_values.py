"""GCP of a full-domain release as if every class published the values that it holds, as methods of local recoding count it too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.clustering.criteria import dense
from core.columns.coding import places_among
from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.recoding.classes import Sets
from core.recoding.labels import held_penalties
from core.recoding.recoding import SUPPRESSED


def held_gcp(
    cells: Histogram, chosen: Histogram, failing: NDArray[np.bool_], domains: Sequence[Domain], hierarchies: Sequence[Hierarchy]
) -> float:
    """Returns the mean over records and QIDs of the penalty of their class's own values, 1 for suppressed records.

    Args:
        cells: Of the QIDs at the finest node.
        chosen: The same at the released node.
        failing: Shape (cells of ``chosen``,), which of them are suppressed.
        domains: One per QID.
        hierarchies: One per QID.
    """
    groups = [hierarchy.groups[level][codes] for hierarchy, level, codes in zip(hierarchies, chosen.node, cells.groups, strict=True)]
    numbers = places_among(chosen.words, chosen.packing.pack(groups), chosen.packing.product)
    sets = Sets.of(dense(np.where(failing[numbers], SUPPRESSED, numbers).astype(np.int32)))
    suppressed, sizes = int(chosen.counts[failing].sum()), chosen.counts[~failing]
    lost = sum(float(np.dot(held_penalties(codes, sets, domain), sizes)) for codes, domain in zip(cells.groups, domains, strict=True))
    return (lost / len(domains) + suppressed) / int(chosen.counts.sum())
