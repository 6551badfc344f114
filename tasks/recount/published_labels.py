"""Labels of each quasi-identifier in a release, and the source values that they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.recount.groups import Groups, value_groups
from core.recount.labels.group_levels import level_makers
from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import (
    Spans,
    claimed_spans,
    is_closed,
    match_level_labels,
    match_value_labels,
    pair_labels,
    read_labels,
)
from core.recount.labels.value_scales import is_text_type, texts_with_nulls
from core.recount.truth import label_groups, numbered_sql, values_sql
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.registry.hierarchies import WidthsHierarchy
from schemas.release.manifest import MASK, ClaimedLevels, has_class_ranges, published_columns
from tasks.recount.original import ReleaseAndSource, fetch_columns, with_source_types
from tasks.store.database import quote


@dataclass(frozen=True, eq=False)
class PublishedLabels:
    """A quasi-identifier's labels in a release, the source values they cover, and record counts.

    Attributes:
        number: Its position in the job.
        name: Its name in the source.
        columns: Quoted names of the columns under which it is published.
        released: Shape (labels,), records with each label.
        source: Shape (positions,), records with each value, those with a null last.
        order: Shape (values,), the position of each value in ascending order, a null last if there is one.
        owners: Shape (values,), int32, the label of each of these values, -1 for none; None where labels overlap.
        is_released: Whether each label is the value itself, type and all.
        claimed: Whether they are of the levels that the release says, if it says any.
    """

    number: int
    name: str
    columns: tuple[str, ...]
    spans: Spans
    released: NDArray[np.int64]
    source: NDArray[np.int64]
    order: NDArray[np.int64]
    owners: NDArray[np.int32] | None
    is_released: bool
    claimed: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes held for the values of the quasi-identifier."""
        return self.source.nbytes + self.order.nbytes + (0 if self.owners is None else self.owners.nbytes)

    @property
    def values_table(self) -> str:
        """The name of the SQL table of its values."""
        return f"values_{self.number}"

    @property
    def labels_table(self) -> str:
        """The name of the SQL table of its labels."""
        return f"labels_{self.number}"


def expect_labels(job: Job, sides: ReleaseAndSource) -> None:
    """Announce counts of all QIDs' values and labels to the rows, so that one scan serves them."""
    if not job.columns.quasi_identifiers:
        # One of several tables may have none.
        return
    values, labels = zip(*(_groups(job, sides, qid) for qid in job.columns.quasi_identifiers), strict=True)
    sides.rows.expect("source", values)
    sides.rows.expect("release", labels)


def _groups(job: Job, sides: ReleaseAndSource, qid: QuasiIdentifier) -> tuple[Groups, Groups]:
    """Return the groups of a quasi-identifier's values in the source and of its labels in the release."""
    labels = label_groups(sides.unmasked, tuple(map(quote, published_columns(job, qid))))
    return value_groups(sides.rows.source, quote(qid.name)), labels


def qid_labels(job: Job, sides: ReleaseAndSource, number: int, claim: ClaimedLevels | None = None) -> PublishedLabels:
    """Create a QID's tables ``values_<number>`` and ``labels_<number>``; return what its labels cover.

    Labels of no claimed level are not refused: the result is then not ``claimed``, and they are read in any form.
    """
    qid, rows, connection = job.columns.quasi_identifiers[number], sides.rows, sides.rows.connection
    columns = tuple(map(quote, published_columns(job, qid)))
    sought, published = _groups(job, sides, qid)
    connection.execute(values_sql(rows.grouped("source", sought), f"values_{number}"))
    connection.execute(numbered_sql(rows.grouped("release", published), f"labels_{number}"))
    values = fetch_columns(connection, f"SELECT value, records FROM values_{number} ORDER BY place")
    labels = fetch_columns(connection, f"SELECT * EXCLUDE number FROM labels_{number} ORDER BY number")
    held = with_source_types(values["value"], sides.original, qid.name)
    shown = [with_source_types(labels[f"label_{place}"], sides.original, qid.name) for place in range(len(columns))]
    found = labels_of_levels(job, sides, qid, held, shown, claim) if claim and qid.name in claim.levels else None
    order, spans = found or _read_anyhow(job, qid, held, shown)
    source = np.zeros(spans.null + 1, np.int64)
    source[order] = values.pop("records").to_numpy()
    owners = spans.label_of_positions(len(source))
    owners = None if owners is None else owners[order]
    kept = owners is not None and len(columns) == 1 and _is_kept(held, labels["label_0"], owners)
    claimed = found is not None or claim is None or qid.name not in claim.levels
    return PublishedLabels(number, qid.name, columns, spans, labels["records"].to_numpy(), source, order, owners, kept, claimed)


def labels_of_levels(
    job: Job, sides: ReleaseAndSource, qid: QuasiIdentifier, values: pa.Array, columns: Sequence[pa.Array], claim: ClaimedLevels
) -> tuple[NDArray[np.int64], Spans] | None:
    """Return value positions and label spans by the claimed levels; None if a label is of none of them.

    None is returned too where there are no such levels.

    Args:
        values: The quasi-identifier's values in the source, ascending, a null last if there is one.
    """
    above = level_makers(qid.name, qid.hierarchy, values, job.folder)
    said = claim.levels[qid.name] or range(len(above) + 1)
    if not all(0 <= level <= len(above) for level in said) or claim.tops.get(qid.name, len(above)) != len(above):
        return None
    claims = [match_level_labels(above[level - 1](), columns) if level else match_value_labels(values, columns) for level in said]
    # Where all records look masked, none was set apart.
    starred = claim.starred or (job.suppression.masks and sides.unmasked == sides.rows.release)
    return claimed_spans(claims, _stars(columns) if starred else np.zeros(len(columns[0]), np.bool_))


def _stars(columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Return which labels are ``*``, or have two open bounds, shape (labels,)."""
    if len(columns) > 1:
        return np.asarray(np.stack([np.asarray(column.is_null()) for column in columns]).all(axis=0), np.bool_)
    if not is_text_type(columns[0].type):
        return np.zeros(len(columns[0]), np.bool_)
    stars: NDArray[np.bool_] = np.asarray(pc.equal(columns[0], MASK).fill_null(fill_value=False))
    return stars


def _read_anyhow(job: Job, qid: QuasiIdentifier, held: pa.Array, columns: Sequence[pa.Array]) -> tuple[NDArray[np.int64], Spans]:
    """Read labels in any form; return the position of each value, and the labels' spans."""
    texts, known = label_texts(job, qid, held.type, columns), held.drop_null()
    axis = label_axis(qid, known, job.folder, ranges=has_class_ranges(job, qid), prefixes=way_of(job, qid) == "prefix")
    # A null is the last value in DuckDB's order, and stands after all positions of an axis.
    order = np.append(axis.positions, len(known)) if len(held) > len(known) else axis.positions
    return order, read_labels(axis, texts)


def label_texts(job: Job, qid: QuasiIdentifier, kind: pa.DataType, columns: Sequence[pa.Array]) -> list[str | None]:
    """Return a QID's labels as texts, also from values of other types or from pairs of bounds."""
    texts = [texts_with_nulls(column) for column in columns]
    if len(texts) == 1:
        return texts[0]
    spec, levels = qid.hierarchy, job.method.name == "skald"
    # Methods without levels publish the greatest value of a class.
    closed = not levels or not isinstance(spec, WidthsHierarchy) or is_closed(spec, kind, columns)
    return pair_labels(list(zip(*texts, strict=True)), includes_high=closed, is_one_level=levels)


def way_of(job: Job, qid: QuasiIdentifier) -> str | None:
    """Return the job's ``generalisation`` of a quasi-identifier; None without one."""
    ways: Any = getattr(job.method, "generalisation", None)
    return ways.get(qid.name) if isinstance(ways, dict) else ways


def _is_kept(values: pa.Array, labels: pa.Array, owners: NDArray[np.int32]) -> bool:
    """Return whether each label equals the value it covers, in value and type."""
    if values.type != labels.type:
        return False
    some = np.flatnonzero(owners >= 0)
    return bool(values.take(pa.array(some)).equals(labels.take(pa.array(owners[some]))))
