"""The algorithms on single records on the Adult census data: what the experiments found must not get worse."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rayden import Table, adult, clustering, rayden, rayden_step
from core.clustering.cof import outlier_factors, outliers
from core.clustering.gower import gower_points
from core.clustering.merged_classes import ClassPublication, recode_records
from core.clustering.outlier_step import OutlierStep
from core.clustering.vptree import VantageTree
from tests.places import ADULT

pytestmark = pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult data are not part of the project")


@pytest.fixture(scope="module")
def table() -> Table:
    return adult(ADULT)


def test_gowers_tree_is_as_good_as_the_prototype(table: Table) -> None:
    points = gower_points(table.codes, table.domains)
    classes = VantageTree(10, vantage="farthest").partition(points)
    loss = recode_records(table.codes, classes, table.domains, table.hierarchies, ClassPublication(10)).loss
    assert loss["gcp_held"] <= 0.101
    assert loss["dm_partitions"] == 301_644
    assert loss["c_avg_partitions"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(("k", "gcp"), [(5, 0.1103), (10, 0.1667), (20, 0.2364)])
def test_categories_compared_by_their_hierarchies_lose_less(table: Table, k: int, gcp: float) -> None:
    figures = rayden(table, k)
    assert figures[1] == pytest.approx(1, abs=1e-3)
    assert figures[2] <= gcp < clustering(table, k)[2]


@pytest.mark.parametrize("k", [10, 20, 50])
def test_outliers_that_leave_are_all_recovered(table: Table, k: int) -> None:
    found = rayden_step(table, k, OutlierStep(k, pool="suppress"), VantageTree(k, "median"), by_hierarchy=False)
    assert found.records_left == found.detected > 0
    assert found.recovered == found.records_left
    assert found.suppressed == 0
    assert np.bincount(found.classes).min() >= k


def test_partitions_of_five_have_no_outliers(table: Table) -> None:
    points = gower_points(table.codes, table.domains)
    classes = VantageTree(5).partition(points)
    fives = np.bincount(classes)[classes] == 5
    assert not outliers(outlier_factors(points, classes, 5), classes, 2.0)[fives].any()
