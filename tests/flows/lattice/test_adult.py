"""The Adult set end to end, from CSV files and a job file: the optimum that an exhaustive search over all 6,480 nodes found."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Anonymise
from tests.jobs import class_sizes, released, write_job
from tests.places import ADULT

QIDS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]

pytestmark = pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult set is not beside the checkout")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adult")
    qids = [{"name": name, "hierarchy": {"csv": str(ADULT / f"hierarchy_{name}.csv")}} for name in QIDS]
    parts = {
        "version": 1,
        "name": "adult",
        "source": {"path": str(ADULT / "adult.csv"), "delimiter": ";", "types": {"age": "integer"}},
        "columns": {"quasi_identifiers": qids, "sensitive": ["salary-class"], "insensitive": []},
        "privacy": {"k": 5},
        "method": {"name": "skald", "objective": "dm_star"},
        "memory": "512MB",
        "target": "releases",
    }
    return write_job(folder, parts)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("k", "limit", "objective", "node", "value", "suppressed"),
    [
        (5, 0.01, "dm_star", (1, 0, 1, 1, 3, 2, 2, 1), 4_053_144, 134),
        (5, 0.01, "dm_all", (1, 0, 1, 1, 3, 2, 2, 1), 4_035_534, 134),
        (10, 0.05, "dm_star", (1, 0, 1, 2, 3, 2, 2, 0), 3_382_742, 1_043),
        (10, 0.05, "dm_all", (0, 0, 1, 2, 2, 2, 2, 1), 2_129_936, None),
    ],
)
def test_optimum_is_that_of_an_exhaustive_search(anonymise: Anonymise, job: Path, k, limit, objective, node, value, suppressed) -> None:
    made = anonymise(job, f"privacy.k={k}", f"suppression.limit={limit}", f"method.objective={objective}")
    manifest, frame = made.manifest, released(made.folder)
    assert (manifest.node, made.untold.loss[objective], manifest.optimal) == (node, value, "certified")
    assert suppressed in (None, manifest.suppressed)
    assert manifest.records == 30_162 == len(frame) + manifest.suppressed
    sizes = class_sizes(frame, QIDS)
    assert (len(sizes), min(sizes.values())) == (manifest.classes, manifest.min_class)
    assert manifest.min_class >= k
    lost = 30_162 - len(frame)
    assert manifest.loss["dm_star"] == sum(size * size for size in sizes.values()) + lost * lost


@pytest.mark.slow
def test_rare_records_need_one_star_each_and_fewer_than_k_are_left_out(anonymise: Anonymise, job: Path) -> None:
    made = anonymise(job, "privacy.k=10", "suppression={limit: 0.05, treatment: cell}")
    manifest, frame = made.manifest, released(made.folder)
    remainder = manifest.remainder
    assert remainder is not None
    # Node and DM* are those of the exhaustive search above.
    assert (manifest.node, remainder.dm_star, remainder.records) == ((1, 0, 1, 2, 3, 2, 2, 0), 3_382_742, 1_043)
    assert (remainder.starred, remainder.stars, manifest.suppressed) == (1_034, 1_034, 9)
    assert manifest.loss["dm_star"] == sum(size * size for size in class_sizes(frame, QIDS).values()) + 81
    again = anonymise(job, "privacy.k=10", "suppression={limit: 0.05, rounds: 2}").manifest
    assert [one.records for one in again.remainder.rounds] == [930, 95]
    assert (again.suppressed, len(frame)) == (18, 30_162 - 9)


@pytest.mark.ci
def test_two_salaries_in_every_class(anonymise: Anonymise, job: Path) -> None:
    made = anonymise(job, "privacy={k: 5, l: {salary-class: {distinct: 2}}}", "suppression.limit=0.05")
    manifest, frame = made.manifest, released(made.folder)
    assert (manifest.node, manifest.loss["dm_star"], manifest.suppressed) == ((1, 0, 1, 1, 3, 2, 2, 2), 12_936_342, 1_488)
    assert (made.untold.search["passing"], manifest.optimal) == (1_006, "certified")
    assert frame.group_by(QIDS).agg(pl.col("salary-class").n_unique())["salary-class"].min() == 2
