"""Classes in which nulls meet values say so, are read back by the recount, and cost the same wherever they are priced."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import JobError, VerificationError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tasks.utility.utility import measure_utility
from tests.jobs import released, write_job, write_parquet

LOCAL = [name for name, entry in METHODS.items() if not entry.one_level]
WORDS = ["a", "null", '"null"', "b, null", "none"]
TREE = {"World": {"left": ["a", "null", "unknown"], "right": ['"null"', "b, null", "none"]}}
WAYS = ["hierarchy", "set", "prefix"]


def table(rows: int = 300) -> pa.Table:
    """A third of all values are null, and words look like it."""
    random = Random(5)

    def some(values: list[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array([None if random.random() < 0.3 else random.choice(values) for _ in range(rows)], dtype)

    days = [date(2020, 1, 1) + timedelta(days=9 * step) for step in range(40)]
    qids = {"word": some(WORDS, pa.string()), "age": some(list(range(20, 60)), pa.int64()), "day": some(days, pa.date32())}
    return pa.table(qids | {"ill": some([1, 2], pa.int64())})


def job_file(folder: Path, tree: dict[str, Any] | None = None, **parts: Any) -> Path:
    write_parquet(folder / "people", table(), files=2)
    hierarchies: dict[str, Any] = {"word": tree or {"tree": TREE}, "age": {"widths": [5, 20]}, "day": {"date": ["month", "year"]}}
    qids = [{"name": name, "hierarchy": hierarchy} for name, hierarchy in hierarchies.items()]
    columns = {"person": "none", "quasi_identifiers": qids, "sensitive": ["ill"], "insensitive": []}
    job = {"version": 1, "name": "nulls", "source": {"path": "people/*.parquet"}, "columns": columns, "privacy": {"k": 4}}
    return write_job(folder, job | {"suppression": {"limit": 0.5}, "memory": "256MB", "target": "releases"} | parts)


def run(job: Path) -> PublishedRelease:
    flow = METHODS[load_job(job).method.name].flow.load()
    made: PublishedRelease = getattr(flow, "fn", flow)(job, ())
    return made


def all_agree(job: Path, made: PublishedRelease, frame: pl.DataFrame) -> None:
    verify_release(load_job(job), made.folder)
    found = measure_utility(load_job(job), made.folder, 20, 0, None)
    wide = sum(one.generalised for one in found.columns.values()) / 3 * len(frame)
    dropped = made.manifest.suppressed - made.manifest.masked
    assert (wide + dropped) / 300 == pytest.approx(made.untold.loss["gcp"])
    assert made.manifest.loss.get("gcp_held", 0) <= made.manifest.loss["gcp"] + 1e-9


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("method", "way"), [(name, None) for name in LOCAL] + [(name, way) for name in ("mondrian", "kmember") for way in WAYS]
)
def test_the_recount_and_every_price_agree_about_sets_with_nulls(tmp_path: Path, method: str, way: str | None) -> None:
    job = job_file(tmp_path, method={"name": method} | ({"generalisation": way} if way else {}))
    made = run(job)
    frame = released(made.folder)
    labels = [label for name in ("word", "age", "day") for label in frame[name].drop_nulls() if label.endswith(", null}")]
    assert labels
    all_agree(job, made, frame)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["csv", "duckdb"])
def test_other_forms_hold_the_same_labels(tmp_path: Path, form: str) -> None:
    job = job_file(tmp_path, method={"name": "kmember", "generalisation": {"word": "set"}}, output={"format": form})
    made = run(job)
    verify_release(load_job(job), made.folder)
    assert made.untold.loss["gcp"] == pytest.approx(measured_gcp(job, made))
    plain = run(job_file(tmp_path / "parquet", method={"name": "kmember", "generalisation": {"word": "set"}}))
    assert (made.manifest.ncp, made.manifest.loss) == (plain.manifest.ncp, plain.manifest.loss)


def measured_gcp(job: Path, made: PublishedRelease) -> float:
    found = measure_utility(load_job(job), made.folder, 20, 0, None)
    return sum(one.generalised for one in found.columns.values()) / 3


@pytest.mark.ci
def test_a_label_that_leaves_the_null_out_is_noticed(tmp_path: Path) -> None:
    job = job_file(tmp_path, method={"name": "kmember"})
    made = run(job)
    [path] = list((made.folder / "data").iterdir())
    frame = pl.read_parquet(path)
    told = frame["age"].str.replace(r"^\{(.*), null\}$", "$1")
    pl.DataFrame(frame.with_columns(told)).write_parquet(path)
    with pytest.raises(VerificationError, match="'age'"):
        verify_release(load_job(job), made.folder)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "kmember", "clustering"])
def test_a_null_that_a_leaf_stands_for_is_grouped_with_it(tmp_path: Path, method: str) -> None:
    (tmp_path / "words.csv").write_text('a;left;W\nnull;left;W\nunknown;left;W\n"""null""";right;W\nb, null;right;W\nnone;right;W\n')
    for number, tree in enumerate([{"tree": TREE, "nulls": "unknown"}, {"csv": "words.csv", "nulls": "unknown"}]):
        levels = {"levels": {"word": [1, 1]}} if method == "skald" else {}
        job = job_file(tmp_path, tree, method={"name": method} | levels, target=f"releases_{number}")
        made = run(job)
        frame = released(made.folder)
        assert not any(label.endswith(", null}") for label in frame["word"].drop_nulls())
        # Where the words are grouped, nulls are among those on the left.
        assert method != "skald" or set(frame["word"]) == {"left", "right"}
        all_agree(job, made, frame)


def test_a_leaf_that_is_not_listed_stands_for_nothing(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="leaf of the tree"):
        load_job(job_file(tmp_path, {"tree": TREE, "nulls": "secret"}, method={"name": "skald"}))
    (tmp_path / "words.csv").write_text("a;left\n")
    job = job_file(tmp_path, {"csv": "words.csv", "nulls": "secret"}, method={"name": "skald"})
    with pytest.raises(HierarchyError, match="stands for nulls") as refused:
        run(job)
    assert "secret" not in json.dumps(str(refused.value))
