"""Semantic clusters are those of the listing, and none is smaller than k."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.clustering.semantic import LOWEST_COMMON, Clustering
from tests.oracles.clustering import generate_clusters
from tests.oracles.hierarchies import built, domain_of
from tests.oracles.records import Records, mixed_records

COUNTRIES = {"World": {"Asia": ["India", "Japan"], "Europe": ["France", "Italy"]}}
readings = st.builds(Clustering, st.integers(1, 6), st.sampled_from(["values", "parents"]), st.booleans())


@given(mixed_records(), readings)
def test_blocks_are_those_of_the_listing(records: Records, clustering: Clustering) -> None:
    assume(len(records.rows) >= clustering.k)
    found = clustering.blocks(records.codes, records.domains, records.hierarchies)
    expected = generate_clusters(records, clustering.k, clustering.start, clustering.scaled)
    assert [np.flatnonzero(found.classes == block).tolist() for block in range(len(found.levels))] == expected


@given(mixed_records(most=80), readings)
def test_every_block_holds_k_records_and_all_but_one_no_more(records: Records, clustering: Clustering) -> None:
    assume(len(records.rows) >= clustering.k)
    sizes = np.bincount(clustering.blocks(records.codes, records.domains, records.hierarchies).classes)
    assert sizes.min() >= clustering.k
    assert sizes.sum() == len(records.rows)
    assert (sizes[:-1] == clustering.k).all()
    assert sizes[-1] < 2 * clustering.k


@given(mixed_records(), readings)
def test_records_of_a_block_share_the_groups_of_its_level(records: Records, clustering: Clustering) -> None:
    assume(len(records.rows) >= clustering.k)
    found = clustering.blocks(records.codes, records.domains, records.hierarchies)
    for block, level in enumerate(found.levels):
        members = records.codes[found.classes == block]
        for qid, hierarchy in enumerate(records.hierarchies):
            if level != LOWEST_COMMON and not records.numerical[qid]:
                assert len(set(hierarchy.groups[min(level, hierarchy.top)][members[:, qid]].tolist())) == 1


@pytest.mark.parametrize(("start", "levels"), [("values", [0, 1]), ("parents", [1, 1])])
def test_siblings_are_merged_first_or_only_when_equal_records_are_exhausted(start: str, levels: list[int]) -> None:
    domain = domain_of(["France", "India", "Italy", "Japan"], pa.string())
    hierarchy = built({"tree": COUNTRIES}, domain)
    found = Clustering(2, start).blocks(np.array([[0], [0], [1], [3]]), [domain], [hierarchy])
    assert found.classes.tolist() == [0, 0, 1, 1]
    assert found.levels.tolist() in (levels, [levels[0], LOWEST_COMMON])


def test_a_last_block_below_k_joins_the_one_before() -> None:
    domain = domain_of([1, 2, 3, 4, 5, 6, 7], pa.int64())
    hierarchy = built({"widths": [1]}, domain)
    found = Clustering(3).blocks(np.arange(7)[:, None], [domain], [hierarchy])
    assert found.classes.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert found.levels.tolist() == [0, LOWEST_COMMON]


def test_a_wide_column_does_not_outweigh_a_narrow_one_when_scaled() -> None:
    wide, narrow = domain_of([0, 400, 1000], pa.int64()), domain_of([0, 1], pa.int64())
    hierarchies = [built({"widths": [1]}, wide), built({"widths": [1]}, narrow)]
    records = np.array([[0, 0], [0, 1], [1, 0], [2, 0]])
    scaled = Clustering(2).blocks(records, [wide, narrow], hierarchies)
    raw = Clustering(2, scaled=False).blocks(records, [wide, narrow], hierarchies)
    assert scaled.classes.tolist() == [0, 1, 0, 1]
    assert raw.classes.tolist() == [0, 0, 1, 1]
