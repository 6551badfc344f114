"""The result of a comparison of methods, written as JSON, CSV and an HTML page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from core.evaluation.advice import RULES, advise, summary
from core.privacy.risk import THRESHOLD
from schemas.job.job import Job
from schemas.reading.model import plain
from schemas.release.figures import RepeatedColumn
from schemas.release.method_comparison import Figures, MethodComparison, MethodRun
from tasks.comparison.figure_files import write_figure
from tasks.comparison.method_page import render_methods
from tasks.engine.runs import versions
from tasks.report.sentences import promises
from tasks.report.terms import UnitWording
from tasks.source.chunks import ChunkedSource


def make_method_comparison(
    job: Job, source: ChunkedSource, runs: Sequence[MethodRun], repeats: dict[str, RepeatedColumn] | None = None
) -> MethodComparison:
    """Build a comparison from the runs of its methods, with advice and summary.

    Args:
        job: The job.
        source: Its source.
        runs: The runs by k, then in the order of the methods.
        repeats: Identifiers that repeat although the job names no person.
    """
    unit = UnitWording.of_job(job, repeats)
    advice = tuple(advise(k, [run for run in runs if run.k == k], unit.one) for k in sorted({run.k for run in runs}))
    return MethodComparison(
        name=job.name,
        inputs=source.digest,
        records=source.records,
        quasi_identifiers=tuple(qid.name for qid in job.columns.quasi_identifiers),
        # The first promise is k, which differs from run to run.
        promises=promises(job.privacy.summary())[1:],
        limit=str(plain(job.suppression.limit)),
        memory=job.memory,
        threshold=float(THRESHOLD),
        unit=unit.one,
        repeats=dict(unit.repeats),
        runs=tuple(runs),
        summary=summary(advice),
        advice=advice,
        rules=RULES,
        versions=versions(),
    )


def write_method_comparison(folder: Path, comparison: MethodComparison) -> list[Path]:
    """Write ``methods.json``, ``methods.csv`` and ``methods.html``; earlier ones are replaced."""
    # Both before any file is written: a page that cannot be rendered leaves the files of an earlier comparison alone.
    text, page = comparison.model_dump_json(indent=2) + "\n", render_methods(comparison)
    return [
        write_figure(folder / "methods.json", lambda path: path.write_text(text, "utf-8")),
        write_figure(folder / "methods.csv", lambda path: _write_csv(path, comparison)),
        write_figure(folder / "methods.html", lambda path: path.write_text(page, "utf-8")),
    ]


def _write_csv(path: Path, comparison: MethodComparison) -> int:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["k", "method", "recommended", *Figures.model_fields, "failed"], restval="")
        writer.writeheader()
        chosen = {(one.k, one.method) for one in comparison.advice}
        for run in comparison.runs:
            figures = run.figures.model_dump() if run.figures else {}
            recommended = int((run.k, run.method) in chosen)
            row = {"k": run.k, "method": run.method, "recommended": recommended, "failed": run.failed} | figures
            writer.writerow({name: value for name, value in row.items() if value is not None})
    return len(comparison.runs)
