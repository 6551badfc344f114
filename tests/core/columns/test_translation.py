"""Chunks that are coded against their own values add up to the histogram of all, whatever values other chunks bring."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import Coder, PackedWords, Packing, Translation
from core.columns.domains import Domain, read_domains
from core.histograms.domain_counts import DomainCounter, merge_domain_tables
from core.histograms.histogram import HistogramCounter, merge_parts
from tests.house.replaced import CODING_WORD

NAMES = ("colour", "size")
TYPES = (pa.string(), pa.int64())
ROWS = st.lists(st.tuples(st.sampled_from([None, *"abcdef"]), st.sampled_from([None, *range(-3, 4)])), min_size=1, max_size=30)
Rows = Sequence[tuple[object, ...]]


def batch(rows: Rows) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), TYPES, strict=True)], NAMES
    )


def table(rows: Rows) -> pa.Table:
    counter = DomainCounter(TYPES)
    counter.add(batch(rows))
    return counter.table()


def counted(rows: Rows, domains: Sequence[Domain]) -> tuple[PackedWords, np.ndarray]:
    packing = Packing(tuple(domain.size for domain in domains))
    counter = HistogramCounter(packing)
    counter.add(packing.pack([Coder(domain).code(column) for domain, column in zip(domains, batch(rows).columns, strict=True)]))
    return counter.result()


@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from([7, 1 << 62]))
def test_translated_chunks_add_up_to_the_histogram_of_all_records(chunks: list[Rows], word: int) -> None:
    with patch(CODING_WORD, word):
        whole = read_domains(merge_domain_tables([table(rows) for rows in chunks], TYPES).table(), NAMES)
        packing, parts = Packing(tuple(domain.size for domain in whole)), []
        for rows in chunks:
            own = read_domains(table(rows), NAMES)
            words, counts = counted(rows, own)
            translation = Translation.between(own, whole)
            cells = translation.translated(words)
            assert translation.changes == any(mine.size < theirs.size for mine, theirs in zip(own, whole, strict=True))
            assert sorted(rows_of(cells)) == rows_of(cells)
            parts.append((cells, counts))
        cells, counts = merge_parts(parts, packing.product)
        all_cells, all_counts = counted([row for rows in chunks for row in rows], whole)
    assert (rows_of(cells), counts.tolist()) == (rows_of(all_cells), all_counts.tolist())


def rows_of(words: PackedWords) -> list[tuple[int, ...]]:
    return list(zip(*(word.tolist() for word in words), strict=True))


@pytest.mark.parametrize("rows", [[("g", 1)], [(None, 1)]])
def test_a_chunk_of_another_source_is_not_translated(rows: Rows) -> None:
    own, whole = (read_domains(table(some), NAMES) for some in (rows, [("a", 1), ("b", None)]))
    with pytest.raises(LookupError, match="colour"):
        Translation.between(own, whole)
