"""Roll-ups count cells as Python does, into however many codes these are taken apart, and give the cells that are chosen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.histograms.record_rollups import RecordRollUps, SparseCells
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed


def table(rows: list[tuple[int, ...]]) -> Example:
    """A table whose numbers are published as they are, in pairs, or not at all."""
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(len(rows[0])))
    return Example(rows, domains, tuple(built({"widths": [1, 2]}, domain) for domain in domains))


@pytest.mark.parametrize("values", [6, 30, 40], ids=["three to a code", "two to a code", "one to a code"])
@pytest.mark.parametrize("qids", [1, 2, 3, 4])
def test_cells_of_any_number_of_codes_are_counted_and_chosen(qids: int, values: int) -> None:
    rows = [tuple(int(value) for value in row) for row in np.random.default_rng(qids).integers(0, values, (300, qids))]
    example = table(rows)
    root = example.histogram((0,) * qids)
    for node in (root.node, (1,) * qids, (1, *(0,) * (qids - 1)), (*(2,) * (qids - 1), 0)):
        whole = example.histogram(node)
        counts, chosen = RecordRollUps(root, example.hierarchies, 1 << 20, None).count_cells(node)
        assert sorted(counts.tolist()) == sorted(whole.counts.tolist())
        few = chosen(counts < 3)
        expected = {tuple(codes): count for codes, count in zip(whole.codes.tolist(), whole.counts.tolist(), strict=True) if count < 3}
        assert dict(zip(map(tuple, few.codes.tolist()), few.counts.tolist(), strict=True)) == expected


def test_codes_are_as_narrow_as_the_groups_of_their_bundles_allow() -> None:
    for values, width in ((6, np.uint16), ((1 << 16) + 1, np.uint32)):
        root = table([(value,) for value in range(values)]).histogram((0,))
        found = SparseCells(root.node, root.packing, root.words, root.counts)
        assert found.bundled.dtype == width
        assert found.bundled[0].tolist() == root.words[0].tolist()
