"""Sensitive columns as further axes of histograms, and classes of records with their sensitive values made of them.

Where a privacy model looks at sensitive columns, these are further axes of every histogram, after the QIDs: never generalised, so that a
class is a run of neighbouring cells. Histograms stay mergeable sufficient statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram
from core.units.class_table import ClassTable
from core.units.unit import Records, source_value_counts


def unchanged(domain: Domain) -> Hierarchy:
    """Returns the hierarchy of an axis that is never generalised: one level, the values themselves."""
    groups = np.arange(domain.size, dtype=np.uint32)
    groups.setflags(write=False)
    labels = pa.concat_arrays([domain.values, pa.nulls(1, domain.values.type)]) if domain.nulls else domain.values
    return Hierarchy(domain.qid, (groups,), (labels,), (None,), (domain.size,))


def classes_of(cells: Histogram, sensitive: Sequence[Domain]) -> tuple[ClassTable, NDArray[np.unsignedinteger[Any]]]:
    """Takes the cells of a node together to classes of records.

    Args:
        cells: The last axes are those of the sensitive columns, in their order.
        sensitive: Their domains.

    Returns:
        The classes, and the group of each QID, shape (classes, QIDs).
    """
    qids, codes = len(cells.packing.sizes) - len(sensitive), cells.codes
    if not sensitive:
        return ClassTable(cells.counts, cells.counts, {}), codes
    new = _first_of(codes, qids)
    owners, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    counts = np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts
    unit = Records(cells.counts)
    spreads = {
        domain.qid: unit.spread(owners, codes[:, axis].astype(np.int64), source_value_counts(domain))
        for axis, domain in enumerate(sensitive, start=qids)
    }
    return ClassTable(counts, counts, spreads), codes[starts, :qids]


def _first_of(codes: NDArray[np.unsignedinteger[Any]], qids: int) -> NDArray[np.bool_]:
    """Returns which cells are the first of their class: no sort, for cells ascend and the sensitive axes come last."""
    new = np.ones(len(codes), np.bool_)
    new[1:] = (codes[1:, :qids] != codes[:-1, :qids]).any(axis=1)
    return new


def without_sensitive(cells: Histogram, hierarchies: Sequence[Hierarchy]) -> Histogram:
    """Returns the histogram of the QIDs alone.

    Args:
        cells: Cells with further axes after the QIDs.
        hierarchies: Of the QIDs.
    """
    node = cells.node[: len(hierarchies)]
    if len(node) == len(cells.node):
        return cells
    packing = packing_of(node, hierarchies)
    starts = np.flatnonzero(_first_of(cells.codes, len(node)))
    words = packing.pack(tuple(cells.codes[starts, : len(node)].T))
    return Histogram(node, packing, words, np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts)
