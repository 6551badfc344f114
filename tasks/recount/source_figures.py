"""The figures of a manifest that the source bears out: levels of the labels, sizes of its classes as it is, how many persons it has."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.recount.labels.group_levels import group_levels
from schemas.errors.base import listed
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import Job
from schemas.release.manifest import MASK, Manifest, published_columns
from tasks.recount.original import Original
from tasks.recount.published_labels import Labels, qid_labels
from tasks.recount.reading import as_given, fetched
from tasks.recount.rows import RowsHere
from tasks.recount.sides import Sides, sides_of
from tasks.release.files import Csv, relation_of
from tasks.store.database import connect, quote


@dataclass(frozen=True)
class SourceFigures:
    """What was counted in the source.

    Attributes:
        faults: What the manifest says otherwise.
        sizes: Number of classes of the source as it is by records.
        persons: How many persons it has; None where the job names none.
    """

    faults: tuple[str, ...] = ()
    sizes: Mapping[int, int] = field(default_factory=dict)
    persons: int | None = None


def source_figures(job: Job, manifest: Manifest, files: Sequence[Path], layout: Csv, original: Original, spill: Path) -> SourceFigures:
    """Counts the source that a release was made of, and holds the levels that its manifest says against labels and values.

    Args:
        job: The job that made it.
        manifest: What is held against the source.
        files: The data files, which were recounted.
        layout: How CSV files are read.
        original: The source, as it was.
        spill: Folder for DuckDB's spill files.

    Raises:
        HierarchyError: the file of a hierarchy cannot be read.
        StorageError: the disk is full, or more memory is needed than there is.
        VerificationError: a DuckDB file holds no plain table.
    """
    with connect(job, spill, last=True) as connection:
        names = ", ".join(quote(qid.name) for qid in job.columns.quasi_identifiers)
        grouped = f"(SELECT count(*) AS records FROM {original.relation} GROUP BY {names})"
        [(sizes,)] = connection.execute(f"SELECT coalesce(histogram(records), MAP {{}}) FROM {grouped}").fetchall()
        sides = sides_of(job, RowsHere(connection, relation_of(connection, files, layout), original.relation), original)
        faults = []
        if retyped := _wrong_types(job, sides):
            faults.append(f"{listed(retyped)} is of another type than in the source")
        levelled = manifest.levels_of_all is not None and not (manifest.remainder and manifest.remainder.stars)
        if levelled and (wrong := _wrong_levels(job, manifest, sides)):
            faults.append(f"the labels of {listed(wrong)} are not those of the levels that the manifest says")
        return SourceFigures(tuple(faults), sizes, _persons(job, connection, original))


def _wrong_types(job: Job, sides: Sides) -> list[str]:
    """Returns the columns that are of another type than in the source, and quasi-identifiers that are no text either."""
    if job.source.drift != "freeze":
        # Files that differ are widened to what holds all of them, which DuckDB may decide otherwise.
        return []
    as_they_are = [name for name in sides.names if sides.published[name] != sides.types[name]]
    names = {name: qid.name for qid in job.columns.quasi_identifiers for name in published_columns(job, qid)}
    return as_they_are + [
        name for name, source in names.items() if name == source and sides.published[name] not in ("VARCHAR", sides.types[source])
    ]


def _persons(job: Job, connection: duckdb.DuckDBPyConnection, original: Original) -> int | None:
    if not job.columns.person:
        return None
    # What is not a number is nobody, as a null is.
    somebody = [
        f"{quote(name)} IS NOT NULL" + (f" AND NOT isnan({quote(name)})" if pt.is_floating(original.columns.field(name).type) else "")
        for name in job.columns.person
    ]
    columns = ", ".join(map(quote, job.columns.person))
    statement = f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {original.relation} WHERE {' AND '.join(somebody)})"
    [(persons,)] = connection.execute(statement).fetchall()
    return int(persons)


def _wrong_levels(job: Job, manifest: Manifest, sides: Sides) -> list[str]:
    wrong = []
    for number, qid in enumerate(job.columns.quasi_identifiers):
        level, top = (manifest.levels or {}).get(qid.name, -1), manifest.tops.get(qid.name)
        one = qid_labels(job, sides, number)
        held = as_given(
            fetched(sides.connection, f"SELECT value FROM {one.values_table} ORDER BY place")["value"], sides.original, qid.name
        )
        try:
            groups = group_levels(qid.name, qid.hierarchy, held, job.folder)
        except HierarchyError:
            # Of a kind that the recount does not know; the recount has said so.
            continue
        levels: list[Sequence[Hashable]] = [range(len(held)), *groups]
        there = 0 <= level < len(levels) and top in (None, len(groups))
        if not there or not (_is_level(one, levels[level]) or (level == 0 and _has_mask(held))):
            wrong.append(qid.name)
    return wrong


def _has_mask(values: pa.Array) -> bool:
    """Tells whether ``*`` is one of the values: published as it is, nothing tells it from the label that covers all of them."""
    return pt.is_string(values.type) and bool(pc.any(pc.equal(values, MASK)).as_py())


def _is_level(one: Labels, groups: Sequence[Hashable]) -> bool:
    """Tells whether each label covers the values of one group, all of them; groups without a record are suppressed."""
    if one.owners is None:
        return False
    owned = np.flatnonzero(one.owners >= 0).tolist()
    pairs = {(groups[place], int(one.owners[place])) for place in owned}
    known = {group for group, _ in pairs}
    covered = sum(group in known for group in groups) == len(owned)
    return covered and len(pairs) == len(known) == len({label for _, label in pairs})
