"""Recount of columns with ``publish``: the published value of each source value, and its holders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from core.recount.groups import value_groups
from core.recount.labels.group_levels import rows_of_lists
from core.recount.labels.label_losses import ColumnLoss, LabelForm, column_loss, exact_column_loss
from core.recount.labels.published_values import (
    ValueCount,
    ValuePublication,
    as_column,
    counted_at_sql,
    plain_values,
    publication_of,
)
from core.recount.labels.value_scales import is_numeric_type, is_text_type
from core.recount.people import person_condition_sql
from core.recount.truth import label_groups, untreated_values_sql
from schemas.errors.base import counted
from schemas.job.columns import QuasiIdentifier
from schemas.job.identifiers import ColumnPublication, Publishing, Way, canonical_way, counts_people
from schemas.job.job import Job
from schemas.registry.hierarchies import CsvHierarchy, PrefixHierarchy
from schemas.registry.hierarchy_kinds import TreeHierarchy
from schemas.release.manifest import MASK, has_class_ranges, published_columns, published_qids
from tasks.recount.original import Original, fetch_columns, with_source_types
from tasks.recount.people import PeopleFiles, person_values_known, read_people
from tasks.recount.published_labels import label_texts, way_of
from tasks.recount.rows import FLOATING, ReleaseRows
from tasks.store.database import quote

DIGITS = 6
"""Of figures."""


@dataclass(frozen=True)
class PublishedSource:
    """The source with its values as they are published.

    Attributes:
        original: As the recount reads it from here on.
        figures: By column, what its publication lost.
        joins: What finds the published values of records ``s``, and ``columns`` what they replace.
        columns: See ``joins``.
    """

    original: Original
    figures: dict[str, ColumnPublication] = field(default_factory=dict)
    joins: Sequence[str] = ()
    columns: Sequence[str] = ()


class UnitRelation(NamedTuple):
    """SQL relation of the units that have values, records or persons, with the person columns.

    Attributes:
        relation: Its records.
        types: Quoted columns that name a person, and their types; nothing where each record counts.
    """

    relation: str
    types: Mapping[str, pa.DataType]

    @property
    def person_columns(self) -> dict[str, bool]:
        """Quoted person columns, each with whether it is floating-point; empty where records count."""
        return {name: pt.is_floating(kind) for name, kind in self.types.items()}


def published_source(job: Job, rows: ReleaseRows, original: Original, units: UnitRelation | None = None) -> PublishedSource:
    """Compute the source's published values; make ``rows`` read them, and return source and losses.

    Args:
        units: Who has which value, where the source alone does not say it.
    """
    if not job.columns.ways:
        return PublishedSource(original)
    units = units or UnitRelation(rows.source, original.person_types(job))
    joins, replaced, figures, tables = list[str](), list[str](), dict[str, ColumnPublication](), dict[str, pa.Table]()
    types = rows.types("source")
    for number, (name, way) in enumerate(job.columns.ways.items()):
        table, column = f"published_{number}", quote(name)
        values, kind, floating, made = _worked_out(job, rows, original, units, name)
        out = pa.float64() if isinstance(way, Publishing) and way.microaggregate is not None else kind
        held = fetch_columns(rows.connection, f"FROM {rows.grouped('release', value_groups(rows.release, column))}")
        present = Counter(dict(zip(_plain(held["value"], out, original, name), held["records"].to_pylist(), strict=True)))
        figures[name] = _figures(way, made, present, kind)
        # What is published nowhere became what the rest becomes: too few have it who are released.
        left = [one if one in present or not counts_people(way) else made.other_values for one in made.published]
        tables[table] = pa.table({"value": pa.concat_arrays([values, pa.nulls(1, values.type)]), "published": as_column(left, out)})
        own = f"s.{column}" if not floating else f"CASE WHEN isfinite(s.{column}) THEN s.{column} END"
        joins.append(f"LEFT JOIN {table} ON {own} IS NOT DISTINCT FROM {table}.value")
        # DuckDB reads moments of a file in one unit, and those of a table in memory in theirs.
        moments = f"::{types[name]}" if pt.is_timestamp(kind) else ""
        replaced.append(f"{table}.published{moments} AS {column}")
    rows.replace_source_values(tables, replaced, joins)
    return PublishedSource(original._replace(relation=rows.source), figures, joins, replaced)


def _plain(values: pa.Array, kind: pa.DataType, original: Original, name: str) -> list[Any]:
    given = with_source_types(values, original, name)
    return plain_values(given if given.type == kind or not pt.is_timestamp(kind) else given.cast(kind))


def _worked_out(
    job: Job, rows: ReleaseRows, original: Original, units: UnitRelation, name: str
) -> tuple[pa.Array, pa.DataType, bool, ValuePublication]:
    """Return the values of a column, their type, whether NaN may occur, and the published values."""
    k, way, relation, persons = job.privacy.k, job.columns.ways[name], units.relation, units.person_columns
    every = isinstance(way, Publishing)
    empty = rows.relation_of_query(f"SELECT {quote(name)} AS value FROM {relation} LIMIT 0", "source")
    type_of = fetch_columns(rows.connection, f"FROM {empty}")["value"].type
    floating = pt.is_floating(type_of)
    column = quote(name) if not floating else f"CASE WHEN isfinite({quote(name)}) THEN {quote(name)} END"
    names = f"({', '.join(persons)})"
    people = f"count(DISTINCT {names}) FILTER ({person_condition_sql(persons)})" if persons else "count(*)"
    counts = f"SELECT {column} AS value, {people} AS people, count(*) AS records FROM {relation} GROUP BY 1"
    drawn = "SELECT value, people FROM value_counts"
    if persons:
        few = "true" if every else f"c.people < {k:d}"
        # Only under names of ours, so that no column of the source is taken for the value, and none of the counts for a person.
        whose = [f"p{place}" for place in range(len(persons))]
        named = ", ".join(f"{person} AS {mine}" for person, mine in zip(persons, whose, strict=True))
        records = (
            f"(SELECT c.value, {', '.join(whose)} FROM (SELECT {named}, {column} AS own FROM {relation} "
            f"WHERE {person_condition_sql(persons)}) AS s JOIN value_counts AS c ON s.own = c.value WHERE {few})"
        )
        drawn = counted_at_sql(records, dict(zip(whose, units.types.values(), strict=True)))
    every_value = rows.relation_of_query(
        f"WITH value_counts AS MATERIALIZED ({counts}) SELECT c.value, c.people, coalesce(d.people, 0) AS drawn, records "
        f"FROM value_counts AS c LEFT JOIN ({drawn}) AS d ON c.value = d.value",
        "source",
    )
    found = fetch_columns(rows.connection, f"FROM {every_value} ORDER BY value NULLS LAST")
    there = len(found["value"]) - found["value"].null_count
    values = with_source_types(found["value"].slice(0, there), original, name)
    others = [found[one].to_pylist() for one in ("people", "drawn", "records")]
    counted_values = [ValueCount(*row) for row in zip(plain_values(values), *(one[:there] for one in others), strict=True)]
    nulls = int(others[0][there]) if there < len(others[0]) else 0
    rest = sum(one.drawn if persons else one.people for one in counted_values if one.people < k)
    return values, values.type, floating, publication_of(counted_values, nulls, rest, values.type, way, k)


def _figures(way: Way, made: ValuePublication, present: Counter[Any], kind: pa.DataType) -> ColumnPublication:
    """Return what a column's publication changed and lost, from published values alone."""
    records, values = sum(present.values()), sum(count for value, count in present.items() if value is not None)
    error_of = {value: error for value, error in zip(made.published, made.error, strict=True) if value is not None}
    standing = {value for value, changed in zip(made.published, made.changed, strict=True) if changed and value is not None}
    # Suppression may leave a value to too few people where the whole source has none of these.
    standing |= {made.other_values} - {None} if counts_people(way) else set()
    changed = sum(count for value, count in present.items() if value in standing)
    share: float = changed / records if records else 0.0
    told = is_numeric_type(kind)
    if isinstance(way, Publishing) and way.round is not None:
        unit = 1.0 if pt.is_integer(kind) else 10.0**-kind.scale if pt.is_decimal(kind) else 0.0
        share *= max(1 - unit / float(way.round), 0.0)
    elif isinstance(way, Publishing) and way.microaggregate is None:
        # How far the highest lie above the top is nobody's business.
        told = False
    lost = sum(error_of.get(value, 0.0) * count for value, count in present.items())
    error = round(lost / values, DIGITS) if told and values else 0.0 if told else None
    # Nulls of the source and values that became null are one figure, so that none of the two follows.
    null = round(present[None] / records, DIGITS) if records else 0.0
    return ColumnPublication(publish=canonical_way(way), changed=round(share, DIGITS), error=error, null=null)


def few_people_faults(connection: duckdb.DuckDBPyConnection, job: Job, release: str, people: PeopleFiles | None) -> list[str]:
    """Return faults for columns under ``publish: shared`` with values of fewer than k people.

    Args:
        people: Where the persons of the release are; without them, of jobs that name persons, nothing is counted.
    """
    k, faults = job.privacy.k, list[str]()
    for name in (name for name, way in job.columns.ways.items() if counts_people(way)):
        if not job.columns.person:
            few = _few(connection, f"SELECT {quote(name)} AS value, count(*) AS people FROM {release} GROUP BY 1", k)
            faults += _fault(name, few, k, "records")
        elif people and name in (known := person_values_known(job, people)):
            value, kept = f"value_{known.index(name)}", read_people(people)[1]
            who = f"SELECT {value} AS value, count(DISTINCT person) FILTER (person <> 0) AS people FROM {kept} GROUP BY 1"
            faults += _fault(name, _few(connection, who, k), k, "persons")
            mine = f"SELECT {quote(name)} AS value, count(*) AS records FROM {release} GROUP BY 1"
            theirs = f"SELECT {value} AS value, sum(records) AS records FROM {kept} GROUP BY 1"
            [(other,)] = connection.execute(
                f"SELECT count(*) FROM ({mine}) AS m FULL JOIN ({theirs}) AS t ON m.value IS NOT DISTINCT FROM t.value "
                "WHERE m.records IS DISTINCT FROM t.records"
            ).fetchall()
            if other:
                faults.append(f"column '{name}' does not hold the values of the persons that were counted")
    return faults


def _few(connection: duckdb.DuckDBPyConnection, counts: str, k: int) -> int:
    [(few,)] = connection.execute(f"SELECT count(*) FROM ({counts}) WHERE people < {k:d}").fetchall()
    return int(few)


def _fault(name: str, few: int, k: int, unit: str) -> Sequence[str]:
    return [f"column '{name}' publishes {counted(few, 'value')} of fewer than {k:,} {unit}"] if few else []


def column_losses(job: Job, rows: ReleaseRows, original: Original) -> dict[str, ColumnLoss]:
    """Return by name the information loss of each quasi-identifier that the source has.

    Args:
        original: Has the types of the source's columns; none of its values is looked at.
    """
    known = set(original.columns.names)
    return {qid.name: _lost(job, rows, original, qid) for qid in job.columns.quasi_identifiers if qid.name in known}


def passed_columns(job: Job, rows: ReleaseRows) -> dict[str, tuple[int, int, int]]:
    """Return by untreated column the numbers of distinct values, unique records and non-null values."""
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    found = {}
    for name, kind in rows.types("release").items():
        if name not in others:
            statement = untreated_values_sql(rows.release, quote(name), floating=kind in FLOATING)
            counted = rows.relation_of_query(statement, "release")
            [(distinct, alone, values)] = rows.connection.execute(f"FROM {counted}").fetchall()
            found[name] = int(distinct), int(alone), int(values)
    return found


def _lost(job: Job, rows: ReleaseRows, original: Original, qid: QuasiIdentifier) -> ColumnLoss:
    columns = published_columns(job, qid)
    counted = label_groups(rows.release, tuple(map(quote, columns)))
    labels = fetch_columns(rows.connection, f"FROM {rows.grouped('release', counted)}")
    kind, records = original.type_of(qid.name), labels.pop("records").to_numpy()
    reading = _reading(job, qid, kind)
    published = [with_source_types(labels[f"label_{place}"], original, qid.name) for place in range(len(columns))]
    if len(published) == 1 and not is_text_type(published[0].type):
        # Of their own type values are published as they are, and they may be millions.
        return exact_column_loss(reading, records)
    return column_loss(reading, label_texts(job, qid, kind, published), records)


def _reading(job: Job, qid: QuasiIdentifier, kind: pa.DataType) -> LabelForm:
    spec, way = qid.hierarchy, way_of(job, qid)
    ranged = has_class_ranges(job, qid)
    rows = rows_of_lists(qid.name, spec, job.folder) if isinstance(spec, CsvHierarchy | TreeHierarchy) else ()
    if way == "prefix":
        return LabelForm(kind, rows, mask=MASK)
    # Of sets only their values are known, of which none is a beginning.
    if isinstance(spec, PrefixHierarchy) and way != "set" and not (ranged and not is_text_type(kind)):
        sparse = "0" * len(spec.sparse_values[0]) if spec.sparse_values else ""
        return LabelForm(kind, rows, mask=spec.mask, sparse=sparse)
    return LabelForm(kind, rows, ranged, sets=way == "set")
