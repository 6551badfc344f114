"""Classes in which everybody has one sensitive value are counted in the files and told, whether or not l was asked for."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from core.recount.classes import manifest_faults
from schemas.job.job import load_job
from schemas.release.manifest import Manifest
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import QIDS, people, people_job, released


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
@pytest.mark.parametrize("limit", [0.0, 0.3])
def test_classes_of_one_value_are_counted(anonymise: Anonymise, tmp_path: Path, method: str, limit: float) -> None:
    columns = {"sensitive": ["disease", "visits"], "insensitive": ["note", "score"]}
    base = people_job(tmp_path, people(300, seed=2), privacy={"k": 2}, method={"name": method}, suppression={"limit": limit})
    text = base.read_text().replace("  - disease\n", "  - disease\n  - visits\n").replace("  - score\n  - visits\n", "  - score\n")
    base.write_text(text)
    made: PublishedRelease = anonymise(base)
    assert set(made.manifest.one_value) == set(columns["sensitive"])
    frame = released(made.folder)
    for column, found in made.manifest.one_value.items():
        classes = defaultdict(list)
        for row in frame.select([*QIDS, column]).iter_rows():
            classes[row[:-1]].append(row[-1])
        alike = [values for values in classes.values() if len({value for value in values if value is not None}) < 2]
        assert (found.classes, found.records) == (len(alike), sum(map(len, alike)))
        assert found.share == pytest.approx(len(alike) / len(classes))
        said = f"'{column}': in {found.classes:,} of {made.manifest.classes:,} classes"
        assert (said in json.loads((made.folder / "report.json").read_text())["limits"].__repr__()) == bool(found.classes)


@pytest.mark.ci
def test_a_manifest_that_tells_fewer_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    job_path = people_job(tmp_path, people(300, seed=2), privacy={"k": 2}, method={"name": "mondrian"})
    made: PublishedRelease = anonymise(job_path)
    job = load_job(job_path)
    counted, manifest = verify_release(job, made.folder)
    assert manifest is not None
    assert counted.one_value["disease"][0] == manifest.one_value["disease"].classes > 0
    assert not manifest_faults(job, manifest, counted)
    fewer = {"disease": manifest.one_value["disease"].model_copy(update={"classes": 0})}
    other: dict[str, object]
    for other in ({"one_value": fewer}, {"one_value": {}}, {"endpoints": {}}, {"endpoints": dict.fromkeys(manifest.endpoints, "observed")}):
        assert manifest_faults(job, Manifest.model_validate(manifest.model_dump() | other), counted)
