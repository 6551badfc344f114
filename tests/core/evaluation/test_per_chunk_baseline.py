"""Releases of chunks are counted as one table by what a reader sees, and the paper's figures agree with that count alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.per_chunk_baseline import Published, Spread, concatenated_sql, layout, pooled
from tests.laws import tried
from tests.oracles.hierarchies import built, domain_of
from tests.oracles.lattice import published
from tests.oracles.tables import Example, examples, nodes_of


def counted(example: Example, chunks: list[list[int]], nodes: list[tuple[int, ...]], k: int) -> tuple[int, int]:
    """Classes and Σ|E|² of concatenated releases, by the product."""
    table = Published.of(example.hierarchies)
    words = len(table.packing.words)
    with TemporaryDirectory() as folder:
        files = []
        for number, (chunk, node) in enumerate(zip(chunks, nodes, strict=True)):
            part = Example([example.rows[row] for row in chunk], example.domains, example.hierarchies).histogram(node)
            kept = part.counts >= k
            cells = {f"cell_{word}": column for word, column in enumerate(table.classes(part, kept))}
            path = Path(folder, f"{number}.parquet")
            pq.write_table(pa.table(cells | {"count": part.counts[kept]}), path)
            files.append(f"'{path}'")
        with duckdb.connect() as connection:
            found = connection.execute(concatenated_sql(files, words)).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def by_force(example: Example, chunks: list[list[int]], nodes: list[tuple[int, ...]], k: int) -> tuple[int, int]:
    """The same, record by record: a class is what is written, as text, wherever it comes from."""
    sizes: Counter[tuple[Any, ...]] = Counter()
    for chunk, node in zip(chunks, nodes, strict=True):
        own = Counter(published(example.rows[row], example.ladders, node) for row in chunk)
        for combination, size in own.items():
            if size >= k:
                sizes[tuple(None if value is None else str(value) for value in combination)] += size
    return len(sizes), sum(size**2 for size in sizes.values())


@given(st.data())
@tried(80)
def test_concatenated_releases_are_counted_as_a_reader_would_count_them(data: st.DataObject) -> None:
    example = data.draw(examples())
    chunk_of = data.draw(st.lists(st.integers(0, 2), min_size=len(example.rows), max_size=len(example.rows)))
    chunks = [[row for row, chunk in enumerate(chunk_of) if chunk == number] for number in sorted(set(chunk_of))]
    nodes = [data.draw(nodes_of(example)) for _ in chunks]
    k = data.draw(st.integers(1, 4))
    assert counted(example, chunks, nodes, k) == by_force(example, chunks, nodes, k)


@pytest.mark.slow
@given(st.data())
@tried(40)
def test_at_one_node_and_without_suppression_cutting_changes_the_sum_but_not_the_recount(data: st.DataObject) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    border = data.draw(st.integers(0, len(example.rows)))
    whole = list(range(len(example.rows)))
    parts = [part for part in (whole[:border], whole[border:]) if part]
    assert counted(example, parts, [node] * len(parts), 1) == counted(example, [whole], [node], 1)
    summed = sum(counted(example, [part], [node], 1)[1] for part in parts)
    assert summed <= counted(example, [whole], [node], 1)[1]


def test_equal_texts_are_one_class_at_whatever_level_they_stand() -> None:
    # Encoded bins are spelt by the values that they hold: the last bin of width 2 and of width 4 hold the same two values.
    hierarchy = built({"widths": [1, 2, 4], "encode": True}, domain_of([10, 20, 30, 40, 50, 60], nulls=1))
    numbers = Published.of([hierarchy]).numbers[0]
    assert numbers[1][2] == numbers[2][1]
    assert numbers[1][0] != numbers[2][0]
    # The null is one group at each level but the last, and never the text of anything else.
    assert numbers[0][-1] == numbers[1][-1] == numbers[2][-1]
    assert numbers[3].tolist() != [numbers[0][-1]]


def test_squares_are_summed_beyond_64_bits(tmp_path: Path) -> None:
    pq.write_table(pa.table({"cell_0": [1, 2], "count": [3_000_000_000, 4_000_000_000]}), tmp_path / "a.parquet")
    with duckdb.connect() as connection:
        found = connection.execute(concatenated_sql([f"'{tmp_path}/a.parquet'"] * 2, 1)).fetchone()
    assert found == (2, 6_000_000_000**2 + 8_000_000_000**2)


BINS = {"blood_group": [8, 4, 1], "profession": [16, 4, 2, 1]}
TABLE_III = {5: (3, 1, 128), 25: (3, 1, 32), 125: (2, 1, 32)}
"""The paper's nodes of SKALD at k = 50: resolution of blood group and profession, bin width of PIN code; age is 1 and BMI 24 in all."""


@pytest.mark.parametrize(("chunks", "claimed"), [(25, 4), (125, 9)])
def test_only_the_recount_agrees_with_the_claims_of_the_paper(chunks: int, claimed: int) -> None:
    """With values spread evenly, a node of b bins has DM* = N² / b. ARX's node is ((3, 4), (4, 24, 4)) for each million."""
    blood, profession, width = TABLE_III[chunks]
    skald = BINS["blood_group"][blood - 1] * BINS["profession"][profession - 1] * 67 * ceil(1347 / width)
    arx = ceil(67 / 4) * ceil(1347 / 4)
    million, records = 1_000_000, chunks * 1_000_000
    recounted = Fraction(records**2, arx) / Fraction(records**2, skald)
    summed = chunks * Fraction(million**2, arx) / Fraction(records**2, skald)
    assert recounted >= claimed
    assert summed < 1


@given(st.integers(1, 12), st.integers(1, 12))
def test_growing_data_are_the_first_units_and_cut_data_all_of_them(chunks: int, factor: int) -> None:
    units = chunks * factor
    assert [list(chunk) for chunk in layout(chunks, units, cut=False)] == [[unit] for unit in range(chunks)]
    cut = layout(chunks, units, cut=True)
    assert [unit for chunk in cut for unit in chunk] == list(range(units))
    assert {len(chunk) for chunk in cut} == {factor}
    assert layout(units, units, cut=True) == layout(units, units, cut=False)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12))
def test_a_spread_counts_every_node_and_spans_them_all(nodes: list[tuple[int, int]]) -> None:
    spread = Spread.of(nodes)
    assert dict(spread.shares) == Counter(nodes)
    assert spread.shares[0][1] == max(Counter(nodes).values())
    assert spread.lowest == tuple(np.array(nodes).min(axis=0).tolist())
    assert spread.highest == tuple(np.array(nodes).max(axis=0).tolist())


def test_a_spread_of_no_nodes_spans_nothing() -> None:
    assert Spread.of([]) == Spread((), None, None)


def test_a_pooled_loss_is_that_of_all_records() -> None:
    assert pooled([0.25, 1.0], [300, 100]) == pytest.approx(0.4375)
