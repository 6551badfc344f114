"""GCP of a full-domain release as if every class published the values that it holds, as methods of local recoding count it too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.columns.data_parallel import each_in_parallel, parts_in_parallel
from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import positions_of_finer_cells
from core.histograms.histogram import Histogram
from core.recoding.classes import Sets
from core.recoding.labels import penalties_of_members
from core.recoding.recoding import SUPPRESSED


def gcp_of_class_values(
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
    # Every class has cells, so that those that are left are numbered without gaps.
    classes = np.where(failing, SUPPRESSED, np.cumsum(~failing) - 1).astype(np.int32)

    def numbered(rows: slice) -> NDArray[np.int32]:
        mine: NDArray[np.int32] = classes[positions_of_finer_cells(chosen, cells.node, cells.codes[rows], hierarchies)]
        return mine

    sets = Sets.of(np.concatenate(parts_in_parallel(numbered, cells.cells)))

    suppressed, sizes = int(chosen.counts[failing].sum()), chosen.counts[~failing]
    held = each_in_parallel(lambda qid: penalties_of_members(qid[0], sets, qid[1]), list(zip(cells.groups, domains, strict=True)))
    lost = sum(float(np.dot(penalty, sizes)) for penalty in held)
    return (lost / len(domains) + suppressed) / int(chosen.counts.sum())
