"""The tree of an earlier partition leads its own rows to their classes, and new values to those of their neighbours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import Coder
from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from core.mondrian.fragments import tree_of
from core.mondrian.partition import Rules
from core.mondrian.ranks import Order, axis_of
from core.mondrian.recoding import Cutting
from core.mondrian.replay import leaves_of, ranks_of_new_values, replay_cells, union_of_domains
from core.privacy.models import DistinctDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from schemas.job.columns import QuasiIdentifier
from tests.laws import tried
from tests.oracles.attacked import by_class
from tests.oracles.hierarchies import built
from tests.oracles.minimality import told
from tests.oracles.tables import Example, observed

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
    tree, made = tree_of(cutting, codes, weights), cutting.cut(codes, weights)
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
    tree = tree_of(cutting, codes, np.ones(len(rows), np.int64))
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


def replayed(ages: list[int], values: list[int], treatment: str) -> tuple[list[list[int]], int, int]:
    """Return who is in which published class if each age is a leaf, with the numbers of suppressed and masked records."""
    age, secret = observed("age", ages, pa.int64()), observed("x", values, pa.int64())
    axis = built({"widths": [1, 10]}, age)
    cells = Example(list(zip(ages, values, strict=True)), (age, secret), (axis, exact_hierarchy(secret))).histogram((0, 0))
    rules = Rules(Promise(2, (DistinctDiversity("x", 2),)), ("x",), (secret.counts,))
    cutting = Cutting((axis_of(AGE, age, axis, Path(), "listed"),), (age,), (axis,), rules, (None,))
    made = replay_cells(cutting, cells, cells.codes[:, 0].astype(np.int64), treatment)
    codes = Coder(age, axis.groups[0]).code(pa.array(ages, pa.int64()))
    classes = made.recoding.assigner.assign(made.recoding.packing.pack([codes]))
    return by_class(classes), made.suppressed, made.masked


@pytest.mark.parametrize("treatment", ["drop", "mask"])
@pytest.mark.parametrize(
    ("values", "masked"),
    [
        # Three people of one age have the same value: that they were masked would tell it, for no other value is held by three.
        ([0, 0, 0, 1, 2, 1, 2], [3, 4]),
        ([0, 1, 2, 1, 1, 2, 0], []),
    ],
)
def test_who_is_masked_in_a_replay_follows_from_no_value(values: list[int], masked: list[int], treatment: str) -> None:
    ages = [20, 20, 20, 30, 40, 50, 50]
    published, suppressed, many = replayed(ages, values, treatment)
    safe = [members for members in ([0, 1, 2], [5, 6]) if len({values[one] for one in members}) > 1]
    assert published == [*safe, *([masked] if masked and treatment == "mask" else [])]
    assert (suppressed, many) == (7 - sum(map(len, safe)), len(masked) if treatment == "mask" else 0)
    if masked and treatment == "mask":
        disclosed = told(published, values, [0, 1], lambda world: replayed(ages, list(world), treatment)[0])
        assert disclosed.isdisjoint(one for members in published for one in members)
