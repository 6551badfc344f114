"""A grid that is folded axis by axis holds what its cells add up to, whatever is on which axis."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.histograms.cells import packing_of, roll_up
from core.histograms.kernels import occupied_counts
from core.histograms.record_rollups import CountGrid, fold_grid
from tests.house.replaced import GRIDS_LEAST_ENTRIES
from tests.oracles.tables import examples, nodes_of


@given(st.data(), st.booleans())
def test_a_folded_grid_is_the_histogram_of_the_records(data: st.DataObject, parts: bool) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    finer = tuple(data.draw(st.integers(0, level)) for level in node)
    root, rolled = example.histogram(finer), roll_up(example.histogram(finer), node, example.hierarchies)
    counts = np.zeros(root.packing.product, np.int32)
    counts[root.words[0]] = root.counts
    with patch(GRIDS_LEAST_ENTRIES, 1 if parts else 1 << 20):
        made = fold_grid(CountGrid(finer, root.packing, counts), node, packing_of(node, example.hierarchies), example.hierarchies)
    assert made.counts[rolled.words[0]].tolist() == rolled.counts.tolist()
    assert occupied_counts(made.counts).tolist() == rolled.counts.tolist()
