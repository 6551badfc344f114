"""Pilot runs keep the k and the l of the draft, so that the proposed method is the one that loses least under it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.job import load_job
from tasks.planning.draft import DraftedJob, draft_job
from tasks.planning.open_sources import SourceOptions
from tests.conftest import Anonymise

ROWS = 600


def drafted(folder: Path, *, bound: bool) -> tuple[DraftedJob, dict[str, float]]:
    """Draft a job for patients, whose diagnosis their age decides where ``bound``; return also the figures in its comment."""
    random = np.random.default_rng(7)
    age = random.integers(20, 80, ROWS)
    zips, sex = [f"{number:05d}" for number in random.integers(10_000, 10_040, ROWS)], random.choice(["f", "m"], ROWS)
    diagnosis = age // 20 if bound else random.integers(0, 3, ROWS)
    table = pa.table({"age": age, "zip": zips, "sex": sex, "diagnosis": [f"d{number}" for number in diagnosis]})
    pq.write_table(table, folder / "people.parquet")
    made = draft_job(SourceOptions((str(folder / "people.parquet"),)), folder / "job.yaml")
    [line] = re.findall("^# GCP of a sample as published, by k and l [^:]*: (.*)$", (folder / "job.yaml").read_text(), re.MULTILINE)
    return made, {way: float(lost) for way, lost in re.findall(r"(\{[^}]*\}) ([\d.]+\d)", line)}


@pytest.mark.parametrize(("bound", "method"), [(False, "kmember"), (True, "skald")])
def test_a_method_whose_classes_l_would_merge_is_not_proposed(tmp_path: Path, *, bound: bool, method: str) -> None:
    made, figures = drafted(tmp_path, bound=bound)
    job = load_job(tmp_path / "job.yaml")
    assert job.privacy.l["diagnosis"].distinct == 3
    assert job.method.name == method
    assert made.promises == "by k and l"
    assert made.gcp == pytest.approx(min(figures.values()), abs=0.0005)


@pytest.mark.ci
@pytest.mark.parametrize("bound", [False, True])
def test_the_figure_of_each_method_is_what_it_publishes_under_the_draft(tmp_path: Path, anonymise: Anonymise, *, bound: bool) -> None:
    _, figures = drafted(tmp_path, bound=bound)
    assert list(figures) == ["{name: skald}", "{name: mondrian, score: ncp}", "{name: kmember}"]
    for way, lost in figures.items():
        published = anonymise(tmp_path / "job.yaml", f"method={way}", f"target=releases/{list(figures).index(way)}")
        assert published.untold.loss["gcp"] == pytest.approx(lost, abs=0.0005), way
