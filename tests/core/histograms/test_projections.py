"""Chunks added up at a coarser node: in the coding of each, in numbers that hold all records, and over the axes of the node alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.columns.coding import Packing
from core.histograms.projections import Bundles, Combinations, LinearCounting, Projection, SparseProjection
from core.units.class_table import exact_hierarchy
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed


def table(rows: list[tuple[int, ...]]) -> Example:
    """A table whose numbers are published as they are, in pairs, or not at all."""
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(len(rows[0])))
    return Example(rows, domains, tuple(built({"widths": [1, 2]}, domain) for domain in domains))


@pytest.mark.parametrize("kind", [Projection, SparseProjection])
def test_chunks_that_are_each_coded_by_their_own_values_add_up(kind: type) -> None:
    example = table([(0,), (1,), (1,), (2,), (3,)])
    projection = kind((0,), (1,), example.hierarchies, *([5] if kind is Projection else []))
    # The first chunk holds 0 and 1, the second 1, 2 and 3: code 0 is another value in each.
    for values, counts in (([0, 1], [1, 1]), ([1, 2, 3], [1, 1, 1])):
        bundles = Bundles(Packing((len(values),)), [np.array(values)])
        codes = bundles.codes((np.arange(len(values), dtype=np.int64),))
        projection.add(bundles, codes, np.array(counts))
    whole = example.histogram((1,))
    assert projection.result().counts.tolist() == whole.counts.tolist() == [3, 2]


def test_cells_of_more_than_one_word_add_up() -> None:
    rows = [tuple(int(value) for value in row) for row in np.random.default_rng(0).integers(0, 999, (1_000, 8))]
    # Some cells come more than once, in both chunks.
    example = table([*rows, *rows[:300]])
    fine, node = (0,) * 8, (1,) * 8
    finest, whole = example.histogram(fine), example.histogram(node)
    assert len(whole.words) > 1
    projection, bundles = SparseProjection(fine, node, example.hierarchies), Bundles(finest.packing)
    for part in (slice(0, 700), slice(700, None)):
        projection.add(bundles, bundles.codes(tuple(word[part] for word in finest.words)), finest.counts[part])
    made = projection.result()
    assert made.counts.tolist() == whole.counts.tolist()
    assert all(mine.tolist() == theirs.tolist() for mine, theirs in zip(made.words, whole.words, strict=True))
    nothing = SparseProjection(fine, node, example.hierarchies).result()
    assert (len(nothing.words), nothing.cells) == (len(whole.words), 0)


def test_what_is_added_after_the_sum_was_taken_is_refused_and_written_nowhere() -> None:
    example, bundles = table([(0,), (1,)]), Bundles(Packing((2,)))
    projection = Projection((0,), (1,), example.hierarchies, 2)
    combinations = Combinations(Packing((2,)), 1, 2, 4)
    for summed, take in ((projection, projection.result), (combinations, combinations.sizes)):
        added = bundles, bundles.codes((np.arange(2, dtype=np.int64),)), np.ones(2, np.int64)
        summed.add(*added)
        take()
        with pytest.raises(AttributeError):
            summed.add(*added)
        with pytest.raises(AttributeError):
            take()


def test_more_records_than_32_bits_count_are_counted() -> None:
    example, many = table([(0,), (1,)]), 1 << 31
    projection, bundles = Projection((0,), (1,), example.hierarchies, 4 * many), Bundles(Packing((2,)))
    for _ in range(2):
        projection.add(bundles, bundles.codes((np.arange(2, dtype=np.int64),)), np.full(2, many))
    assert projection.result().counts.tolist() == [4 * many]


def test_a_crowd_counts_the_cells_of_the_quasi_identifiers_whatever_sensitive_values_they_hold() -> None:
    rows = [(number // 4, number % 4) for number in range(32)]
    example = table(rows)
    axes = (example.hierarchies[0], exact_hierarchy(example.domains[1]))
    finest = Example(rows, example.domains, axes).histogram((0, 0))
    counting_bitmap, bundles = LinearCounting((0, 0), (0,), axes, 1 << 10), Bundles(finest.packing)
    counting_bitmap.add(bundles, bundles.codes(finest.words))
    assert (finest.cells, counting_bitmap.at_least) == (32, 8)
