"""The deployments on a real server with a real worker: what is refused, what is continued, what is left to look at; and the containers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from schemas.job.job import load_job
from schemas.job.method import METHODS as FLOWS
from tasks.engine.runs import AFTER_PUBLICATION
from tasks.recount.recount import verify_release
from tests.command_line import SIGNALLING, CommandLine
from tests.conftest import Anonymise
from tests.jobs import digests, people, people_job
from tests.patience import SECONDS, until
from tests.places import ROOT
from tests.prefect_server import PrefectServer, frozen_below, serving

FOLDER = ROOT / "deployments"
TABLE = people(1500)
SETTINGS = ["chunk_rows=100"]
TREE = "columns.quasi_identifiers.0.hierarchy.tree={a cell value: b}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Iterator[PrefectServer]:
    """A server with all deployments."""
    with serving(CommandLine("prefect", tmp_path_factory.mktemp("served"), prefect_home), prefect_home) as running:
        people_job(running.line.folder, TABLE)
        running.ask("POST", "/work_pools/", {"name": "skald", "type": "process"})
        done = running.prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(FOLDER / "prefect.yaml"))
        assert done.returncode == 0, done.stdout + done.stderr
        yield running


def deployment(server: PrefectServer, flow: str = "skald") -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("GET", f"/deployments/name/{flow}/nightly").json()
    return answer


def start(server: PrefectServer, parameters: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Ask for a run of the first deployment; return the API's status and answer. A busy database is asked again, as clients do."""
    content = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
    path = f"/deployments/{deployment(server)['id']}/create_flow_run"
    answer = until(lambda: (given := server.ask("POST", path, content)).status_code != 503 and [given])[0]
    return answer.status_code, answer.json()


@pytest.mark.slow
def test_every_method_is_deployed_with_one_form_off_until_switched_on_and_for_jobs_side_by_side(server: PrefectServer) -> None:
    for method in (*FLOWS, "tables"):
        found = deployment(server, method)
        assert found["enforce_parameter_schema"]
        assert found["work_pool_name"] == "skald"
        assert "skald" in found["tags"]
        assert [schedule["active"] for schedule in found["schedules"]] == [False]
        assert found["global_concurrency_limit"] is None
        schema = found["parameter_openapi_schema"]
        assert list(schema["properties"]) == schema["required"] == ["job"]
        (form,) = schema["definitions"].values()
        assert form["required"] == ["job_file"]
        assert {name: entry["type"] for name, entry in form["properties"].items()} == {
            "job_file": "string",
            "k": "integer",
            "limit": "number",
            "memory": "string",
            "settings": "array",
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"job": {}},
        {"job": {"job_file": "relative.yaml"}},
        {"job": {"job_file": "/jobs/job.yaml", "k": 0}},
        {"job": {"job_file": "/jobs/job.yaml", "k": "many"}},
        {"job": {"job_file": "/jobs/job.yaml", "limit": 1.5}},
        {"job": {"job_file": "/jobs/job.yaml", "memory": "much"}},
        {"job": {"job_file": "/jobs/job.yaml", "password": "secret"}},
        {"job": {"job_file": "/jobs/job.yaml", "settings": ["no setting"]}},
        {"job": {"job_file": "/jobs/job.yaml", "settings": [TREE]}},
        {"job": {"job_file": "/jobs/job.yaml", "settings": ["source.null_values=[a cell value]"]}},
    ],
    ids=lambda parameters: json.dumps(parameters)[:60],
)
def test_the_api_refuses_bad_parameters_before_a_run_begins(server: PrefectServer, parameters: dict[str, Any]) -> None:
    before = server.rows("SELECT count(*) FROM flow_run")
    status, answer = start(server, parameters)
    assert status == 409, answer
    assert "Validation failed" in answer["detail"]
    assert server.rows("SELECT count(*) FROM flow_run") == before
    assert b"a cell value" not in server.content()


@pytest.mark.slow
def test_a_run_that_is_killed_continues_by_retry_to_the_same_bytes_and_a_second_one_meanwhile_waits(
    server: PrefectServer, anonymise: Anonymise, tmp_path: Path
) -> None:
    folder = server.line.folder
    # Python reads this file at the start of every process below the worker: the first run freezes in the middle of its second phase.
    once = f"at({int(signal.SIGSTOP)}, 'histograms/*.record', {str(tmp_path / 'once')!r})"
    (tmp_path / "sitecustomize.py").write_text(f"{SIGNALLING}\n{once}\n")
    events = tmp_path / "events.jsonl"
    worker = server.start_worker(PYTHONPATH=f"{tmp_path}:{ROOT}", OPENLINEAGE_URL=f"file://{events}")
    status, first = start(server, {"job": {"job_file": str(folder / "job.yaml"), "k": 4, "settings": SETTINGS}})
    assert status == 201, first
    [run] = until(lambda: frozen_below(worker))
    status, second = start(server, {"job": {"job_file": str(folder / "job.yaml"), "k": 4, "settings": SETTINGS}})
    assert status == 201, second
    asked = {"logs": {"flow_run_id": {"any_": [second["id"]]}}}
    until(lambda: any("This run waits." in line["message"] for line in server.ask("POST", "/logs/filter", asked).json()))
    assert server.state(second["id"])["type"] == "RUNNING"
    assert not list((folder / "releases").glob("people-*"))
    records = (folder / ".skald").rglob("*.record")
    counted = {path: path.stat().st_mtime_ns for path in records if path.parent.name not in AFTER_PUBLICATION}
    run.send_signal(signal.SIGKILL)
    assert server.ended(first["id"])["type"] == "CRASHED"
    # The one that waited has its turn.
    assert server.ended(second["id"])["type"] == "COMPLETED", (folder / "worker.log").read_text()
    # However often it looked, it began once; and to wait is not to fail.
    assert [json.loads(line)["eventType"] for line in events.read_text().splitlines()] == ["START", "START", "COMPLETE"]
    # The worker looks for hooks in a process of its own and says once more that the run crashed: a retry before that would be undone.
    until(lambda: not worker.children())
    retried = server.prefect("flow-run", "retry", first["id"])
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: server.state(first["id"])["type"] != "CRASHED")
    assert server.ended(first["id"])["type"] == "COMPLETED", (folder / "worker.log").read_text()
    release = folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()
    assert {path: path.stat().st_mtime_ns for path in counted} == counted
    undisturbed = anonymise(people_job(tmp_path, TABLE), "privacy.k=4", *SETTINGS)
    assert (release.name, digests(release)) == (undisturbed.folder.name, digests(undisturbed.folder))
    verify_release(load_job(folder / "job.yaml", ["privacy.k=4"]), release)
    left_to_look_at(server, release)


def left_to_look_at(server: PrefectServer, release: Path) -> None:
    """What the run shows: tasks under stable keys, artifacts, and the asset with what it was made of."""
    keys = {"phase 1 · domains 3 of 15": "skald.domains", "phase 2 · search": "skald.search", "phase 4 · publish": "skald.publish"}
    # Tasks are told as events, which the server writes down when it comes to it: after the end of the run, if it is busy.
    until(lambda: keys.items() <= dict(server.rows("SELECT name, task_key FROM task_run")).items())
    shown = {key: data for key, data in server.rows("SELECT key, data FROM artifact ORDER BY created")}
    assert shown.keys() == {"people-progress", "people-summary", "people-figures", "people-report"}
    assert float(shown["people-progress"]) == 100
    assert "at least 4 records" in shown["people-summary"]
    assert "certified" in shown["people-summary"]
    assert {"Highest risk", "GCP"} <= {row["figure"] for row in json.loads(json.loads(shown["people-figures"]))}
    assert (release / "report.html").as_uri() in shown["people-report"]
    made = until(lambda: server.rows("SELECT resource_id, related FROM events WHERE event = 'prefect.asset.materialization.succeeded'"))
    assert [asset for asset, _ in made] == [f"file://{release}"]
    assert f"file://{release.parent.parent / 'people'}" in {related["prefect.resource.id"] for related in json.loads(made[0][1])}


@pytest.mark.slow
def test_a_server_that_dies_ends_the_run_in_one_sentence_and_what_is_finished_stays(server: PrefectServer, anonymise: Anonymise) -> None:
    folder = server.line.folder
    settings = ["privacy.k=6", "work=other", *SETTINGS]
    command = server.line.command_signalled(
        signal.SIGSTOP, "histograms/*.record", "run", "job.yaml", *(part for one in settings for part in ("--set", one))
    )
    process = subprocess.Popen(command, **server.line.options(**server.environment), stderr=subprocess.PIPE, text=True)
    until(lambda: process.poll() is not None or psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    server.process.kill()
    process.send_signal(signal.SIGCONT)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 2, told
    assert told.startswith("Prefect's server")
    assert "the same command continues" in told
    assert told.count("\n") == 1
    records = (folder / "other" / "artifacts").rglob("*.record")
    counted = {path: path.stat().st_mtime_ns for path in records if path.parent.name not in AFTER_PUBLICATION}
    assert counted
    # Prefect's tasks need no server until they are told of: the run may have come to its end, but for its last report.
    again = anonymise(folder / "job.yaml", *settings)
    verify_release(load_job(folder / "job.yaml", settings), again.folder)
    assert {path: path.stat().st_mtime_ns for path in counted} == counted


def test_the_container_holds_every_package_and_runs_as_no_root() -> None:
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = {line.split()[1] for line in lines if line.startswith("COPY")}
    assert {package.rstrip("*") for package in packages} <= copied
    assert all(Path(ROOT, name).exists() for name in copied if name != "pyproject.toml")
    assert "USER skald" in lines


def images_of(text: str) -> list[str]:
    """Return what the files of a deployment name as images."""
    return re.findall(r"^\s*(?:FROM|image:)\s+([^\s#]+)", text, re.MULTILINE)


def test_no_image_is_named_by_a_tag() -> None:
    named = {path.name: images_of(path.read_text()) for path in FOLDER.iterdir() if path.is_file()}
    assert named.pop("Containerfile") == ["${PYTHON_IMAGE}"]
    assert "ARG PYTHON_IMAGE" in (FOLDER / "Containerfile").read_text().split("FROM")[0].splitlines()
    compose = (FOLDER / "compose.yaml").read_text()
    services = yaml.safe_load(compose)["services"]
    built = {service["image"] for service in services.values() if "build" in service}
    for service in services.values():
        # What is built here is asked of no registry; all else is said with its digest, and nothing runs where it is not.
        assert service["image"] in built or re.fullmatch(r"\$\{SKALD_\w+_IMAGE:\?[^}]*\}", service["image"])
    assert built == {"localhost/skald"}
    assert services["server"]["build"]["args"] == {"PYTHON_IMAGE": "${SKALD_PYTHON_IMAGE:?set it in deployments/.env, with its digest}"}
    assert len(images_of(compose)) == 2
    assert not any(images for name, images in named.items() if name != "compose.yaml")


@pytest.mark.parametrize(
    ("image", "code"),
    [(f"python:3.11@sha256:{'0a' * 32}", 0), ("python:3.11", 1), ("", 1), ("python@sha256:0a", 1), (f"python@sha256:{'0a' * 32}:3", 1)],
)
def test_a_build_upon_an_image_without_its_digest_is_refused(image: str, code: int) -> None:
    [check] = [line.removeprefix("RUN ") for line in (FOLDER / "Containerfile").read_text().splitlines() if "sha256:[0-9a-f]" in line]
    assert subprocess.run(["sh", "-c", check], env={"PYTHON_IMAGE": image}, check=False, capture_output=True).returncode == code


def test_the_compose_file_keeps_secrets_out_and_names_only_what_there_is() -> None:
    from prefect import settings

    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    example = dict(line.split("=", 1) for line in (FOLDER / "example.env").read_text().splitlines() if line and line[0] != "#")
    asked = set(re.findall(r"\$\{(\w+):\?", (FOLDER / "compose.yaml").read_text()))
    assert asked == {"SKALD_DATABASE_PASSWORD", "SKALD_API_AUTH", "SKALD_JOBS", "SKALD_PYTHON_IMAGE", "SKALD_POSTGRES_IMAGE"}
    assert {example[name] for name in asked} == {""}
    services = compose["services"]
    assert services.keys() == {"database", "server", "deploy", "worker"}
    for service in services.values():
        secret = {name: value for name, value in service["environment"].items() if "PASSWORD" in name or "AUTH" in name}
        assert secret
        assert all(value.startswith("${SKALD_") and ":?" in value for value in secret.values())
        assert all(hasattr(settings, name) for name in service["environment"] if name.startswith("PREFECT_"))
        assert set(service["networks"]) <= compose["networks"].keys()
        assert {volume.split(":")[0] for volume in service.get("volumes", []) if volume[0] not in "$./"} <= compose["volumes"].keys()
        for name, condition in service.get("depends_on", {}).items():
            assert "healthcheck" in services[name] if condition["condition"] == "service_healthy" else services[name]["restart"] == "no"
    assert services["server"]["ports"] == ["127.0.0.1:4200:4200"]
    assert "/deployments/.env" in (ROOT / ".gitignore").read_text().splitlines()
