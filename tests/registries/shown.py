"""What people are shown of a job and of a release: the plan as the terminal prints it, the report as a page."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from flows.terminal.plans import plan_summary
from schemas.job.job import load_job
from tasks.planning.plan import make_plan
from tasks.publication.verify_and_publish import PublishedRelease


def shown_plan(job: Path) -> str:
    """Return what ``skald plan`` prints, without line ends."""
    written = StringIO()
    Console(file=written, width=300).print(plan_summary(make_plan(load_job(job))))
    return " ".join(written.getvalue().split())


def shown_report(published: PublishedRelease) -> str:
    """Return the page of a release's report."""
    return (published.folder / "report.html").read_text("utf-8")
