"""What the command line shows of a run, a plan and a verification, as Rich tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from core.recount.classes import Recount
from schemas.errors.base import counted
from schemas.release.manifest import Manifest, Remainder
from schemas.release.passthrough import PassedColumn, passthrough_warnings, unclaimed_because
from schemas.release.population import population_sentences
from tasks.engine.progress import STEPS, listening
from tasks.planning.local_plan import LocalPlan
from tasks.planning.plan import Plan
from tasks.publication.manifests import risk_after
from tasks.report.linked import linked_sentences
from tasks.report.sentences import increment_sentences, warning_sentences
from tasks.report.units import Unit

MOST_SPELT = 10**15
WORTH = 0.05
"""Share of the records in small classes that a column must account for to be called a driver."""


@contextmanager
def progress_bars(console: Console) -> Iterator[None]:
    """Shows a bar per phase while the block runs, on a terminal; elsewhere nothing."""
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bars = {}

        def advance(phase: str, done: int, total: int) -> None:
            if phase not in bars:
                words = f"phase {STEPS[phase].phase}  {STEPS[phase].words}" if phase in STEPS else phase
                bars[phase] = progress.add_task(words, total=total)
            progress.update(bars[phase], completed=done)

        with listening(advance):
            yield


def release_summary(manifest: Manifest, folder: str, *, new: bool) -> RenderableType:
    """Returns what a run made, as a table."""
    table = _facts()
    table.add_row("records", f"{manifest.records:,}")
    table.add_row("released", f"{manifest.released:,}")
    table.add_row("suppressed", f"{manifest.suppressed:,} ({manifest.suppressed / manifest.records:.2%})" + _masked(manifest))
    for name, text in remainder_rows(manifest.remainder):
        table.add_row(name, text)
    least = counted(manifest.min_class, manifest.unit)
    table.add_row("classes", f"{manifest.classes:,}, the smallest of {least} (k = {manifest.privacy['k']})")
    for name, text in exposure_rows(manifest):
        table.add_row(name, text)
    if persons := manifest.persons:
        table.add_row("persons", f"{persons.released:,} of {persons.source:,}, with {counted(persons.most_records, 'record')} at most")
    if manifest.levels:
        table.add_row("levels", ", ".join(f"{qid} {level}" for qid, level in manifest.levels.items()))
    precision = f" · precision {manifest.loss['precision']:.4f}" if "precision" in manifest.loss else ""
    table.add_row("loss", f"DM* {manifest.loss['dm_star']:,} · GCP {manifest.loss['gcp']:.4f}{precision}")
    if manifest.replay_of:
        table.add_row("replay of", manifest.replay_of)
    elif isinstance(nodes := manifest.search.get("nodes"), int):
        passing = manifest.search.get("passing")
        passed = f"{passing:,} of {counted(nodes, 'node')} passed" if passing is not None else f"{counted(nodes, 'node')} in all"
        table.add_row("optimum", f"{manifest.optimal}: {passed}")
    else:
        table.add_row(manifest.method, " · ".join(f"{name} {count:,}" for name, count in manifest.search.items()))
    for name, text in risk_rows(manifest.risk, Unit.of_release(manifest), unclaimed_because(manifest.passthrough)):
        table.add_row(name, text)
    if manifest.pseudonyms:
        columns = ", ".join(f"{column} ({words})" for column, words in manifest.pseudonyms.items())
        table.add_row("pseudonymous", f"{columns}: linkable to every release with the same key or vault")
    for sentence in linked_sentences(manifest):
        table.add_row("linked", sentence)
    for sentence in increment_sentences(manifest):
        table.add_row("source", sentence)
    for sentence in warning_sentences(manifest):
        table.add_row("warning", sentence)
    table.add_row("time", f"{sum(manifest.seconds.values()):.1f} s, at most {manifest.peak_rss / 1e6:,.0f} MB")
    table.add_row("verified", "recounted from the written files")
    # Outside the table, which would break a path where the terminal ends.
    paths = [f" {'release':<13} {folder}", *([f" {'report':<13} {report}"] if (report := Path(folder, "report.html")).is_file() else [])]
    said = Group(table, *(Text(path) for path in paths))
    return said if new else Group("Already published: the same job on the same data. Nothing was done.", said)


def passed_words(one: PassedColumn) -> str:
    """Returns the figures of a column that is published as it is."""
    return f"{counted(one.distinct, 'value')}, {counted(one.unique_records, 'record')} alone"


def remainder_rows(remainder: Remainder | None) -> Iterator[tuple[str, str]]:
    """Yields a row of what failed at the levels, one per further round, and one of what was starred."""
    if remainder is None:
        return
    yield "failed", f"{counted(remainder.records, 'record')} at the levels below"
    for number, one in enumerate(remainder.rounds, start=1):
        yield f"round {number}", f"{counted(one.records, 'record')} in {counted(one.classes, 'combination')} of levels {list(one.node)}"
    if remainder.stars:
        least = f" (at least {remainder.least:,})" if remainder.least is not None else ""
        yield "starred", f"{counted(remainder.starred, 'record')}, {counted(remainder.stars, 'value')}{least}"


def exposure_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yields the rows of the risk in a population, and of the classes in which everybody has one sensitive value."""
    for sentence in population_sentences(manifest.population):
        yield "population", sentence
    for name, one in manifest.one_value.items():
        yield "one value", f"'{name}' in {one.classes:,} classes ({one.share:.1%})"


def _masked(manifest: Manifest) -> str:
    return f", {manifest.masked:,} of them masked" if manifest.masked else ""


def risk_rows(risk: Mapping[str, Mapping[str, int | float]], unit: Unit, unclaimed: str = "") -> Iterator[tuple[str, str]]:
    """Yields three rows: the risk before, if it was counted, the risk after, and the strictest preset to cite, or why none."""
    if not risk:
        return
    after = risk["after"]
    yield "risk before", _risk(risk["before"], unit) if "before" in risk else "not counted"
    suppressed = f" · {counted(int(after['suppressed']), 'suppressed record')} not in it" if after["suppressed"] else ""
    yield "risk after", _risk(after, unit) + suppressed
    yield "maximum risk", unclaimed or unit.maximum_risk_in_short(int(after.get("min_class", 0)))


def _risk(figures: Mapping[str, int | float], unit: Unit) -> str:
    if not figures["records"]:
        return f"no {unit.one} in a class"
    # Said where it matters that people are counted, or are not.
    least = counted(int(figures["min_class"]), unit.one) if unit.of_persons or unit.repeats else f"{figures['min_class']:,}"
    told = [
        f"at most 1 in {least} ({figures['prosecutor_max']:.4f})",
        f"mean {figures['prosecutor_mean']:.4f}",
        f"{figures['uniqueness']:.2%} unique",
    ]
    above = f"{figures['share_above']:.2%} above {figures['threshold']}"
    return " · ".join([*told, *([above] if "share_above" in unit.risks() else [])])


def plan_summary(plan: Plan) -> RenderableType:
    """Returns a plan as two tables, and what drives the risk in a sentence."""
    table = _facts()
    table.add_row("release", plan.release + (" (published already: a run would do nothing)" if plan.exists else ""))
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
    for name, one in plan.passthrough.items():
        table.add_row("untreated", Text(f"{name}: {passed_words(one)}"))
    for sentence in passthrough_warnings(plan.passthrough):
        table.add_row("warning", Text(sentence))
    if plan.exposed:
        table.add_row(f"unique {plan.unit}s", _share(plan.exposed.unique, plan))
        # A share of records is what the limit allows to suppress.
        lost = f", with {_of_records(plan.exposed.records, plan)}" if plan.exposed.records is not None else ""
        table.add_row("in classes below k", _share(plan.exposed.below_k, plan) + lost)
    unit = Unit(plan.unit, plan.repeats)
    if plan.risk:
        table.add_row("risk before", _risk(plan.risk, unit))
    if said := unit.warning():
        table.add_row("warning", said)
    return Group(table, "", _planned_qids(plan), *(["", said] if (said := plan.not_counted or driver_words(plan)) else []))


def _counted(plan: Plan) -> bool:
    return plan.exposed is not None


def _left(plan: Plan) -> int:
    """Returns how many chunks phase 2 has still to count."""
    return 0 if _counted(plan) else plan.histograms_to_scan or 0


def _planned_qids(plan: Plan) -> Table:
    shown = any(qid.without for qid in plan.qids)
    columns = ["unique without it", "below k without it"] if shown else []
    qids = Table("quasi-identifier", "grouped as", "values", "nulls", *columns, "groups per level", box=None, header_style="bold")
    for qid in plan.qids:
        told = [_share(number, plan) for number in (qid.without.unique, qid.without.below_k)] if qid.without else [""] * len(columns)
        qids.add_row(
            Text(qid.name), qid.hierarchy, f"{qid.values:,}", f"{qid.nulls:,}", *told, " → ".join(f"{groups:,}" for groups in qid.groups)
        )
    return qids


def _share(number: int, plan: Plan) -> str:
    """Returns how many records or persons, and what share of all of them."""
    return f"{number:,} ({number / (plan.persons.persons if plan.persons else plan.records):.2%})"


def _of_records(records: int, plan: Plan) -> str:
    return f"{counted(records, 'record')} ({records / plan.records:.2%})"


def driver_words(plan: Plan) -> str:
    """Returns which quasi-identifiers drive the risk, in a sentence; empty where that was not counted."""
    known = [(qid.without.below_k, qid.without.unique, qid.name) for qid in plan.qids if qid.without]
    if plan.exposed is None or not known:
        return ""
    whole, (least, _, name) = plan.exposed.below_k, min(known)
    if not whole:
        return f"Every combination is shared by k {plan.unit}s or more as it is: a release can keep the values."
    if whole - least < WORTH * whole:
        many = f"nearly as many as {whole:,} {plan.unit}s"
        return f"No quasi-identifier drives the risk alone: without any of them {many} are in classes below k."
    instead = f"{_share(least, plan)} instead of {_share(whole, plan)} {plan.unit}s"
    return (
        f"'{name}' drives the risk most: without it {instead} would be in classes "
        "below k. A hierarchy with more steps, or leaving the column out, keeps the others finer."
    )


def _add_local(table: Table, plan: Plan, local: LocalPlan) -> None:
    """Adds what a method without a lattice would do."""
    chunks = counted(plan.chunks, "chunk")
    if plan.histograms_to_scan is not None:
        left = f"{counted(_left(plan), 'chunk')} for the cells, " if _left(plan) else ""
        table.add_row("left to scan", f"{left}{chunks} to rewrite")
    elif local.parted:
        table.add_row("left to scan", f"{chunks} to share the records out")
    else:
        table.add_row("left to scan", f"{chunks} to code the records, {chunks} to rewrite")
    table.add_row("sampled now", counted(local.samples_to_scan, "chunk"))
    table.add_row("distinct", f"{local.distinct:.1%}: combinations per record, of {counted(local.sampled, 'sampled record')}")
    table.add_row("rows", f"works on {local.rows}, {local.most_rows:,} at most: about {local.needed / 1e6:,.0f} MB for all at once")
    many = f", each of {local.most_records:,} records at most; workers take them from a queue" if local.parted else ""
    table.add_row("fragments", f"{local.fragments:,}{many} ({local.reason})")


def verification_summary(
    recount: Recount, manifest: Manifest | None, k: int, notes: Sequence[str] = (), *, trusted: bool = False
) -> RenderableType:
    """Returns what was recounted, as a table.

    Args:
        recount: What was counted.
        manifest: What it was held against, if there is one.
        k: What every class has at least.
        notes: What could not be checked, in sentences.
        trusted: Whether the signature is that of a key which the user gave.
    """
    table = _facts()
    table.add_row("records", f"{recount.records:,}")
    table.add_row("classes", f"{recount.classes:,}, the smallest of {counted(recount.min_class, recount.unit)} (k = {k:,})")
    suppressed, masked = (manifest.suppressed, manifest.masked) if manifest else (0, 0)
    before = {side: figures for side, figures in (manifest.risk if manifest else {}).items() if side == "before"}
    unit = Unit("person" if recount.persons else "record", manifest.repeats if manifest else {})
    # Where persons could not be counted, the sizes of classes say nothing of a risk.
    risk = before | {"after": risk_after(recount, suppressed, masked)} if not manifest or manifest.unit == unit.one else {}
    for name, text in risk_rows(risk, unit):
        table.add_row(name, text)
    for sentence in linked_sentences(manifest) if manifest else ():
        table.add_row("linked", sentence)
    table.add_row("manifest", "agrees with the files" if manifest else "none: suppression and file digests were not checked")
    if manifest:
        table.add_row("signature", _signature_words(manifest, trusted=trusted))
    for sentence in notes:
        table.add_row("not checked", sentence)
    for sentence in recount.unproved or (f"has a record for each of the files', of its {counted(recount.source or 0, 'record')}",):
        table.add_row("source", sentence)
    return table


def _signature_words(manifest: Manifest, *, trusted: bool) -> str:
    if manifest.signed_by is None:
        return "none: somebody who makes files and manifest anew would not be noticed"
    return "true, and of the key that was given" if trusted else f"true, of {manifest.signed_by}; give --key to say whose it must be"


def _facts() -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    return table
