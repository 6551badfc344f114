"""Counts of classes that break a promise on sensitive values, by records or by persons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from core.recount.groups import value_groups
from core.recount.labels.group_levels import group_levels
from core.recount.shares import ShareClasses, ShareSpread
from core.recount.spreads import holder_classes_sql
from schemas.job.job import Job
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.privacy_kinds import PrivacyKind
from tasks.recount.original import Original, fetch_columns, with_source_types
from tasks.recount.people import persons_by_value_sql, unexpected_values, values_of_people
from tasks.recount.rows import ReleaseRows
from tasks.store.database import quote


def make_source_distribution(
    job: Job, connection: duckdb.DuckDBPyConnection, column: str, along: HierarchySpec | None, original: Original, value_counts: str
) -> int:
    """Create table ``whole`` of a column's values, records, ranks, groups; return the number of levels.

    Args:
        value_counts: What the database reads the column's values with their records as.
    """
    # A null last, where the ordered distance has it.
    rows = fetch_columns(connection, f"SELECT value, records FROM {value_counts} ORDER BY 1 NULLS LAST")
    columns = {"value": rows["value"], "records": rows["records"], "place": np.arange(len(rows["value"]))}
    levels = 0
    if along is not None:
        groups = group_levels(column, along, with_source_types(rows["value"], original, column), job.folder)
        levels = len(groups)
        columns |= {f"level_{number}": level.groups for number, level in enumerate(groups, start=1)}
    connection.register("whole_rows", pa.Table.from_pydict(columns))
    connection.execute("CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM whole_rows")
    connection.unregister("whole_rows")
    return levels


EVERYWHERE = "everywhere"
"""The table of what classes are compared with."""


def models_counted(job: Job, *, by_people: bool, with_source: bool = True) -> list[tuple[PrivacyKind, str, Any]]:
    """Return kind, column and settings of the promises on sensitive values that can be counted.

    Without the persons of classes, these are promises on the presence of values alone. Without the source, t-closeness is none of them: the
    values of a release are not those of its source, because records were suppressed.
    """
    by_classes = by_people or not job.columns.person
    return [
        (kind, column, spec)
        for kind, column, spec in job.privacy.models
        if (by_classes or kind.of_presence) and (with_source or not kind.of_whole)
    ]


def uncounted_without_source(job: Job, of_table: str = "", *, by_people: bool) -> list[str]:
    """Return a sentence for each promise that cannot be counted because the source is lacking.

    Args:
        of_table: Follows the name of a column, as " of 'visits'" does.
    """
    told = []
    for kind, column, _ in models_counted(job, by_people=by_people):
        if kind.of_whole:
            told.append(f"t-closeness of '{column}'{of_table} was not counted: it is measured from the source.")
        elif by_people and kind.held_of_source:
            told.append(
                f"Whether too many persons hold one value of '{column}'{of_table} was not counted: that is measured from the source."
            )
    return told


def count_spreads(
    job: Job,
    connection: duckdb.DuckDBPyConnection,
    source: str,
    qids: Sequence[str],
    original: Original | None,
    whole_of: Callable[[str], str],
    *,
    by_people: bool,
) -> tuple[tuple[ShareSpread, ...], dict[str, int]]:
    """Return by promise the classes that break it, and by column those with values its persons lack.

    Args:
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published QID columns.
        original: Has the types of the source's columns. Without it, or if the release was made of another source, what is measured from
            the source is not counted.
        whole_of: Returns what the database reads the values of a column with their records as, of all that classes are compared with.
        by_people: Whether the people of the classes were counted, so that each counts once for each of their values.
    """
    unexpected = {column: unexpected_values(connection, job, source, qids, column) for column in job.privacy.columns} if by_people else {}
    spreads, with_source = [], has_source(original)
    for kind, column, spec in models_counted(job, by_people=by_people, with_source=with_source):
        classed = values_of_people(job, column) if by_people else (source, list(qids), quote(column))
        if needs_source_values(kind, by_people=by_people):
            # Read once: it may take all of the source.
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {EVERYWHERE} AS FROM {whole_of(column)}")
        holders = by_people and (with_source or not kind.held_of_source)
        spreads.append(count_spread(job, connection, (kind, column, spec), classed, original, with_holders=holders))
    return tuple(spreads), unexpected


def count_spread(
    job: Job,
    connection: duckdb.DuckDBPyConnection,
    promise: tuple[PrivacyKind, str, Any],
    classed: tuple[str, list[str], str],
    original: Original | None,
    *,
    with_holders: bool,
) -> ShareSpread:
    """Return how many classes break one promise; reads table ``everywhere`` if it ``needs_source_values``.

    Args:
        promise: Kind, column and settings.
        classed: What values are read from, the columns that make a class there, and the column of the value.
        with_holders: Whether the classes are counted too in which too many persons hold one value.
    """
    (kind, column, spec), (relation, classes, value) = promise, classed
    types = original or Original("", pa.schema([]))
    levels = make_source_distribution(job, connection, column, spec.hierarchy, types, EVERYWHERE) if kind.of_whole else 0
    [(failing, every, worst)] = connection.execute(kind.statement(relation, classes, value, spec, levels)).fetchall()
    held = 0
    if with_holders and kind.held is not None:
        nulls = kind.of_whole or spec.nulls == "value"
        [(held,)] = connection.execute(holder_classes_sql(relation, value, kind.held(spec), EVERYWHERE, counts_nulls=nulls)).fetchall()
    return ShareSpread(int(failing), int(every), None if worst is None else float(worst), int(held))


def has_source(original: Original | None) -> bool:
    """Return whether the source is at hand, and is the one that the release was made of."""
    return original is not None and original.is_complete


def needs_source_values(kind: PrivacyKind, *, by_people: bool) -> bool:
    """Return whether a promise compares classes with records or holders of values in the whole source."""
    return kind.of_whole or (by_people and kind.held is not None)


def source_values_relation(job: Job, rows: ReleaseRows, column: str, original: Original | None, *, by_people: bool) -> str:
    """Return the SQL relation of a column's values with counts: source's if at hand, else release's.

    Args:
        original: The source; without it, or if the release was made of another one, the values of the release are taken.
    """
    whole = original if has_source(original) else None
    if by_people:
        return rows.relation_of_query(persons_by_value_sql(job, column, whole._replace(relation=rows.source) if whole else None), "source")
    return rows.grouped("source" if whole else "release", value_groups(rows.source if whole else rows.release, quote(column)))


def model_faults(
    job: Job, classes: ShareClasses, *, by_people: bool, with_source: bool = True
) -> tuple[list[str], dict[str, dict[str, float]], list[str]]:
    """Return faults of l and t promises, each one's worst measure, and columns that were not counted."""
    faults = [
        f"in {unexpected:,} of the classes the values of '{column}' are not those of the people whom the run folder keeps"
        for column, unexpected in classes.unexpected.items()
        if unexpected
    ]
    measured: dict[str, dict[str, float]] = {}
    counted = models_counted(job, by_people=by_people, with_source=with_source)
    for (kind, column, spec), one in zip(counted, classes.spreads, strict=True):
        measured.setdefault(kind.section, {})[column] = one.worst if one.worst is not None and isfinite(one.worst) else 0.0
        if one.failing:
            faults.append(f"{one.failing:,} of {one.classes:,} classes {kind.broken(column, spec)}")
        if one.broken_by_holders:
            held = f"in {one.broken_by_holders:,} of {one.classes:,} classes too many persons hold the same value of '{column}'"
            faults.append(f"{held} to keep the {kind.section} that the job promises")
    # Without the people of the classes nobody knows who holds a value.
    unknown = bool(job.columns.person) and not by_people
    by_persons = models_counted(job, by_people=by_people)
    unread = [column for kind, column, spec in job.privacy.models if (kind, column, spec) not in by_persons or (unknown and kind.held)]
    return faults, measured, list(dict.fromkeys(unread))
