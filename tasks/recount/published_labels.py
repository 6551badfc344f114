"""The labels of each quasi-identifier in a release, and the values of the source that they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recount.groups import Groups
from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import Spans, is_closed, pair_labels, read_labels
from core.recount.labels.value_texts import texts_with_nulls
from core.recount.truth import label_groups, labels_sql, value_groups, values_sql
from schemas.hierarchies.hierarchy import WidthsHierarchy
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.release.endpoints import in_ranges
from schemas.release.manifest import published_columns
from tasks.recount.reading import as_given, fetched
from tasks.recount.sides import Sides
from tasks.store.database import quote

CLOSED, OPEN = ("[", "{["), (">= ", "<= ", "{>= ", "{<= ")
"""How ranges begin, those with two ends and those with one."""


@dataclass(frozen=True, eq=False)
class Labels:
    """A quasi-identifier in a release and in its source.

    Attributes:
        number: Its position in the job.
        name: Its name in the source.
        columns: Quoted names of the columns under which it is published.
        known: Whether labels of its hierarchy can be read; else each of them covers any value.
        spans: What its labels cover.
        released: Shape (labels,), records with each label.
        source: Shape (positions,), records with each value, those with a null last.
        order: Shape (values,), the position of each value in ascending order, a null last if there is one.
        owners: Shape (values,), int32, the label of each of these values, -1 for none; None where labels overlap.
        kept: Whether each label is the value itself, type and all.
    """

    number: int
    name: str
    columns: tuple[str, ...]
    known: bool
    spans: Spans
    released: NDArray[np.int64]
    source: NDArray[np.int64]
    order: NDArray[np.int64]
    owners: NDArray[np.int32] | None
    kept: bool

    @property
    def nbytes(self) -> int:
        """Bytes that are held for each of its values."""
        return self.source.nbytes + self.order.nbytes + (0 if self.owners is None else self.owners.nbytes)

    @property
    def values_table(self) -> str:
        """The table of its values."""
        return f"values_{self.number}"

    @property
    def labels_table(self) -> str:
        """The table of its labels."""
        return f"labels_{self.number}"


def expect_labels(job: Job, sides: Sides) -> None:
    """Has the values and labels of all quasi-identifiers counted in one reading, where each costs.

    Raises:
        duckdb.Error: the files or the source cannot be read.
        SkaldError: whatever a task raises.
    """
    values, labels = zip(*(_groups(job, sides, qid) for qid in job.columns.quasi_identifiers), strict=True)
    sides.rows.expect("source", values)
    sides.rows.expect("release", labels)


def _groups(job: Job, sides: Sides, qid: QuasiIdentifier) -> tuple[Groups, Groups]:
    """Returns the values of a quasi-identifier in the source and its labels in the release, each once."""
    labels = label_groups(sides.rows.alike(sides.unmasked), tuple(map(quote, published_columns(job, qid))))
    return value_groups(sides.source, quote(qid.name)), labels


def qid_labels(job: Job, sides: Sides, number: int) -> Labels:
    """Reads the labels of the quasi-identifier at a position of the job, and makes the tables of its values and its labels.

    Raises:
        HierarchyError: the file of its hierarchy cannot be read.
    """
    qid, rows, connection = job.columns.quasi_identifiers[number], sides.rows, sides.connection
    columns = tuple(map(quote, published_columns(job, qid)))
    sought, published = _groups(job, sides, qid)
    connection.execute(values_sql(rows.grouped("source", sought), f"values_{number}"))
    connection.execute(labels_sql(rows.grouped("release", published), f"labels_{number}"))
    values = fetched(connection, f"SELECT value, records FROM values_{number} ORDER BY place")
    labels = fetched(connection, f"SELECT * EXCLUDE number FROM labels_{number} ORDER BY number")
    held = as_given(values["value"], sides.original, qid.name)
    texts = label_texts(
        job, qid, held.type, [as_given(labels[f"label_{place}"], sides.original, qid.name) for place in range(len(columns))]
    )
    known = held.drop_null()
    axis = label_axis(qid, known, job.folder, ranges=has_ranges(job, qid, texts), beginnings=way_of(job, qid) == "prefix")
    spans = read_labels(axis, texts)
    # A null is the last value in DuckDB's order, and stands after all positions of an axis.
    order = np.append(axis.positions, len(known)) if len(held) > len(known) else axis.positions
    source = np.zeros(len(known) + 1, np.int64)
    source[order] = values.pop("records").to_numpy()
    owners = spans.owners(len(source))
    owners = None if owners is None else owners[order]
    kept = owners is not None and len(columns) == 1 and _is_kept(held, labels["label_0"], owners)
    return Labels(number, qid.name, columns, axis.known, spans, labels["records"].to_numpy(), source, order, owners, kept)


def label_texts(job: Job, qid: QuasiIdentifier, kind: pa.DataType, columns: Sequence[pa.Array]) -> list[str | None]:
    """Returns labels as text, whether they are text, values of another type or pairs of bounds."""
    texts = [texts_with_nulls(column) for column in columns]
    if len(texts) == 1:
        return texts[0]
    spec, levels = qid.hierarchy, job.method.name == "skald"
    # Methods without levels publish the greatest value of a class.
    closed = not levels or not isinstance(spec, WidthsHierarchy) or is_closed(spec, kind, columns)
    return pair_labels(list(zip(*texts, strict=True)), closed=closed, levels=levels)


def has_ranges(job: Job, qid: QuasiIdentifier, texts: Sequence[str | None]) -> bool:
    """Tells whether labels are ranges of numbers or dates, whatever the hierarchy is.

    Groups that are listed may be called ``>= 10``, too; where the job has ranges it is the open end of one.
    """
    return any_begins(texts, (*CLOSED, *OPEN) if in_ranges(job, qid) else CLOSED)


def any_begins(texts: Sequence[str | None], beginnings: tuple[str, ...]) -> bool:
    """Tells whether any label begins with one of some texts."""
    return any(text is not None and text.startswith(beginnings) for text in texts)


def way_of(job: Job, qid: QuasiIdentifier) -> str | None:
    """Returns how the job wants the values of a class to be published, if it says so."""
    ways: Any = getattr(job.method, "generalisation", None)
    return ways.get(qid.name) if isinstance(ways, dict) else ways


def _is_kept(values: pa.Array, labels: pa.Array, owners: NDArray[np.int32]) -> bool:
    """Tells whether every label is the value that it covers, type and all."""
    if values.type != labels.type:
        return False
    some = np.flatnonzero(owners >= 0)
    return bool(values.take(pa.array(some)).equals(labels.take(pa.array(owners[some]))))
