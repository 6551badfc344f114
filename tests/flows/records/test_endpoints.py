"""Ranges of every method end where k people lie at or beyond, the recount sees to it, and what a job asks for is what is said."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from core.recoding.ends import observed_ends
from schemas.errors.base import JobError, VerificationError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.counting import source_domains
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.verification.release import VerificationContext, verify_published
from tests.covering import each_value
from tests.jobs import released, write_job, write_parquet

RANGES = [name for name, entry in METHODS.items() if not entry.one_level]
K = 5
DM = {"name": "skald", "objective": "dm_star"}


def incomes(rows: int, seed: int = 3) -> pa.Table:
    """People whose incomes have a heavy tail: nearly all of them are nobody else's."""
    random = np.random.default_rng(seed)
    income = np.round(np.exp(random.normal(10, 1.2, rows))).astype(np.int64)
    columns = {"person": np.arange(rows) // 2, "income": income, "age": random.integers(18, 80, rows), "sick": random.integers(0, 3, rows)}
    return pa.table(columns)


def job_file(folder: Path, name: str, **parts: Any) -> Path:
    write_parquet(folder / "people", incomes(600), files=2)
    qids = [{"name": "income", "hierarchy": {"widths": [1000, 10000]}}, {"name": "age", "hierarchy": {"widths": [1, 5, 10]}}]
    columns = {"identifiers": ["person"], "quasi_identifiers": qids, "sensitive": ["sick"], "insensitive": []} | parts.pop("columns", {})
    job = {"version": 1, "name": "incomes", "source": {"path": "people/*.parquet"}, "columns": columns, "privacy": {"k": K}}
    return write_job(folder, job | {"method": {"name": name}, "memory": "256MB", "target": "releases"} | parts)


def run(job: Path) -> PublishedRelease:
    flow = METHODS[load_job(job).method.name].flow.load()
    made: PublishedRelease = getattr(flow, "fn", flow)(job, ())
    return made


def ends(labels: pl.Series) -> set[int]:
    """All ends of ranges; a value by itself is none."""
    return {int(number) for label in labels.unique() if not re.fullmatch(r"-?[0-9]+", label) for number in re.findall(r"[0-9]+", label)}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("method", "person"), [*each_value(RANGES, [False, True]), (RANGES[0], True)])
def test_no_income_of_one_person_is_an_end(tmp_path: Path, method: str, person: bool) -> None:
    made = run(job_file(tmp_path, method, columns={"person": "person"} if person else {"person": "none"}))
    alone = {value for value, count in zip(*np.unique(incomes(600)["income"], return_counts=True), strict=True) if count == 1}
    found = ends(released(made.folder)["income"])
    # A bin begins at a thousand, whoever earns that; nothing else is told.
    assert found
    assert all(end % 1000 in (0, 999) or end not in alone for end in found)
    assert max(alone) not in found
    assert made.manifest.endpoints == {"income": "shared", "age": "shared"}


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", ["mondrian", "rayden", "kmember"])
def test_observed_ends_are_published_where_the_job_asks_for_them(tmp_path: Path, method: str) -> None:
    made = run(job_file(tmp_path, method, endpoints="observed"))
    assert max(incomes(600)["income"].to_pylist()) in ends(released(made.folder)["income"])
    assert made.manifest.endpoints == {"income": "observed", "age": "observed"}
    assert "may be those of a single" in (made.folder / "report.html").read_text()


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("intervals", ["text", "bounds"])
@pytest.mark.parametrize("method", ["mondrian", "canon"])
def test_the_recount_refuses_observed_ends(tmp_path: Path, method: str, intervals: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if what makes releases had forgotten the promise."""
    monkeypatch.setattr(source_domains, "shared_ends", lambda domain, spec, k: observed_ends(domain))
    with pytest.raises(VerificationError, match="ranges of 'income' end where fewer than 5 people do"):
        run(job_file(tmp_path, method, intervals=intervals))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("person", ["person", "none"])
@pytest.mark.parametrize("method", ["mondrian", "rayden"])
def test_ends_that_more_people_share_are_verified_by_a_job_that_asks_for_fewer(tmp_path: Path, method: str, person: str) -> None:
    job = job_file(tmp_path, method, columns={"person": person}, privacy={"k": 2 * K})
    made = run(job)
    strict, lax = (ends(released(run(job_file(tmp_path / str(k), method, privacy={"k": k})).folder)["income"]) for k in (2 * K, K))
    assert strict - lax, "the same ends at both would show nothing"
    found = verify_published(load_job(job, [f"privacy.k={K}"]), made.folder, VerificationContext(str(made.folder)))
    assert found.recount.failing == 0
    with pytest.raises(VerificationError, match=f"k = {3 * K}"):
        verify_published(load_job(job, [f"privacy.k={3 * K}"]), made.folder, VerificationContext(str(made.folder)))


@pytest.mark.ci
def test_nothing_is_said_of_the_ends_of_a_column_that_is_withheld(tmp_path: Path) -> None:
    qids = [{"name": "income", "hierarchy": {"widths": [50, 100], "encode": True}}, {"name": "age", "hierarchy": {"widths": [10, 20, 40]}}]
    made = run(job_file(tmp_path / "one", "skald", columns={"quasi_identifiers": qids}, suppression={"limit": 0.2}, method=DM))
    assert released(made.folder)["income"].unique().to_list() == ["*"]
    assert made.manifest.endpoints == {}
    assert "'income': ranges end" not in (made.folder / "report.html").read_text()
    # With so few people there is one step, open at both ends.
    apart = run(job_file(tmp_path / "two", "mondrian", privacy={"k": 310}))
    assert released(apart.folder)["income"].unique().to_list() == ["*"]
    assert apart.manifest.endpoints == {}
    for folder in (made.folder, apart.folder):
        verify_published(None, folder, VerificationContext(str(folder)))


@pytest.mark.slow
def test_fragments_end_where_the_whole_does(tmp_path: Path) -> None:
    columns = {"person": "person"}
    whole = run(job_file(tmp_path / "whole", "mondrian", columns=columns))
    method = {"name": "mondrian", "fragments": {"count": 4, "sample": 1}}
    parts = run(job_file(tmp_path / "parts", "mondrian", method=method, columns=columns))
    assert ends(released(parts.folder)["income"]) == ends(released(whole.folder)["income"])
    assert parts.manifest.endpoints == whole.manifest.endpoints


@pytest.mark.ci
def test_bins_of_ranks_say_that_they_end_at_values(tmp_path: Path) -> None:
    qids = [{"name": "income", "hierarchy": {"widths": [50, 100], "encode": True}}, {"name": "age", "hierarchy": {"widths": [10, 20, 40]}}]
    made = run(job_file(tmp_path, "skald", columns={"quasi_identifiers": qids}, suppression={"limit": 0.2}, privacy={"k": 2}))
    assert made.manifest.node is not None
    assert 0 < made.manifest.node[0] < made.manifest.tops["income"]
    assert made.manifest.endpoints == {"income": "observed"}
    with pytest.raises(JobError, match="endpoints: 'income' is published in bins of ranks"):
        load_job(job_file(tmp_path, "skald", columns={"quasi_identifiers": qids}, endpoints="shared"))


LISTED: dict[str, list[Any]] = {
    "whole": [1, 2, 3, 4, 11, 12, 13, 11],
    "with a null": [1, 2, 3, None, 11, 12, 13, 11],
    "decimals": [Decimal(text) for text in ("1.5", "2.5", "3.5", "1.5", "11.5", "12.5", "13.5", "11.5")],
    "dates": [date(2000, 1, day) for day in (1, 2, 3, 4, 11, 12, 13, 11)],
    "floats": [1.5, 2.5, 3.5, 1.5, 11.5, 12.5, 13.5, 11.5],
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("method", "kind"), sorted({*(("mondrian", kind) for kind in LISTED), *each_value(RANGES, list(LISTED))}))
def test_open_ranges_of_numbers_with_a_listed_hierarchy_are_verified(tmp_path: Path, method: str, kind: str) -> None:
    """No label may have two ends, and none of the ends be a value: nothing but the job then tells a range from the name of a group."""
    values = LISTED[kind]
    names = sorted({str(value) for value in values if value is not None})
    tree = {"*": {"few": names[: len(names) // 2], "many": names[len(names) // 2 :]}}
    table = pa.table({"side": [1] * 4 + [2] * 4, "q": values})
    qids = [{"name": "side", "hierarchy": {"widths": [1]}}, {"name": "q", "hierarchy": {"tree": tree}}]
    columns = {"person": "none", "identifiers": [], "quasi_identifiers": qids, "sensitive": [], "insensitive": []}
    write_parquet(tmp_path / "people", table)
    job: dict[str, Any] = {"version": 1, "name": "listed", "source": {"path": "people/*.parquet"}, "columns": columns}
    made = run(write_job(tmp_path, job | {"privacy": {"k": 3}, "method": {"name": method}, "memory": "256MB", "target": "releases"}))
    assert made.manifest.released == len(values)
    verify_published(load_job(tmp_path / "job.yaml"), made.folder, VerificationContext(str(made.folder)))
