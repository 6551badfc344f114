"""``skald utility``: every figure is that of plain counting, for any method, and nothing is published by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import StorageError, VerificationError
from schemas.errors.methods import UtilityError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.engine.progress import listening
from tasks.utility.utility import Utility, measure_utility
from tests.conftest import Anonymise, CommandLine, snapshot
from tests.house.replaced import UTILITY_MOST_CLASSES
from tests.jobs import LEVELS, QIDS, data_files, people, people_job, released

TABLE = people(400)


def measured(job: Path, release: Path, *settings: str, queries: int = 50, seed: int = 0, target: str | None = None) -> Utility:
    return measure_utility(load_job(job, settings), release, queries, seed, target)


def spread(before: list[Any], after: list[Any], level: int, qid: str) -> dict[Any, float]:
    """Shares of the values after, every published label spread evenly over the source's values that it stands for."""
    label, top = LEVELS[qid][level], level == len(LEVELS[qid]) - 1
    members: dict[Any, list[Any]] = {}
    for value in set(before):
        members.setdefault(label(value) if value is not None or top else None, []).append(value)
    shares = dict.fromkeys(set(before), 0.0)
    for published in after:
        for value in members[published]:
            shares[value] += 1 / len(members[published]) / len(after)
    return shares


@pytest.mark.ci
def test_marginals_are_those_of_records_spread_one_by_one(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    made = anonymise(job, "privacy.k=3", "suppression.limit=0.3", "method.objective=dm_star")
    found, frame = measured(job, made.folder), released(made.folder)
    assert (found.records, found.released, found.suppressed) == (400, len(frame), made.manifest.suppressed)
    assert made.manifest.levels is not None
    for qid, level in made.manifest.levels.items():
        before, after = TABLE[qid].to_pylist(), spread(TABLE[qid].to_pylist(), frame[qid].to_list(), level, qid)
        moved = sum(abs(before.count(value) / 400 - share) for value, share in after.items()) / 2
        assert found.columns[qid].marginal == pytest.approx(moved)
        generalised = found.columns[qid].generalised * len(frame) + found.suppressed
        assert generalised / 400 == pytest.approx(made.manifest.ncp[qid])


@pytest.mark.slow
def test_an_unchanged_copy_answers_everything_exactly(tmp_path: Path) -> None:
    job, copy = people_job(tmp_path, TABLE), tmp_path / "copy" / "data"
    copy.mkdir(parents=True)
    pl.from_arrow(TABLE.select([*QIDS, "disease", "note", "score", "visits"])).write_parquet(copy / "all.parquet")  # type: ignore[union-attr]
    found = measured(job, copy.parent, target="disease")
    assert {(one.generalised, one.marginal) for one in found.columns.values()} == {(0.0, 0.0)}
    assert (found.queries.mean, found.queries.median) == (0.0, 0.0)
    assert found.classifier is not None
    assert found.classifier.source == found.classifier.release


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "settings",
    [
        ["intervals=bounds"],
        ["suppression.treatment=mask", "suppression.limit=0.3"],
        ["suppression={limit: 0.3, treatment: cell, rounds: 1}"],
        ["method={name: rayden}", "suppression.limit=0.5"],
        ["method={name: clustering}"],
        ["method={name: rayden}", "suppression.limit=0.5", "intervals=bounds"],
    ],
    ids=["bounds", "masked records", "starred values and a round", "local", "clustering", "local bounds"],
)
def test_every_kind_of_release_can_be_read(tmp_path: Path, settings: list[str]) -> None:

    job = people_job(tmp_path, TABLE)
    flow = METHODS[load_job(job, settings).method.name].flow.load()
    found = measured(job, flow(job, tuple(settings)).folder, *settings, target="disease")
    assert all(0 <= one.generalised <= 1 and 0 <= one.marginal <= 1 for one in found.columns.values())
    assert any(one.generalised > 0 for one in found.columns.values())
    assert 0 < found.queries.median < 5


@pytest.mark.ci
def test_the_same_seed_measures_the_same_and_publishes_nothing(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=3)
    folder = anonymise(job).folder
    before = snapshot(tmp_path / "releases")
    first = measured(job, folder, seed=7, target="disease")
    assert first == measured(job, folder, seed=7, target="disease")
    assert first.queries != measured(job, folder, seed=8).queries
    assert snapshot(tmp_path / "releases") == before


def test_queries_on_the_release_follow_its_uniform_groups(tmp_path: Path) -> None:
    # All ages at *: half the ages, or a third, are asked for; the truth is far from uniform.
    table = pa.table({"q": [1] * 90 + [2] * 5 + [3] * 5, "s": ["x", "y"] * 50})
    columns: Mapping[str, Any] = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [10]}}], "sensitive": ["s"]}
    job = people_job(tmp_path, table, columns=columns)
    (tmp_path / "star" / "data").mkdir(parents=True)
    pl.DataFrame({"q": ["*"] * 100, "s": ["x", "y"] * 50}).write_parquet(tmp_path / "star" / "data" / "all.parquet")
    heard = dict[str, list[int]]()
    with listening(lambda step, done, total: heard.setdefault(step, []).append(done * 400 // total)):
        found = measured(job, tmp_path / "star", queries=400)
    for step in ("count queries", "counts over 2", "counts over 3"):
        assert heard[step] == sorted(set(heard[step])) and len(heard[step]) > 9 and heard[step][-1] == 400
    # Truth of [1], x: 45, the release says 100 / 3 / 2.
    assert found.queries.median == pytest.approx(abs(100 / 6 - 45) / 45)
    assert (found.columns["q"].generalised, found.columns["q"].marginal) == (1.0, pytest.approx(0.9 - 1 / 3))


@pytest.mark.parametrize("lost", ["zip", "disease", "note"])
def test_a_release_without_columns_of_the_job_is_called_that_of_another_job(tmp_path: Path, lost: str) -> None:
    job, data = people_job(tmp_path, people(40)), tmp_path / "other" / "data"
    data.mkdir(parents=True)
    columns = [name for name in (*QIDS, "disease", "note", "score", "visits") if name != lost]
    pl.from_arrow(people(40).select(columns)).write_csv(data / "all.csv")  # type: ignore[union-attr]
    with pytest.raises(VerificationError, match=f"'{lost}' is missing from the data files"):
        measured(job, data.parent)


@pytest.mark.ci
def test_what_cannot_be_measured_is_told_in_one_sentence(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    folder = anonymise(job).folder
    with pytest.raises(UtilityError, match=r"'diseas' is not among .*'disease'"):
        measured(job, folder, target="diseas")
    with (
        patch(UTILITY_MOST_CLASSES, 3),
        pytest.raises(UtilityError, match=r"'disease' has 4 values; a classifier tells .* of 2 to 3"),
    ):
        measured(job, folder, target="disease")
    with patch("tasks.utility.utility.find_spec", return_value=None), pytest.raises(UtilityError, match=r"pip install 'skald\[utility\]'"):
        measured(job, folder, target="disease")
    path = data_files(folder)[0]
    frame = pl.read_parquet(path).with_columns(pl.lit("canary").alias("zip"))
    frame.write_parquet(path)
    with pytest.raises(StorageError, match="1 label of 'zip' in neither its hierarchy") as refused:
        measured(job, folder)
    assert "canary" not in str(refused.value)


@pytest.mark.ci
def test_the_command_shows_figures_and_prints_json(direct: CommandLine) -> None:
    job = people_job(direct.folder / "job", TABLE)
    assert direct("run", job).returncode == 0
    folder = direct.folder / "job" / "releases"
    release = folder / (folder / "CURRENT").read_text().strip()
    shown = direct("utility", release, "--job", job, "--target", "disease", "--queries", 20)
    assert shown.returncode == 0, shown.stderr
    assert "20 queries" in shown.stdout and "'disease' told" in shown.stdout
    printed = json.loads(direct("utility", release, "--job", job, "--queries", 20, "--json").stdout)
    assert set(printed["columns"]) == set(QIDS)
    assert printed["classifier"] is None
    wrong = direct("utility", release, "--job", job, "--target", "person")
    assert (wrong.returncode, wrong.stdout) == (2, "")
