"""An earlier partition applied to other records: the same cuts, labels of what the classes hold now, verified anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import PrivacyError
from schemas.errors.methods import ReplayError
from schemas.job.method import METHODS
from tasks.publication.verify_and_publish import PublishedRelease
from tests.jobs import QIDS, class_sizes, digests, people, people_job, released

TABLE = people(400)
MORE = people(150, seed=3)
LIMIT = "suppression.limit=0.3"
Run = Callable[..., PublishedRelease]


@pytest.fixture(scope="session")
def run() -> Run:
    flow = METHODS["mondrian"].flow.load()
    plain: Any = getattr(flow, "fn", flow)
    return lambda job, *settings: plain(job, tuple(settings))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Who is who is published, so that records can be followed from one release to the other."""
    path = people_job(tmp_path, TABLE, files=2, method={"name": "mondrian"})
    text = path.read_text().replace("  identifiers:\n  - person\n", "").replace("  - note\n", "  - note\n  - person\n")
    path.write_text(text)
    return path


def classes(release: PublishedRelease) -> dict[int, tuple[Any, ...]]:
    """The published combination of each person."""
    frame = released(release.folder)
    return dict(zip(frame["person"].to_list(), frame.select(QIDS).rows(), strict=True))


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [[], ["privacy.l={disease: {distinct: 2}}"]])
def test_on_its_own_data_a_partition_is_the_release_it_was(run: Run, job: Path, settings: list[str]) -> None:
    first = run(job, *settings)
    again = run(job, f"replay={first.manifest.release}", *settings)
    assert digests(again.folder) == digests(first.folder)
    assert again.manifest.loss == first.manifest.loss
    assert again.manifest.replay_of == first.manifest.release


@pytest.mark.slow
def test_records_that_shared_a_class_share_one_again_whatever_came(run: Run, job: Path, tmp_path: Path) -> None:
    first = run(job)
    pq.write_table(MORE.set_column(0, "person", [[*range(1000, 1150)]]), tmp_path / "people" / "zzz.parquet")
    other, again = run(job), run(job, f"replay={first.manifest.release}")
    assert class_sizes(released(again.folder), QIDS).total() == 550
    before, now = classes(first), classes(again)
    pairs = pl.DataFrame({"before": [str(before[who]) for who in before], "now": [str(now[who]) for who in before]})
    assert pairs.group_by("before", "now").len()["len"].min() >= 5  # type: ignore[operator]
    [overlap] = [overlap for overlap in again.untold.overlaps if overlap.release == first.manifest.release]
    assert (overlap.shared, overlap.shared_at_risk) == (400, 0)
    [worse] = other.untold.overlaps
    assert (worse.shared_at_risk or 0) > 0
    chained = run(job, f"replay={again.manifest.release}")
    assert digests(chained.folder) == digests(again.folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("treatment", ["drop", "mask"])
def test_classes_that_lost_too_many_records_are_suppressed_within_the_limit(run: Run, job: Path, tmp_path: Path, treatment: str) -> None:
    first = run(job)
    pq.write_table(TABLE.slice(200, 170), tmp_path / "people" / "001.parquet")
    settings = [f"replay={first.manifest.release}", f"suppression.treatment={treatment}"]
    with pytest.raises(PrivacyError, match=r"do not hold here: [0-9]+ records of 370 are in classes that fail"):
        run(job, *settings)
    made = run(job, *settings, LIMIT)
    manifest, sizes = made.manifest, class_sizes(released(made.folder), QIDS)
    assert 0 < manifest.suppressed <= 0.3 * 370
    if treatment == "mask":
        assert sizes.pop(("*",) * len(QIDS)) == manifest.masked == manifest.suppressed
    assert min(sizes.values()) >= 5
    assert sizes.total() == 370 - manifest.suppressed
    assert manifest.loss["suppression_rate"] == manifest.suppressed / 370
    assert manifest.loss["dm_star"] == sum(size * size for size in sizes.values()) + manifest.suppressed**2


@pytest.mark.ci
def test_cuts_that_cannot_be_found_again_are_refused(run: Run, job: Path, tmp_path: Path) -> None:
    release = run(job).manifest.release
    for settings, said in (
        (["privacy.k=7"], "was cut under other promises"),
        (["method.score=entropy"], "was cut under other promises"),
        (["columns.quasi_identifiers.1.hierarchy.widths=[1, 4]"], r"\('age'\)"),
    ):
        with pytest.raises(ReplayError, match=said):
            run(job, f"replay={release}", *settings)
    fragments = run(job, "method.fragments.count=2").manifest.release
    with pytest.raises(ReplayError, match="in fragments or by relaxed cuts"):
        run(job, f"replay={fragments}", "method.fragments.count=2")
    shutil.rmtree(tmp_path / ".skald")
    with pytest.raises(ReplayError, match="are not in this run folder any more"):
        run(job, f"replay={release}")
