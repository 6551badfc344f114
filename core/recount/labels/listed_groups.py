"""Hierarchies that list their values, in a CSV file or as a tree in the job, as the recount reads them: one row of text per value."""

from __future__ import annotations

import csv
from pathlib import Path

from schemas.errors.hierarchies import HierarchyError
from schemas.hierarchies.hierarchy import CsvHierarchy
from schemas.hierarchies.tree import TreeHierarchy

Row = tuple[str, ...]
"""A value as text, then its groups from the finest to the coarsest."""


def rows_of_lists(name: str, spec: CsvHierarchy | TreeHierarchy, folder: Path) -> list[Row]:
    """Returns the rows of a listed hierarchy, all of one length.

    Args:
        name: Of the column, for a message.
        spec: The hierarchy.
        folder: Where the job file lies; a CSV file is looked for from there.

    Raises:
        HierarchyError: the file is not what it was when the release was made: gone, unreadable, or of rows that differ in length.
    """
    if isinstance(spec, TreeHierarchy):
        return list(spec.routes())
    path = str(spec.csv)
    try:
        with spec.text(folder) as file:
            # Without strict, a quote that is never closed swallows the lines after it and no error is raised.
            rows = [tuple(row) for row in csv.reader(file, delimiter=spec.delimiter, strict=True) if row]
    except (OSError, ValueError, csv.Error):
        raise HierarchyError.unreadable(name, path, "cannot be read as CSV in UTF-8; put it back as it was") from None
    ragged = sum(len(row) != len(rows[0]) for row in rows)
    if ragged:
        raise HierarchyError.ragged(name, f"the file '{path}'", ragged, len(rows), len(rows[0]))
    return rows
