"""Holds the written files against the source: is every published record one of the source, as the job coarsens it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.coverage import unmatched
from core.recount.label_readers import Axis, label_axis
from core.recount.label_spans import Spans, is_closed, pair_labels, read_labels
from core.recount.truth import (
    Part,
    digests_sql,
    joint_faults,
    joint_sql,
    label_digest,
    label_faults,
    labels_sql,
    marginal_sql,
    released_counts_sql,
    source_counts_sql,
    values_sql,
)
from core.recount.value_texts import written
from schemas.errors.base import listed
from schemas.hierarchies.hierarchy import WidthsHierarchy
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.release.manifest import MASK, published_columns, published_qids
from tasks.recount.original import Original
from tasks.recount.reading import as_given, fetched
from tasks.store.database import quote

PARTS, MOST_COUNTS = 64, 1 << 20


@dataclass(frozen=True, eq=False)
class _Labels:
    """A quasi-identifier in both.

    Attributes:
        number: Its position in the job; ``values_<number>`` and ``labels_<number>`` are its tables.
        name: Its name in the source.
        columns: Quoted names of the columns under which it is published.
        axis: The order of its values.
        spans: What its labels cover.
        released: Shape (labels,), records with each label.
        source: Shape (positions,), records with each value.
        owners: Shape (values,), the label of each value in ascending order, -1 for none; None where labels overlap.
        kept: Whether each label is the value itself.
    """

    number: int
    name: str
    columns: tuple[str, ...]
    axis: Axis
    spans: Spans
    released: NDArray[np.int64]
    source: NDArray[np.int64]
    owners: NDArray[np.int64] | None
    kept: bool


def truth_faults(job: Job, connection: duckdb.DuckDBPyConnection, release: str, original: Original) -> tuple[list[str], list[str]]:
    """Returns what the files publish that the source does not bear out, in counts, and the quasi-identifiers whose labels it cannot read.

    Args:
        job: Says what is published as it is, and how the rest is coarsened.
        connection: The database.
        release: What it reads the data files as.
        original: The source.

    Raises:
        HierarchyError: the file of a hierarchy cannot be read.
        duckdb.Error: the files or the source cannot be read.
    """
    given, found = (_types(connection, source) for source in (original.relation, release))
    names = _payload(job, list(found))
    if lacking := [name for name in (*(qid.name for qid in job.columns.quasi_identifiers), *names) if name not in given]:
        return [f"the source has no {listed(lacking)}"], []
    open_ones, masked = _unmasked(job, connection, release)
    labels = [_labels(job, connection, open_ones, original, number) for number in range(len(job.columns.quasi_identifiers))]
    beside = [_column(name, given, found) for name in names]
    faults = []
    for one in labels:
        faults += _label_faults(connection, open_ones, original.relation, one, beside, names)
    unread = [one.name for one in labels if not one.axis.known]
    if faults:
        return faults, unread
    # A column of one label tells no records apart.
    told = [one for one in labels if one.owners is not None and len(one.released) > 1]
    parts = [*beside, *(_part(connection, one, given, found) for one in told)]
    faults = _joint_faults(connection, open_ones, original.relation, parts, [*names, *(one.name for one in told)], len(names))
    if masked and not faults:
        faults = _joint_faults(connection, release, original.relation, beside, names, len(names))
    return faults, unread


def records_of(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    """Returns how many records DuckDB reads."""
    [(records,)] = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
    return int(records)


def _types(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _payload(job: Job, columns: Sequence[str]) -> list[str]:
    """Returns the columns that are published as they are."""
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    return [name for name in columns if name not in others]


def _column(name: str, given: dict[str, str], found: dict[str, str]) -> Part:
    column = quote(name)
    # A value that does not fit becomes null and is missed below; CAST would end the recount, with the value in its message.
    source = f"s.{column}" if given[name] == found[name] else f"TRY_CAST(s.{column} AS {found[name]})"
    return Part(f"r.{column}", source)


def _unmasked(job: Job, connection: duckdb.DuckDBPyConnection, release: str) -> tuple[str, bool]:
    """Returns the records that are not masked, and whether any are; where all look masked, that is what their levels publish."""
    if not job.suppression.masks:
        return release, False
    starred = " AND ".join(f"r.{quote(name)}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for name in published_qids(job))
    [(masked, records)] = connection.execute(f"SELECT count(*) FILTER ({starred}), count(*) FROM {release} AS r").fetchall()
    return (f"(SELECT * FROM {release} AS r WHERE NOT ({starred}))", True) if 0 < masked < records else (release, False)


def _labels(job: Job, connection: duckdb.DuckDBPyConnection, release: str, original: Original, number: int) -> _Labels:
    """Reads the labels of a quasi-identifier."""
    qid = job.columns.quasi_identifiers[number]
    columns = tuple(map(quote, published_columns(job, qid)))
    connection.execute(values_sql(original.relation, quote(qid.name), f"values_{number}"))
    connection.execute(labels_sql(release, columns, f"labels_{number}"))
    values = fetched(connection, f"SELECT value, records FROM values_{number} ORDER BY place")
    labels = fetched(connection, f"SELECT * EXCLUDE number FROM labels_{number} ORDER BY number")
    held = as_given(values["value"], original, qid.name)
    texts = _texts(job, qid, held.type, [as_given(labels[f"label_{place}"], original, qid.name) for place in range(len(columns))])
    known = held.drop_null()
    axis = label_axis(qid, known, job.folder, ranges=_has_ranges(texts), beginnings=_way(job, qid) == "prefix")
    spans = read_labels(axis, texts)
    order = np.append(axis.positions, len(known))[: len(held)]
    source = np.zeros(len(known) + 1, np.int64)
    source[order] = values["records"].to_numpy()
    owners = spans.owners(len(source))
    owners = None if owners is None else owners[order]
    kept = owners is not None and len(columns) == 1 and _is_kept(held, labels["label_0"], owners)
    return _Labels(number, qid.name, columns, axis, spans, labels["records"].to_numpy(), source, owners, kept)


def _texts(job: Job, qid: QuasiIdentifier, kind: pa.DataType, columns: Sequence[pa.Array]) -> list[str | None]:
    """Returns labels as text, whether they are text, values of another type or pairs of bounds."""
    texts = []
    for column in columns:
        known = iter(written(column.drop_null()))
        texts.append([next(known)[0] if there else None for there in column.is_valid().to_pylist()])
    if len(texts) == 1:
        return texts[0]
    spec, levels = qid.hierarchy, job.method.name == "skald"
    # Methods without levels publish the greatest value of a class.
    closed = not levels or not isinstance(spec, WidthsHierarchy) or is_closed(spec, kind, columns)
    return pair_labels(list(zip(*texts, strict=True)), closed=closed, levels=levels)


def _has_ranges(texts: Sequence[str | None]) -> bool:
    return any(text is not None and text.startswith("[") for text in texts)


def _way(job: Job, qid: QuasiIdentifier) -> str | None:
    """Returns how the job wants the values of a class to be published, if it says so."""
    ways: Any = getattr(job.method, "generalisation", None)
    return ways.get(qid.name) if isinstance(ways, dict) else ways


def _is_kept(values: pa.Array, labels: pa.Array, owners: NDArray[np.int64]) -> bool:
    """Tells whether every label is the value that it covers, type and all."""
    some = np.flatnonzero(owners >= 0)
    return values.type == labels.type and bool(values.take(pa.array(some)).equals(labels.take(pa.array(owners[some]))))


def _label_faults(
    connection: duckdb.DuckDBPyConnection, release: str, source: str, one: _Labels, beside: Sequence[Part], names: Sequence[str]
) -> list[str]:
    """Returns whether the labels of a quasi-identifier cover the values of the source, by themselves and beside other columns."""
    empty = int(np.count_nonzero(one.spans.high == one.spans.low))
    wrong = unmatched(one.spans, one.released[None, :], one.source[None, :])
    apart = 0
    parts = PARTS
    # Fewer parts tell less, but the table of counts must not grow with the source.
    while parts * (len(one.source) + len(one.released) + one.spans.members) > MOST_COUNTS:
        parts //= 2
    if not (empty or wrong) and one.owners is None and beside and parts > 1:
        found = _counts(connection, released_counts_sql(release, one.columns, f"labels_{one.number}", parts, beside))
        given = _counts(connection, source_counts_sql(source, quote(one.name), f"values_{one.number}", parts, beside))
        released, held = np.zeros((parts, len(one.released)), np.int64), np.zeros((parts, len(one.source)), np.int64)
        released[found[0], found[1]] = found[2]
        held[given[0], np.append(one.axis.positions, len(one.axis.positions))[given[1]]] = given[2]
        apart = unmatched(one.spans, released, held)
    return label_faults(one.name, empty, wrong, apart, names)


def _counts(connection: duckdb.DuckDBPyConnection, statement: str) -> list[NDArray[np.int64]]:
    rows = fetched(connection, statement)
    return [rows[name].to_numpy().astype(np.int64) for name in ("part", "place", "records")]


def _part(connection: duckdb.DuckDBPyConnection, one: _Labels, given: dict[str, str], found: dict[str, str]) -> Part:
    """Returns what stands for the labels of a quasi-identifier in the digest of a record."""
    number, column = one.number, quote(one.name)
    if one.kept and given[one.name] == found[one.name]:
        return Part(f"r.{column}", f"s.{column}")
    assert one.owners is not None
    places = np.flatnonzero(one.owners >= 0)
    connection.register("owners", pa.table({"place": places, "number": one.owners[places]}))
    connection.execute(digests_sql("owners", f"values_{number}", f"labels_{number}", len(one.columns), number, f"digests_{number}"))
    connection.unregister("owners")
    digest = label_digest([f"r.{name}" for name in one.columns], number)
    return Part(digest, f"digests_{number}.digest", f"digests_{number}", column)


def _joint_faults(
    connection: duckdb.DuckDBPyConnection, release: str, source: str, parts: Sequence[Part], names: Sequence[str], columns: int
) -> list[str]:
    """Returns whether whole records, the first columns of them as they are, occur in the source."""
    if not parts:
        return []
    [(more, unlike)] = connection.execute(joint_sql(release, source, parts)).fetchall()
    alone = {}
    if more or unlike:
        for name, part in zip(names[:columns], parts, strict=False):
            [(alone[name],)] = connection.execute(marginal_sql(release, source, part)).fetchall()
    return joint_faults(int(more), int(unlike), names, alone)
