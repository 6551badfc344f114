"""Which nodes have too many cells does not depend on how much memory there is for marks, and no more than that is held."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.histograms.projections import Bundles, LinearCounting
from tasks.counting import histograms
from tests.oracles.tables import examples


@given(st.data(), st.integers(0, 30), st.integers(1, 40))
def test_answers_are_those_of_all_marks_at_once_and_within_the_memory(data: st.DataObject, most: int, memory: int) -> None:
    example = data.draw(examples())
    finest = example.histogram((0,) * len(example.domains))
    nodes = list(np.ndindex(*(hierarchy.levels for hierarchy in example.hierarchies)))[:8]
    coding: Any = SimpleNamespace(finest=finest.node, domains=example.domains, axes=example.hierarchies)
    alive: WeakSet[LinearCounting] = WeakSet()
    held: list[int] = []

    class Watched(LinearCounting):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            alive.add(self)
            held.append(sum(one._marks.nbytes for one in alive))

    def cells(*_: object) -> Iterator[tuple[Bundles, Any, Any]]:
        bundles = Bundles(finest.packing)
        for row in range(finest.cells):
            yield bundles, bundles.codes(tuple(word[row : row + 1] for word in finest.words)), finest.counts[row : row + 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "bundled_cells", cells)
        patch.setattr(histograms, "LinearCounting", Watched)
        table: Any = SimpleNamespace(coding=coding, store=None)
        whole = histograms.surely_too_many_cells(table, nodes, [], most, 1 << 30)
        alive.clear()
        held.clear()
        assert histograms.surely_too_many_cells(table, nodes, [], most, memory) == whole
    assert max(held) <= memory
    assert all(example.histogram(node).cells > most for node, full in zip(nodes, whole, strict=True) if full)
