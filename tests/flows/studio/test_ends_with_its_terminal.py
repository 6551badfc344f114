"""The studio as a process: where it listens, what it prints, and that nothing of it is left when its terminal is gone."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.conftest import CommandLine
from tests.patience import SECONDS, until

pytestmark = pytest.mark.promise
HELPED = """
import sys
sys.argv = ["skald", "--help"]
from flows import cli
try:
    cli.main()
finally:
    print(sorted(sys.modules), file=sys.stderr)
"""


@contextmanager
def started(direct: CommandLine, *arguments: object, terminal: int | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a studio, or on a terminal a shell that starts one; yield the process and the address that is printed."""
    command = direct.command("studio", *arguments, "--no-browser")
    if terminal is not None:
        # The shell makes the terminal its own, waits, ignores that it closes, and does not become the studio.
        take = "import fcntl, os, sys, termios; fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0); os.execvp(sys.argv[2], sys.argv[2:])"
        command = [sys.executable, "-c", take, str(terminal), "sh", "-c", 'trap "" HUP; "$@" & wait', "sh", *command]
    options = direct.options() | {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **options, start_new_session=True, pass_fds=[terminal] if terminal is not None else [])
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def listens(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket() as asked:
        return asked.connect_ex((host, port)) == 0


@pytest.mark.ci
def test_it_listens_on_this_machine_alone_and_answers_with_its_token_alone(direct: CommandLine, job: Path) -> None:
    with started(direct, job) as (process, address):
        parts = urlsplit(address)
        assert address == f"http://127.0.0.1:{parts.port}/?{parts.query}" and parts.query.startswith("token=") and len(parts.query) > 40
        # Who listens everywhere, answers at every address of the machine.
        assert listens(parts.port or 0) and not listens(parts.port or 0, "127.0.0.2")
        with urllib.request.urlopen(address, timeout=SECONDS) as page:
            assert "<h1>Columns</h1>" in page.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(address.partition("?")[0], timeout=SECONDS)
        refused.value.close()
        process.send_signal(signal.SIGINT)
        said, noticed = process.communicate(timeout=SECONDS)
        # One line was read, and there is no second one: no log has the token.
        assert said == "" and parts.query not in noticed
        assert process.returncode == 130


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_it_ends_with_a_terminal_that_closes(number: int, direct: CommandLine) -> None:
    with started(direct) as (process, address):
        process.send_signal(number)
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
        assert not listens(urlsplit(address).port or 0)


@pytest.mark.ci
def test_it_ends_when_the_shell_of_its_terminal_is_gone(direct: CommandLine) -> None:
    ours, theirs = pty.openpty()
    with started(direct, terminal=theirs) as (shell, address):
        [studio] = psutil.Process(shell.pid).children()
        shell.kill()
        psutil.wait_procs([studio], timeout=SECONDS)
        assert not studio.is_running()
        assert not listens(urlsplit(address).port or 0)
    os.close(ours)
    os.close(theirs)


@pytest.mark.ci
def test_what_it_works_on_ends_with_it(direct: CommandLine, job: Path) -> None:
    """Even if it is killed: its work hears that nobody listens."""
    environment = direct.options()
    worker = subprocess.Popen(
        [sys.executable, "-m", "flows.studio.worker"], **environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdin is not None and worker.stdout is not None
    os.set_blocking(worker.stdout.fileno(), True)
    worker.stdin.write(json.dumps({"kind": "run", "job": str(job), "direct": True}) + "\n")
    worker.stdin.flush()
    assert worker.stdout.readline()
    worker.stdin.close()
    assert worker.wait(SECONDS) in {0, 1, 130}
    worker.stdout.close()


@pytest.mark.ci
def test_a_port_that_is_taken_is_said_in_a_sentence(direct: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = direct.process("studio", "--no-browser", "--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert "cannot be used" in done.stderr and done.stdout == ""


def test_the_help_of_the_command_line_loads_no_server() -> None:
    done = subprocess.run([sys.executable, "-c", HELPED], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert "studio" in done.stdout
    assert not [name for name in ("'starlette'", "'fastapi'", "'uvicorn'", "'jinja2'", "'selenium'") if name in done.stderr]


@pytest.mark.ci
def test_waiting_for_the_end_is_no_idle_look(direct: CommandLine) -> None:
    with started(direct) as (process, address):
        assert until(lambda: listens(urlsplit(address).port or 0))
        assert process.poll() is None
