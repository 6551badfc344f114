"""Sources and outputs in the events of a job of several tables, without a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.tables import HistoryError
from schemas.job.job import load_job
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.engine.lineage import RunEvents
from tasks.engine.lineage_outputs import jobs_by_table
from tests.flows.relational.hospital import JOB, QIDS, hospital_job
from tests.jobs import people, people_job

FOLDERS = {"a/*.parquet": "a", "b/x.parquet": "b/x.parquet", "b/[xy]/*.parquet": "b", "c/region=North/*.parquet": "c"}


def hospital_of(folder: Path, paths: dict[str, str], **parts: Any) -> TablesJob:
    """Load a job whose tables have these source paths, and no table is there."""
    tables = {name: asked | {"source": {"path": paths[name], "hive": True}} for name, asked in JOB["tables"].items()}
    return load_tables_job(hospital_job(folder, {}, tables=tables, **parts))


def sent(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in place.read_text().splitlines()]


@given(paths=st.lists(st.sampled_from(sorted(FOLDERS)), min_size=len(QIDS), max_size=len(QIDS)))
def test_what_several_tables_are_read_from_is_one_input(tmp_path_factory: pytest.TempPathFactory, paths: list[str]) -> None:
    folder = tmp_path_factory.mktemp("job")
    place = folder / "events.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENLINEAGE_URL", f"file://{place}")
        events = RunEvents(hospital_of(folder, dict(zip(QIDS, paths, strict=True))))
        events.send_start()
        events.send_end(None)
    expected: list[str] = []
    for path in paths:
        if FOLDERS[path] not in expected:
            expected.append(FOLDERS[path])
    began, ended = sent(place)
    assert (began["eventType"], ended["eventType"], ended["run"]["facets"]["skald"]["exit"]) == ("START", "ABORT", 130)
    assert began["run"]["runId"] == ended["run"]["runId"]
    for event in (began, ended):
        assert [one["name"] for one in event["inputs"]] == [f"{folder}/{source}" for source in expected]
        assert [one["name"] for one in event["outputs"]] == [f"{folder}/releases/{table}" for table in QIDS]


def test_tables_in_a_bucket_are_named_by_bucket_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE_URL", f"file://{place}")
    paths = {name: f"s3://hospital/raw/{name}/*.parquet" for name in QIDS}
    events = RunEvents(hospital_of(tmp_path, paths, target="s3://released/tables"))
    events.send_end(HistoryError.too_few(1000, 150))
    [failed] = sent(place)
    assert [(one["namespace"], one["name"]) for one in failed["inputs"]] == [("s3://hospital", f"raw/{name}") for name in QIDS]
    assert [(one["namespace"], one["name"]) for one in failed["outputs"]] == [("s3://released", f"tables/{name}") for name in QIDS]
    facets = failed["run"]["facets"]
    assert (failed["eventType"], facets["skald"]["exit"]) == ("FAIL", 3)
    assert facets["errorMessage"]["message"].startswith("k = some cannot be met by some persons.")


def test_a_job_of_one_table_is_its_own_and_its_output_the_target(tmp_path: Path) -> None:
    job = load_job(people_job(tmp_path, people(1)))
    assert list(jobs_by_table(job).items()) == [("", job)]
