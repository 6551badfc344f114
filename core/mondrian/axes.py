"""The order in which Mondrian cuts the values of a QID (papers/distributed-mondrian.txt, 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import as_numbers
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.table import LabelTable, listed_rows
from core.mondrian.partition import Axis
from schemas.hierarchies.kinds import entry_of
from schemas.job.columns import QuasiIdentifier


def axis_of(qid: QuasiIdentifier, domain: Domain, hierarchy: Hierarchy, folder: Path) -> Axis:
    """Returns the axis of a QID: numbers and dates ascending, other values in the order of the leaves of their hierarchy.

    Args:
        qid: The QID as the job describes it.
        domain: Its observed values.
        hierarchy: Its hierarchy over them.
        folder: Where the job file lies; paths of CSV hierarchies are relative to it.

    Raises:
        HierarchyError: The hierarchy's file cannot be read.
    """
    numbers = as_numbers(domain.values)
    order = np.arange(len(domain.values)) if numbers is not None else _leaves(qid, domain, hierarchy, folder)
    ranks = np.arange(domain.size)
    # A null is no part of the order and keeps the last rank.
    ranks[order] = np.arange(len(order))
    return Axis(qid.name, ranks, numbers, domain.nulls > 0)


def _leaves(qid: QuasiIdentifier, domain: Domain, hierarchy: Hierarchy, folder: Path) -> NDArray[np.intp]:
    """Returns the positions of the values in the order of a walk through the hierarchy, siblings as they are listed."""
    if table := entry_of(qid.hierarchy).table:
        keys = _listed(qid.name, domain, table(qid.name, qid.hierarchy, folder))
    else:
        # Groups are numbered by first appearance, so that the values keep their order as far as groups allow.
        keys = [groups[: len(domain.values)] for groups in hierarchy.groups]
    # The last key, which is the coarsest level, sorts first: a walk from the root.
    return np.lexsort(keys)


def _listed(qid: str, domain: Domain, table: LabelTable) -> list[NDArray[Any]]:
    """Returns, level by level, the row at which the group of each value is listed first."""
    rows = listed_rows(qid, domain.values, table)
    keys = []
    for column in table.columns:
        coded = column.dictionary_encode()
        _, firsts = np.unique(np.asarray(coded.indices), return_index=True)
        keys.append(firsts[np.asarray(coded.take(pa.array(rows)).indices)])
    return keys
