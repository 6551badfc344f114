"""The tree of an earlier partition leads its own rows to their classes, and new values to those of their neighbours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.classes import RowTable
from core.mondrian.partition import Rules
from core.mondrian.ranks import Order, axis_of
from core.mondrian.recoding import Cutting
from core.mondrian.replay import leaves_of, ranks_of_new_values, tree_of, union_of_domains
from core.privacy.promise import Promise
from schemas.job.columns import QuasiIdentifier
from tests.laws import tried

AGE = QuasiIdentifier.model_validate({"name": "age", "hierarchy": {"widths": [1, 10]}})
COLOUR = QuasiIdentifier.model_validate({"name": "colour", "hierarchy": {"tree": {"warm": ["red", "gold"], "cold": ["blue", "aqua"]}}})
QIDS = (AGE, COLOUR)
ROWS = st.lists(st.tuples(st.sampled_from([None, *range(12)]), st.sampled_from([None, "red", "gold", "blue", "aqua"])), min_size=4)


def domain_of(name: str, values: list[object]) -> Domain:
    known = [value for value in values if value is not None]
    distinct = sorted(set(known))  # type: ignore[type-var]
    counts = np.array([known.count(value) for value in distinct], np.int64)
    return Domain(name, pa.array(distinct, pa.int64() if name == "age" else pa.string()), counts, len(values) - len(known))


def codes_of(domain: Domain, values: list[object]) -> list[int]:
    known = domain.values.to_pylist()
    return [len(known) if value is None else known.index(value) for value in values]


def cutting_of(rows: list[tuple[object, ...]], k: int, order: Order = "listed") -> tuple[Cutting, np.ndarray]:
    domains = [domain_of(qid.name, [row[number] for row in rows]) for number, qid in enumerate(QIDS)]
    hierarchies = [build_hierarchy(qid, domain, Path()) for qid, domain in zip(QIDS, domains, strict=True)]
    axes = [axis_of(qid, domain, hierarchy, Path(), order) for qid, domain, hierarchy in zip(QIDS, domains, hierarchies, strict=True)]
    codes = np.array([codes_of(domain, [row[number] for row in rows]) for number, domain in enumerate(domains)], np.uint16).T
    return Cutting(tuple(axes), tuple(domains), tuple(hierarchies), Rules(Promise(k)), (None, None)), codes


def places(old: Cutting, new: Cutting, order: Order = "listed") -> list[np.ndarray]:
    found = []
    for qid, before, axis, now in zip(QIDS, old.domains, old.axes, new.domains, strict=True):
        both = union_of_domains(before, now)
        found.append(ranks_of_new_values(before, axis, now, both, axis_of(qid, both, build_hierarchy(qid, both, Path()), Path(), order)))
    return found


@given(ROWS, st.integers(1, 4))
@tried(60)
def test_the_tree_of_a_partition_leads_its_rows_to_their_classes(rows: list[tuple[object, ...]], k: int) -> None:
    cutting, codes = cutting_of(rows, k)
    weights = np.ones(len(rows), np.int64)
    tree, made = tree_of(cutting, RowTable.of(codes, weights)), cutting.cut(codes, weights)
    leaves = leaves_of(tree, codes, places(cutting, cutting))
    assert tree.leaves == made.classes
    assert leaves.tolist() == made.of_rows().tolist()


@given(ROWS, ROWS, st.integers(1, 3), st.sampled_from(["listed", "ends", "ascending"]))
@tried(60)
def test_equal_rows_of_other_data_come_to_the_class_they_had(
    rows: list[tuple[object, ...]], others: list[tuple[object, ...]], k: int, order: Order
) -> None:
    cutting, codes = cutting_of(rows, k, order)
    other, other_codes = cutting_of(others, 1, order)
    tree = tree_of(cutting, RowTable.of(codes, np.ones(len(rows), np.int64)))
    leaves = dict(zip(rows, leaves_of(tree, codes, places(cutting, cutting, order)).tolist(), strict=True))
    found = leaves_of(tree, other_codes, places(cutting, other, order)).tolist()
    assert all(leaves.get(row, leaf) == leaf for row, leaf in zip(others, found, strict=True))


@pytest.mark.parametrize("nulls_before", [True, False])
def test_a_null_stands_after_all_values_also_where_the_old_records_had_none(nulls_before: bool) -> None:
    old, _ = cutting_of([(2, colour) for colour in ("red", "gold", "blue", "aqua", *([None] if nulls_before else []))], 1)
    other, codes = cutting_of([(2, "red"), (2, None)], 1)
    place = places(old, other)[1]
    assert [int(place[code]) for code in codes[:, 1]] == [0, 4 if nulls_before else 3]


@pytest.mark.parametrize(("new", "place"), [(1, -1), (2, 0), (3, 0), (5, 1), (9, 2), (None, 2)])
def test_a_new_value_stands_with_the_nearest_old_one_before_it(new: int | None, place: int) -> None:
    old, _ = cutting_of([(2, "red"), (4, "red"), (7, "red")], 1)
    other, _ = cutting_of([(new, "red")], 1)
    assert places(old, other)[0].tolist() == [place]
