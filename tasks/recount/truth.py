"""Holds the written files against the source: is every published record one of the source, as the job coarsens it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from core.recount.coverage import unmatched
from core.recount.truth import (
    DigestPart,
    digests_sql,
    hashed,
    join_source_values_sql,
    joint_faults,
    joint_sql,
    label_digest,
    label_faults,
    marginal_groups,
    marginal_sql,
    released_digests,
    source_digests,
)
from schemas.errors.base import listed
from schemas.job.job import Job
from schemas.release.claimed_levels import ClaimedLevels
from schemas.release.manifest import published_columns
from tasks.recount.original import Original
from tasks.recount.overlapping_labels import JOINS, faults_of_sample, label_overlap_faults
from tasks.recount.published_labels import PublishedLabels, expect_labels, qid_labels
from tasks.recount.release_and_source import ReleaseAndSource, release_and_source
from tasks.recount.rows import ReleaseRows
from tasks.store.database import leave_for, quote


class Truth(NamedTuple):
    """What came of holding files against their source.

    Attributes:
        faults: What they publish that it does not bear out, in counts.
        sampled: Classes in which whole records were looked at, where labels overlap; None where all records were.
    """

    faults: list[str]
    sampled: int | None = None


def truth_of(job: Job, rows: ReleaseRows, original: Original, claim: ClaimedLevels | None = None) -> Truth:
    """Holds what the files publish against the source.

    Args:
        job: Says what is published as it is, and how the rest is coarsened.
        rows: Of the release and of the source.
        original: The source.
        claim: The levels that labels are said to be of, where they are of any.

    Raises:
        HierarchyError: the file of a hierarchy cannot be read, or nothing reads its kind for the recount.
        duckdb.Error: the files or the source cannot be read.
    """
    sides = release_and_source(job, rows, original)
    if lacking := sides.lacking(job):
        return Truth(lacking)
    if retyped := _wrong_types(job, sides):
        return Truth([f"{listed(retyped)} is of another type than in the source"])
    expect_labels(job, sides)
    labels = [qid_labels(job, sides, number, claim) for number in range(len(job.columns.quasi_identifiers))]
    # What is made of them in passing takes as much again.
    leave_for(sides.connection, job, 2 * sum(one.nbytes for one in labels))
    # Each look is dearer than the one before, and tells nothing where that has found something.
    faults = [fault for one in labels for fault in _label_faults(one)]
    faults = faults or _record_faults(sides, [one for one in labels if one.owners is not None])
    sampled: int | None = None
    if overlapping := [one for one in labels if one.owners is None]:
        faults = faults or label_overlap_faults(sides, overlapping)
        if not faults:
            faults, sampled = faults_of_sample(sides, labels)
    if not faults and (wrong := [one.name for one in labels if not one.claimed]):
        faults = [f"the labels of {listed(wrong)} are not those of the levels that the release says"]
    return Truth(faults, sampled)


def _wrong_types(job: Job, sides: ReleaseAndSource) -> list[str]:
    """Returns the columns that are of another type than in the source, and quasi-identifiers that are no text either."""
    if job.source.drift != "freeze":
        # Files that differ are widened to what holds all of them, which DuckDB may decide otherwise.
        return []
    as_they_are = [name for name in sides.names if sides.published[name] != sides.types[name]]
    names = {name: qid.name for qid in job.columns.quasi_identifiers for name in published_columns(job, qid)}
    return as_they_are + [
        name for name, source in names.items() if name == source and sides.published[name] not in ("VARCHAR", sides.types[source])
    ]


def _label_faults(one: PublishedLabels) -> list[str]:
    """Returns whether the labels of a quasi-identifier can stand for its values."""
    empty = int(np.count_nonzero(one.spans.high == one.spans.low))
    return label_faults(one.name, empty, unmatched(one.spans, one.released[None, :], one.source[None, :]))


def _record_faults(sides: ReleaseAndSource, disjoint: Sequence[PublishedLabels]) -> list[str]:
    """Returns whether whole records, with the labels that do not overlap, occur in the source; of masked ones what else they publish."""
    # A column of one label tells no records apart.
    told = [one for one in disjoint if len(one.released) > 1]
    parts = [*sides.untreated_parts, *(_part(sides, one) for one in told)]
    faults = _joint_faults(sides, sides.unmasked, parts, [*sides.names, *(one.name for one in told)])
    if sides.unmasked != sides.release and not faults:
        faults = _joint_faults(sides, sides.release, sides.untreated_parts, sides.names)
    return faults


def _looked_up(source: str, parts: Sequence[DigestPart]) -> tuple[str, Sequence[DigestPart], list[str]]:
    """Returns the source and the parts of a record's digest, no more of them to look up than one statement may, and statements before.

    Of more, the digests are taken some at a time, and the digest of a record is one of these.
    """
    plain, wanted = [part for part in parts if not part.digests], [part for part in parts if part.digests]
    if len(wanted) <= JOINS:
        return source, parts, []
    groups = [plain, *(wanted[first : first + JOINS] for first in range(0, len(wanted), JOINS))]
    before, known = list[str](), [hashed([part.source for part in plain])]
    columns = [part.column for part in wanted]
    for number, group in enumerate(groups[1:]):
        here = [part._replace(column=column) for part, column in zip(group, columns, strict=False)]
        columns = columns[len(group) :]
        made = f"looked_up_{number}"
        before.append(join_source_values_sql(source, here, known, columns, made))
        before += [f"DROP TABLE {source}"] if number else []
        source, known = made, [f"s.digest_{place}" for place in range(number + 2)]
        columns = [f"later_{place}" for place in range(len(columns))]
    return (
        source,
        [DigestPart(hashed([part.released for part in group]), digest) for group, digest in zip(groups, known, strict=True)],
        before,
    )


def _part(sides: ReleaseAndSource, one: PublishedLabels) -> DigestPart:
    """Returns what stands for the labels of a quasi-identifier in the digest of a record."""
    number, column = one.number, quote(one.name)
    if one.is_released and sides.types[one.name] == sides.published[one.name]:
        return DigestPart(f"r.{column}", f"s.{column}")
    assert one.owners is not None
    places = np.flatnonzero(one.owners >= 0)
    sides.connection.register("owners", pa.table({"place": places.astype(np.int32), "number": one.owners[places]}))
    made = digests_sql("owners", one.values_table, one.labels_table, len(one.columns), number, f"digests_{number}")
    sides.connection.execute(made)
    sides.connection.unregister("owners")
    digest = label_digest([f"r.{name}" for name in one.columns], number)
    return DigestPart(digest, f"digests_{number}.digest", f"digests_{number}", column)


def _joint_faults(sides: ReleaseAndSource, release: str, parts: Sequence[DigestPart], names: Sequence[str]) -> list[str]:
    """Returns whether records of a release occur in the source; if not, also which columns that are published as they are do not."""
    if not parts:
        return []
    rows, tables = sides.rows, tuple(part.digests for part in parts if part.digests)
    source, looked_up, before = _looked_up(sides.source, parts)
    given = replace(source_digests(source, looked_up), tables=tables, before=tuple(before), wide=True)
    found = replace(released_digests(rows.alike(release), looked_up), wide=True)
    statement = joint_sql(rows.grouped("release", found), rows.grouped("source", given))
    [(more, unlike)] = sides.connection.execute(statement).fetchall()
    alone = {}
    if more or unlike:
        for name, part in zip(sides.names, sides.untreated_parts, strict=True):
            released = rows.grouped("release", marginal_groups(f"{release} AS r", part.released))
            marginal = marginal_sql(released, rows.grouped("source", marginal_groups(f"{sides.source} AS s", part.source)))
            [(alone[name],)] = sides.connection.execute(marginal).fetchall()
    return joint_faults(int(more), int(unlike), names, alone)
