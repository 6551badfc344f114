"""What CONTRIBUTING.md shows as an example of a new entry works as it stands there."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.models import Spread
from docs.reference_pages import job_page
from schemas.job.method import METHODS, OBJECTIVES
from schemas.registry.hierarchy_kinds import HIERARCHIES
from schemas.registry.privacy_kinds import DIVERSITIES
from schemas.relational.tables_job import jobs_json_schema
from tests.conftest import Anonymise
from tests.jobs import QIDS, class_sizes, job_of, people, people_job, released
from tests.places import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TABLE = people(240)
Shown = Callable[[str], Any]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Return the example below a heading as a module, from a file of its own: the texts of a job's keys are read from the source."""
    folder = tmp_path_factory.mktemp("examples")

    @cache
    def module(heading: str) -> Any:
        [example] = re.findall(rf"^## {heading}\n.*?^```python\n(.*?)^```$", PAGE, re.M | re.S)
        path = folder / f"{heading.replace(' ', '_').lower()}.py"
        path.write_text(example, "utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return module


@pytest.mark.ci
def test_the_hierarchy_is_one_entry(anonymise: Anonymise, tmp_path: Path, shown: Shown) -> None:
    columns = job_of()["columns"]
    columns["quasi_identifiers"][1] = {"name": "age", "hierarchy": {"parity": True}}
    with HIERARCHIES.having(shown("Add a kind of hierarchy").HIERARCHY):
        assert "Whole numbers as even or odd." in json.dumps(jobs_json_schema())
        assert "parity" in job_page()
        made = anonymise(people_job(tmp_path, TABLE, columns=columns), "privacy.k=5", "suppression.limit=0.3")
        report = json.loads((made.folder / "report.json").read_text())
        assert made.manifest.tops["age"] == 2
        assert "even and odd numbers" in json.dumps(report)
        published = Counter(map(str, released(made.folder)["age"].drop_nulls()))
        allowed = {0: set(map(str, TABLE["age"].to_pylist())), 1: {"even", "odd"}, 2: {"*"}}
        assert made.manifest.levels is not None
        assert set(published) <= allowed[made.manifest.levels["age"]]


@pytest.mark.ci
def test_the_objective_is_one_entry_and_finds_the_best(anonymise: Anonymise, tmp_path: Path, shown: Shown) -> None:
    job = people_job(tmp_path, TABLE)
    with OBJECTIVES.having(shown("Add an objective").OBJECTIVE):
        made = anonymise(job, "method.objective=withheld")
        others = [anonymise(job, f"method.objective={name}") for name in ("dm_star", "gcp")]
        assert "values withheld" in (made.folder / "report.html").read_text("utf-8")
        assert made.manifest.optimal == "certified"

        def withheld(manifest: Any) -> float:
            stars = sum(level == manifest.tops[qid] for qid, level in manifest.levels.items()) / len(QIDS)
            kept = manifest.released / manifest.records
            return float(stars * kept + 1 - kept)

        assert made.manifest.loss["withheld"] == pytest.approx(withheld(made.manifest))
        assert all(withheld(made.manifest) <= withheld(other.manifest) + 1e-9 for other in others)


@pytest.mark.ci
def test_the_method_is_one_entry_and_keeps_the_promise(tmp_path: Path, shown: Shown) -> None:
    job = people_job(tmp_path, TABLE)
    with METHODS.having(shown("Add a method").METHOD):
        assert "A block has so many times k records." in json.dumps(jobs_json_schema())
        flow = METHODS["blocks"].flow.load()
        made = getattr(flow, "fn", flow)(job, ("method={name: blocks, times: 2}",))
        assert made.untold.search["partitions"] == 240 // 10
        assert min(class_sizes(released(made.folder), QIDS).values()) >= 10
        assert "Blocks: neighbours stay together." in (made.folder / "report.html").read_text("utf-8")


@pytest.mark.ci
def test_the_privacy_model_is_one_entry_and_is_kept_and_proved(anonymise: Anonymise, tmp_path: Path, shown: Shown) -> None:
    with DIVERSITIES.having(shown("Add a privacy model").PRIVACY):
        assert "(α, k)-anonymity: no value is too frequent." in json.dumps(jobs_json_schema(), ensure_ascii=False)
        job = people_job(tmp_path, TABLE, privacy={"k": 5, "l": {"disease": {"most_frequent": 0.7}}}, suppression={"limit": 0.3})
        made = anonymise(job)
        classes = released(made.folder).group_by(QIDS)
        worst = max(Fraction(max(Counter(rows["disease"]).values()), len(rows)) for _, rows in classes)
        assert made.manifest.measured["l"]["disease"] == pytest.approx(float(worst))
        assert worst <= Fraction(7, 10)
        assert "no value of &#39;disease&#39; is more than 0.7 of all records" in (made.folder / "report.html").read_text("utf-8")
        loose = anonymise(job, "privacy.l={}")
        assert sum(loose.manifest.node or ()) <= sum(made.manifest.node or ())


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=2, max_size=6), st.fractions(Fraction(1, 10), 1))
def test_the_privacy_model_is_monotone(shown: Shown, classes: list[list[int]], most: Fraction) -> None:
    counts = np.array([row if any(row) else [1, 0, 0, 0] for row in classes], np.int64)
    model = shown("Add a privacy model").MostFrequent("disease", most)
    owners, values = np.nonzero(counts)
    spread = Spread(owners.astype(np.int64), values, counts[owners, values], counts.sum(axis=0))
    failing = model.failing(counts.sum(axis=1), {"disease": spread})
    assert failing.tolist() == [Fraction(int(row.max()), int(row.sum())) > most for row in counts]
    union = spread.union(~failing)
    if len(union.counts):
        assert not model.relaxed.failing(np.array([union.counts.sum()]), {"disease": union}).any()
        assert not model.failing(np.array([union.counts.sum()]), {"disease": union}).any()
