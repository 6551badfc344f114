"""Worker process of the studio: reads one request from its input, and writes progress to its output.

It does the same as the command line: a run is ``skald run``, and so are draft, plan, front and utility. It ends when its input does, so
that it never outlives the studio.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from flows.loading import prepare_quick_start, run_and_exit

# ruff: noqa: PLC0415 - each kind of work imports what it needs

PATIENCE = 20
"""Seconds that interrupted work has to end by itself."""


class Channel:
    """Output of the worker to the studio: one line of JSON per message."""

    def __init__(self) -> None:
        # Whatever prints by accident, prints to nobody.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self._lock = threading.Lock()

    def say(self, **said: Any) -> None:
        """Write a message; end the process if the studio no longer reads."""
        with self._lock:
            try:
                self._out.write(json.dumps(said) + "\n")
                self._out.flush()
            except (OSError, ValueError):
                os._exit(1)


def work_once() -> None:
    """Read one request from standard input, do its work, and write the result; exit if it fails."""
    channel = Channel()
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    from flows.compiling_notes import compiling_said
    from schemas.errors.base import SkaldError
    from tasks.engine.progress import hearing, listening

    try:
        with (
            listening(lambda step, done, total: channel.say(step=step, done=done, total=total)),
            hearing(lambda sentence: channel.say(note=sentence)),
            compiling_said(lambda sentence: channel.say(note=sentence)),
        ):
            channel.say(result=WORKS[asked["kind"]](asked))
    except KeyboardInterrupt:
        channel.say(cancelled=True)
        sys.exit(130)
    except SkaldError as error:
        channel.say(fault=error.message(continues=asked["kind"] == "run"), code=error.exit_code)
        sys.exit(error.exit_code)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        from tasks.engine.guard import sanitised_error

        channel.say(fault=sanitised_error(error).message(continues=asked["kind"] == "run"), code=1)
        sys.exit(1)


def _end_with_input() -> None:
    """Interrupt the work when the studio ends, and then end the process if needed."""
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(PATIENCE)
    os._exit(1)


def _run(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a job by the command's own function, and return a summary."""
    # By its path: the command line knows the studio, and not the other way round.
    run = resolve_name("flows.cli:run")
    printed = io.StringIO()
    with redirect_stdout(printed):
        run(Path(asked["job"]), as_json=True, direct=bool(asked["direct"]))
    manifest = json.loads(printed.getvalue())
    return {"release": manifest["release"], "released": manifest.get("released"), "suppressed": manifest.get("suppressed")}


def _draft(asked: dict[str, Any]) -> dict[str, Any]:
    """Draft a job from sources, and return a summary."""
    from tasks.planning.draft import draft_job
    from tasks.planning.open_sources import SourceOptions

    drafted = draft_job(SourceOptions(tuple(asked["source"])), Path(asked["out"]))
    return {"job": asked["out"], "records": drafted.records, "questions": len(drafted.questions)}


def _plan(asked: dict[str, Any]) -> dict[str, Any]:
    """Plan a job, and return its figures."""
    from schemas.job.job import load_job
    from tasks.planning.plan import make_plan

    made = make_plan(load_job(Path(asked["job"])))
    qids = [{"name": one.name, "without": one.without.unique if one.without else None} for one in made.qids]
    exposed = made.exposed
    return {
        "records": made.records, "unit": made.unit, "not_counted": made.not_counted, "qids": qids, "risk": made.risk,
        "unique": exposed.unique if exposed else None, "below": exposed.below_k if exposed else None,
    }  # fmt: skip


def _front(asked: dict[str, Any]) -> dict[str, Any]:
    """Search the Pareto front of all records, and return it."""
    from schemas.job.job import load_job
    from tasks.planning.pareto_page import measure_pareto_front

    return measure_pareto_front(load_job(Path(asked["job"]))).model_dump(mode="json")


def _groups(asked: dict[str, Any]) -> dict[str, Any]:
    """Count all values of a column, and draft a list of groups for it."""
    from schemas.job.job import load_job
    from tasks.planning.listed_hierarchies import domain_of
    from tasks.studio.listed_groups import draft_groups

    job = load_job(Path(asked["job"]))
    return {"column": asked["column"], "hierarchy": draft_groups(job, asked["column"], domain_of(job, asked["column"]))}


def _complete(asked: dict[str, Any]) -> dict[str, Any]:
    """Add missing values to a CSV hierarchy, and return their number."""
    from schemas.job.job import load_job
    from tasks.planning.listed_hierarchies import complete_file

    done = complete_file(load_job(Path(asked["job"])), asked["column"])
    return {"column": asked["column"], "added": len(done.placed.rows)}


def _utility(asked: dict[str, Any]) -> dict[str, Any]:
    """Measure the utility of a release, and return the figures."""
    from schemas.job.job import load_job
    from tasks.utility.utility import measure_utility

    measured = measure_utility(load_job(Path(asked["job"])), Path(asked["release"]), asked["queries"], 0, None)
    return measured.model_dump(mode="json")


WORKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "run": _run,
    "draft": _draft,
    "plan": _plan,
    "front": _front,
    "groups": _groups,
    "complete": _complete,
    "utility": _utility,
}
"""What can be asked for."""


def run_worker() -> None:
    """Serve one request of the studio in this process, and end the process."""
    prepare_quick_start()
    run_and_exit(work_once)


if __name__ == "__main__":
    run_worker()
