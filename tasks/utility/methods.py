"""The result of a comparison of methods: its files as JSON and CSV, and an HTML page without scripts."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from core.charts.chart import DARK_STYLE, Chart, bar_chart, short_figure
from core.charts.scatter import line_chart
from core.evaluation.advice import RULES, advise, summary
from core.units.losses import THRESHOLD
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.reading.model import plain
from schemas.release.figures import RepeatedColumn
from schemas.release.method_comparison import Figures, MethodComparison, MethodRun
from tasks.engine.runs import versions
from tasks.report.page import number, page, percent, size
from tasks.report.sentences import promises
from tasks.report.terms import UnitWording
from tasks.store.files import USER_UMASK, open_folder, write_atomically
from tasks.store.place import target_of


def comparison_folder(job: Job, to: Path | None) -> Path:
    """Return the folder of a comparison's figures: ``to``, or ``<target>-comparison`` by default.

    The default is next to the releases and never among them.
    """
    # An object store has no folder beside its releases: figures stay on this machine.
    beside = target_of(job).folder or job.resolve(Path(job.name))
    return to or beside.with_name(f"{beside.name}-comparison")


def write_figure(path: Path, write: Callable[[Path], int]) -> Path:
    """Write a file of figures atomically in the user's umask, its folder created; return the path."""
    open_folder(path.parent)
    write_atomically(path, write, 0o666 & ~USER_UMASK)
    return path


def make_method_comparison(
    job: Job,
    inputs: str,
    records: int,
    runs: Sequence[MethodRun],
    repeats: dict[str, RepeatedColumn] | None = None,
    tables: Sequence[str] = (),
) -> MethodComparison:
    """Return the comparison of methods from their runs, with advice and summary.

    Args:
        job: The job; of several tables that of all of them joined by person.
        inputs: Digest of the source.
        records: How many records it has; of several tables, how many persons.
        runs: The runs by k, then in the order of the methods.
        repeats: Identifiers that repeat although the job names no person.
        tables: Names of several tables; none for a job of one.
    """
    unit, counts = UnitWording.of_job(job, repeats), "person" if tables else "record"
    advice = tuple(advise(k, [run for run in runs if run.k == k], unit.one, counts) for k in sorted({run.k for run in runs}))
    return MethodComparison(
        name=job.name,
        inputs=inputs,
        tables=tuple(tables),
        records=records,
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
    """Write ``methods.json``, ``methods.csv`` and ``methods.html``, replacing them; return their paths."""
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


TEMPLATE = "methods.html"


class Measured(NamedTuple):
    """Definition of a compared figure: title, note, how it is read from a run and formatted.

    Attributes:
        title: Its name.
        note: A short explanation, and whether less or more is better.
        of: Reads it from the figures of a run.
        spelt: How it is written in tables.
        marked: How it is written in pictures.
        pictured: Whether it has a picture.
    """

    title: str
    note: str
    of: Callable[[Figures], float | int]
    spelt: Callable[[float], str]
    marked: Callable[[float], str]
    pictured: bool = True


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if value < 100 else f"{value:,.0f} s"


def compared_figures(comparison: MethodComparison) -> tuple[Measured, ...]:
    """Return the definitions (not values) of the compared figures, in display order."""
    threshold, unit, counts = comparison.threshold, unit_of(comparison), f"{comparison.counts}s"
    several, (one, classes) = unit.several, ("history", "histories") if comparison.tables else ("class", "classes")
    return (
        Measured("GCP", "coarsening of what is published: 0 none, 1 all; less is better", attrgetter("gcp"), number, short_figure),
        Measured("DM", f"sum of squared sizes of {classes}, and s·N; less is better", attrgetter("dm"), number, short_figure),
        Measured(
            "C_avg",
            f"{several} per {one} in units of k; 1 is the finest",
            attrgetter("c_avg"),
            lambda value: f"{value:,.2f}",
            short_figure,
        ),
        Measured(f"{counts.capitalize()} kept", f"in {classes}; more is better", attrgetter("share_in_classes"), percent, _share),
        Measured("Highest risk", HIGHEST[unit.of_persons], attrgetter("prosecutor_max"), percent, _share),
        Measured("Mean risk", "the same on average; less is better", attrgetter("prosecutor_mean"), percent, _share),
        Measured(
            f"{several.capitalize()} above {threshold:g}",
            "share whose risk is higher; less is better",
            attrgetter("share_above"),
            percent,
            _share,
        ),
        Measured("CPU time", "of the whole run from scratch; less is better", attrgetter("cpu"), _seconds, _seconds),
        Measured("Memory", "peak of the same process; less is better", attrgetter("peak"), lambda value: size(int(value)), _memory),
        Measured("Suppressed", counts, attrgetter("suppressed"), number, short_figure, pictured=False),
        Measured(classes.capitalize(), "", attrgetter("classes"), number, short_figure, pictured=False),
    )


HIGHEST = {False: "of a record whose person is known to be in the data", True: "of a person who is known to be in the data"}


def _memory(value: float) -> str:
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"


def unit_of(comparison: MethodComparison) -> UnitWording:
    """Return the wording for the unit that a comparison's k counts."""
    return UnitWording(comparison.unit, comparison.repeats)


def charts(comparison: MethodComparison) -> list[str]:
    """Return an SVG chart per figure: bars for one k, a line per method for several."""
    found = {(run.method, run.k): run.figures for run in comparison.runs}
    drawn = []
    for one in compared_figures(comparison):
        figures = {
            method: [one.of(figures) if (figures := found.get((method, k))) else None for k in comparison.ks]
            for method in comparison.methods
        }
        over_ks = Chart(one.title, one.note, figures, one.marked)
        if not one.pictured or not over_ks.known_figures:
            continue
        # A line over one k would be a point.
        if len(comparison.ks) > 1:
            picture = line_chart(over_ks, [f"{k:,}" for k in comparison.ks], "k")
        else:
            at_one = Chart(one.title, one.note, {one.title: [value for [value] in figures.values()]}, one.marked)
            picture = bar_chart(at_one, comparison.methods, chosen=comparison.advice[0].method)
        drawn.append(picture.inline())
    return drawn


def render_methods(comparison: MethodComparison) -> str:
    """Return the HTML page of a method comparison; equal comparisons give equal pages."""
    return page(
        TEMPLATE,
        comparison=comparison,
        columns=compared_figures(comparison),
        unit=unit_of(comparison),
        charts=charts(comparison),
        dark=DARK_STYLE,
        words={name: method.words for name, method in METHODS.items()},
        chosen={one.k: one.method for one in comparison.advice},
    )
