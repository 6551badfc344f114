"""What is promised of the list of data sets and of their example jobs."""

from __future__ import annotations

import csv
from math import prod
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from data.medical import make_medical
from data.patients import BLOOD_GROUPS, PROFESSIONS
from data.tables import JOBS, MAKERS, maker


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((JOBS / "medical.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def hierarchies(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {column["name"]: column["hierarchy"] for column in job["columns"]["quasi_identifiers"]}


@pytest.mark.parametrize("name", MAKERS)
def test_every_maker_makes_what_its_example_job_reads(tmp_path: Path, name: str) -> None:
    paths = maker(name)(tmp_path / name, 20, files=2)
    job = yaml.safe_load((JOBS / f"{name}.yaml").read_text(encoding="utf-8"))
    # Of several tables the first is that of persons, of whom as many are made as are asked for.
    patterns = [table["source"]["path"] for table in job.get("tables", {"": job}).values()]
    assert sorted(path for pattern in patterns for path in tmp_path.glob(pattern)) == sorted(paths)
    assert sum(pq.read_metadata(path).num_rows for path in tmp_path.glob(patterns[0])) == 20


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"there is no data set 'medcal' \(did you mean 'medical'\?\); there is 'medical'"):
        maker("medcal")


def test_every_column_has_a_role_in_the_medical_job(tmp_path: Path, job: dict[str, Any]) -> None:
    roles = job["columns"]
    listed = [*roles["identifiers"], *(column["name"] for column in roles["quasi_identifiers"]), *roles["sensitive"], *roles["insensitive"]]
    assert listed == pq.read_schema(make_medical(tmp_path, 1)[0]).names


def test_hierarchies_of_the_medical_job_cover_the_values_that_are_made(hierarchies: dict[str, dict[str, Any]]) -> None:
    assert hierarchies["profession"]["tree"] == {
        sector: {domain: list(jobs) for domain, jobs in domains.items()} for sector, domains in PROFESSIONS.items()
    }
    with (JOBS / hierarchies["blood_group"]["csv"]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=hierarchies["blood_group"]["delimiter"]))
    assert {row[0] for row in rows} == set(BLOOD_GROUPS)
    assert all(row[1:] == [row[0].rstrip("+-"), "*"] for row in rows)


def test_lattice_of_the_medical_job_has_the_nodes_of_the_paper(hierarchies: dict[str, dict[str, Any]]) -> None:
    widths = [len(hierarchies[name]["widths"]) + 1 for name in ("age", "bmi", "pin_code")]
    assert widths == [8, 6, 12]
    assert prod([3, 4, *widths]) == 6_912
