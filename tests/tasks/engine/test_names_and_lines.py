"""What people read of a run in Prefect: what it is called, and the lines that its log ends with."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemas.errors.base import InternalError, JobError
from schemas.release.report import Report
from tasks.engine.prefect_pages import announced_report, published_lines, report_url
from tasks.store.place import place_of
from tests.conftest import Anonymise
from tests.core.recount.test_classes import manifest
from tests.jobs import people, people_job


@pytest.mark.parametrize("broken", [False, True])
def test_a_run_is_named_after_its_job_and_when_it_was_to_begin_whatever_is_wrong_with_the_job(tmp_path: Path, broken: bool) -> None:
    from prefect.context import FlowRunContext

    from tasks.engine.prefect_pages import run_name

    job = people_job(tmp_path, people(10), name="nightly-patients")
    if broken:
        job.write_text("a cell value")
    run = SimpleNamespace(expected_start_time=datetime(2026, 1, 31, 2, tzinfo=UTC))
    with FlowRunContext.model_construct(flow_run=run, parameters={"job": {"job_file": str(job)}}):
        assert run_name() == f"{'job' if broken else 'nightly-patients'} 2026-01-31 02:00 UTC"


WRONG, FAULT, OTHER = JobError("job.yaml", ["k is 0"]), InternalError("KeyError", "tables.py:9"), KeyError("a")
FOUND, ENDED = "Encountered exception during execution: %r", "Engine execution exited with unexpected exception"


@pytest.mark.parametrize(
    ("name", "words", "error", "debug", "logged"),
    [
        ("prefect.flow_runs", FOUND, WRONG, "", "sentence"),
        ("prefect.flow_runs", ENDED, WRONG, "", "nothing"),
        ("prefect.engine", "Execution of flow run 'one' exited with unexpected exception", WRONG, "", "nothing"),
        ("prefect.task_runs", "Task run failed with exception: one - Retries are exhausted", WRONG, "", "sentence"),
        ("prefect.flow_runs", FOUND, WRONG, "1", "traceback"),
        *(
            (name, words, error, "", "traceback")
            for error in (FAULT, OTHER)
            for name in ("prefect.flow_runs", "prefect.engine")
            for words in (FOUND, ENDED)
        ),
    ],
)
def test_an_error_that_a_user_can_mend_is_logged_once_as_its_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str, error: Exception, debug: str, logged: str
) -> None:
    monkeypatch.setenv("SKALD_DEBUG", debug)
    logger = logging.getLogger(name)
    record = logger.makeRecord(name, logging.ERROR, "flow_engine.py", 1, words, (), (type(error), error, None))
    assert bool(logger.filter(record)) == (logged != "nothing")
    assert bool(record.exc_info) == (logged == "traceback")


@pytest.mark.ci
def test_the_log_ends_with_records_suppressed_and_release(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path, people(400)), "privacy.k=4")
    report = Report.model_validate_json((made.folder / "report.json").read_bytes())
    first, second, *warnings = published_lines(report, str(made.folder), new=True)
    assert first == f"Published release {made.manifest.release} in '{made.folder}'."
    kept, lost = made.manifest.records - made.manifest.suppressed, made.manifest.suppressed
    assert second.startswith(f"400 records: {kept} released, {lost} suppressed of at most ")
    assert all(line.startswith("Warning: ") for line in warnings)
    assert published_lines(report, str(made.folder), new=False)[0].startswith("Nothing to do")
    # The same is said of a release in a bucket, of which nothing is left on this machine.
    release = place_of(f"memory://announced/{made.manifest.release}")
    assert announced_report(release) is None
    release.write("report.json", (made.folder / "report.json").read_bytes())
    assert announced_report(release) == announced_report(place_of(str(made.folder))) == report


@pytest.mark.parametrize("template", ["", "https://reports.example/{name}/{release}/report.html"])
def test_a_report_is_linked_where_it_is_served_and_else_where_it_lies(monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    monkeypatch.setenv("SKALD_REPORT_URL", template)
    links = [report_url(manifest(), place_of(where).location_of("report.html")) for where in ("/srv/people-0", "s3://bucket/people-0")]
    lying = ["file:///srv/people-0/report.html", "s3://bucket/people-0/report.html"]
    assert links == (["https://reports.example/people/people-0/report.html"] * 2 if template else lying)
