"""What a plan says that one node and Mondrian would lose is what they lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.histograms.histogram import Histogram
from flows.terminal.plans import forecast_rows
from schemas.job.job import load_job
from tasks.planning import forecast
from tasks.planning.forecast import WRITE, Expected, Forecast
from tasks.planning.plan import make_plan
from tests.command_line import CommandLine
from tests.conftest import Anonymise
from tests.flows.lattice.test_objectives import job
from tests.house.replaced import FORECAST_MOST_CELLS
from tests.jobs import people, people_job


@pytest.mark.ci
def test_of_few_records_it_is_what_each_way_publishes(anonymise: Anonymise, tmp_path: Path) -> None:
    plan = make_plan(load_job(job(tmp_path), ["suppression.limit=0.1"]))
    assert plan.forecast is not None
    assert (plan.forecast.whole, plan.forecast.records) == (True, plan.records)
    for one in plan.forecast.ways:
        settings = [WRITE[one.way].replace("method: ", "method=", 1), "suppression.limit=0.1"]
        assert one.gcp == pytest.approx(anonymise(job(tmp_path / one.way), *settings).untold.loss["gcp"])
        assert one.error == 0.0
    assert [one.way for one in plan.forecast.ways] == ["least GCP", "mondrian, score: ncp"]


@pytest.mark.ci
@pytest.mark.parametrize(("method", "own"), [("{name: skald, objective: dm_star}", "least DM*"), ("{name: mondrian}", "mondrian")])
def test_what_the_job_says_itself_is_one_of_the_ways(anonymise: Anonymise, tmp_path: Path, method: str, own: str) -> None:
    settings = [f"method={method}", "suppression.limit=0.1"]
    plan = make_plan(load_job(job(tmp_path), settings))
    assert plan.forecast is not None
    first, *others = plan.forecast.ways
    assert (first.way, [one.way for one in others]) == (own, ["least GCP", "mondrian, score: ncp"])
    assert first.gcp == pytest.approx(anonymise(job(tmp_path / "run"), *settings).untold.loss["gcp"])


@pytest.mark.slow
def test_samples_do_not_depend_on_chunks_files_or_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORECAST_MOST_CELLS, 100)
    table = people(1500, seed=9)
    cut = [(1, 100_000), (3, 100_000), (3, 70)]
    found = [
        make_plan(load_job(people_job(tmp_path / f"{files} {size}", table, files=files), [f"chunk_rows={size}"])).forecast
        for files, size in cut
    ]
    assert found[0] is not None
    assert found == found[:1] * len(cut)
    assert not found[0].whole
    assert found[0].records < len(table) / 2
    assert all(0 < one.gcp <= 1 for one in found[0].ways)
    assert any(one.error for one in found[0].ways)


def test_samples_have_no_cell_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By how they differ it is told how far off they may be."""
    monkeypatch.setattr(FORECAST_MOST_CELLS, 100)
    drawn: list[set[tuple[int, ...]]] = []

    def noted(_job: object, _coding: object, _way: str, sample: Histogram) -> float:
        drawn.append(set(zip(*(word.tolist() for word in sample.words), strict=True)))
        return 0.0

    monkeypatch.setattr(forecast, "expected_gcp", noted)
    make_plan(load_job(people_job(tmp_path, people(1500, seed=9))))
    assert all(len(cells) > 20 for cells in drawn)
    assert len(set[tuple[int, ...]]().union(*drawn[: forecast.SAMPLES])) == sum(map(len, drawn[: forecast.SAMPLES]))


def test_levels_that_tell_what_is_hidden_are_none_of_the_ways(tmp_path: Path) -> None:
    hidden = "columns.quasi_identifiers.1.hierarchy={widths: [1, 5, 10, 40], top: 80}"
    whole, part = (make_plan(load_job(job(tmp_path / name), settings)).forecast for name, settings in (("all", []), ("some", [hidden])))
    assert whole is not None
    assert part is not None
    assert len(part.ways) == len(whole.ways)


def test_where_persons_count_nothing_is_claimed(tmp_path: Path) -> None:
    assert make_plan(load_job(job(tmp_path), ["columns.person=person"])).forecast is None


def test_the_plan_shows_it_with_the_line_to_write(direct: CommandLine, tmp_path: Path) -> None:
    said = direct("plan", job(tmp_path)).stdout
    assert "GCP by k alone, of all records: least GCP" in said
    assert any(f"{line} # " in said for line in WRITE.values())


def test_a_method_that_is_not_measured_is_said_not_to_be() -> None:
    ways = (Expected(way="least GCP", gcp=0.5, error=0.0), Expected(way="mondrian, score: ncp", gcp=0.25, error=0.0))
    forecast = Forecast(records=100, whole=True, ways=ways)
    measured, other = (dict(forecast_rows(forecast, method)) for method in ("mondrian", "kmember"))
    assert "not measured" not in measured["would lose"]
    assert measured["least"].endswith("--methods skald,mondrian")
    # A comparison runs other methods than the job's by their defaults, and that score is none.
    assert dict(forecast_rows(forecast, "skald"))["least"].endswith("skald,mondrian --set 'method={name: mondrian, score: ncp}'")
    own = Forecast(records=100, whole=True, ways=(Expected(way="mondrian", gcp=0.3, error=0.0), *ways))
    assert dict(forecast_rows(own, "mondrian"))["least"].endswith("skald,mondrian --set 'method={name: mondrian, score: ncp}'")
    worst = Forecast(records=100, whole=True, ways=(Expected(way="least DM*", gcp=0.6, error=0.0), ways[0]))
    assert dict(forecast_rows(worst, "skald"))["least"].endswith("skald,mondrian --set 'method={name: skald}'")
    local = dict(forecast_rows(forecast.model_copy(update={"needs_levels": True}), "skald"))["least"]
    assert "# without cell and rounds; what it costs" in local
    assert local.endswith("--set suppression.treatment=drop --set suppression.rounds=0")
    assert other["would lose"].endswith("kmember is not measured by a plan")
    assert other["least of these"].endswith("--methods skald,mondrian,kmember --set 'method={name: mondrian, score: ncp}'")
