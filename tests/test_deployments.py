"""What the deployments name is there: flows that import from modules and take the parameters, and a container with every package."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from flows.methods import FLOWS
from tests.conftest import ROOT, CommandLine

FOLDER = ROOT / "deployments"
LOADED = """
import json, sys
from prefect.flows import load_flow_from_entrypoint
told = {}
for entrypoint, parameters in json.load(sys.stdin):
    flow = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
    told[entrypoint] = [flow.name, sorted(flow.validate_parameters(parameters))]
json.dump(told, sys.stdout)
"""


def test_every_method_has_a_deployment_whose_flow_imports_and_takes_its_parameters(prefect: CommandLine) -> None:
    deployments = yaml.safe_load((FOLDER / "prefect.yaml").read_text())["deployments"]
    given = [(deployment["entrypoint"], deployment["parameters"]) for deployment in deployments]
    assert sorted(entrypoint for entrypoint, _ in given) == sorted(FLOWS.values())
    options = prefect.options(DO_NOT_TRACK="1")
    done = subprocess.run(
        [sys.executable, "-c", LOADED], **options, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    names = {entrypoint: [entrypoint.split(":")[1].replace("_", "-"), ["job_file", "settings"]] for entrypoint in FLOWS.values()}
    told = {entrypoint: [name.replace("_", "-"), taken] for entrypoint, (name, taken) in json.loads(done.stdout).items()}
    assert told == names


def test_schedules_are_off_until_they_are_switched_on_and_runs_of_one_deployment_do_not_meet() -> None:
    for deployment in yaml.safe_load((FOLDER / "prefect.yaml").read_text())["deployments"]:
        assert [schedule["active"] for schedule in deployment["schedules"]] == [False]
        assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


def test_the_container_holds_every_package_and_runs_as_no_root() -> None:
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    copied = {line.split()[1] for line in lines if line.startswith("COPY")}
    assert {package.split(".")[0] for package in packages} <= copied
    assert all(Path(ROOT, name).exists() for name in copied if name != "pyproject.toml")
    assert "USER skald" in lines
