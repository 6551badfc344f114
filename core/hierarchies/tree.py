"""Hierarchies written in the job itself, as nested groups that end in lists of values."""

from __future__ import annotations

from pathlib import Path

from core.columns.domains import Domain
from core.hierarchies.levels import DraftLevels
from core.hierarchies.table import LabelTable, checked_table, table_levels
from schemas.hierarchies.tree import TreeHierarchy


def tree_table(qid: str, spec: TreeHierarchy, _folder: Path | None = None) -> LabelTable:
    """Lists the leaves of a tree, each with the labels of its ancestors from its parent to its root.

    A group is its whole path. Two groups of one name would be published alike, so a name under two parents is refused.

    Raises:
        HierarchyError: Leaves lie at different depths, a value has two places, or a label lies under two labels.
    """
    return checked_table(qid, "its tree", spec.routes())


def tree_levels(qid: str, domain: Domain, spec: TreeHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Looks the domain up in a tree.

    Raises:
        HierarchyError: As for :func:`tree_table` and :func:`core.hierarchies.table.table_levels`.
    """
    return table_levels(qid, domain, tree_table(qid, spec))
