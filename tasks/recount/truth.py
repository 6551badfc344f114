"""Comparison of the written files with the source: each record must be one of the source, coarsened."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.coverage import (
    MOST,
    candidate_records_sql,
    least_digests,
    masks_sql,
    numbers_sql,
    sample_faults,
    sample_groups,
    unmatched_records,
)
from core.recount.groups import Groups, record_digest_sql, value_groups
from core.recount.truth import (
    DigestPart,
    digests_sql,
    excess_records_sql,
    join_source_values_sql,
    joint_faults,
    label_combination_faults,
    label_digest,
    label_faults,
    marginal_sql,
    numbered_sql,
    part_number_sql,
    released_digests,
    released_parts,
    released_parts_sql,
    source_digests,
    source_part_counts_sql,
    source_parts,
)
from schemas.errors.base import listed
from schemas.job.job import Job
from schemas.release.manifest import ClaimedLevels, published_columns
from tasks.recount.original import Original, ReleaseAndSource, fetch_columns, release_and_source
from tasks.recount.published_labels import PublishedLabels, expect_labels, qid_labels
from tasks.recount.rows import JOINED_COLUMNS, ReleaseRows
from tasks.store.database import lower_memory_limit, quote

PARTS, MOST_COUNTS = 64, 1 << 20
"""By how many numbers of a digest records are looked at apart, where as many counts fit."""


def label_overlap_faults(sides: ReleaseAndSource, some: Sequence[PublishedLabels]) -> list[str]:
    """Return faults where overlapping labels do not cover values of records with equal other columns."""
    looked = [(one, parts) for one in some if (parts := _parts_of(one)) >= 2 and sides.names]
    sides.rows.expect("release", [_released(sides, one, parts) for one, parts in looked])
    sides.rows.expect("source", [_valued(sides, one, parts) for one, parts in looked])
    return [fault for one, parts in looked for fault in _faults_beside(sides, one, parts)]


def _parts_of(one: PublishedLabels) -> int:
    parts, in_sets = PARTS, sum(map(len, one.spans.sets.values()))
    # Fewer parts tell less, but the table of counts must not grow with the source.
    while parts * (len(one.source) + len(one.released) + in_sets) > MOST_COUNTS:
        parts //= 2
    return parts


def _released(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> Groups:
    return released_parts(sides.unmasked, one.columns, parts, sides.untreated_parts)


def _valued(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> Groups:
    return source_parts(sides.rows.source, quote(one.name), parts, sides.untreated_parts)


def _faults_beside(sides: ReleaseAndSource, one: PublishedLabels, parts: int) -> list[str]:
    labelled = sides.rows.grouped("release", _released(sides, one, parts))
    found = _numbers(sides, released_parts_sql(labelled, len(one.columns), one.labels_table))
    valued = sides.rows.grouped("source", _valued(sides, one, parts))
    given = _numbers(sides, source_part_counts_sql(valued, one.values_table))
    released, source = np.zeros((parts, len(one.released)), np.int64), np.zeros((parts, len(one.source)), np.int64)
    released[found["part"], found["place"]] = found["records"]
    source[given["part"], one.order[given["place"]]] = given["records"]
    return label_combination_faults(one.name, unmatched_records(one.spans, released, source), sides.names)


def faults_of_sample(sides: ReleaseAndSource, labels: Sequence[PublishedLabels]) -> tuple[list[str], int]:
    """Check the label combinations of randomly drawn classes by the source; return faults, classes drawn."""
    columns, rows, drawn = [one.columns for one in labels], sides.rows, drawn_number()
    [(most,)] = sides.rows.connection.execute(
        f"SELECT coalesce(max(digest), 0) FROM {rows.grouped('release', least_digests(sides.unmasked, columns, drawn))}"
    ).fetchall()
    sample = sample_groups(sides.unmasked, columns, PARTS, sides.untreated_parts, most, drawn)
    sides.rows.connection.execute(numbered_sql(rows.grouped("release", sample), "sampled"))
    statements = [numbers_sql("sampled", one.number, len(one.columns), one.labels_table) for one in labels]
    of_labels = [fetch_columns(sides.rows.connection, statement) for statement in statements]
    numbers = np.stack([found["number"].to_numpy() for found in of_labels], axis=1).astype(np.int64)
    sampled, of_class = np.unique(numbers, axis=0, return_inverse=True)
    sampled, found = sampled[:MOST], _numbers(sides, "SELECT part, records FROM sampled ORDER BY number")
    released, covered = np.zeros((MOST, PARTS), np.int64), np.zeros((MOST, PARTS), np.int64)
    taken = of_class < MOST
    np.add.at(released, (of_class[taken], found["part"][taken]), found["records"][taken])
    given = fetch_columns(sides.rows.connection, f"FROM {rows.grouped('source', _covered(sides, labels, sampled))}")
    mask, part, records = (given[name].to_numpy() for name in ("mask", "part", "records"))
    for number in range(len(sampled)):
        here = (mask >> np.uint64(number)) & np.uint64(1) == 1
        # A part comes once for every mask that has the bit.
        np.add.at(covered[number], part[here], records[here])
    wrong = np.maximum(released - covered, 0).sum(axis=1)
    return sample_faults(int(wrong.sum()), int(np.count_nonzero(wrong)), len(sampled)), len(sampled)


def drawn_number() -> int:
    """Return a random 64-bit number by which a recount samples classes."""
    return secrets.randbits(64)


def _covered(sides: ReleaseAndSource, labels: Sequence[PublishedLabels], sampled: NDArray[np.int64]) -> Groups:
    """Return the groups of the source's records by the sampled classes that cover them, as bits."""
    masks = [_masks(sides, one, sampled[:, number]) for number, one in enumerate(labels)]
    columns, source = [quote(one.name) for one in labels], sides.rows.source
    known, before = [part_number_sql([one.source for one in sides.untreated_parts], PARTS)], []
    for first in range(0, len(labels), JOINED_COLUMNS):
        here, later = columns[:JOINED_COLUMNS], columns[JOINED_COLUMNS:]
        table = f"covered_{first}"
        before.append(candidate_records_sql(source, here, masks[first : first + JOINED_COLUMNS], known, later, table))
        before += [f"DROP TABLE {source}"] if first else []
        columns, source, known = [f"later_{number}" for number in range(len(later))], table, ["s.part", "s.mask"]
    # A record is under all labels of a class exactly if the bit of the class is in the masks of all its values. Each of the joins wants
    # memory for every thread.
    return Groups(source, (("mask", "mask"), ("part", "part")), tables=tuple(masks), before=tuple(before), alone=True)


def _masks(sides: ReleaseAndSource, one: PublishedLabels, sampled: NDArray[np.int64]) -> str:
    """Make the SQL table of values with the bits of the classes whose labels cover them; return its name."""
    masks = np.zeros(len(one.source), np.uint64)
    for number, label in enumerate(sampled.tolist()):
        masks[one.spans.covered(label)] |= np.uint64(1) << np.uint64(number)
    mine = masks[one.order]
    places = np.flatnonzero(mine)
    table = f"masks_{one.number}"
    sides.rows.connection.register("place_masks", pa.table({"place": places, "mask": mine[places]}))
    sides.rows.connection.execute(masks_sql("place_masks", one.values_table, table))
    sides.rows.connection.unregister("place_masks")
    return table


def _numbers(sides: ReleaseAndSource, statement: str) -> dict[str, NDArray[np.int64]]:
    return {name: column.to_numpy().astype(np.int64) for name, column in fetch_columns(sides.rows.connection, statement).items()}


class Truth(NamedTuple):
    """Faults of a release's files against their source, and how many classes were sampled.

    Attributes:
        faults: What they publish that it does not bear out, in counts.
        sampled: Classes in which whole records were looked at, where labels overlap; None where all records were.
    """

    faults: list[str]
    sampled: int | None = None


def compare_with_source(job: Job, rows: ReleaseRows, original: Original, claim: ClaimedLevels | None = None) -> Truth:
    """Compare records with the source by types, labels and whole records; return faults, classes sampled.

    Args:
        claim: The levels that labels are said to be of, where they are of any.
    """
    sides = release_and_source(job, rows, original)
    if lacking := sides.missing_column_faults(job):
        return Truth(lacking)
    if retyped := _wrong_types(job, sides):
        return Truth([f"{listed(retyped)} is of another type than in the source"])
    expect_labels(job, sides)
    labels = [qid_labels(job, sides, number, claim) for number in range(len(job.columns.quasi_identifiers))]
    # What is made of them in passing takes as much again.
    lower_memory_limit(sides.rows.connection, job, 2 * sum(one.nbytes for one in labels))
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
    """Return the columns of another type than in the source, except quasi-identifiers that are text."""
    if job.source.drift != "freeze":
        # Files that differ are widened to what holds all of them, which DuckDB may decide otherwise.
        return []
    as_they_are = [name for name in sides.names if sides.published[name] != sides.types[name]]
    names = {name: qid.name for qid in job.columns.quasi_identifiers for name in published_columns(job, qid)}
    return as_they_are + [
        name for name, source in names.items() if name == source and sides.published[name] not in ("VARCHAR", sides.types[source])
    ]


def _label_faults(one: PublishedLabels) -> list[str]:
    """Return faults if the labels of a quasi-identifier cannot cover its source values."""
    empty = int(np.count_nonzero(one.spans.high == one.spans.low))
    return label_faults(one.name, empty, unmatched_records(one.spans, one.released[None, :], one.source[None, :]))


def _record_faults(sides: ReleaseAndSource, disjoint: Sequence[PublishedLabels]) -> list[str]:
    """Return faults if whole records do not occur in the source, for labels that do not overlap.

    For masked records, the other published columns are compared.
    """
    # A column of one label tells no records apart, unless that covers some of the values only.
    told = [one for one in disjoint if len(one.released) > 1 or np.any(one.owners == -1)]
    parts = [*sides.untreated_parts, *(_part(sides, one) for one in told)]
    faults = _joint_faults(sides, sides.unmasked, parts, [*sides.names, *(one.name for one in told)])
    if sides.unmasked != sides.rows.release and not faults:
        faults = _joint_faults(sides, sides.rows.release, sides.untreated_parts, sides.names)
    return faults


def _looked_up(source: str, parts: Sequence[DigestPart]) -> tuple[str, Sequence[DigestPart], list[str]]:
    """Return the source, a record's digest parts and preparing statements, with few joins per statement.

    Of more, the digests are taken some at a time, and the digest of a record is one of these.
    """
    plain, wanted = [part for part in parts if not part.digests], [part for part in parts if part.digests]
    if len(wanted) <= JOINED_COLUMNS:
        return source, parts, []
    groups = [plain, *(wanted[first : first + JOINED_COLUMNS] for first in range(0, len(wanted), JOINED_COLUMNS))]
    before, known = list[str](), [record_digest_sql([part.source for part in plain])]
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
        [DigestPart(record_digest_sql([part.released for part in group]), digest) for group, digest in zip(groups, known, strict=True)],
        before,
    )


def _part(sides: ReleaseAndSource, one: PublishedLabels) -> DigestPart:
    """Return the digest part of a quasi-identifier's labels."""
    number, column = one.number, quote(one.name)
    if one.is_released and sides.types[one.name] == sides.published[one.name]:
        return DigestPart(f"r.{column}", f"s.{column}")
    assert one.owners is not None
    places = np.flatnonzero(one.owners >= 0)
    sides.rows.connection.register("owners", pa.table({"place": places.astype(np.int32), "number": one.owners[places]}))
    made = digests_sql("owners", one.values_table, one.labels_table, len(one.columns), number, f"digests_{number}")
    sides.rows.connection.execute(made)
    sides.rows.connection.unregister("owners")
    digest = label_digest([f"r.{name}" for name in one.columns], number)
    return DigestPart(digest, f"digests_{number}.digest", f"digests_{number}", column)


def _joint_faults(sides: ReleaseAndSource, release: str, parts: Sequence[DigestPart], names: Sequence[str]) -> list[str]:
    """Return faults if a release's records do not occur in the source, naming the columns that differ."""
    if not parts:
        return []
    rows, tables = sides.rows, tuple(part.digests for part in parts if part.digests)
    source, looked_up, before = _looked_up(sides.rows.source, parts)
    given = replace(source_digests(source, looked_up), tables=tables, before=tuple(before), wide=True)
    found = replace(released_digests(release, looked_up), wide=True)
    statement = excess_records_sql(rows.grouped("release", found), rows.grouped("source", given))
    [(more, unlike)] = sides.rows.connection.execute(statement).fetchall()
    alone = {}
    if more or unlike:
        for name, part in zip(sides.names, sides.untreated_parts, strict=True):
            released = rows.grouped("release", value_groups(f"{release} AS r", part.released))
            marginal = marginal_sql(released, rows.grouped("source", value_groups(f"{sides.rows.source} AS s", part.source)))
            [(alone[name],)] = sides.rows.connection.execute(marginal).fetchall()
    return joint_faults(int(more), int(unlike), names, alone)
