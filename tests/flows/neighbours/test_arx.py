"""A project of ARX becomes a job by the program of the how-to, with its roles, hierarchies, limit and privacy models."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.conftest import CommandLine
from tests.flows.neighbours.pages import programs
from tests.jobs import released
from tests.patience import SECONDS

ROWS = [(f"p{row}", ("f", "m")[row % 2], str(20 + row % 40), ("flu", "cold", "gout")[row % 3], "x") for row in range(240)]
COLUMNS = {
    "name": ("IDENTIFYING_ATTRIBUTE", None),
    "sex": ("QUASI_IDENTIFYING_ATTRIBUTE", [("f", "*"), ("m", "*")]),
    "age": ("QUASI_IDENTIFYING_ATTRIBUTE", [(str(age), f"{age // 10}0s", "*") for age in range(20, 60)]),
    "disease": ("SENSITIVE_ATTRIBUTE", None),
    "ward": ("INSENSITIVE_ATTRIBUTE", None),
    "town": ("QUASI_IDENTIFYING_ATTRIBUTE", None),
}


def project(path: Path, criteria: list[str]) -> None:
    """Write what ARX's own writer puts into a project, as far as the conversion reads it."""

    def table(rows: list[tuple[str, ...]]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
        return text.getvalue()

    assigned = "".join(
        f"<assigment><name>{name}</name><type>{kind}</type><datatype>String</datatype>"
        + (f"<ref>hierarchies/{name}.csv</ref><min>All</min><max>All</max>" if rows else "")
        + "</assigment>"
        for name, (kind, rows) in COLUMNS.items()
    )
    asked = "".join(f"<criterion>{one}</criterion>" for one in criteria)
    head = "<!-- ARX XML Vocabulary Version 2.0 -->\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.xml", f"{head}<metadata><version>3.9.1</version><vocabulary>2.0</vocabulary></metadata>")
        archive.writestr("project.dat", b"\xac\xed")
        archive.writestr("project.xml", f"{head}<project><name>p</name><separator>;</separator></project>")
        archive.writestr(
            "input/config.xml", f"<config><relativeMaxOutliers>0.05</relativeMaxOutliers><criteria>{asked}</criteria></config>"
        )
        archive.writestr("input/definition.xml", f"<definition>{assigned}</definition>")
        for name, (_, rows) in COLUMNS.items():
            if rows:
                archive.writestr(f"input/hierarchies/{name}.csv", table(rows))


def converted(folder: Path, *criteria: str) -> tuple[dict[str, object], str]:
    programs("arx.md", folder)
    project(folder / "project.deid", list(criteria))
    command = [sys.executable, "arx_to_job.py", "project.deid", "people.csv", "job.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load((folder / "job.yaml").read_text()), done.stdout


def test_roles_limit_and_models_are_taken_over_and_what_is_not_is_told(tmp_path: Path) -> None:
    job, told = converted(
        tmp_path,
        "5-anonymity",
        "distinct-2-diversity for attribute 'disease'",
        "0.2-closeness for attribute 'disease' with equal ground-distance",
    )
    assert job["columns"] == {
        "person": "none",
        "identifiers": ["name", "town"],
        "quasi_identifiers": [{"name": name, "hierarchy": {"csv": f"hierarchies/{name}.csv", "delimiter": ";"}} for name in ("sex", "age")],
        "sensitive": ["disease"],
        "insensitive": ["ward"],
    }
    assert job["privacy"] == {"k": 5, "l": {"disease": {"distinct": 2}}}
    assert job["suppression"] == {"limit": 0.05}
    assert "0.2-closeness" in told
    assert "'town' has no hierarchy" in told
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "hierarchies").iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("criterion", "promised"),
    [
        ("shannon-entropy-2.5-diversity for attribute 'disease'", {"entropy": 2.5}),
        ("entropy-2.0-diversity for attribute 'disease'", {"entropy": 2.0}),
        ("recursive-(4.0,2)-diversity for attribute 'disease'", {"recursive": {"c": 4.0, "l": 2}}),
    ],
)
def test_every_l_diversity_has_its_key(tmp_path: Path, criterion: str, promised: dict[str, object]) -> None:
    job, _ = converted(tmp_path, "3-anonymity", criterion)
    assert job["privacy"] == {"k": 3, "l": {"disease": promised}}


@pytest.mark.ci
def test_the_job_runs_and_keeps_what_the_project_asked_for(direct: CommandLine) -> None:
    with (direct.folder / "people.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("name", "sex", "age", "disease", "ward", "town"), *((*row, "y") for row in ROWS)])
    converted(direct.folder, "5-anonymity", "distinct-2-diversity for attribute 'disease'")
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    [folder] = (direct.folder / "releases").glob("job-*")
    rows = released(folder)
    assert set(rows.columns) == {"sex", "age", "disease", "ward"}
    assert min(Counter(rows.select("sex", "age").iter_rows()).values()) >= 5
