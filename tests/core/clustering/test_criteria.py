"""Classes of records keep the other privacy models too, once the failing ones are merged."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clustering.gower import gower_points
from core.clustering.merged_classes import Criteria, merge_failing, without_failing
from core.clustering.vptree import VantageTree
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, RecursiveDiversity
from core.privacy.promise import Promise
from tests.oracles.records import Records, by_class, mixed_records
from tests.oracles.tables import observed

MODELS = [
    Promise(1, (DistinctDiversity("s", 2),)),
    Promise(1, (DistinctDiversity("s", 3),)),
    Promise(1, (EntropyDiversity("s", 1.8),)),
    Promise(1, (RecursiveDiversity("s", Fraction(2), 2),)),
    Promise(1, (Closeness("s", 0.3),)),
    Promise(4, (DistinctDiversity("s", 2),)),
]


@pytest.mark.slow
@given(mixed_records(least=4), st.sampled_from(MODELS), st.data())
def test_no_class_fails_that_is_published(records: Records, model, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=len(records.rows), max_size=len(records.rows)))
    domain = observed("s", values, pa.string())
    codes = np.array([[*domain.values.to_pylist(), None].index(value) for value in values])
    whole = np.bincount(codes, minlength=domain.size)
    criteria = Criteria(model, {"s": codes}, {"s": whole})
    points = gower_points(records.codes, records.domains)
    before = VantageTree(2).partition(points)
    merged, failed = merge_failing(points, before, criteria.failing)
    published = without_failing(merged, criteria.failing)
    assert not criteria.failing(published).any() or not (published >= 0).any()
    assert failed or np.array_equal(merged, before)
    # Classes are merged whole.
    assert all(any(part <= union for union in by_class(merged)) for part in by_class(before))
    # Nothing is suppressed unless all records together fail.
    assert (published >= 0).all() or not (published >= 0).any()


@pytest.mark.parametrize(("values", "fails"), [("aabb", [False, False]), ("abab", [False, False]), ("aaab", [True, False])])
def test_a_class_is_looked_at_with_its_own_values(values: str, fails: list[bool]) -> None:
    classes = np.array([0, 1, 0, 1] if values == "aabb" else [0, 0, 1, 1], np.int32)
    codes = np.array([sorted(set(values)).index(value) for value in values])
    whole = np.bincount(codes)
    assert Criteria(Promise(1, (DistinctDiversity("s", 2),)), {"s": codes}, {"s": whole}).failing(classes).tolist() == fails
