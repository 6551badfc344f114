"""Long work of the studio in a worker process: one at a time, with progress, ended with the studio."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.errors.base import StorageError
from tasks.engine.progress import STEPS

ROOT = Path(str(sys.modules[__name__.partition(".")[0]].__file__)).resolve().parents[1]
"""What holds the package that this module is in: the checkout, or where packages are installed."""
PATIENCE = 30
"""Seconds that cancelled work has before its process is killed."""
WORDS = {
    "run": "Run of the job",
    "draft": "Draft of a job",
    "plan": "Risk of all records",
    "front": "Front of all records",
    "groups": "Groups of a column",
    "complete": "Missing values of a list of groups",
    "utility": "Utility of a release",
}


@dataclass
class WorkStep:
    """A step of the work, with its progress."""

    words: str
    done_units: int
    total: int


@dataclass
class Work:
    """One task in a worker process, with its progress and result.

    Attributes:
        kind: What is done; ``settings`` with it.
        stamp: Of the job file when it began.
        steps: By name, in the order in which they began.
        notes: What was noticed.
        result: What came of it, once it is over.
        fault: Why it failed, and ``code`` with which exit code.
        cancelled: Whether somebody cancelled it.
        over: Whether it is over.
    """

    kind: str
    settings: Mapping[str, Any]
    stamp: str
    steps: dict[str, WorkStep] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    result: dict[str, Any] | None = None
    fault: str = ""
    code: int = 0
    cancelled: bool = False
    over: bool = False

    @property
    def words(self) -> str:
        """Name of the work's kind, such as ``Run of the job``."""
        return WORDS[self.kind]

    def record_message(self, message: Mapping[str, Any]) -> None:
        """Store a message of the worker process: progress, note, result, cancellation or fault."""
        if "step" in message:
            known = STEPS.get(message["step"])
            words = f"phase {known.phase}: {known.words}" if known else str(message["step"])
            self.steps[message["step"]] = WorkStep(words, int(message["done"]), max(int(message["total"]), 1))
        elif "note" in message:
            self.notes.append(str(message["note"]))
        elif "result" in message:
            self.result = message["result"]
        elif "cancelled" in message:
            self.cancelled = True
        else:
            self.fault, self.code = str(message.get("fault", "")), int(message.get("code", 1))


class Works:
    """Starter of long work, one at a time; keeps the current work and the latest of each kind."""

    def __init__(self, finished: Callable[[Work], None]) -> None:
        self._finished = finished
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self.current: Work | None = None
        self.last: dict[str, Work] = {}

    @property
    def busy(self) -> bool:
        """Whether work is in progress."""
        return self.current is not None and not self.current.over

    def start(self, kind: str, stamp: str, **asked: Any) -> Work:
        """Start work in a worker process and return it; raise ``StorageError`` if other work is running.

        Raises:
            StorageError: another one is going on, or no process can be started.
        """
        with self._lock:
            if self.busy:
                raise StorageError("Something is being worked on already. Wait for its end, or cancel it.")
            work = Work(kind, asked, stamp)
            # -P: a folder of the user's that is called flows would be taken for ours.
            command = [sys.executable, "-P", "-m", "flows.studio.worker"]
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
                    env=os.environ | {"PYTHONPATH": path}, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise StorageError.not_writable("another process", error.strerror or "unknown reason") from None
            assert process.stdin is not None
            process.stdin.write(json.dumps({"kind": kind, **asked}) + "\n")
            process.stdin.flush()
            self._process, self.current = process, work
            self.last[kind] = work
        threading.Thread(target=self._watch, args=(process, work), daemon=True).start()
        return work

    def _watch(self, process: subprocess.Popen[str], work: Work) -> None:
        """Read the worker's messages until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            try:
                work.record_message(json.loads(line))
            except (ValueError, KeyError, TypeError):
                continue
        code = process.wait()
        process.stdout.close()
        if process.stdin is not None:
            process.stdin.close()
        if work.result is None and not work.fault and not work.cancelled:
            work.fault = f"Its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)}, and said nothing."
        try:
            self._finished(work)
        finally:
            work.over = True

    def cancel(self) -> None:
        """Interrupt the current work without waiting for it; kill it if it does not end in time.

        Finished steps stay, and the same work continues from there.
        """
        process, work = self._process, self.current
        if process is None or work is None or work.over:
            return
        work.cancelled = True
        _signal(process, signal.SIGINT)
        killing = threading.Timer(PATIENCE, _signal, (process, signal.SIGKILL))
        killing.daemon = True
        killing.start()

    def close(self) -> None:
        """Interrupt the current work, wait for its end, and kill it if it does not end in time."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        _signal(process, signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to the worker's process group, if it is still running."""
    if process.poll() is None:
        try:
            # The whole group: a run may have processes of its own.
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
