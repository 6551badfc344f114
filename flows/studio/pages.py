"""Pages of the studio: a template each, with the values for it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.charts.chart import ChartStyle
from core.charts.scatter import ChartPoint, scatter_chart
from flows.studio.state import Studio
from schemas.errors.base import SkaldError, counted
from schemas.job.method import METHODS, OBJECTIVES
from schemas.job.privacy import SUPPRESSIONS
from schemas.reading.model import plain
from schemas.registry.hierarchies import DATE_UNITS
from tasks.planning.pareto_page import ParetoFront
from tasks.report.page import number, percent
from tasks.studio.changes import LISTS, has_form_field
from tasks.studio.choices import affordable_people, method_points, preferred_node, preview_of, sample_classes
from tasks.studio.column_table import column_rows, risk_before, shown_hierarchy
from tasks.studio.listed_groups import listed_groups
from tasks.studio.releases import compare_releases, known_releases, report_of_release

Query = Mapping[str, str]
PAGES = (("columns", "Columns"), ("hierarchies", "Hierarchies"), ("choices", "Choices"), ("run", "Run"), ("compare", "Compare"))
ROLE_WORDS = {
    "identifier": ("Identifier", "says who somebody is; not published"),
    "quasi_identifier": ("Quasi-identifier", "known to others; coarsened"),
    "sensitive": ("Sensitive", "to be protected; published"),
    "insensitive": ("Insensitive", "published"),
    "withheld": ("Withheld", "not published"),
}
assert ROLE_WORDS.keys() == LISTS.keys()


@cache
def environment() -> Environment:
    """Return Jinja's environment of the templates, made once, which escapes all but markup."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"quoted": shlex.quote, "number": number, "percent": percent, "counted": counted}
    return made


def rendered_page(studio: Studio, template: str, page: str, **context: Any) -> str:
    """Return a page's HTML with the job's text, the work and all messages, which are then removed."""
    opened, view, shown = None, "", ""
    if studio.path is not None:
        try:
            opened = studio.read_job_file()
            shown = studio.shown_text(opened)
            view = studio.stamp_of(shown)
        except SkaldError as error:
            context.setdefault("fault", str(error))
    said, studio.messages[:] = list(studio.messages), []
    context = {"fault": "", "address": f"/{page}" if page else "/"} | context
    return (
        environment()
        .get_template(template)
        .render(
            studio=studio, opened=opened, text=shown, view=view, page=page, pages=PAGES, said=said, work=studio.works.current, **context
        )
    )


def start_page(studio: Studio, _query: Query) -> str:
    """Return the page that asks for a source or job file, or the progress of a draft.

    With a job file, and no work in progress, it returns the columns page.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    if studio.path is not None and not studio.works.busy:
        return columns_page(studio, {})
    return rendered_page(studio, "start.html", "")


def columns_page(studio: Studio, _query: Query) -> str:
    """Return the page of the source's columns and their roles.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job, sample = studio.job(opened), studio.sample(opened)
    least = studio.least(job)
    rows = column_rows(job, opened.text, sample, least)
    whole = studio.works.last.get("plan")
    return rendered_page(
        studio, "columns.html", "columns", rows=rows, sample=sample, least=least, counts=Counter(row.role for row in rows), job=job,
        roles=ROLE_WORDS, risk=risk_before(job, sample), whole=whole if whole and whole.result and whole.stamp == opened.stamp else None,
    )  # fmt: skip


def hierarchies_page(studio: Studio, query: Query) -> str:
    """Return the page of one quasi-identifier's hierarchy, with the names of the others.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job, sample = studio.job(opened), studio.sample(opened)
    qids, least = job.columns.quasi_identifiers, studio.least(job)
    names = [qid.name for qid in qids]
    name = query.get("column", "")
    qid = qids[names.index(name)] if name in names else qids[0]
    context: dict[str, Any] = {"groups": None, "kind": qid.hierarchy.kind, "profile": None, "ladder": None}
    if qid.name in sample.names:
        context["ladder"] = shown_hierarchy(job, qid, sample, least)
        context["profile"] = next(one for one in sample.profiles if one.name == qid.name)
        if qid.hierarchy.kind in {"csv", "tree"}:
            try:
                context["groups"] = listed_groups(job, qid.name, qid.hierarchy, sample, least)
            except SkaldError as error:
                context["fault"] = str(error)
    steps = getattr(qid.hierarchy, qid.hierarchy.kind) if qid.hierarchy.kind in {"widths", "prefix", "date"} else []
    return rendered_page(
        studio, "hierarchies.html", "hierarchies", qid=qid, names=names, sample=sample, least=least, job=job, units=DATE_UNITS,
        steps=[str(plain(one)) if not isinstance(one, str) else one for one in steps], **context,
    )  # fmt: skip


def choices_page(studio: Studio, _query: Query) -> str:
    """Return the page of privacy models and methods; their costs are loaded later.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job = studio.job(opened)
    models = {
        name: {part: _model(getattr(job.privacy, part).get(name), key) for part, key in (("l", "distinct"), ("t", "t"))}
        for name in job.columns.sensitive
    }
    person = "none" if job.columns.each_a_person else "\n".join(job.columns.person)
    names = studio.sample(opened).names
    return rendered_page(
        studio, "choices.html", "choices", job=job, models=models, person=person, names=names, methods=METHODS.values(),
        objectives=OBJECTIVES.values(), treatments=SUPPRESSIONS.values(), objective=getattr(job.method, "objective", ""),
        limit=plain(job.suppression.limit), node=job.full_domain.node,
    )  # fmt: skip


def _model(model: Any, key: str) -> dict[str, str]:
    """Return the number of a privacy model for its field, or a note that it has no field."""
    if model is None:
        return {"value": "", "other": ""}
    return {"value": str(plain(getattr(model, key))), "other": ""} if has_form_field(model) else {"value": "", "other": "another model"}


def run_page(studio: Studio, _query: Query) -> str:
    """Return the page of a run's progress and results.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    last = studio.works.last.get("run")
    releases = known_releases(opened.job) if opened.job else []
    return rendered_page(studio, "run.html", "run", last=last, job=opened.job, releases=releases)


def compare_page(studio: Studio, query: Query) -> str:
    """Return the page that compares two releases of the job.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job = studio.job(opened)
    releases = known_releases(job)
    names = [one.name for one in releases]
    first, second = query.get("first", ""), query.get("second", "")
    if first not in names:
        first = names[1] if len(names) > 1 else names[0] if names else ""
    if second not in names:
        second = names[0] if names else ""
    reports = [report_of_release(job, name) if name else None for name in (first, second)]
    compared = compare_releases(reports[0], reports[1]) if reports[0] and reports[1] else None
    measured = studio.utilities
    return rendered_page(
        studio, "compare.html", "compare", releases=releases, first=first, second=second, compared=compared,
        utilities=[measured.get(name) for name in (first, second)],
    )  # fmt: skip


def pareto_front_part(studio: Studio, _query: Query) -> str:
    """Return the Pareto front of loss, suppression and risk, as part of a page.

    It is that of the sample, or of all records where it was searched for this job.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job, work = studio.job(opened), studio.works.last.get("front")
    found = ParetoFront.model_validate(work.result) if work and work.result and work.stamp == opened.stamp else None
    whole = found is not None
    coded = studio.coded(opened)
    found = found or studio.sample_front(opened)
    methods = method_points(coded)
    nodes = found.nodes if found else []
    best = next((tuple(one.node) for one in nodes if one.chosen and job.method.name == "skald"), None)
    drawn = [
        _scatter(
            "Loss and suppression", "people left out", [(one.suppressed, one.gcp) for one in nodes], found, methods, best, "suppressed"
        ),
        _scatter("Loss and risk", "mean risk of somebody released", [(one.risk, one.gcp) for one in nodes], found, methods, best, "risk"),
    ]
    return environment().get_template("front.html").render(
        front=found, charts=drawn, methods=methods, best=list(best) if best else None, whole=whole, sample=coded, opened=opened, job=job,
        stamp=opened.stamp, unit=studio.sample(opened).unit, named=job.full_domain.node, ceil=ceil,
    )  # fmt: skip


def _scatter(
    title: str,
    axis: str,
    places: list[tuple[float, float]],
    front: ParetoFront | None,
    methods: list[Any],
    best: tuple[int, ...] | None,
    side: str,
) -> Markup:
    """Return a scatter chart of nodes and methods."""
    nodes = front.nodes if front else []
    points = [
        ChartPoint(across, up, str(number_), ChartStyle(0, quiet=not node.optimal), tuple(node.node) == best, f"#take-{number_}")
        for number_, ((across, up), node) in enumerate(zip(places, nodes, strict=True), 1)
    ]
    points += [
        ChartPoint(getattr(one, side), one.gcp, one.name, ChartStyle(2 + place), one.own, f"#take-{one.name}")
        for place, one in enumerate(methods)
        if one.gcp is not None
    ]
    # What it holds is escaped where it is made.
    return Markup(scatter_chart(title, points, axis, percent).inline())


def preview_part(studio: Studio, _query: Query) -> str:
    """Return some example classes as a release would publish them, as part of a page.

    Raises:
        SkaldError: there is no job, its source cannot be read, or it does not fit the source.
    """
    opened = studio.read_job_file()
    job, sample = studio.job(opened), studio.sample(opened)
    coded, least = studio.coded(opened), studio.least(studio.job(opened))
    node = None
    if job.method.name == "skald" and job.full_domain.node is None:
        node = preferred_node(job, studio.sample_front(opened))
    tried = coded if job.method.name == "skald" else affordable_people(coded)
    made = preview_of(job, sample, sample_classes(tried, node), least)
    return environment().get_template("preview.html").render(preview=made, least=least, sample=sample, job=job)


def job_page(studio: Studio, _query: Query) -> str:
    """Return the page of the job file's text and faults."""
    return rendered_page(studio, "job.html", "job")


def work_state(studio: Studio) -> dict[str, Any]:
    """Return the progress of the work and the stamp of the job file, for the page's script.

    The script polls it.
    """
    stamp, work = studio.stamp(), studio.works.current
    if work is None:
        return {"stamp": stamp, "busy": False, "steps": []}
    steps = [{"words": one.words, "done": one.done_units, "total": one.total} for one in list(work.steps.values())]
    return {"stamp": stamp, "busy": not work.over, "words": work.words, "steps": steps, "notes": list(work.notes)[-5:]}


SHOWN: dict[str, Callable[[Studio, Query], str]] = {
    "": start_page,
    "columns": columns_page,
    "hierarchies": hierarchies_page,
    "choices": choices_page,
    "run": run_page,
    "compare": compare_page,
    "job": job_page,
}
"""Pages by their address."""
PARTS: dict[str, Callable[[Studio, Query], str]] = {"front": pareto_front_part, "preview": preview_part}
"""Parts of pages that take some seconds, by the last part of their address."""
