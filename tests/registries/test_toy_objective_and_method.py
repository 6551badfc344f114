"""An objective and a method that the product does not know: an entry each, and they are in schema, plan, report, comparison and docs."""

from __future__ import annotations

import json
from io import StringIO
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field
from rich.console import Console

from core.lattice.objectives import Counting, Pricing
from docs.reference_pages import job_page
from flows.records import record_flow
from flows.terminal.plans import plan_summary
from schemas.errors.base import JobError, VerificationError
from schemas.job.job import Job, load_job
from schemas.job.method import METHODS, OBJECTIVES, MethodEntry, Objective
from schemas.reading.model import MethodSpec
from schemas.reading.registry import Code
from schemas.relational.tables_job import jobs_json_schema
from tasks.planning.plan import make_plan
from tasks.records.partitions import Partitioned
from tests.conftest import Anonymise
from tests.jobs import people, people_job

LEVELS = Pricing(groups=lambda hierarchy, domain, level: np.full(len(hierarchy.labels[level]), level / hierarchy.top), is_reported=True)
TOY = Objective(
    "toy_steps", Code(f"{__name__}:LEVELS"), "steps up the toy ladder", loss=("Toy steps", "mean share of the toy ladder climbed")
)
FEW = Counting(lambda loss, records, classes: records / classes if classes else inf, lambda loss, records, cells, most: records / cells)
CLASSES = Objective("toy_classes", Code(f"{__name__}:FEW"), "lack of toy classes")


class ToyMethod(MethodSpec):
    """Toy classes: so many neighbours in the order of their codes."""

    name: Literal["toy"] = "toy"
    """Chooses this toy."""
    classes: Annotated[int, Field(ge=1)] = 4
    """Toy classes that are made."""


def toy_partition(job: Job, codes: np.ndarray, coding: Any) -> Partitioned:
    """Cut the records, which come in a fixed order, into classes of equal size."""
    assert isinstance(job.method, ToyMethod)
    return Partitioned((np.arange(len(codes)) * job.method.classes // len(codes)).astype(np.int32), {"partitions": job.method.classes})


FLOW = record_flow("toy")
METHOD = MethodEntry("toy", ToyMethod, Code(f"{__name__}:FLOW"), "Toys: neighbours stay together.", partition=toy_partition)


def shown(job: Path, *settings: str) -> str:
    console = Console(width=250, file=(text := StringIO()))
    console.print(plan_summary(make_plan(load_job(job, settings))))
    return text.getvalue()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("toy", [TOY, CLASSES], ids=lambda toy: toy.name)
def test_an_objective_is_one_entry(anonymise: Anonymise, tmp_path: Path, toy: Objective) -> None:
    job, setting = people_job(tmp_path, people(240)), f"method.objective={toy.name}"
    with OBJECTIVES.having(toy):
        assert toy.name in json.dumps(jobs_json_schema())
        assert f"`{toy.name}`" in job_page()
        assert toy.measure in shown(job, setting)
        published = anonymise(job, setting)
        report = json.loads((published.folder / "report.json").read_text())
        assert toy.measure in " ".join(report["certificate"])
        assert toy.measure in (published.folder / "report.html").read_text()
        if toy.loss:
            assert any(figure["title"] == toy.loss[0] for figure in report["losses"])
    assert toy.name not in json.dumps(jobs_json_schema())
    with pytest.raises(JobError, match="method"):
        load_job(job, [setting])


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("toy", [TOY, CLASSES], ids=lambda toy: toy.name)
def test_what_a_toy_objective_finds_is_the_best_of_all_nodes(anonymise: Anonymise, tmp_path: Path, toy: Objective) -> None:
    """Of any two nodes that pass, the chosen one has no larger value: played by asking for every other objective too."""
    job = people_job(tmp_path, people(240))
    with OBJECTIVES.having(toy):
        mine = anonymise(job, f"method.objective={toy.name}").manifest
        assert mine.optimal == "certified"
        others = [anonymise(job, f"method.objective={name}").manifest for name in ("dm_star", "gcp", "c_avg", "precision")]
    if toy is CLASSES:
        assert all(mine.classes >= other.classes for other in others)
    else:
        tops = np.array(list(mine.tops.values()))

        def climbed(manifest: Any) -> float:
            assert manifest.node is not None
            kept = manifest.released / manifest.records
            return float(kept * np.mean(np.array(manifest.node) / tops) + (1 - kept))

        assert climbed(mine) == pytest.approx(mine.loss[toy.name])
        assert all(climbed(mine) <= climbed(other) + 1e-9 for other in others)


@pytest.mark.slow
def test_a_method_is_one_entry(tmp_path: Path) -> None:
    job, setting = people_job(tmp_path, people(240)), "method={name: toy, classes: 6}"
    with METHODS.having(METHOD):
        assert "Toy classes that are made." in json.dumps(jobs_json_schema())
        assert "## method: toy" in job_page()
        assert METHOD.words in shown(job, setting)
        flow = METHODS["toy"].flow.load()
        published = getattr(flow, "fn", flow)(job, (setting,))
        assert published.manifest.method == "toy"
        assert published.untold.search["partitions"] == 6
        assert published.manifest.min_class >= 5
        report = json.loads((published.folder / "report.json").read_text())
        assert METHOD.words in json.dumps(report)
    with pytest.raises(JobError, match="method"):
        load_job(job, [setting])


def test_a_toy_method_that_breaks_the_promise_is_not_published(tmp_path: Path) -> None:
    job = people_job(tmp_path, people(240))
    with METHODS.having(METHOD):
        flow = METHODS["toy"].flow.load()
        with pytest.raises(VerificationError):
            getattr(flow, "fn", flow)(job, ("method={name: toy, classes: 200}",))
    assert not (tmp_path / "releases" / "CURRENT").exists()


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="already"):
        OBJECTIVES.add(OBJECTIVES["gcp"])
    with METHODS.having(METHOD), pytest.raises(ValueError, match="already"):
        METHODS.add(METHOD)


def test_what_entries_name_is_there() -> None:
    codes = [one.code for one in OBJECTIVES.values()] + [one.flow for one in METHODS.values()]
    codes += [one.partition for one in METHODS.values() if isinstance(one.partition, Code)]
    assert all(code.load() is not None for code in codes)


def test_a_setting_of_another_method_is_refused(tmp_path: Path) -> None:
    with METHODS.having(METHOD), pytest.raises(JobError, match="classes"):
        load_job(people_job(tmp_path, people(60)), ["method={name: skald, classes: 6}"])
