"""Combinations of values are counted by their records as Python counts tuples, in whatever chunks the records come."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import Packing
from core.columns.data_parallel import limit_threads
from core.histograms.histogram import count_cells
from core.histograms.projections import Bundles, Combinations
from tests.house.replaced import COMBINATIONS_LEAST_ROWS, COMBINATIONS_PARTS, COMBINATIONS_SMALL


@given(st.data())
def test_combinations_of_chunks_are_counted_by_their_records(data: st.DataObject) -> None:
    packing = Packing(tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))))
    qids = data.draw(st.integers(1, len(packing.sizes)))
    chunks = data.draw(st.lists(st.lists(st.tuples(*(st.integers(0, size - 1) for size in packing.sizes)), min_size=1), max_size=4))
    records = [row for chunk in chunks for row in chunk]
    added, bundles = Combinations(packing, qids, len(records), len(records)), Bundles(packing)
    for chunk in chunks:
        words, counts = count_cells(packing.pack([np.array(column, np.uint8) for column in zip(*chunk, strict=True)]), packing.product)
        added.add(bundles, bundles.codes(words), counts)
    # What is large is counted otherwise, what are many in parts, and both stay the same.
    small, least, parts = (data.draw(st.integers(1, 8)) for _ in range(3))
    with (
        patch(COMBINATIONS_SMALL, small),
        patch(COMBINATIONS_LEAST_ROWS, least),
        patch(COMBINATIONS_PARTS, parts),
        limit_threads(data.draw(st.integers(1, 3))),
    ):
        sizes, classes = added.sizes()
    by_hand = Counter(Counter(row[:qids] for row in records).values())
    assert list(zip(sizes.tolist(), classes.tolist(), strict=True)) == sorted(by_hand.items())


def test_a_combination_and_its_count_are_one_number_or_are_not_counted_so() -> None:
    assert Combinations.fit(Packing((1 << 20, 1 << 20, 1 << 20)), 2, 1 << 20)
    assert not Combinations.fit(Packing((1 << 20, 1 << 20, 1 << 20)), 3, 1 << 20)
