"""Job flows of Prefect, and the pages of a run: progress, summary, figures and a link.

Pages are made of the report, which holds names, counts and words and is published with the release. Imported only inside a flow run: the
import takes a second.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import getdoc
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from prefect import Flow
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger

from schemas.errors.base import InternalError, SkaldError, StorageError, counted, printable
from schemas.errors.folders import BusyError
from schemas.errors.storage import ServerError
from schemas.job.run_parameters import RunParameters
from schemas.job.source import is_address
from schemas.reading.model import plain, share_text
from schemas.relational.manifest import TablesManifest
from schemas.relational.tables_job import load_any_job
from schemas.release.manifest import Manifest, Persons
from schemas.release.report import Report, RiskFigure
from tasks.engine.guard import guarded
from tasks.engine.progress import STEPS, listening
from tasks.engine.runners import task_runner
from tasks.store.place import Place


def _foreseen(record: logging.LogRecord) -> bool:
    """Say an error that a user can mend once and without its traceback; return whether to log it.

    Faults of SKALD keep theirs, and with SKALD_DEBUG all do.
    """
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, SkaldError) or isinstance(error, InternalError) or os.environ.get("SKALD_DEBUG"):
        return True
    record.exc_info = None
    return record.name == "prefect.task_runs" or str(record.msg).startswith("Encountered exception")


for _name in ("prefect.flow_runs", "prefect.task_runs", "prefect.engine"):
    logging.getLogger(_name).addFilter(_foreseen)


def summary(report: Report, location: str, link: str, *, new: bool) -> str:
    """Return the summary of a release in Markdown: promises, counts and quasi-identifiers.

    Args:
        report: Of the release.
        location: The folder or address where it lies.
        link: Where its report can be read.
        new: Whether this run made it.
    """
    out = report.came_out
    lost = share_text(out.suppressed / out.records, 2)
    facts = [
        ("records", f"{out.records:,}"),
        ("released", f"{out.released:,}" + (f", {out.masked:,} of them masked" if out.masked else "")),
        ("suppressed", f"{out.suppressed:,} ({lost}; the job allows {report.asked.most_suppressed:,})"),
        ("classes", f"{out.classes:,}, the smallest of {counted(out.min_class, out.unit)}"),
        *([("persons", _persons(out.persons))] if out.persons else []),
        *(("warning", warning) for warning in out.warnings),
        ("method", report.asked.method),
        ("optimum", report.optimal),
        ("verified", "recounted from the written files"),
        *(
            [("pseudonymous", f"{', '.join(report.asked.pseudonyms)}: linkable by the same key or vault")]
            if report.asked.pseudonyms
            else []
        ),
        ("time", f"{sum(report.seconds.values()):.1f} s, at most {report.peak_rss / 1e6:,.0f} MB"),
        ("release", location),
    ]
    qids = [(qid.name, "" if qid.level is None else f"{qid.level} of {qid.top}", qid.meaning, _share(qid.ncp)) for qid in report.qids]
    return "\n\n".join(
        [
            f"## {_text(report.release)}",
            *(() if new else ("Published already: the same job on the same data. No new release was made.",)),
            "\n".join(f"- {_text(promise)}" for promise in report.asked.promises),
            _table(facts[0], facts[1:]),
            "### What became of each quasi-identifier",
            _table(("column", "level", "published as", "NCP"), qids),
            # Browsers open no file from a page that came from a server, and no bucket, so that the place is there to be copied.
            f"[The whole report]({link})" if link.startswith("http") else f"The whole report: `{link}`",
        ]
    )


def published_lines(report: Report, location: str, *, new: bool) -> list[str]:
    """Return the last log lines of a run: release, counts of records, and warnings."""
    out = report.came_out
    masked = f", {out.masked:,} of them masked" if out.masked else ""
    return [
        f"{_made(new=new)} {report.release} in '{location}'.",
        f"{counted(out.records, 'record')}: {out.released:,} released{masked}, {out.suppressed:,} suppressed of at most "
        f"{report.asked.most_suppressed:,}; {counted(out.classes, 'class')}, the smallest of {counted(out.min_class, out.unit)}; "
        "recounted.",
        *(f"Warning: {warning}" for warning in out.warnings),
    ]


def _made(*, new: bool) -> str:
    return "Published release" if new else "Nothing to do: the same job on the same data was published as release"


def figures(report: Report) -> list[dict[str, str]]:
    """Return a release's risks before and after, then its losses, as rows of a Prefect table artifact."""
    risks = [
        {"figure": risk.title, "before": _risk(risk, risk.before), "after": _risk(risk, risk.after), "meaning": risk.meaning}
        for risk in report.risk
    ]
    losses = [{"figure": loss.title, "before": "", "after": _number(loss.value), "meaning": loss.meaning} for loss in report.losses]
    return risks + losses


def _persons(persons: Persons) -> str:
    return f"{persons.released:,} of {persons.source:,}" if persons.source is not None else f"{persons.released:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *[[_text(cell) for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(words: str) -> str:
    """Escape Markdown characters, because column names are free text."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(" ".join(words.split())))


def _risk(risk: RiskFigure, value: float | None) -> str:
    return "not counted" if value is None else f"{value:.4f}" if risk.share else _number(value)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


EVERY_SECONDS = 2.0
"""Progress is reported no more often; each report costs the server about ten milliseconds."""
REPORT_URL = "SKALD_REPORT_URL"
"""Where a browser finds reports, as in ``https://reports.example/{name}/{release}/report.html``; if unset, their path on the worker."""


class ArtifactWriter:
    """Writer of a run's artifacts on Prefect's server; silent after the first refusal.

    After the first refusal it writes no more, and the run goes on.
    """

    def __init__(self, name: str) -> None:
        self.key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
        self.lost = False

    def write(self, create: Callable[..., Any], key_suffix: str, **content: Any) -> UUID | None:
        """Call ``create``; return the artifact's id, None if refused; raise ``ServerError`` if out of reach.

        ``create`` is the function of Prefect that makes or updates the artifact, whose key is the job's name and ``key_suffix``.
        """
        if self.lost:
            return None
        try:
            made: UUID = create(**({"key": f"{self.key}-{key_suffix}"} if key_suffix else {}), **content)
        except httpx.TransportError:
            raise ServerError.server_stopped() from None
        except Exception:
            # One that answers and refuses: its pages are not worth the run.
            self.lost = True
            return None
        return made


class Progress(ArtifactWriter):
    """Listener that updates a run's progress artifact on Prefect's server, at most every two seconds."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.artifact: UUID | None = None
        self.percent, self.told = 0.0, 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Record the progress of a step, and update the artifact at most every few seconds.

        The first and the last report always update it.
        """
        if step not in STEPS:
            return
        phase, words, begins, ends = STEPS[step]
        if done == total:
            log_line(f"Phase {phase}: {words}" + (f", {total:,} parts." if total > 1 else "."))
        # Never backwards, though a step may begin again: fragments are cut anew where they came out too large.
        self.percent = max(self.percent, begins + (ends - begins) * (done / total if total else 1))
        if self.percent < 100 and time.monotonic() - self.told < EVERY_SECONDS:
            return
        self.show(f"phase {phase} · {words}" + (f", {done:,} of {total:,}" if total > 1 else "") if self.percent < 100 else "published")

    def show(self, words: str) -> None:
        """Create or update the progress artifact with these words and the percentage reached."""
        if self.artifact:
            self.write(update_progress_artifact, "", artifact_id=self.artifact, progress=self.percent, description=words)
        else:
            self.artifact = self.write(create_progress_artifact, "progress", progress=self.percent, description=words)
        self.told = time.monotonic()


@contextmanager
def show_progress(job_name: str) -> Iterator[None]:
    """During the block, show the progress of all steps as a Prefect artifact.

    A run that fails leaves the artifact as it is.
    """
    with listening(Progress(job_name)):
        yield


def announce(manifest: Manifest, release: Place, *, new: bool) -> None:
    """Log a release's counts and write Prefect artifacts from its report; nothing without a report.

    It does nothing where the report cannot be read.
    """
    report = announced_report(release)
    if report is None:
        return
    for line in published_lines(report, release.location, new=new):
        log_line(line)
    link = report_url(manifest, release.location_of("report.html"))
    writer = _write_summary(manifest, release, summary(report, release.location, link, new=new))
    writer.write(create_table_artifact, "figures", table=figures(report), description="Risk before and after, and what was lost")


def announce_tables(manifest: TablesManifest, sentences: Sequence[str], release: Place, *, new: bool) -> None:
    """Log what the report of several tables says, and write it as Prefect artifacts.

    Args:
        manifest: Of the release.
        sentences: Of its report.
        release: Where it lies.
        new: Whether this run made it.
    """
    said = [f"{_made(new=new)} {manifest.release} in '{release.location}'.", *sentences]
    for line in said:
        log_line(line)
    _write_summary(manifest, release, "\n\n".join([f"## {_text(manifest.release)}", *map(_text, said)]))


def _write_summary(manifest: Manifest | TablesManifest, release: Place, text: str) -> ArtifactWriter:
    """Write the summary of a release and the link to its report; return the writer."""
    writer = ArtifactWriter(manifest.name)
    link, title = report_url(manifest, release.location_of("report.html")), f"report of {manifest.release}"
    writer.write(create_markdown_artifact, "summary", markdown=text, description=manifest.release)
    writer.write(create_link_artifact, "report", link=link, link_text=title, description="To hand on: one page, no network, no script")
    return writer


def announced_report(release: Place) -> Report | None:
    """Return the report of a release in a folder or bucket; None if it cannot be read."""
    try:
        return Report.model_validate_json(release.read("report.json") or b"")
    except (StorageError, ValueError):
        # By now it is published; not to be able to speak of it is no failure.
        return None


def log_line(sentence: str) -> None:
    """Write a sentence without cell values into the log of the Prefect flow run; nothing outside one."""
    context = FlowRunContext.get()
    if context and context.flow_run:
        flow_run_logger(context.flow_run, context.flow).info(sentence)


def report_url(manifest: Manifest | TablesManifest, page: str) -> str:
    """Return the URL of a release's report, by the environment's template, else of its page.

    Args:
        manifest: Of the release.
        page: The page's path or its address in a bucket.
    """
    template = os.environ.get(REPORT_URL)
    if not template:
        return page if is_address(page) else Path(page).as_uri()
    return template.replace("{name}", manifest.name).replace("{release}", manifest.release)


TURN_SECONDS = 10.0
"""How often a run that waits for its turn looks whether the other one is over."""


def job_flow(function: Callable[..., Any]) -> Flow[[RunParameters], Any]:
    """Return a Prefect flow, named as a function, that runs it with log and progress artifact."""

    def run(job: RunParameters) -> Any:
        path = Path(job.job_file)
        asked = load_any_job(path, job.overrides)
        limit = plain(asked.suppression.limit)
        log_line(f"Job '{asked.name}': method {asked.method.name}, k = {asked.privacy.k:,}, at most {limit} of all suppressed.")
        with show_progress(asked.name):
            return function(path, job.overrides)

    def work(job: RunParameters) -> Any:
        return guarded(run)(job)

    # By these Prefect names the flow and describes it.
    work.__name__ = work.__qualname__ = function.__name__
    work.__module__, work.__doc__ = function.__module__, (getdoc(function) or "").split("\n", maxsplit=1)[0]
    # As types and not as words: Prefect would look words up in the other module.
    work.__annotations__ = {"job": RunParameters, "return": Any}
    runner = task_runner()
    # No retries, whatever Prefect's settings say: a wrong job or a refused release would be counted again.
    return Flow(work, name=function.__name__, flow_run_name=run_name, task_runner=runner, persist_result=False, retries=0)


def run_name() -> str:
    """Return this flow run's name: job name and start time, as ``medical 2026-01-31 02:00 UTC``."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return "run"
    job = RunParameters.model_validate((context.parameters or {})["job"])
    try:
        name = load_any_job(Path(job.job_file), job.overrides).name
    except Exception:
        # What is wrong with the job is told by the run, and not by what it is called.
        name = Path(job.job_file).stem
    begins = context.flow_run.expected_start_time
    return f"{name} {begins:%Y-%m-%d %H:%M} UTC" if begins else name


def run_when_unlocked(call: Callable[[], Any]) -> Any:
    """Call a function and return its result; a deployment's run retries while the job's folder is locked.

    Any other run ends with the error that the folder is locked.
    """
    context, waits = FlowRunContext.get(), False
    while True:
        try:
            return call()
        except BusyError as error:
            if not (context and context.flow_run and context.flow_run.deployment_id):
                raise
            if not waits:
                log_line(f"{error} This run waits.")
            waits = True
        time.sleep(TURN_SECONDS)
