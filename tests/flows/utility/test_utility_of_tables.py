"""Utility of several tables: of each what a release of this table alone would have."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from flows.tables import tables
from schemas.errors.base import StorageError
from schemas.errors.methods import UtilityError
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tasks.utility.utility import measure_utility, measure_utility_of_tables
from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables

pytestmark = pytest.mark.ci


def job_of_one(folder: Path, name: str) -> Path:
    """Write the job of one of the hospital's tables alone."""
    table: dict[str, Any] = deepcopy(JOB["tables"][name])
    keys = [one for one in ("person_id", "visit_id") if one in (table.get("key"), *table.get("references", ()))]
    job = {"version": 1, "name": name, "source": table["source"], "columns": table["columns"] | {"withheld": keys}, "privacy": {"k": 4}}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job | {"method": {"name": "skald"}, "memory": "256MB", "target": "others"}))
    return path


@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_each_table_has_the_utility_of_its_files_alone(tmp_path: Path, method: str) -> None:
    path = hospital_job(tmp_path, hospital_tables(150, 3), method={"name": method}, attacks="off")
    made = tables(path, ())
    found = measure_utility_of_tables(load_tables_job(path), made.folder, 40, 0, None)
    assert list(found) == ["person", "visit", "condition"]
    for name, one in found.items():
        copytree(made.folder / "data" / name, tmp_path / "alone" / name / "data")
        alone = measure_utility(load_job(job_of_one(tmp_path, name)), tmp_path / "alone" / name, 40, 0, None)
        assert one == alone.model_copy(update={"release": made.manifest.release})
        assert one.released == made.manifest.tables[name].released


def test_the_command_prints_each_table_and_refuses_a_target_of_none(direct: CommandLine) -> None:
    path = hospital_job(direct.folder, hospital_tables(150, 3), attacks="off")
    assert direct("run", "job.yaml").returncode == 0
    release = f"releases/{(direct.folder / 'releases' / 'CURRENT').read_text().strip()}"
    done = direct("utility", release, "--job", "job.yaml", "--queries", "20")
    assert (done.returncode, [name in done.stdout for name in ("'person'", "'visit'", "'condition'")]) == (0, [True] * 3), done.stderr
    done = direct("utility", release, "--job", "job.yaml", "--queries", "20", "--json")
    assert list(json.loads(done.stdout)["tables"]) == ["person", "visit", "condition"]
    with pytest.raises(UtilityError, match=r"names no table with quasi-identifiers \(did you mean 'person\.income'\?\): write TABLE"):
        measure_utility_of_tables(load_tables_job(path), direct.folder / release, 20, 0, "income")
    job = load_tables_job(path)
    others = job.model_copy(update={"tables": {**job.tables, "other": job.tables["visit"]}})
    with pytest.raises(StorageError, match=r"it has no data/other/\*\.parquet"):
        measure_utility_of_tables(others, direct.folder / release, 20, 0, None)
    for part in (direct.folder / release / "data" / "visit").iterdir():
        part.unlink()
    with pytest.raises(StorageError, match=r"it has no data/visit/\*\.parquet"):
        measure_utility_of_tables(load_tables_job(path), direct.folder / release, 20, 0, None)
