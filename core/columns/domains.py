"""Phase 1 of SKALD: the observed values of each QID (the paper's encoding maps), counted chunk by chunk and merged.

A *domain table* has one row per QID and distinct value, in the shape of SQL's GROUPING SETS: ``qid`` (int16, position in the job),
``count`` (int64) and one column ``value_<position>`` per QID, filled in the rows of that QID only. It is a mergeable statistic: tables of
chunks are concatenated and summed, so that chunks, resumption and distribution need nothing else (papers/skald.txt, section III.B.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.arrays import is_null, offsets, positions, to_numpy
from core.columns.kernels import count_numbers

COMPACT_ROWS = 1_000_000
DENSE_SPAN = 1 << 14


@dataclass(frozen=True)
class Domain:
    """The observed values of one QID; a record is coded as the position of its value, a null as ``len(values)``.

    Attributes:
        qid: Name of the column.
        values: Shape (m,), distinct, ascending, without nulls, of the source's type.
        counts: Shape (m,), int64, records per value.
        nulls: Number of records whose value is null.
        persons: Shape (m,), int64, where persons are named and were counted: how many have this value and no lesser one, so that the sum
            over some values is of different persons, and no more than have one of these.
    """

    qid: str
    values: pa.Array
    counts: NDArray[np.int64]
    nulls: int
    persons: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of codes: distinct values, and one more if there are nulls."""
        return len(self.values) + (self.nulls > 0)

    @property
    def records(self) -> int:
        """Number of records counted."""
        return int(self.counts.sum()) + self.nulls

    @property
    def people(self) -> NDArray[np.int64]:
        """What k counts at each value, shape (m,): ``persons`` where these are known, else records."""
        return self.counts if self.persons is None else self.persons


def value_column(position: int) -> str:
    """Returns the name of the column that holds the values of the QID at ``position``."""
    return f"value_{position}"


def count_values(column: pa.Array) -> pa.Table:
    """Counts the distinct values of one batch of one column.

    Args:
        column: Shape (n,), any type that can be a QID, or a dictionary of it.

    Returns:
        Table ``value`` (the plain type), ``count`` (int64), nulls counted as a value of their own; dictionary entries that
        no record uses are left out.
    """
    if isinstance(column, pa.DictionaryArray):
        counts = np.zeros(len(column.dictionary) + 1, np.int64)
        count_numbers(positions(column).astype(np.int32), counts)
        values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
        seen = np.flatnonzero(counts)
        found = pa.table({"value": values.take(pa.array(seen)), "count": counts[seen]})
        # A dictionary may itself hold nulls or repeats; grouping once more makes the values distinct.
        clean = not column.dictionary.null_count and pc.count_distinct(column.dictionary).as_py() == len(column.dictionary)
        return found if clean else _summed(found)
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        whole = to_numpy(column)
        low, high = int(whole.min()), int(whole.max())
        if high - low < DENSE_SPAN:
            dense = np.bincount(offsets(whole, low))
            values = np.flatnonzero(dense)
            # As Python integers, which hold what unsigned 64 bits do and NumPy's int64 does not.
            return pa.table({"value": pa.array([low + value for value in values.tolist()], column.type), "count": dense[values]})
    found = pc.value_counts(column)
    return pa.table({"value": found.field("values"), "count": found.field("counts")})


def _summed(counts: pa.Table) -> pa.Table:
    # Few rows mostly, of a task that has its share of the threads.
    return counts.group_by("value", use_threads=False).aggregate([("count", "sum")]).rename_columns(["value", "count"])


class DomainCounter:
    """Adds up the values of many batches, holding no more than the distinct values and a million rows."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = tuple(types)
        self._parts: list[list[pa.Table]] = [[] for _ in types]

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts one batch whose columns are the QIDs in job order."""
        for position in range(len(self._types)):
            self._put(position, count_values(batch.column(position)))

    def merge(self, table: pa.Table) -> None:
        """Adds a domain table that was counted elsewhere."""
        for position in range(len(self._types)):
            rows = table.filter(pc.equal(table["qid"], position))
            self._put(position, pa.table({"value": rows[value_column(position)], "count": rows["count"]}))

    def _put(self, position: int, counts: pa.Table) -> None:
        parts = self._parts[position]
        parts.append(counts.cast(pa.schema([("value", self._types[position]), ("count", pa.int64())])))
        # Without the first part, which is the sum so far: with it, a domain of over a million values would be summed again at every batch.
        if len(parts) > 1 and sum(len(part) for part in parts[1:]) > COMPACT_ROWS:
            self._parts[position] = [_summed(pa.concat_tables(parts))]

    def table(self) -> pa.Table:
        """Returns the domain table, each QID's values ascending with its null last."""
        blocks = []
        for position in range(len(self._types)):
            # Grouping gives rows in the order in which they came; codes are positions, and must not depend on the order of chunks.
            values = _summed(pa.concat_tables(self._parts[position])).sort_by("value")
            columns: dict[str, pa.Array | pa.ChunkedArray] = {
                "qid": pa.array(np.full(len(values), position, np.int16)),
                "count": values["count"],
            }
            for other, dtype in enumerate(self._types):
                columns[value_column(other)] = values["value"] if other == position else pa.nulls(len(values), dtype)
            blocks.append(pa.table(columns))
        return pa.concat_tables(blocks).combine_chunks()


def merge_domains(tables: Iterable[pa.Table], types: Sequence[pa.DataType]) -> pa.Table:
    """Sums domain tables of chunks into the domain table of all of them."""
    counter = DomainCounter(types)
    for table in tables:
        counter.merge(table)
    return counter.table()


def read_domains(table: pa.Table, qids: Sequence[str]) -> tuple[Domain, ...]:
    """Takes a merged domain table apart, one ``Domain`` per QID in job order."""
    domains = []
    for position, qid in enumerate(qids):
        rows = table.filter(pc.equal(table["qid"], position))
        values, counts = rows[value_column(position)].combine_chunks(), rows["count"].to_numpy()
        missing = is_null(values)
        persons = rows["persons"].to_numpy()[~missing] if "persons" in rows.column_names else None
        known = values.filter(pa.array(~missing))
        domains.append(Domain(qid, known, counts[~missing].astype(np.int64), int(counts[missing].sum()), persons))
    return tuple(domains)
