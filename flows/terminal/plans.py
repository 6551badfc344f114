"""Terminal output of a plan, as Rich tables."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flows.terminal.runs import fact_table, names_by_words, risk_sentence, untreated_columns_sentence
from flows.terminal.screen import NameTable
from schemas.errors.base import counted, listed
from schemas.reading.model import share_text
from schemas.release.figures import passthrough_warnings
from tasks.planning.forecast import WRITE, Forecast
from tasks.planning.local_plan import LocalPlan
from tasks.planning.plan import Plan
from tasks.report.criteria import PLAIN_SUPPRESSION
from tasks.report.terms import UnitWording

MOST_SPELT = 10**15
NO_ID = "has no id yet: a run makes the vault, and the id follows from it"
"""What is said of a release whose job names a vault that does not exist."""
SHARE_TO_NAME = 0.05
"""Share of the records in small classes that a column must account for to be called a driver."""


def plan_summary(plan: Plan) -> RenderableType:
    """Return a plan as two tables, with a sentence about the columns that cause the risk."""
    table = fact_table()
    table.add_row("release", (plan.release or NO_ID) + (" (published already: a run would do nothing)" if plan.exists else ""))
    table.add_row(
        "records", f"{plan.records:,} in {counted(plan.files, 'file')}, {counted(plan.chunks, 'chunk')}, {plan.source_bytes / 1e6:,.1f} MB"
    )
    if plan.persons:
        table.add_row("persons", f"{plan.persons.persons:,}, with {counted(plan.persons.most_records, 'record')} at most")
    table.add_row("source", plan.source)
    counted_now = (plan.histograms_to_scan or 0) if _counted(plan) else 0
    now = [
        f"{counted(chunks, 'chunk')} for the {what}"
        for chunks, what in ((plan.domains_to_scan, "domains"), (counted_now, "histogram"))
        if chunks
    ]
    table.add_row("method", f"{plan.method}: {plan.aim}")
    table.add_row("scanned now", f"{', '.join(now)}; a run does not scan them again" if now else "nothing: all was counted before")
    if plan.local:
        _add_local(table, plan, plan.local)
    else:
        left = f"{counted(_left(plan), 'chunk')} for the histogram, " if _left(plan) else ""
        table.add_row("left to scan", f"{left}{counted(plan.chunks, 'chunk')} to rewrite")
        table.add_row("suppress at most", f"{counted(plan.most_suppressed, 'record')}, {plan.suppression}")
        root = f"root {plan.root}" if any(plan.root or ()) else "the finest"
        table.add_row("lattice", f"{counted(plan.nodes or 0, 'node')}, searched from {root}")
        bins = f"{plan.bins or 0:,}" if (plan.bins or 0) < MOST_SPELT else f"{plan.bins:.1e}"
        table.add_row("root histogram", f"at most {counted(plan.cells or 0, 'occupied cell')} of {bins} bins")
    table.add_row("memory", f"{plan.memory / 1e6:,.0f} MB")
    table.add_row("promises", Text(" · ".join(plan.promises)))
    if plan.pseudonyms:
        table.add_row("pseudonyms", Text(", ".join(f"{column} ({words})" for column, words in plan.pseudonyms.items())))
    for name, text in published_column_rows(plan):
        table.add_row(name, Text(text))
    for sentence in (*plan.warnings, *passthrough_warnings(plan.passthrough, plan.published)):
        table.add_row("warning", Text(sentence))
    if plan.exposed:
        table.add_row(f"unique {plan.unit}s", _share(plan.exposed.unique, plan))
        # A share of records is what the limit allows to suppress.
        lost = f", with {_of_records(plan.exposed.records, plan)}" if plan.exposed.records is not None else ""
        table.add_row("in classes below k", _share(plan.exposed.below_k, plan) + lost)
    unit = UnitWording(plan.unit, plan.repeats)
    if plan.risk:
        table.add_row("risk before", risk_sentence(plan.risk, unit))
    if said := unit.warning():
        table.add_row("warning", said)
    for name, text in forecast_rows(plan.forecast, plan.method):
        table.add_row(name, Text(text))
    told = " ".join(filter(None, (plan.not_counted, contributor_sentence(plan))))
    return Group(table, "", _planned_qids(plan), *(["", told] if told else []))


def published_column_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield rows (name, text) on published columns without QIDs: treatment, or figures if untreated.

    Columns that are treated alike share a row. Those that go out as they are have their figures.
    """
    for words, names in names_by_words(plan.published).items():
        yield "published", f"{names[0] if len(names) == 1 else listed(names)}: {words}"
    for name, one in plan.passthrough.items():
        if name not in plan.published:
            yield "untreated", f"{name}: {untreated_columns_sentence(one)}"


def forecast_rows(forecast: Forecast | None, method: str) -> Iterator[tuple[str, str]]:
    """Yield a row with the forecast losses of methods, and a row with the settings of the best one.

    Args:
        forecast: What was measured.
        method: The job's own, which may be none of those that are measured.
    """
    if forecast is None:
        return
    lost = (f"{one.way} {one.gcp:.3f}{'' if forecast.whole else f' ± {one.error:.3f}'}" for one in forecast.ways)
    of = "all records" if forecast.whole else f"samples of about {forecast.records:,} records; of all it is mostly less"
    measured = any(f"name: {method}" in WRITE[one.way] for one in forecast.ways)
    own = "" if measured else f" · {method} is not measured by a plan"
    yield "would lose", f"GCP by k alone, of {of}: {' · '.join(lost)}{own}"
    best, methods = min(forecast.ways, key=attrgetter("gcp")), "skald,mondrian" + ("" if measured else f",{method}")
    name = "least" if measured else "least of these"
    ways = {one.way for one in forecast.ways}
    # A comparison takes the options of the job's own method and defaults of others, so that any other line must be given to it.
    compared = {"least GCP": "least DM*" not in ways, "mondrian, score: ncp": method == "mondrian" and "mondrian" not in ways}
    given = "" if compared.get(best.way, True) else f" --set '{WRITE[best.way].replace(': ', '=', 1)}'"
    without = "without cell and rounds; " if forecast.needs_levels and "mondrian" in best.way else ""
    given += f" {PLAIN_SUPPRESSION}" if without and given else ""
    yield name, f"{WRITE[best.way]} # {without}what it costs and tells: skald compare JOB --methods {methods}{given}"


def _counted(plan: Plan) -> bool:
    """Return whether the plan counted how unique the records are."""
    return plan.exposed is not None


def _left(plan: Plan) -> int:
    """Return how many chunks phase 2 still has to count."""
    return 0 if _counted(plan) else plan.histograms_to_scan or 0


def _planned_qids(plan: Plan) -> Table:
    """Return the table of a plan's quasi-identifiers."""
    shown = any(qid.without for qid in plan.qids)
    columns = ["unique without it", "below k without it"] if shown else []
    qids = NameTable("quasi-identifier", "grouped as", "values", "nulls", *columns, "groups per level", box=None, header_style="bold")
    for qid in plan.qids:
        told = [_share(number, plan) for number in (qid.without.unique, qid.without.below_k)] if qid.without else [""] * len(columns)
        qids.add_row(
            Text(qid.name), qid.hierarchy, f"{qid.values:,}", f"{qid.nulls:,}", *told, " → ".join(f"{groups:,}" for groups in qid.groups)
        )
    return qids


def _share(number: int, plan: Plan) -> str:
    """Return a number of records or persons with its percentage of all of them."""
    there = plan.persons.persons if plan.persons else plan.records
    return f"{number:,} ({share_text(number / there, 2)})" if there else f"{number:,}"


def _of_records(records: int, plan: Plan) -> str:
    """Return a number of records with its percentage of all records."""
    return f"{counted(records, 'record')} ({share_text(records / plan.records, 2)})"


def contributor_sentence(plan: Plan) -> str:
    """Return a sentence about the quasi-identifiers that contribute most to the risk.

    Or that there is no risk; empty where the risk was not counted.
    """
    if plan.persons and not plan.persons.persons:
        return "No record names a person, and k counts persons: a run is refused. Correct columns.person or the source."
    known = [(qid.without.below_k, qid.without.unique, qid.name) for qid in plan.qids if qid.without]
    if plan.exposed is None or not known:
        return ""
    whole, (least, _, name) = plan.exposed.below_k, min(known)
    if not whole:
        return f"Every combination is shared by k {plan.unit}s or more as it is: as far as k goes, a release can keep the values."
    if whole - least < SHARE_TO_NAME * whole:
        many = f"nearly as many as {whole:,} {plan.unit}s"
        return f"No quasi-identifier drives the risk alone: without any of them {many} are in classes below k."
    instead = f"{_share(least, plan)} instead of {_share(whole, plan)} {plan.unit}s"
    return (
        f"'{name}' drives the risk most: without it {instead} would be in classes "
        "below k. A hierarchy with more steps, or leaving the column out, keeps the others finer."
    )


def _add_local(table: Table, plan: Plan, local: LocalPlan) -> None:
    """Add the rows for a method without a lattice to a plan's table."""
    chunks = counted(plan.chunks, "chunk")
    if plan.histograms_to_scan is not None:
        left = f"{counted(_left(plan), 'chunk')} for the cells, " if _left(plan) else ""
        table.add_row("left to scan", f"{left}{chunks} to rewrite")
    elif local.parted:
        table.add_row("left to scan", f"{chunks} to share the records out")
    else:
        table.add_row("left to scan", f"{chunks} to code the records, {chunks} to rewrite")
    table.add_row("sampled now", counted(local.samples_to_scan, "chunk"))
    table.add_row("distinct", f"{share_text(local.distinct)}: combinations per record, of {counted(local.sampled, 'sampled record')}")
    table.add_row("rows", f"works on {local.rows}, {local.most_rows:,} at most: about {local.needed / 1e6:,.0f} MB for all at once")
    many = f", each of {local.most_records:,} records at most; workers take them from a queue" if local.parted else ""
    table.add_row("fragments", f"{local.fragments:,}{many} ({local.reason})")
    if local.advice:
        table.add_row("advice", local.advice)
