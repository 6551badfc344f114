"""No endpoint keeps a run waiting: events are sent beside it, in order, and what could not be sent is told in one line."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from openlineage.client import OpenLineageClient

from schemas.job.job import load_job
from tasks.engine.lineage import RunEvents, Sender
from tests.jobs import people, people_job


class Endpoint:
    """Takes events as slowly, or as badly, as it is told."""

    def __init__(self, answers: threading.Event, fault: Exception | None = None) -> None:
        self.answers, self.fault, self.taken, self.closed = answers, fault, list[Any](), False

    def emit(self, event: Any) -> None:
        self.answers.wait()
        if self.fault:
            raise self.fault
        self.taken.append(event)

    def close(self) -> None:
        self.closed = True


def sender(endpoint: Endpoint) -> Sender:
    return Sender(cast("OpenLineageClient", endpoint))


def answering(*, at_once: bool = True) -> threading.Event:
    event = threading.Event()
    if at_once:
        event.set()
    return event


def test_all_are_sent_in_order_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = Endpoint(answering())
    sending = sender(endpoint)
    for number in range(20):
        sending.send(number)
    sending.close(60)
    assert endpoint.taken == list(range(20))
    assert endpoint.closed
    assert not caplog.records


def test_a_run_goes_on_while_an_endpoint_does_not_answer_and_gives_up_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = Endpoint(answering(at_once=False))
    sending = sender(endpoint)
    sending.send("START")
    sending.send("COMPLETE")
    with caplog.at_level(logging.WARNING):
        sending.close(0.01)
    [line] = caplog.messages
    assert line.startswith("2 of 2 events of OpenLineage could not be sent")
    endpoint.answers.set()


def test_what_is_refused_is_told_once_by_kind_and_never_by_text(caplog: pytest.LogCaptureFixture) -> None:
    sending = sender(Endpoint(answering(), OSError("http://user:hidden@host")))
    sending.send("START")
    sending.failed(KeyError("hidden"))
    with caplog.at_level(logging.WARNING):
        sending.close(60)
    [line] = caplog.messages
    assert line.startswith("2 of 2 events")
    assert "OSError" in line
    assert "KeyError" in line
    assert "hidden" not in line


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///nowhere/events.jsonl"])
def test_a_client_of_the_environment_leaves_it_as_it_was(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenLineage's client writes further names of its address there, by which later runs of the process would send events too."""
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    before = dict(os.environ)
    RunEvents(load_job(people_job(tmp_path, people(10))))
    assert dict(os.environ) == before
