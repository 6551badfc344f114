"""``skald deploy`` on a real server with real workers: jobs side by side, one job in turn, and what becomes of a run whose host died."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from flows.server.deployments import ENVIRONMENT, TAG
from tests.command_line import SIGNALLING, CommandLine
from tests.conftest import Anonymise
from tests.flows.relational.hospital import hospital_job, hospital_tables
from tests.jobs import digests, people, people_job
from tests.patience import until
from tests.places import ROOT
from tests.prefect_server import PrefectServer, frozen_below, serving

AUTOMATIONS = ROOT / "deployments" / "automations.yaml"
TABLE = people(1500)
SETTINGS = ("chunk_rows=100", "privacy.k=4")
BEAT = int(ENVIRONMENT["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])


def automations() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(AUTOMATIONS.read_text())["automations"]
    return found


def test_automations_are_of_this_version_of_prefect_and_know_the_runs_that_are_deployed() -> None:
    from prefect.events.schemas.automations import AutomationCore

    dead, _, again = automations()
    for one in automations():
        read = AutomationCore.model_validate(one)
        assert read.enabled
        assert one["trigger"]["match_related"]["prefect.resource.id"] == f"prefect.tag.{TAG}"
    assert dead["trigger"]["within"] >= 4 * BEAT
    assert dead["trigger"]["after"] == ["prefect.flow-run.heartbeat"]
    # Else a job that takes its host down each time would be begun for ever.
    assert again["trigger"]["match"]["prefect.run-count"] == ["1", "2"]
    written = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())["deployments"]
    assert [one["work_pool"]["job_variables"]["env"] for one in written] == [ENVIRONMENT] * len(written)
    assert all(TAG in one["tags"] and "concurrency_limit" not in one for one in written)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Iterator[PrefectServer]:
    with serving(CommandLine("prefect", tmp_path_factory.mktemp("served"), prefect_home), prefect_home) as running:
        yield running


def deploy(server: PrefectServer, *arguments: str, host: str | None = None) -> tuple[int, str]:
    named = {"SKALD_HOST": host} if host else {}
    done = server.line("deploy", *arguments, **server.environment, **named)
    return done.returncode, done.stdout + done.stderr


def deployment(server: PrefectServer, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("GET", f"/deployments/name/{name}").json()
    return answer


def start(server: PrefectServer, name: str) -> str:
    path = f"/deployments/{deployment(server, name)['id']}/create_flow_run"
    answer = until(lambda: (given := server.ask("POST", path, {"state": {"type": "SCHEDULED"}})).status_code != 503 and [given])[0]
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def planned_runs(server: PrefectServer, made: str) -> list[str]:
    """When the runs of a deployment that its schedule planned are to begin."""
    asked = {"flow_runs": {"deployment_id": {"any_": [made]}, "state": {"type": {"any_": ["SCHEDULED"]}}}}
    return [one["expected_start_time"] for one in server.ask("POST", "/flow_runs/filter", asked).json() if one["auto_scheduled"]]


def lines_of(server: PrefectServer, run: str) -> list[str]:
    """The log of a run as its page shows it."""
    asked = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"}
    return [one["message"] for one in server.ask("POST", "/logs/filter", asked).json()]


@pytest.mark.slow
def test_a_job_is_deployed_under_its_name_changed_moved_to_another_method_and_never_in_anothers_place(server: PrefectServer) -> None:
    folder = server.line.folder / "changed"
    job = people_job(folder, people(60), name="changed")
    code, told = deploy(server, str(job), "--cron", "0 2 * * *", "--timezone", "Europe/Berlin", "--set", "privacy.k=4", "--pool", "other")
    assert code == 0, told
    assert "skald/changed" in told
    assert "The work pool 'other' is new." in told
    made = deployment(server, "skald/changed")
    assert made["parameters"] == {"job": {"job_file": str(job), "settings": ["privacy.k=4"]}}
    assert [(one["schedule"]["cron"], one["schedule"]["timezone"], one["active"]) for one in made["schedules"]] == [
        ("0 2 * * *", "Europe/Berlin", True)
    ]
    # What a schedule is for: runs, at that hour of that zone, and none of them once it is gone.
    planned = until(lambda: planned_runs(server, made["id"]))
    assert {f"{datetime.fromisoformat(one).astimezone(ZoneInfo('Europe/Berlin')):%H:%M}" for one in planned} == {"02:00"}
    assert (made["global_concurrency_limit"]["limit"], made["concurrency_options"]["collision_strategy"]) == (1, "ENQUEUE")
    assert made["enforce_parameter_schema"]
    assert made["entrypoint"] == "flows.skald:skald"
    assert (made["work_pool_name"], made["tags"]) == ("other", [TAG, f"host:{socket.gethostname()}"])
    assert list(made["parameter_openapi_schema"]["properties"]) == ["job"]
    code, told = deploy(server, str(job), "--pool", "other")
    assert code == 0, told
    assert "is new" not in told
    assert (deployment(server, "skald/changed")["schedules"], planned_runs(server, made["id"])) == ([], [])
    assert deployment(server, "skald/changed")["parameters"] == {"job": {"job_file": str(job)}}
    code, told = deploy(server, str(job), "--pool", "elsewhere", host="second")
    assert (code, "at this path on host" in told) == (2, True)
    assert deployment(server, "skald/changed")["work_pool_name"] == "other"
    for host in ("second", socket.gethostname()):
        code, told = deploy(server, str(job), "--pool", "other", "--take-over", host=host)
        assert code == 0, told
        assert deployment(server, "skald/changed")["tags"] == [TAG, f"host:{host}"]
    twin = people_job(server.line.folder / "twin", people(60), name="changed")
    code, told = deploy(server, str(twin), "--pool", "other")
    assert code == 2
    assert "is of another job file" in told
    people_job(folder, people(60), name="changed", method={"name": "mondrian"})
    code, told = deploy(server, str(job), "--pool", "other")
    assert code == 0, told
    assert "skald/changed: removed" in told
    assert server.ask("GET", "/deployments/name/skald/changed").status_code == 404
    assert deployment(server, "mondrian/changed")["entrypoint"] == "flows.mondrian:mondrian"
    for arguments, sentence in (
        (["--cron", "at two"], "has 2 fields"),
        (["--cron", "0 0 2 * * *"], "has 6 fields"),
        (["--cron", "0 0 2 * * * 2030"], "has 7 fields"),
        (["--cron", "0 25 * * *"], "says no times"),
        (["--cron", "0 2 30 2 *"], "names a day that never comes"),
        (["--cron", "0 2 31 4,6 *"], "names a day that never comes"),
        (["--cron", "0 2 * * *", "--timezone", "Mars/Olympus"], "says no times"),
        (["--set", "columns.quasi_identifiers.0.hierarchy={tree: {'*': [f, m, x, a cell value]}}"], "write them into the job file"),
    ):
        code, told = deploy(server, str(job), *arguments)
        assert code == 2
        assert sentence in told
    assert b"a cell value" not in server.content()


@pytest.mark.slow
def test_what_somebody_paused_stays_paused_when_the_job_is_deployed_again_and_of_another_method(server: PrefectServer) -> None:
    folder, mondrian = server.line.folder / "paused", {"name": "mondrian"}
    for method, does, expected in (
        ({}, None, False),
        ({}, "pause", True),
        ({"method": mondrian}, None, True),
        ({"method": mondrian}, "resume", False),
    ):
        if does:
            made = deployment(server, f"{'mondrian' if method else 'skald'}/paused")["id"]
            assert server.ask("POST", f"/deployments/{made}/{does}_deployment").status_code == 200
        job = people_job(folder, people(60), name="paused", **method)
        code, told = deploy(server, str(job), "--cron", "0 2 * * *", "--pool", "other")
        assert (code, "paused on the server and stays so" in told) == (0, expected), told
        assert deployment(server, f"{'mondrian' if method else 'skald'}/paused")["paused"] == expected


@pytest.mark.slow
def test_a_job_of_several_tables_is_deployed_run_and_told_of_and_may_become_one_of_one_table(server: PrefectServer) -> None:
    folder = server.line.folder / "hospital"
    job = hospital_job(folder, hospital_tables(150, 3))
    code, told = deploy(server, str(job), "--set", "privacy.k=4")
    assert (code, "tables/hospital: runs by hand" in told) == (0, True), told
    worker = server.start_worker()
    first, again = (start(server, "tables/hospital") for _ in range(2))
    assert [server.ended(one)["type"] for one in (first, again)] == ["COMPLETED", "COMPLETED"]
    release = (folder / "releases" / "CURRENT").read_text().strip()
    said = [until(lambda run=run: [line for line in lines_of(server, run) if release in line]) for run in (first, again)]
    assert sorted(line.split(release)[0] for [line] in said) == [
        "Nothing to do: the same job on the same data was published as release ",
        "Published release ",
    ]
    assert any("are published in 3 tables" in line for line in lines_of(server, first))
    asked = {"artifacts": {"flow_run_id": {"any_": [first]}}}
    made = {one["key"]: str(one["data"]) for one in server.ask("POST", "/artifacts/filter", asked).json()}
    assert {"hospital-summary", "hospital-report"} <= made.keys()
    assert "Every history is shared by at least 4 persons" in made["hospital-summary"]
    # Runs of other tests are none of its own.
    for process in [worker, *worker.children(recursive=True)]:
        process.kill()
    people_job(folder, people(60), name="hospital")
    code, told = deploy(server, str(job))
    assert (code, "tables/hospital: removed, as skald/hospital takes its place." in told) == (0, True), told


@pytest.mark.slow
def test_without_a_server_nothing_is_deployed_and_one_sentence_says_so(tmp_path: Path, prefect_home: Path) -> None:
    job = people_job(tmp_path, people(60))
    done = CommandLine("prefect", tmp_path, prefect_home)("deploy", str(job))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Set PREFECT_API_URL" in done.stderr


class Busy(BaseHTTPRequestHandler):
    """A server that answers, and cannot do what it is asked for just now."""

    def do_GET(self) -> None:
        self.answer(200 if self.path.endswith("/version") else 503, json.dumps(version("prefect")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200 if self.path.endswith("/flows/filter") else 503, "[]")

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.slow
def test_a_server_that_is_too_busy_ends_a_deployment_in_one_sentence(tmp_path: Path, prefect_home: Path) -> None:
    job = people_job(tmp_path, people(60))
    with HTTPServer(("127.0.0.1", 0), Busy) as busy:
        Thread(target=busy.serve_forever, daemon=True).start()
        settings = {"PREFECT_CLIENT_MAX_RETRIES": "0", "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "false"}
        address = f"http://127.0.0.1:{busy.server_port}/api"
        done = CommandLine("prefect", tmp_path, prefect_home)("deploy", str(job), PREFECT_API_URL=address, **settings)
        busy.shutdown()
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be used (it answers with status 503)" in done.stderr


@pytest.mark.slow
def test_a_host_that_dies_loses_no_run_other_jobs_go_on_and_the_same_one_waits(
    server: PrefectServer, anonymise: Anonymise, tmp_path: Path
) -> None:
    folder = server.line.folder
    for name in ("first", "second"):
        job = people_job(folder / name, TABLE, name=name)
        code, told = deploy(server, str(job), *(part for one in SETTINGS for part in ("--set", one)))
        assert code == 0, told
    # As they are shipped: with less patience, a run on a busy machine would be taken for dead.
    made = server.prefect("automation", "create", "--from-file", str(AUTOMATIONS))
    assert made.returncode == 0, made.stdout + made.stderr
    # Python reads this file at the start of every process below the worker: the first run freezes in the middle of its second phase.
    once = f"at({int(signal.SIGSTOP)}, 'histograms/*.record', {str(tmp_path / 'once')!r})"
    (tmp_path / "sitecustomize.py").write_text(f"{SIGNALLING}\n{once}\n")
    worker = server.start_worker(PYTHONPATH=f"{tmp_path}:{ROOT}")
    one = start(server, "skald/first")
    until(lambda: frozen_below(worker))
    same, other = start(server, "skald/first"), start(server, "skald/second")
    until(lambda: server.state(same)["name"] == "AwaitingConcurrencySlot")
    assert server.ended(other)["type"] == "COMPLETED"
    assert frozen_below(worker)
    for process in [worker, *worker.children(recursive=True)]:
        process.send_signal(signal.SIGKILL)
    server.start_worker()
    assert until(lambda: server.state(one)["type"] != "RUNNING")
    until(lambda: server.state(one)["type"] == "COMPLETED")
    assert server.ended(same)["type"] == "COMPLETED"
    # Twice, unless it was frozen for so long that it was given up before it was killed.
    assert server.ask("GET", f"/flow_runs/{one}").json()["run_count"] in {2, 3}
    release = folder / "first" / "releases" / (folder / "first" / "releases" / "CURRENT").read_text().strip()
    undisturbed = anonymise(people_job(tmp_path, TABLE, name="first"), *SETTINGS)
    assert (release.name, digests(release)) == (undisturbed.folder.name, digests(undisturbed.folder))
    told_to_people(server, [one, same], release)
    # As words: "gout" is a part of others, and of random texts.
    assert not re.findall(rb"\b(?:measles|gout|cough)\b", server.content())


def told_to_people(server: PrefectServer, runs: list[str], release: Path) -> None:
    """Names and logs: job and date, then records, suppressed and release, and no line for each of the chunks."""
    for run in runs:
        assert re.fullmatch(r"first \d{4}-\d\d-\d\d \d\d:\d\d UTC", server.ask("GET", f"/flow_runs/{run}").json()["name"])
    said = {
        run: "\n".join(until(lambda run=run: [line for line in lines_of(server, run) if release.name in line] and lines_of(server, run)))
        for run in runs
    }
    for text in said.values():
        assert "Job 'first': method skald, k = 4" in text
        assert re.search(r"1,500 records: [\d,]+ released, [\d,]+ suppressed of at most", text)
        assert "Finished in state Completed" not in text.replace("Finished in state Completed()", "", 1)
    assert sum(f"Published release {release.name}" in text for text in said.values()) == 1
    assert sum("Nothing to do" in text for text in said.values()) == 1
