"""Domain tables: the distinct values of each QID and their counts (papers/skald.txt, section III.B.1).

They are SKALD's encoding maps. A *domain table* has one row per QID and distinct value, in the shape of SQL's GROUPING SETS. Its columns
are ``qid`` (int16, position in the job), ``count`` (int64) and one column ``value_<position>`` per QID, filled in the rows of that QID
only, ascending with its null last. It is a mergeable statistic: tables of chunks are added up (``core.histograms.domain_counts``), so that
chunks, resumption and distribution need nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BLOCK_ROWS = 1 << 20
"""Rows of a domain table that are one piece: of what a column has of values it holds nothing, which still takes room."""


@dataclass(frozen=True)
class Domain:
    """The distinct values of one QID with their counts.

    A record is coded as the position of its value, a null as ``len(values)``.

    Attributes:
        qid: Name of the column.
        values: Shape (m,), distinct, ascending, without nulls, of the source's type.
        counts: Shape (m,), int64, records per value.
        nulls: Number of records whose value is null.
        persons: Shape (m,), int64, where persons are named and were counted: how many count here, each at one of their values, so that the
            sum over some values is of different persons, and no more than have one of these.
    """

    qid: str
    values: pa.Array
    counts: NDArray[np.int64]
    nulls: int
    persons: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of codes: one for each distinct value, and one more if there are nulls."""
        return len(self.values) + (self.nulls > 0)

    @property
    def records(self) -> int:
        """Number of records counted."""
        return int(self.counts.sum()) + self.nulls

    @property
    def people(self) -> NDArray[np.int64]:
        """The number of units that k counts at each value, shape (m,): persons where known, else records."""
        return self.counts if self.persons is None else self.persons


def domain_as_published(observed: Domain, published: pa.Array) -> tuple[NDArray[np.int64], Domain]:
    """Return the code of the published value of each observed value, and the published values' domain.

    A null is last; l-diversity and t-closeness are of the published values.

    Args:
        observed: The observed values.
        published: Shape (observed.size,), what is published of each, that of the null last.
    """
    counts = np.append(observed.counts, [observed.nulls][: int(observed.nulls > 0)])
    there = published.drop_null().unique()
    distinct = there.take(pc.sort_indices(there))
    codes = np.asarray(pc.fill_null(pc.index_in(published, value_set=distinct), len(distinct))).astype(np.int64)
    sums = np.bincount(codes, counts, len(distinct) + 1).astype(np.int64)
    return codes, Domain(observed.qid, distinct, sums[:-1], int(sums[-1]))


def with_null(domain: Domain) -> pa.Array:
    """Return the values of a domain, shape (size,), a null last if there are nulls."""
    return pa.concat_arrays([domain.values, pa.nulls(int(domain.nulls > 0), domain.values.type)])


class QidValueCounts(NamedTuple):
    """The values of one QID and their counts, as rows of a domain table.

    Attributes:
        values: Shape (m,), distinct, ascending, a null last if there is one.
        counts: Shape (m,), int64, records per value.
        persons: Shape (m,), int64, where persons were counted.
    """

    values: pa.Array
    counts: NDArray[np.int64]
    persons: NDArray[np.int64] | None = None

    def part(self, first: int, last: int) -> QidValueCounts:
        """Return the rows from position ``first`` to before ``last``."""
        persons = None if self.persons is None else self.persons[first:last]
        return QidValueCounts(self.values.slice(first, last - first), self.counts[first:last], persons)

    def domain(self, qid: str) -> Domain:
        """Build a QID's domain from these distinct values and counts."""
        known = len(self.values) - self.values.null_count
        values, counts, persons = self.part(0, known)
        return Domain(qid, values, counts.astype(np.int64, copy=False), int(self.counts[known:].sum()), persons)


def value_column(position: int) -> str:
    """Return the name of the column of a domain table with the values of the QID at ``position``."""
    return f"value_{position}"


def domain_blocks(axes: Iterable[QidValueCounts], types: Sequence[pa.DataType]) -> Iterator[pa.Table]:
    """Yield a domain table in one block, or if it is large in several that hold one QID each.

    Args:
        axes: The rows of each QID, in job order.
        types: Arrow type of each QID's values.
    """
    counted = list(axes)
    if sum(len(axis.counts) for axis in counted) <= BLOCK_ROWS:
        yield pa.concat_tables([_block(position, axis, types) for position, axis in enumerate(counted)]).combine_chunks()
        return
    for position, axis in enumerate(counted):
        for first in range(0, len(axis.counts), BLOCK_ROWS):
            yield _block(position, axis.part(first, first + BLOCK_ROWS), types)


def _block(position: int, axis: QidValueCounts, types: Sequence[pa.DataType]) -> pa.Table:
    rows = len(axis.values)
    nothing = {dtype: pa.nulls(rows, dtype) for place, dtype in enumerate(types) if place != position}
    columns: dict[str, pa.Array] = {"qid": pa.array(np.full(rows, position, np.int16)), "count": pa.array(axis.counts, pa.int64())}
    columns |= {value_column(place): axis.values if place == position else nothing[dtype] for place, dtype in enumerate(types)}
    if axis.persons is not None:
        columns["persons"] = pa.array(axis.persons, pa.int64())
    return pa.table(columns)


def read_domains(table: pa.Table, qids: Sequence[str]) -> tuple[Domain, ...]:
    """Split a merged domain table into one ``Domain`` per QID, in job order."""
    return tuple(rows_of_axis(table, position).domain(qid) for position, qid in enumerate(qids))


def rows_of_axis(table: pa.Table, position: int) -> QidValueCounts:
    """Return the values and counts of the QID at ``position`` in a domain table."""
    mine = pc.equal(table["qid"], position)
    rows = table if pc.all(mine, min_count=0).as_py() else table.filter(mine)
    persons = rows["persons"].to_numpy() if "persons" in rows.column_names else None
    return QidValueCounts(rows[value_column(position)].combine_chunks(), rows["count"].to_numpy(), persons)


Node = tuple[int, ...]
