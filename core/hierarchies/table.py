"""Hierarchies listed value by value: CSV files and trees.

The CSV format is that of ARX: no header, the value in column 0, then ever coarser labels.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.columns.domains import Domain
from core.hierarchies.levels import DraftLevels, level_of_labels, spellings
from schemas.errors.hierarchies import HierarchyError
from schemas.reading.regular_files import MOST_BYTES
from schemas.registry.hierarchies import CsvHierarchy, HierarchySpec
from schemas.registry.hierarchy_kinds import TreeHierarchy, hierarchy_kind


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Rows of a listed hierarchy: one column per level, values first.

    Attributes:
        where: What an error calls it, such as ``'sex.csv'`` or ``its tree``.
        columns: One string array per level, each of one entry per row, values first; never empty.
    """

    where: str
    columns: tuple[pa.Array, ...]


def read_table(qid: str, spec: CsvHierarchy, folder: Path) -> LabelTable:
    """Read a CSV hierarchy, its path relative to ``folder``; raise HierarchyError if it is faulty."""
    path = str(spec.csv)
    try:
        with spec.text(folder) as file:
            rows = [row for row in csv.reader(file, delimiter=spec.delimiter, strict=True) if row]
    except UnicodeDecodeError:
        # From None, here and below: the errors of codecs and csv quote what they stumbled over.
        raise HierarchyError.unreadable(qid, path, "is not UTF-8 text; save it in that encoding") from None
    except (csv.Error, ValueError):
        raise HierarchyError.unreadable(qid, path, "is not CSV; check its quotes and the delimiter that the job gives") from None
    except FileNotFoundError:
        raise HierarchyError.unreadable(qid, path, "does not exist; its path is taken relative to the job file") from None
    except OSError:
        reason = f"cannot be opened; check that it is a regular file of at most {MOST_BYTES // 1_000_000:,} MB that may be read"
        raise HierarchyError.unreadable(qid, path, reason) from None
    if not rows:
        raise HierarchyError.unreadable(qid, path, "is empty; write a line for each value, from the value to its coarsest label")
    return checked_table(qid, f"the file '{path}'", rows)


def checked_table(qid: str, where: str, rows: Sequence[Sequence[str]]) -> LabelTable:
    """Return rows of labels as a label table; raise HierarchyError if ragged or not nested.

    Each row goes from the value to its coarsest label.
    """
    depth = len(rows[0])
    ragged = sum(len(row) != depth for row in rows)
    if ragged:
        raise HierarchyError.ragged(qid, where, ragged, len(rows), depth)
    columns = tuple(pa.array(column, pa.large_string()) for column in zip(*rows, strict=True))
    encoded = [column.dictionary_encode() for column in columns]
    for level, (fine, coarse) in enumerate(pairwise(encoded)):
        pairs = np.asarray(fine.indices).astype(np.int64) * len(coarse.dictionary) + np.asarray(coarse.indices)
        parents = np.bincount(np.unique(pairs) // len(coarse.dictionary))
        astray = int(np.count_nonzero(parents > 1))
        if astray:
            raise HierarchyError.not_nested(qid, level, astray) if level else HierarchyError.ambiguous(qid, where, astray)
    return LabelTable(where, columns)


def csv_levels(qid: str, domain: Domain, spec: CsvHierarchy, folder: Path) -> DraftLevels:
    """Build the levels of a domain from a CSV hierarchy file; raise HierarchyError if faulty."""
    return table_levels(qid, domain, read_table(qid, spec, folder))


def table_levels(qid: str, domain: Domain, table: LabelTable) -> DraftLevels:
    """Build the levels of a domain from a label table; raise HierarchyError for unlisted values.

    A last column with a single label is the ``*`` of the hierarchy.
    """
    rows = listed_rows(qid, domain.values, table)
    inner = table.columns[1:]
    if inner and len(inner[-1].unique()) == 1:
        # Else the last but one level would be one group as well, and a search would count a whole face of the lattice twice.
        inner = inner[:-1]
    return DraftLevels(tuple(level_of_labels(column.take(rows)) for column in inner), len(domain.values))


def null_route(qid: str, spec: HierarchySpec, folder: Path) -> tuple[str, ...]:
    """Return the labels of a null's groups, finest first, or none; raise HierarchyError if unlisted."""
    leaf, read = getattr(spec, "nulls", None), hierarchy_kind(spec).table
    if leaf is None or read is None:
        return ()
    table: LabelTable = read(qid, spec, folder)
    row = pc.index(table.columns[0], pa.scalar(leaf, table.columns[0].type)).as_py()
    if row < 0:
        raise HierarchyError.no_null_leaf(qid, table.where)
    return tuple(column[row].as_py() for column in table.columns[1:])


def listed_rows(qid: str, values: pa.Array, table: LabelTable) -> pa.Array:
    """Return the number of the table row for each value; raise HierarchyError for unlisted values."""
    try:
        texts = spellings(values)
    except pa.ArrowInvalid:
        # The one thing that writing can stumble over; integers, floats and dates always have a text.
        raise HierarchyError.unknown_zone(qid, getattr(values.type, "tz", None) or "") from None
    if not texts:
        remedy = "convert it to text in the source, or leave it out of the quasi-identifiers"
        raise HierarchyError.wrong_type(qid, "listed values", "text, numbers, booleans or dates", str(values.type), remedy)
    rows = pc.coalesce(*(pc.index_in(text.cast(pa.large_string()), value_set=table.columns[0]) for text in texts))
    if rows.null_count:
        raise HierarchyError.not_covered(qid, table.where, rows.null_count, len(values))
    return rows


def tree_table(qid: str, spec: TreeHierarchy, _folder: Path | None = None) -> LabelTable:
    """Return a tree's label table, a row per leaf; raise HierarchyError for a name with two parents.

    A group is its complete path. Two groups of one name would be published alike, so a name under two parents is refused.
    """
    return checked_table(qid, "its tree", spec.routes())


def tree_levels(qid: str, domain: Domain, spec: TreeHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Build the levels of a domain from a tree hierarchy; raise HierarchyError for unlisted values."""
    return table_levels(qid, domain, tree_table(qid, spec))
