"""The page that shows how to be told of a failed run does what it says, on a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.command_line import CommandLine
from tests.jobs import people, people_job
from tests.patience import SECONDS, until
from tests.places import ROOT
from tests.prefect_server import serving

SCRIPT = ROOT / "docs" / "programs" / "notify" / "notify.py"


@contextmanager
def receiving() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A webhook of this machine: its address, and path and text of what arrives."""
    came: list[tuple[str, str]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()


def script() -> str:
    return SCRIPT.read_text("utf-8")


def test_the_script_of_the_page_is_python_and_asks_for_what_skald_deploys() -> None:
    compile(script(), "notify.py", "exec")
    assert "prefect.tag.skald" in script()


@pytest.mark.slow
def test_a_run_that_fails_is_told_of_in_its_own_sentence(tmp_path: Path, prefect_home: Path) -> None:
    with receiving() as (address, came), serving(CommandLine("prefect", tmp_path, prefect_home), prefect_home) as server:
        job = people_job(tmp_path, people(60), name="gone")
        assert server.line("deploy", str(job), **server.environment).returncode == 0
        (tmp_path / "notify.py").write_text(script().replace("https://chat.example", address))
        options = server.line.options(**server.environment, HOOK_TOKEN="a-secret-token")
        done = subprocess.run([sys.executable, "notify.py"], **options, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        for path in (tmp_path / "people").iterdir():
            path.unlink()
        server.start_worker()
        started = server.prefect("deployment", "run", "skald/gone")
        assert started.returncode == 0, started.stdout + started.stderr
        until(lambda: came)
        [(path, text)] = came
        assert path == "/hooks/a-secret-token"
        assert re.match(r"gone \d{4}-\d\d-\d\d \d\d:\d\d UTC Failed: .*No file matches 'people/", text), text
        assert b"a-secret-token" not in server.content()
