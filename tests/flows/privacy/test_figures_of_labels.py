"""No figure of a release follows a value beyond its labels: the same data files have the same manifest, report and pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.publication.verify_and_publish import PublishedRelease
from tests.jobs import digests, write_job
from tests.laws import tried

RECORDS = 120
DIVERSE = "privacy.l={dx: {distinct: 2}}"
OWN = ("release", "job", "inputs", "created", "seconds", "peak_rss", "hierarchies", "documents", "seal", "replay_of")
"""Keys that are of one run: its name, digests of what it read, and times."""
JOB: dict[str, Any] = {
    "version": 1,
    "name": "figures",
    "source": {"path": "people.parquet"},
    "columns": {
        "identifiers": ["person"],
        "quasi_identifiers": [
            {"name": "age", "hierarchy": {"widths": [10, 20, 40], "top": 70}},
            {"name": "income", "hierarchy": {"widths": [1000, 5000], "top": 9000}},
            {"name": "zip", "hierarchy": {"prefix": [2, 1]}},
            {"name": "born", "hierarchy": {"date": ["year", "decade"], "bottom": 1945}},
            {"name": "job", "hierarchy": {"tree": {"*": {"care": ["nurse", "doctor", "midwife"], "craft": ["smith", "baker"]}}}},
        ],
        "sensitive": ["dx"],
        "insensitive": ["note"],
    },
    "privacy": {"k": 4},
    "suppression": {"limit": 0.1},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "releases",
}


def people(seed: int) -> pl.DataFrame:
    """Return people of whom two are far from all others in everything."""
    random = np.random.default_rng(seed)
    n = RECORDS
    table = pl.DataFrame(
        {
            "person": np.arange(n),
            "age": random.integers(20, 60, n),
            "income": random.integers(0, 8000, n),
            "zip": [f"{number:03d}" for number in random.integers(100, 140, n)],
            "born": [date(1950, 1, 1) + timedelta(days=int(days)) for days in random.integers(0, 12_000, n)],
            "job": random.choice(["nurse", "doctor", "smith", "baker"], n),
            "dx": random.choice(["flu", "hiv", "asthma"], n),
            "note": random.choice(["a", "b"], n),
        }
    )
    # Enough beyond each end for a class of their own.
    old = pl.when(pl.col("person") < 20)
    return table.with_columns(
        old.then(75 + pl.col("person")).otherwise(pl.col("age")).alias("age"),
        old.then(9000 + pl.col("person")).otherwise(pl.col("income")).alias("income"),
        old.then(pl.lit(date(1940, 1, 1))).otherwise(pl.col("born")).alias("born"),
    )


def with_value(table: pl.DataFrame, person: int, **values: Any) -> pl.DataFrame:
    """Return a table in which one person has other values."""
    mine = pl.col("person") == person
    return table.with_columns(
        pl.when(mine).then(pl.lit(value, table.schema[name])).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


def published(folder: Path, table: pl.DataFrame, job: Mapping[str, Any], *settings: str) -> PublishedRelease:
    """Publish a table in a folder of its own."""
    folder.mkdir(parents=True)
    table.write_parquet(folder / "people.parquet")
    path = write_job(folder, job)
    flow: Any = METHODS[load_job(path, settings).method.name].flow.load()
    made: PublishedRelease = getattr(flow, "fn", flow)(path, settings)
    return made


def told(made: PublishedRelease) -> tuple[Mapping[str, Any], str, str]:
    """Return what a release tells: manifest, report and page, without what is of one run."""
    said = json.loads((made.folder / "manifest.json").read_text())
    texts = []
    for name in ("report.html", "report.json"):
        text = (made.folder / name).read_text()
        for own in (said["release"], said["job"], said["inputs"], said["created"]):
            text = text.replace(own, "")
        texts.append(text)
    page, report = texts[0], {key: value for key, value in json.loads(texts[1]).items() if key not in OWN}
    manifest = {key: value for key, value in said.items() if key not in OWN}
    manifest["sources"] = [one["records"] for one in said["sources"]]
    return manifest, _without_times(page), json.dumps(report)


def _without_times(page: str) -> str:
    """Return a page without the lines of how long the run took, what it held, and when that was."""
    import re

    return re.sub(r"[0-9.,]+ (s|MB|GB)\b|[0-9]+ [A-Z][a-z]+ [0-9]{4}, [0-9:]+ UTC", "", page)


def same_figures(one: PublishedRelease, other: PublishedRelease) -> None:
    """Compare what two releases tell, key by key."""
    (manifest, page, report), (others, other_page, other_report) = told(one), told(other)
    assert manifest == others
    assert report == other_report
    assert page == other_page


FAR = {"age": 117, "income": 7_654_321, "born": date(1908, 6, 1)}
FARTHEST, BETWEEN = 19, 10
NEAR = {"income": 9_011}
"""Beyond all others, and the value of somebody else beyond the end: methods that measure distances choose the same classes then."""
METHODS_TRIED: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("method.name=skald",), FAR),
    (("method={name: mondrian, score: entropy}",), FAR),
    (("method.name=rayden",), NEAR),
    (("method={name: skald, objective: gcp, weights: {age: 2}}",), FAR),
    (("method={name: skald, objective: entropy}",), FAR),
    (("method.name=skald", "suppression.treatment=mask"), FAR),
]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("settings", "values"), METHODS_TRIED, ids=[" ".join(settings) for settings, _ in METHODS_TRIED])
def test_how_far_the_farthest_value_behind_an_end_lies_is_in_no_figure(
    tmp_path: Path, settings: tuple[str, ...], values: dict[str, Any]
) -> None:
    table = people(1)
    one = published(tmp_path / "one", table, JOB, *settings)
    other = published(tmp_path / "other", with_value(table, FARTHEST if values == FAR else BETWEEN, **values), JOB, *settings)
    assert digests(one.folder) == digests(other.folder)
    same_figures(one, other)
    assert one.manifest.loss["gcp"] > 0


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "settings",
    [("method={name: skald, node: [2, 3, 2, 2, 1]}",), ("method={name: skald, node: [1, 1, 3, 3, 2]}", "suppression.limit=0.9")],
    ids=["income withheld", "zip, born and job withheld"],
)
def test_what_a_withheld_level_covers_is_in_no_figure(tmp_path: Path, settings: tuple[str, ...]) -> None:
    table = people(2)
    one = published(tmp_path / "one", table, JOB, *settings)
    hidden = {"income": -5_000_000} if "2, 3, 2" in settings[0] else {"zip": "987", "job": "midwife", "born": date(1875, 3, 1)}
    other = published(tmp_path / "other", with_value(table, 30, **hidden), JOB, *settings)
    assert digests(one.folder) == digests(other.folder)
    same_figures(one, other)


LONE = {"age": 3, "zip": "999", "income": -77_777, "job": "smith"}
"""Who is like nobody, and so is not published."""
KEPT = TemporaryDirectory()


@cache
def with_a_lone_record(seed: int, settings: tuple[str, ...]) -> PublishedRelease:
    """Publish people of whom one is like nobody; once for all examples."""
    made = published(Path(KEPT.name, f"{seed}{len(settings)}"), with_value(people(seed), 30, **LONE), JOB, *settings)
    assert made.manifest.suppressed
    return made


@pytest.mark.ci
@tried(5)
@given(
    seed=st.integers(0, 1),
    settings=st.sampled_from([("method.name=skald",), ("method={name: skald, objective: gcp}", DIVERSE)]),
    age=st.integers(0, 120),
    zips=st.sampled_from(["000", "555", "119"]),
    income=st.integers(-(10**6), 10**6),
    dx=st.sampled_from(["flu", "hiv", "rare"]),
    note=st.sampled_from(["a", "b", "my own words"]),
    job=st.sampled_from(["midwife", "nurse"]),
)
def test_the_values_of_a_record_that_is_not_published_are_in_no_figure(
    seed: int, settings: tuple[str, ...], age: int, zips: str, income: int, dx: str, note: str, job: str
) -> None:
    one = with_a_lone_record(seed, settings)
    values = LONE | {"age": age, "zip": zips, "income": income, "dx": dx, "note": note, "job": job}
    with TemporaryDirectory() as folder:
        other = published(Path(folder, "other"), with_value(people(seed), 30, **values), JOB, *settings)
        assume(digests(one.folder) == digests(other.folder))
        same_figures(one, other)


@pytest.mark.ci
def test_the_distance_from_the_source_tells_nothing_of_a_record_that_is_not_published(tmp_path: Path) -> None:
    settings = "privacy.t={dx: {t: 0.6}}", "suppression.limit=0.1"
    lone = with_value(people(5), 30, age=3, zip="999", income=-77_777, job="smith", dx="flu")
    one = published(tmp_path / "one", lone, JOB, *settings)
    other = published(tmp_path / "other", with_value(lone, 30, dx="hiv"), JOB, *settings)
    assert one.manifest.suppressed
    assert digests(one.folder) == digests(other.folder)
    same_figures(one, other)


def test_whoever_runs_a_job_finds_what_the_release_does_not_tell(tmp_path: Path) -> None:
    made = published(tmp_path / "one", people(1), JOB)
    kept = json.loads((tmp_path / "one/.skald/figures/untold.json").read_text())
    assert kept["release"] == made.manifest.release
    assert kept["search"]["evaluated"] >= 1
    assert kept["risk"]["unique"] > 0
    assert (tmp_path / "one/.skald/figures/untold.json").stat().st_mode & 0o077 == 0
