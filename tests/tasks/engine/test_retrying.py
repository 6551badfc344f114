"""A task is tried again where another try can help, and nowhere else."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.errors.base import InternalError, SkaldError, SourceError, StorageError
from tasks.engine import prefect_steps
from tasks.engine.guard import guarded, is_transient, sanitised_error
from tasks.engine.remote import call_queues
from tasks.engine.remote.call_queues import FolderQueue
from tasks.engine.remote.calls import CallKey, fulfil, queued_call
from tests.conftest import CommandLine
from tests.jobs import people, people_job

TRIED = """
import errno, os, time
from pathlib import Path
from flows.server.local_api import prefect_api, prepare_prefect

with prefect_api(prepare_prefect()):
    from flows.skald import skald
    from schemas.errors.base import PrivacyError, StorageError
    from schemas.job.run_parameters import RunParameters
    from tasks.counting import chunk_counts
    from tasks.engine import prefect_steps
    from tasks.publication import target

    prefect_steps.RETRY_SECONDS = (0.01, 0.01)
    real, tries = chunk_counts.DomainCounter, []

    def tried(error):
        def count(*arguments):
            tries.append(error)
            if len(tries) == 1:
                raise error
            return real(*arguments)
        tries.clear()
        chunk_counts.DomainCounter = count

    tried(OSError(errno.EIO, os.strerror(errno.EIO)))
    assert skald(RunParameters.of(Path("job.yaml"))).new
    assert len(tries) == 2, tries

    for refusal, raised in (PrivacyError.too_few(5, 1), PrivacyError), (OSError(errno.ENOSPC, "full"), StorageError):
        tried(refusal)
        try:
            skald(RunParameters.of(Path("job.yaml"), ["work=other", "privacy.k=6"]))
        except raised as error:
            assert len(tries) == 1, tries
        else:
            raise AssertionError

    def refuse(*arguments):
        tries.append("publish")
        raise OSError(errno.EIO, "a bus")

    tries.clear()
    published, target.Target.publish = target.Target.publish, refuse
    try:
        skald(RunParameters.of(Path("job.yaml"), ["work=third", "privacy.k=6"]))
    except StorageError:
        assert len(tries) == 1, tries
    else:
        raise AssertionError
    target.Target.publish = published

    def hang(*arguments):
        tries.append("slow")
        while True:
            time.sleep(0.01)

    tries.clear()
    chunk_counts.DomainCounter, prefect_steps.CHUNKS_SECONDS = hang, 0.3
    try:
        skald(RunParameters.of(Path("job.yaml"), ["work=other", "privacy.k=6"]))
    except StorageError as error:
        assert "Step 'domains' had not ended" in str(error), error
        assert 1 <= len(tries) <= 3, tries  # a try that a busy machine did not get to begin in its time was one all the same
    else:
        raise AssertionError
"""


@pytest.mark.slow
def test_a_fault_of_the_system_is_tried_again_a_refusal_never_and_a_task_that_hangs_is_given_up(prefect: CommandLine) -> None:
    people_job(prefect.folder, people(200))
    # Whatever Prefect's settings on this machine ask for.
    done = prefect.ended([sys.executable, "-c", TRIED], PREFECT_FLOWS_DEFAULT_RETRIES="2", PREFECT_TASKS_DEFAULT_RETRIES="2")
    assert done.returncode == 0, done.stderr


def unreadable(code: int) -> None:
    try:
        raise OSError(code, os.strerror(code), "a file")
    except OSError:
        raise SourceError.unreadable("a file", "parquet") from None


@pytest.mark.parametrize(
    ("code", "transient"),
    [(errno.EIO, True), (errno.ESTALE, True), (errno.ETIMEDOUT, True), (errno.ENOSPC, False), (errno.EACCES, False), (errno.ENOENT, False)],
)
def test_what_lies_beneath_an_error_of_ours_decides_here_and_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, transient: bool
) -> None:
    monkeypatch.setattr(call_queues, "FLOORS", (*call_queues.FLOORS, "tests."))
    with pytest.raises(SkaldError) as raised:
        guarded(unreadable)(code)
    assert raised.value.transient == transient
    assert raised.value.__context__ is None
    with queued_call(FolderQueue(tmp_path), CallKey(), unreadable, (code,)) as order:
        back = fulfil(order)
    assert back.error().transient == transient
    error = duckdb.IOException(f'Could not read from file "x": {os.strerror(code)}')
    assert is_transient(error) == transient


def test_a_name_that_the_locale_cannot_say_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnicodeEncodeError) as raised:
        "b\u00fccher.csv".encode("ascii")
    assert isinstance(sanitised_error(raised.value), InternalError)
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    assert str(sanitised_error(raised.value)).endswith("Set PYTHONUTF8=1, or LC_ALL to a locale of UTF-8.")


def test_a_refusal_is_never_transient_and_says_so_for_the_next_one_that_handles_it() -> None:
    assert not is_transient(SourceError.empty(1))
    handled = StorageError.not_writable("folder", "reason")
    handled.transient = True
    assert is_transient(handled)


@pytest.mark.parametrize(("once", "retries"), [(True, 0), (False, len(prefect_steps.RETRY_SECONDS))])
def test_what_is_done_once_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, once: bool, retries: int) -> None:
    tasks: list[Any] = []
    monkeypatch.setattr(prefect_steps, "_keyed", lambda task, _step: tasks.append(task) or task.fn)
    assert prefect_steps.task_here("publish", "people", lambda: 7, None, once=once) == 7
    assert [task.retries for task in tasks] == [retries]
