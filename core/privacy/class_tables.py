"""Classes with their sensitive values, from cells that tell apart the sensitive values too.

Where a privacy model looks at sensitive columns, these are further axes of every histogram, after the QIDs: never generalised, so that a
class is a run of neighbouring cells. Histograms stay mergeable sufficient statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram
from core.privacy.models import Spread


def unchanged(domain: Domain) -> Hierarchy:
    """Returns the hierarchy of an axis that is never generalised: one level, the values themselves."""
    groups = np.arange(domain.size, dtype=np.uint32)
    groups.setflags(write=False)
    labels = pa.concat_arrays([domain.values, pa.nulls(1, domain.values.type)]) if domain.nulls else domain.values
    return Hierarchy(domain.qid, (groups,), (labels,), (None,), (domain.size,))


@dataclass(frozen=True)
class Classes:
    """The classes of a node.

    Attributes:
        counts: Shape (classes,), int64.
        spreads: By sensitive column.
        codes: Shape (classes, QIDs): the group of each QID.
    """

    counts: NDArray[np.int64]
    spreads: Mapping[str, Spread]
    codes: NDArray[np.unsignedinteger]


def classes_of(cells: Histogram, sensitive: Sequence[Domain]) -> Classes:
    """Takes the cells of a node together to classes.

    Args:
        cells: The last axes are those of the sensitive columns, in their order.
        sensitive: Their domains.
    """
    qids = len(cells.packing.sizes) - len(sensitive)
    codes = cells.codes
    if not sensitive:
        return Classes(cells.counts, {}, codes)
    new = np.ones(len(codes), np.bool_)
    # No sort: cells ascend and the sensitive axes come last, so the cells of a class are neighbours.
    new[1:] = (codes[1:, :qids] != codes[:-1, :qids]).any(axis=1)
    owners, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    counts = np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts
    spreads = {
        domain.qid: spread_of(owners, codes[:, qids + number], cells.counts, _whole(domain)) for number, domain in enumerate(sensitive)
    }
    return Classes(counts, spreads, codes[starts, :qids])


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
    new = np.ones(cells.cells, np.bool_)
    new[1:] = (cells.codes[1:, : len(node)] != cells.codes[:-1, : len(node)]).any(axis=1)
    starts = np.flatnonzero(new)
    words = packing.pack(tuple(cells.codes[starts, : len(node)].T))
    return Histogram(node, packing, words, np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts)


def _whole(domain: Domain) -> NDArray[np.int64]:
    return np.append(domain.counts, domain.nulls) if domain.nulls else domain.counts


def spread_of(
    owners: NDArray[np.int64], values: NDArray[np.unsignedinteger], counts: NDArray[np.int64], whole: NDArray[np.int64]
) -> Spread:
    """Returns how sensitive values are spread over classes.

    Args:
        owners: Shape (cells,), the class of each cell.
        values: Shape (cells,), its code in the column's domain.
        counts: Shape (cells,), its records.
        whole: Records of the whole source by code.
    """
    # Where two columns are sensitive, a class has a value in several cells: they are one entry.
    key = owners * len(whole) + values
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(key) else np.empty(0, np.intp)
    found = key[order][starts]
    summed = np.add.reduceat(counts[order], starts) if len(starts) else counts
    return Spread(found // len(whole), found % len(whole), summed, whole)
