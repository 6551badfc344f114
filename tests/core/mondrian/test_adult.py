"""Cuts on the Adult census data: what prices of labels and a learnt order have brought must not get lost."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from benchmarks.mondrian import Table, asked, shuffled, tables, whole
from core.mondrian.ranks import CutAxis
from tests.places import ADULT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult data are not part of the project")]


@pytest.fixture(scope="module")
def table() -> Table:
    return next(tables(argparse.Namespace(adult=ADULT)))[1]


def lost(table: Table, k: int, axes: tuple[CutAxis, ...]) -> float:
    return whole(asked(table, k, score="ncp", axes=axes), [np.arange(len(table.codes))])["gcp"]


@pytest.mark.parametrize(("k", "most"), [(5, 0.072), (10, 0.109), (25, 0.162), (100, 0.262)])
def test_less_is_lost_in_the_order_that_is_learnt_than_in_any_other(table: Table, k: int, most: float) -> None:
    found = lost(table, k, table.learnt)
    assert found <= most
    assert found < lost(table, k, table.cutting.axes)
    assert all(found < lost(table, k, shuffled(table, seed)) for seed in range(3))
