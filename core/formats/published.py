"""Published values of a column: lookups of source values batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray
from pyarrow import ipc

Keys = NDArray[Any]
KEPT, STEP, REST = 0, 1, 2
"""Kinds of rows of the table of published values: a value, the first value of a step, everything else (nulls, and texts not listed)."""


@dataclass(frozen=True, eq=False)
class PublishedValues:
    """Mapping from the source values of a column to its published values.

    Attributes:
        distinct_values: Shape (a,), values that are looked up.
        published_as: Shape (a,), what is published of them.
        starts: Shape (s,), ascending: the first value of each step.
        starts_as: Shape (s,), what is published of the values of a step.
        others_published_as: Shape (1,), what is published of texts that are not listed.
        null_as: Shape (1,), what is published of nulls.
    """

    distinct_values: pa.Array
    published_as: pa.Array
    starts: pa.Array
    starts_as: pa.Array
    others_published_as: pa.Array
    null_as: pa.Array

    def apply(self, column: pa.Array) -> pa.Array:
        """Return the published values of a column, shape (n,).

        They have its working type or a dictionary of it.
        """
        if isinstance(column, pa.DictionaryArray):
            entries = self.apply(pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)]))
            codes = column.indices if not column.indices.null_count else pc.fill_null(column.indices, len(column.dictionary))
            return entries.take(codes)
        known = pa.concat_arrays([self.published_as, self.starts_as, self.others_published_as, self.null_as])
        places = np.full(len(column), len(self.published_as) + len(self.starts_as), np.int64)
        there = np.asarray(_is_value(column))
        if len(self.starts):
            steps = np.searchsorted(value_keys(self.starts), value_keys(column.filter(pa.array(there))), side="right") - 1
            # Nothing lies before the first value of the source.
            places[there] = len(self.published_as) + np.maximum(steps, 0)
        if len(self.distinct_values):
            found = pc.index_in(column, value_set=self.distinct_values)
            hit = np.asarray(pc.is_valid(found)) & there
            places[hit] = np.asarray(pc.fill_null(found, 0))[hit]
        places[~there] = len(known) - 1
        return known.take(pa.array(places))

    def without(self, removed: pa.Array) -> PublishedValues:
        """Return the mapping with the given published values replaced by ``others_published_as``."""
        return self._with_rest(lambda published: pc.is_in(published, value_set=removed)) if len(removed) else self

    def keeping(self, staying: pa.Array) -> PublishedValues:
        """Return the mapping with all published values but the given ones replaced by ``others_published_as``."""
        return self._with_rest(lambda published: pc.invert(pc.is_in(published, value_set=staying)))

    def _with_rest(self, is_rest: Callable[[pa.Array], pa.Array]) -> PublishedValues:
        def left(published: pa.Array) -> pa.Array:
            return pc.if_else(is_rest(published), pa.scalar(self.others_published_as[0].as_py(), published.type), published)

        return replace(self, published_as=left(self.published_as), starts_as=left(self.starts_as), null_as=left(self.null_as))

    def write(self, path: Path) -> int:
        """Write the mapping to an Arrow file and return its number of rows.

        ``read_published_values`` reads it.
        """
        kinds = [np.full(len(self.distinct_values), KEPT, np.int8), np.full(len(self.starts), STEP, np.int8), np.full(2, REST, np.int8)]
        values = pa.concat_arrays([self.distinct_values, self.starts, pa.nulls(2, self.distinct_values.type)])
        published = pa.concat_arrays([self.published_as, self.starts_as, self.others_published_as, self.null_as])
        table = pa.table({"kind": np.concatenate(kinds), "value": values, "published": published})
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
        return len(values)


def read_published_values(path: Path) -> PublishedValues:
    """Read a mapping of published values from an Arrow file."""
    with pa.memory_map(str(path)) as file:
        table = ipc.open_file(file).read_all()
    kind = table["kind"].to_numpy()
    value, published = (table[name].combine_chunks() for name in ("value", "published"))
    kept, starts = (pa.array(np.flatnonzero(kind == one)) for one in (KEPT, STEP))
    last = published.slice(len(published) - 2)
    return PublishedValues(value.take(kept), published.take(kept), value.take(starts), published.take(starts), last[:1], last[1:])


def _is_value(column: pa.Array) -> pa.Array:
    """Return a mask of the entries that are values: neither null, nor NaN, nor infinite."""
    return pc.fill_null(pc.is_finite(column), False) if pt.is_floating(column.type) else pc.is_valid(column)


def value_keys(values: pa.Array) -> Keys:
    """Convert values without null to numbers in the same order."""
    kind = values.type
    if pt.is_decimal(kind):
        words = pa.concat_arrays([values.cast(pa.decimal128(38, kind.scale))]) if not pt.is_decimal256(kind) else values
        if kind.precision > 18:
            return np.array([int(one.scaleb(kind.scale)) for one in words.to_pylist()], object)
        # Sixteen bytes each, the low eight of them first; so few digits need no more.
        raw = np.frombuffer(words.buffers()[1], np.int64)
        return np.ascontiguousarray(raw[2 * words.offset : 2 * (words.offset + len(words)) : 2])
    if pt.is_date(kind):
        return np.asarray(values.cast(pa.date32()).cast(pa.int32()))
    if pt.is_timestamp(kind):
        return np.asarray(values.cast(pa.int64()))
    return np.asarray(values)
