"""No cell value in a message, a log, Prefect's database, a file name, the manifest or Parquet metadata; in the report only what k share."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.conftest import CommandLine
from tests.jobs import write_parquet
from tests.patience import until
from tests.prefect_server import serving

CANARY = "CANARY"
ROWS = 200


def canary_job(folder: Path, **changes: object) -> Path:
    """Write a table whose every cell is a canary, and a job whose tree holds the same values."""
    table = pa.table(
        {
            "person": [f"{CANARY}-p-{row}" for row in range(ROWS)],
            "town": [f"{CANARY}-t-{row % 7}" for row in range(ROWS)],
            "street": [f"{CANARY}-s-{row % 11}" for row in range(ROWS)],
            "disease": [f"{CANARY}-d-{row}" for row in range(ROWS)],
        }
    )
    write_parquet(folder / "people", table, files=2)
    towns = [f"{CANARY}-t-{town}" for town in range(7)]
    job = {
        "version": 1,
        "name": "canaries",
        "source": {"path": "people/*.parquet"},
        "columns": {
            "identifiers": ["person"],
            "quasi_identifiers": [
                {"name": "town", "hierarchy": {"tree": {f"{CANARY}-a": towns[:4], f"{CANARY}-b": towns[4:]}}},
                {"name": "street", "hierarchy": {"prefix": [12, 9, 7]}},
            ],
            "sensitive": ["disease"],
        },
        "privacy": {"k": 3},
        "suppression": {"limit": 0.1},
        "method": {"name": "skald"},
        "memory": "256MB",
        "target": "releases",
    } | changes
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    return path


def assert_no_canary(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert CANARY not in done.stdout + done.stderr
    assert not [path for path in folder.rglob("*") if CANARY in path.name]
    told = [*folder.glob("releases/*/*.*"), *folder.glob(".skald/*/results/*"), *folder.glob("home/**/*.db")]
    assert not [path for path in told if CANARY.encode() in path.read_bytes() and not path.name.startswith("report.")]
    for path in folder.glob("releases/*/report.*"):
        assert_only_examples(path)


def assert_only_examples(report: Path) -> None:
    """The report's examples hold labels that k records share, and nothing else in it holds a value."""
    examples = json.loads(report.with_suffix(".json").read_text())["examples"]
    assert all(set(one["values"]) == {"town", "street"} for one in examples)
    text = report.read_text()
    for label in sorted({value for one in examples for value in one["values"].values()}, key=len, reverse=True):
        text = text.replace(label, "")
    assert CANARY not in text
    assert f"{CANARY}-p" not in report.read_text()
    assert f"{CANARY}-d" not in report.read_text()


@pytest.mark.slow_under_prefect
@pytest.mark.promise
def test_a_good_run_tells_no_cell_value(skald: CommandLine, tmp_path: Path) -> None:
    canary_job(tmp_path)
    done = skald("run", "job.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert_no_canary(tmp_path, done)
    files = list(tmp_path.glob("releases/*/data/*.parquet"))
    assert files
    for path in files:
        metadata = pq.read_metadata(path)
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        assert not any(group.column(column).is_stats_set for group in groups for column in range(group.num_columns))
        assert CANARY not in str(metadata.metadata)


@pytest.mark.slow_under_prefect
@pytest.mark.parametrize(
    ("fault", "code"), [("uncovered", 2), ("truncated", 2), pytest.param("type", 2, marks=pytest.mark.promise)], ids=str
)
def test_a_failing_run_tells_no_cell_value(skald: CommandLine, tmp_path: Path, fault: str, code: int) -> None:
    assert_nothing_told(skald, tmp_path, fault, code)


@pytest.mark.parametrize(("fault", "code"), [("k", 3), ("target", 2)], ids=str)
def test_a_refused_run_tells_no_cell_value(direct: CommandLine, tmp_path: Path, fault: str, code: int) -> None:
    """What is refused in words of our own, which no library's exception goes before."""
    assert_nothing_told(direct, tmp_path, fault, code)


def assert_nothing_told(line: CommandLine, tmp_path: Path, fault: str, code: int) -> None:
    path = canary_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    town = job["columns"]["quasi_identifiers"][0]
    if fault == "uncovered":
        town["hierarchy"] = {"tree": {f"{CANARY}-a": [f"{CANARY}-t-1"]}}
    elif fault == "k":
        job["privacy"]["k"] = ROWS + 1
    elif fault == "truncated":
        file = tmp_path / "people" / "001.parquet"
        file.write_bytes(file.read_bytes()[:-10])
    elif fault == "type":
        town["hierarchy"] = {"widths": [1, 2]}
    else:
        (tmp_path / "releases").write_text("in the way")
    path.write_text(yaml.safe_dump(job))
    done = line("run", "job.yaml")
    assert done.returncode == code, done.stderr
    assert done.stderr.strip()
    assert "Internal error" not in done.stderr
    assert_no_canary(tmp_path, done)
    assert not list(tmp_path.glob("releases/*"))


@pytest.mark.slow
@pytest.mark.promise
def test_a_servers_database_holds_no_cell_value(tmp_path: Path, prefect_home: Path) -> None:
    """Run that a real server records on a file database, with their parameters, tasks, artifacts, assets and events; good and bad."""
    path = canary_job(tmp_path)
    with serving(CommandLine("prefect", tmp_path, prefect_home), prefect_home) as server:
        done = server.line("run", "job.yaml", **server.environment)
        assert done.returncode == 0, done.stderr
        assert_no_canary(tmp_path, done)
        path.write_text(path.read_text().replace(f"{CANARY}-t-1", f"{CANARY}-t-99"))
        failed = server.line("run", "job.yaml", **server.environment)
        assert failed.returncode == 2, failed.stderr
        assert_no_canary(tmp_path, failed)
        until(lambda: server.rows("SELECT id FROM events WHERE event = 'prefect.asset.materialization.succeeded'"))
        until(lambda: server.rows("SELECT id FROM events WHERE event = 'prefect.flow-run.Failed'"))
        kinds = {kind for (kind,) in server.rows("SELECT type FROM artifact")}
        assert kinds >= {"progress", "markdown", "table"}
        assert server.rows("SELECT count(*) FROM flow_run") == [(2,)]
        assert server.rows("SELECT count(*) FROM task_run")[0][0] > 8
        assert CANARY.encode() not in server.content()
