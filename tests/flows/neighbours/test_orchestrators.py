"""The programs of the how-to for Airflow, Dagster and dbt run a job, and tell by its exit code whether to try again.

These are too large, and pin too much, to be installed beside the project. The tests run where their commands are on the path or in a folder
that ``SKALD_NEIGHBOURS`` names, and are skipped elsewhere:

    python -m venv /opt/neighbours/airflow && /opt/neighbours/airflow/bin/pip install apache-airflow
    python -m venv /opt/neighbours/dagster && /opt/neighbours/dagster/bin/pip install dagster
    python -m venv /opt/neighbours/dbt && /opt/neighbours/dbt/bin/pip install 'dbt-core<1.11' 'dbt-duckdb<1.11'
    export SKALD_NEIGHBOURS=/opt/neighbours/airflow/bin:/opt/neighbours/dagster/bin:/opt/neighbours/dbt/bin
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.neighbours.pages import programs
from tests.jobs import people, people_job
from tests.patience import SECONDS
from tests.places import ROOT

pytestmark = pytest.mark.slow


def program(name: str) -> str:
    places = os.pathsep.join(filter(None, (os.environ.get("SKALD_NEIGHBOURS"), os.environ.get("PATH"))))
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a job, the programs of the page, and SKALD's command as an environment of its own would have it."""
    people_job(tmp_path, people(200), suppression={"limit": 0.3})
    programs("orchestrators.md", tmp_path)
    command = tmp_path / "skald"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m flows.cli "$@"\n')
    command.chmod(0o755)
    return tmp_path


def ended(folder: Path, *command: str, job: str = "job.yaml", **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_", "PYTHON"))}
    (folder / "home").mkdir(exist_ok=True)
    settings = {"SKALD": str(folder / "skald"), "SKALD_JOB": str(folder / job), "HOME": str(folder / "home")}
    options = {"cwd": folder, "env": own | settings | environment, "capture_output": True, "text": True, "timeout": SECONDS}
    return subprocess.run(command, check=False, **options)  # type: ignore[call-overload]


def releases(folder: Path) -> int:
    return len(list(folder.glob("releases/*/manifest.json")))


def test_airflow_runs_a_job_and_does_not_retry_what_cannot_succeed(folder: Path) -> None:
    airflow, home = program("airflow"), folder / "airflow"
    settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    assert ended(folder, airflow, "db", "migrate", **settings).returncode == 0
    done = ended(folder, airflow, "dags", "test", "skald_nightly", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 200 records, the smallest class has" in done.stdout + done.stderr
    assert releases(folder) == 1
    failed = ended(folder, airflow, "dags", "test", "skald_nightly", job="none.yaml", **settings)
    assert failed.returncode != 0
    assert "AirflowFailException: exit code 2" in failed.stdout + failed.stderr
    assert "up_for_retry" not in (failed.stdout + failed.stderr).lower()


def test_dagster_materialises_a_release_and_does_not_retry_what_cannot_succeed(folder: Path) -> None:
    command = (program("dagster"), "asset", "materialize", "-f", "skald_assets.py", "--select", "anonymised_patients")
    done = ended(folder, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ASSET_MATERIALIZATION" in done.stdout + done.stderr
    assert releases(folder) == 1
    failed = ended(folder, *command, job="none.yaml")
    assert failed.returncode != 0
    assert "exit code 2" in failed.stdout + failed.stderr
    assert "STEP_UP_FOR_RETRY" not in failed.stdout + failed.stderr


def test_dbt_reads_a_release_and_counts_its_classes_and_the_script_ends_with_skalds_exit_code(folder: Path) -> None:
    dbt = program("dbt")
    (folder / "dbt_project.yml").write_text("name: published\nversion: '1.0'\nprofile: published\n")
    (folder / "profiles.yml").write_text("published: {target: here, outputs: {here: {type: duckdb, path: published.duckdb}}}\n")
    settings = {"DBT": dbt, "TARGET": str(folder / "releases"), "DO_NOT_TRACK": "1"}
    done = ended(folder, "bash", "nightly.sh", JOB=str(folder / "job.yaml"), **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS=2" in done.stdout
    assert releases(folder) == 1
    thin = (folder / "tests" / "every_class_has_k_records.sql").read_text().replace("var('k')", "100")
    (folder / "tests" / "every_class_has_k_records.sql").write_text(thin)
    assert ended(folder, "bash", "nightly.sh", JOB=str(folder / "job.yaml"), **settings).returncode == 1
    wrong = ended(folder, "bash", "nightly.sh", JOB=str(folder / "none.yaml"), **settings)
    assert wrong.returncode == 2
