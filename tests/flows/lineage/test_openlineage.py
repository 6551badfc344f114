"""Events of OpenLineage tell that a run began and how it ended, with its sources, its release and its exit code, and no value of a cell."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CommandLine
from tests.flows.privacy.test_no_canary import CANARY, canary_job
from tests.jobs import people, people_job

TABLE = people(200)


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.ci
def test_a_run_tells_its_sources_its_release_and_its_exit(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", "--json", "--set", "suppression.limit=0.2", OPENLINEAGE_URL=f"file://{place}")
    assert done.returncode == 0, done.stderr
    began, ended = events_of(place)
    manifest = json.loads(done.stdout)
    assert [one["eventType"] for one in (began, ended)] == ["START", "COMPLETE"]
    assert began["run"]["runId"] == ended["run"]["runId"]
    assert began["job"] | {"facets": {}} == {"namespace": "skald", "name": "people", "facets": {}}
    assert [(one["namespace"], one["name"]) for one in ended["inputs"]] == [("file", f"{direct.folder}/people")]
    [output] = ended["outputs"]
    assert (output["namespace"], output["name"]) == ("file", f"{direct.folder}/releases")
    assert output["facets"]["version"]["datasetVersion"] == manifest["release"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == manifest["released"]
    told = ended["run"]["facets"]["skald"]
    assert (told["exit"], told["k"], told["release"]["smallestClass"]) == (0, 5, manifest["min_class"])
    again = direct("run", "job.yaml", "--set", "suppression.limit=0.2", OPENLINEAGE_URL=f"file://{place}")
    assert again.returncode == 0, again.stderr
    assert events_of(place)[-1]["run"]["facets"]["skald"]["release"]["new"] is False


def test_a_run_that_fails_tells_its_exit_code_and_its_sentence(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE, privacy={"k": 150}, suppression={"limit": 0.0})
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", "--set", "privacy.k=300", OPENLINEAGE_URL=f"file://{place}")
    assert done.returncode == 3
    assert [one["eventType"] for one in events_of(place)] == ["START", "FAIL"]
    facets = events_of(place)[-1]["run"]["facets"]
    assert facets["skald"]["exit"] == 3
    # The terminal tells how many records fail; whoever collects events is told the sentence without its numbers.
    message, said = facets["errorMessage"]["message"], " ".join(done.stderr.split())
    assert "k = 300 cannot be met by 200 records." in said
    assert message in re.sub("[0-9]+", "some", said)
    assert not re.search("[0-9]", message)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("fault", ["none", "uncovered", "k"])
def test_no_event_holds_a_cell_value(direct: CommandLine, fault: str) -> None:
    path = canary_job(direct.folder)
    if fault == "k":
        path.write_text(path.read_text().replace("k: 3", "k: 300"))
    if fault == "uncovered":
        path.write_text(path.read_text().replace(f"{CANARY}-t-1", f"{CANARY}-t-99"))
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", OPENLINEAGE_URL=f"file://{place}")
    assert done.returncode == {"none": 0, "uncovered": 2, "k": 3}[fault], done.stderr
    assert len(events_of(place)) == 2
    assert CANARY not in place.read_text()


@pytest.mark.ci
def test_nothing_is_sent_unless_the_environment_asks(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", OPENLINEAGE_URL=f"file://{place}", OPENLINEAGE_DISABLED="true")
    assert done.returncode == 0, done.stderr
    assert not place.exists()


@contextmanager
def endpoint(status: int) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """An HTTP server on this machine that takes events."""
    taken: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_an_endpoint_takes_the_events(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    with endpoint(201) as (url, taken):
        done = direct.process("run", "job.yaml", OPENLINEAGE_URL=url, OPENLINEAGE_NAMESPACE="hospital")
    assert done.returncode == 0, done.stderr
    assert [(path, event["eventType"]) for path, event in taken] == [("/api/v1/lineage", "START"), ("/api/v1/lineage", "COMPLETE")]
    assert {event["job"]["namespace"] for _, event in taken} == {"hospital"}


@pytest.mark.slow
@pytest.mark.parametrize("url", ["http://user:hidden@127.0.0.1:9", "refused", "gopher://x", "file:///nowhere/at/all/x.jsonl"])
def test_a_place_that_does_not_take_them_is_warned_of_and_stops_no_run(direct: CommandLine, url: str) -> None:
    people_job(direct.folder, TABLE)
    with endpoint(400) as (refusing, _):
        done = direct.process("run", "job.yaml", OPENLINEAGE_URL=refusing if url == "refused" else url)
    assert done.returncode == 0, done.stderr
    assert "goes on without" in done.stderr
    assert "hidden" not in done.stderr
    assert len(list(direct.folder.glob("releases/*/manifest.json"))) == 1
