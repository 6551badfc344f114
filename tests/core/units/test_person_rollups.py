"""Roll-ups tell of every class whether it has k people, as counting them one by one does, however they came there."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.units.class_table import exact_hierarchy
from core.units.person_rollups import PersonRollUps
from tests.core.units.tables_of_people import People, tables_of_people
from tests.house.replaced import CODING_WORD, ROLLUPS_LARGE, ROLLUPS_SHRINK
from tests.oracles.hierarchies import built
from tests.oracles.lattice import class_sizes
from tests.oracles.persons import people_of, values_of
from tests.oracles.tables import Example, nodes_of, observed


def told(table: People, rolled: PersonRollUps, node: tuple[int, ...], k: int, *, keep: bool = False) -> Counter[tuple[int, int]]:
    classes = rolled.classes(node, keep=keep)
    assert len(classes.records) == len(classes.persons) == len(np.unique(classes.owners))
    return Counter(zip(classes.records.tolist(), (classes.persons >= k).tolist(), strict=True))


def counted(table: People, node: tuple[int, ...], k: int) -> Counter[tuple[int, int]]:
    rows, ladders = table.example.rows, table.example.ladders
    sizes, people = class_sizes(rows, ladders, node), people_of(rows, table.people, ladders, node)
    return Counter((size, len(people[name]) >= k) for name, size in sizes.items())


@pytest.mark.slow
@given(st.data(), st.integers(1, 8), st.integers(1, 3))
@settings(max_examples=150)
def test_a_class_has_k_people_or_not(data: st.DataObject, k: int, shares: int) -> None:
    table = data.draw(tables_of_people())
    root = data.draw(nodes_of(table.example))
    histogram = table.example.histogram(root)
    decided = np.zeros([hierarchy.levels - low for hierarchy, low in zip(table.example.hierarchies, root, strict=True)], np.int8)
    rolled = PersonRollUps(histogram, table.example.hierarchies, 100, decided, table.persons(root, shares), k)
    for _ in range(3):
        node = tuple(data.draw(st.integers(low, hierarchy.top)) for low, hierarchy in zip(root, table.example.hierarchies, strict=True))
        assert told(table, rolled, node, k) == counted(table, node, k)


@pytest.mark.ci
@given(st.data(), st.integers(1, 8), st.integers(0, 30), st.booleans())
@settings(max_examples=150)
def test_what_is_kept_on_the_way_changes_nothing(data: st.DataObject, k: int, capacity: int, narrow: bool) -> None:
    table = data.draw(tables_of_people())
    root = (0,) * len(table.example.hierarchies)
    with (
        patch(ROLLUPS_LARGE, 2),
        patch(ROLLUPS_SHRINK, 2),
        patch(CODING_WORD, 8 if narrow else 1 << 62),
    ):
        decided = np.zeros([hierarchy.levels for hierarchy in table.example.hierarchies], np.int8)
        rolled = PersonRollUps(table.example.histogram(root), table.example.hierarchies, capacity, decided, table.persons(root, 2), k)
        for node in data.draw(st.lists(nodes_of(table.example), max_size=8)):
            assert told(table, rolled, node, k, keep=data.draw(st.booleans())) == counted(table, node, k)
            decided[node] = data.draw(st.sampled_from([-1, 0, 1]))


@given(tables_of_people().filter(lambda table: any(hierarchy.top for hierarchy in table.example.hierarchies)), st.integers(1, 3))
def test_only_nodes_above_the_root_count_as_rolled_up(table: People, k: int) -> None:
    hierarchies = table.example.hierarchies
    root, top = (0,) * len(hierarchies), tuple(hierarchy.top for hierarchy in hierarchies)
    decided = np.zeros([hierarchy.levels for hierarchy in hierarchies], np.int8)
    rolled = PersonRollUps(table.example.histogram(root), hierarchies, 0, decided, table.persons(root, 1), k)
    for node, made in ((root, 0), (top, 1), (root, 1), (top, 2)):
        rolled.classes(node)
        assert rolled.made == made


@pytest.mark.parametrize("word", [8, 1 << 62])
def test_nodes_above_a_kept_one_have_the_people_that_were_kept_with_it(word: int) -> None:
    """Each level has half as many cells as the one below, so that it is kept, with whose its cells are."""
    rows, whose = [(value, value // 8) for value in range(16) for _ in range(3)], [number % 7 for number in range(48)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    hierarchies = built({"widths": [2, 4, 8]}, domains[0]), built({"widths": [2]}, domains[1])
    table = People(Example(rows, domains, hierarchies), list[int | None](whose))
    nodes = [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (4, 1)]
    with patch(ROLLUPS_LARGE, 2), patch(CODING_WORD, word):
        for k in (3, 6):
            decided = np.zeros([hierarchy.levels for hierarchy in hierarchies], np.int8)
            rolled = PersonRollUps(table.example.histogram((0, 0)), hierarchies, 100, decided, table.persons((0, 0), 2), k)
            for node in nodes:
                assert told(table, rolled, node, k, keep=True) == counted(table, node, k)
            kept = [base.node for base in rolled._kept]
            assert {(0, 0), (1, 0), (2, 0)} <= set(kept)
            assert rolled.made == len(nodes) + len(kept) - 1


@pytest.mark.ci
@given(st.data(), st.integers(1, 6), st.booleans())
@settings(max_examples=150)
def test_everybody_counts_once_for_each_of_their_values(data: st.DataObject, k: int, kept: bool) -> None:
    table = data.draw(tables_of_people(3).filter(lambda table: len(table.example.domains) > 1))
    *qids, last = range(len(table.example.hierarchies))
    sensitive = table.example.domains[last]
    axes = (*table.example.hierarchies[:last], exact_hierarchy(sensitive))
    root = (0,) * len(axes)
    node = (*(data.draw(st.integers(0, axes[qid].top)) for qid in qids), 0)
    with patch(ROLLUPS_LARGE, 2 if kept else 1 << 20), patch(ROLLUPS_SHRINK, 2):
        decided = np.zeros([axis.levels for axis in axes], np.int8)
        rolled = PersonRollUps(table.example.histogram(root), axes, 100, decided, table.persons(root, 2), k, len(qids))
        whole = rolled.source_value_counts("s", last, sensitive.size)
        cheap = rolled.spread(classes := rolled.classes(node), last, whole, exact=False)
        exact = rolled.spread(rolled.classes(node, from_root=True), last, whole, exact=True)
    values = [row[last] for row in table.example.rows]
    ladders = table.example.ladders[:last]
    groups = [tuple(ladder[level][value] for ladder, level, value in zip(ladders, node, row, strict=False)) for row in table.example.rows]
    expected = values_of(table.people, groups, values)
    assert Counter(exact.counts.tolist()) == Counter(count for each in expected.values() for count in each.values())
    kinds = Counter(len(each) for each in expected.values())
    assert Counter(np.bincount(exact.owners).tolist()) - Counter({0: 99}) == kinds
    assert Counter(np.bincount(cheap.owners).tolist()) - Counter({0: 99}) == kinds
    assert len(classes.records) == len(set(groups))
    everybody = values_of(table.people, [0] * len(groups), values)
    assert sorted(whole[whole > 0].tolist()) == sorted(everybody[0].values())
