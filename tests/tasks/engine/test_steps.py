"""Steps: groups of neighbours, errors without values, and where they run."""

from __future__ import annotations

import os

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import InternalError, SkaldError, SourceError, StorageError
from schemas.errors.runners import RUNNER, SCHEDULER, RunnerError
from tasks.engine.calls import groups
from tasks.engine.flows import SWITCH
from tasks.engine.guard import guarded
from tasks.engine.runners import chosen_runner, set_runner
from tests.conftest import CommandLine
from tests.jobs import digests, people, people_job

VALUE = "a cell value"


@given(st.lists(st.integers()), st.integers(1, 40))
def test_groups_are_neighbours_in_order_few_and_about_equal(items: list[int], most: int) -> None:
    parts = groups(items, most)
    assert [item for part in parts for item in part] == items
    assert len(parts) == min(len(items), most)
    sizes = [len(part) for part in parts]
    assert not sizes or max(sizes) - min(sizes) <= 1 <= min(sizes)


def fail(kind: str) -> None:
    try:
        raise LookupError(VALUE)
    except LookupError as error:
        errors = {"ours": SourceError.empty(1), "disk": OSError(28, "No space left on device", "folder"), "other": ValueError(VALUE)}
        raise errors[kind] from error


@pytest.mark.parametrize(("kind", "expected"), [("ours", SourceError), ("disk", StorageError), ("other", InternalError)])
def test_an_error_leaves_a_step_without_the_text_of_any_other(kind: str, expected: type[SkaldError]) -> None:
    with pytest.raises(expected) as raised:
        guarded(fail)(kind)
    assert VALUE not in str(raised.value)
    assert raised.value.__cause__ is raised.value.__context__ is None


@pytest.mark.parametrize(
    ("runner", "scheduler", "direct", "dask"),
    [
        (None, None, False, False),
        ("threads", None, True, False),
        ("dask", None, False, True),
        (None, "tcp://127.0.0.1:8786", False, True),
        ("dask", "tls://[::1]:8786", False, True),
        (None, "host:8786", False, True),
    ],
)
def test_an_address_means_dask(monkeypatch: pytest.MonkeyPatch, runner, scheduler: str | None, direct: bool, dask: bool) -> None:
    monkeypatch.setenv(RUNNER, "")
    monkeypatch.setenv(SCHEDULER, "")
    set_runner(runner, scheduler, direct=direct)
    assert (chosen_runner() == "dask") == dask
    assert os.environ[SCHEDULER] == (scheduler or "")


@pytest.mark.parametrize(
    ("runner", "scheduler", "direct", "sentence"),
    [
        ("threads", "tcp://127.0.0.1:1", False, "--scheduler does not go with"),
        ("dask", None, True, "--direct does not go with"),
        (None, "nonsense://127.0.0.1:1", False, "is not the address"),
        (None, "127.0.0.1", False, "is not the address"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, runner, scheduler: str | None, direct: bool, sentence: str
) -> None:
    monkeypatch.setenv(RUNNER, "")
    monkeypatch.setenv(SCHEDULER, "")
    with pytest.raises(RunnerError, match=sentence):
        set_runner(runner, scheduler, direct=direct)


def test_a_deployment_without_prefect_stays_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNNER, "dask")
    set_runner(None, None, direct=True)
    assert chosen_runner() == "threads"


@pytest.mark.slow
def test_tasks_that_a_failed_one_kept_from_beginning_are_run_when_the_source_is_mended(prefect: CommandLine) -> None:
    people_job(prefect.folder, people(2000), files=4)
    settings = ["--set", "chunk_rows=50"]
    damaged = prefect.folder / "people" / "000.parquet"
    content, column = damaged.read_bytes(), pq.read_metadata(damaged).row_group(0).column(1)
    assert column.path_in_schema == "sex"
    offset = column.dictionary_page_offset
    damaged.write_bytes(content[:offset] + b"?" * 40 + content[offset + 40 :])
    assert prefect("run", "job.yaml", *settings).returncode == 2
    damaged.write_bytes(content)
    mended = prefect("run", "job.yaml", *settings)
    assert mended.returncode == 0, mended.stderr
    current = (prefect.folder / "releases" / "CURRENT").read_text().strip()
    direct = prefect("run", "job.yaml", *settings, "--direct", "--set", "work=other", "--set", "target=direct", **{SWITCH: "1"})
    assert direct.returncode == 0, direct.stderr
    assert digests(prefect.folder / "releases" / current) == digests(prefect.folder / "direct" / current)
