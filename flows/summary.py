"""What the command line shows of a run, a plan and a verification, as Rich tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from core.risk import THRESHOLD, kept_preset, least_class, release_risk
from core.verification import Recount
from schemas.errors import counted
from schemas.release import Manifest
from tasks.planning import Plan
from tasks.progress import listening

PHASES = {
    "domains": "phase 1  count domains",
    "domain": "phase 1  merge domains",
    "measured": "this method",
    "histograms": "phase 2  count cells",
    "histogram": "phase 2  merge cells",
    "sizes": "phase 2  count classes of the source",
    "search": "phase 2  search lattice",
    "coded": "phase 2  code records",
    "recode": "phase 2  make classes",
    "cuts": "phase 2  cut cells",
    "sample": "phase 2  draw sample",
    "part": "phase 2  share records out",
    "fragments": "phase 3  anonymise fragments",
    "rewrite": "phase 3  rewrite chunks",
    "files": "phase 3  write release",
}


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
                bars[phase] = progress.add_task(PHASES.get(phase, phase), total=total)
            progress.update(bars[phase], completed=done)

        with listening(advance):
            yield


def release_summary(manifest: Manifest, folder: str, *, new: bool) -> RenderableType:
    """Returns what a run made, as a table."""
    table = _facts()
    table.add_row("records", f"{manifest.records:,}")
    table.add_row("released", f"{manifest.released:,}")
    table.add_row("suppressed", f"{manifest.suppressed:,} ({manifest.suppressed / manifest.records:.2%})" + _masked(manifest))
    table.add_row("classes", f"{manifest.classes:,}, the smallest of {counted(manifest.min_class, 'record')} (k = {manifest.privacy['k']})")
    if manifest.levels:
        table.add_row("levels", ", ".join(f"{qid} {level}" for qid, level in manifest.levels.items()))
    precision = f" · precision {manifest.loss['precision']:.4f}" if "precision" in manifest.loss else ""
    table.add_row("loss", f"DM* {manifest.loss['dm_star']:,} · GCP {manifest.loss['gcp']:.4f}{precision}")
    if isinstance(nodes := manifest.search.get("nodes"), int):
        passing = manifest.search.get("passing")
        passed = f"{passing:,} of {counted(nodes, 'node')} passed" if passing is not None else f"{counted(nodes, 'node')} in all"
        table.add_row("optimum", f"{manifest.optimal}: {passed}")
    else:
        table.add_row(manifest.method, " · ".join(f"{name} {count:,}" for name, count in manifest.search.items()))
    for name, text in risk_rows(manifest.risk):
        table.add_row(name, text)
    table.add_row("time", f"{sum(manifest.seconds.values()):.1f} s, at most {manifest.peak_rss / 1e6:,.0f} MB")
    table.add_row("verified", "recounted from the written files")
    table.add_row("release", folder)
    if (report := Path(folder, "report.html")).is_file():
        table.add_row("report", str(report))
    return table if new else Group("Already published: the same job on the same data. Nothing was done.", table)


def _masked(manifest: Manifest) -> str:
    return f", {manifest.masked:,} of them masked" if manifest.masked else ""


def risk_rows(risk: Mapping[str, Mapping[str, int | float]]) -> Iterator[tuple[str, str]]:
    """Yields three rows: the risk before, if it was counted, the risk after, and the strictest preset that a report may cite."""
    if not risk:
        return
    after = risk["after"]
    yield "risk before", _risk(risk["before"]) if "before" in risk else "not counted"
    yield (
        "risk after",
        _risk(after) + (f" · {counted(int(after['suppressed']), 'suppressed record')} not in it" if after["suppressed"] else ""),
    )
    preset = kept_preset(int(after.get("min_class", 0)))
    yield (
        "maximum risk",
        f"keeps {preset[0]} ({preset[1]})" if preset else f"keeps no preset; {THRESHOLD} needs k = {least_class(THRESHOLD)}",
    )


def _risk(figures: Mapping[str, int | float]) -> str:
    if not figures["records"]:
        return "no record in a class"
    return (
        f"at most 1 in {figures['min_class']:,} ({figures['prosecutor_max']:.4f}) · mean {figures['prosecutor_mean']:.4f} · "
        f"{figures['uniqueness']:.2%} unique · {figures['share_above']:.2%} above {figures['threshold']}"
    )


def plan_summary(plan: Plan) -> RenderableType:
    """Returns a plan as two tables."""
    table = _facts()
    table.add_row("release", plan.release + (" (published already: a run would do nothing)" if plan.exists else ""))
    table.add_row("records", f"{plan.records:,} in {counted(plan.files, 'file')}, {counted(plan.chunks, 'chunk')}")
    table.add_row("scanned now", f"{counted(plan.domains_to_scan, 'chunk')} for the domains")
    table.add_row("to scan", f"{counted(plan.histograms_to_scan, 'chunk')} for the histogram, {counted(plan.chunks, 'chunk')} to rewrite")
    table.add_row("suppress at most", counted(plan.most_suppressed, "record"))
    table.add_row("lattice", f"{counted(plan.nodes, 'node')}, searched from root {plan.root}")
    table.add_row("root histogram", f"at most {counted(plan.cells, 'occupied cell')} of {counted(plan.bins, 'bin')}")
    table.add_row("memory", f"{plan.memory / 1e6:,.0f} MB")
    qids = Table("quasi-identifier", "values", "nulls", "groups per level", box=None, header_style="bold")
    for qid in plan.qids:
        qids.add_row(qid.name, f"{qid.values:,}", f"{qid.nulls:,}", " → ".join(f"{groups:,}" for groups in qid.groups))
    return Group(table, "", qids)


def verification_summary(recount: Recount, manifest: Manifest | None, k: int) -> RenderableType:
    """Returns what was recounted, as a table."""
    table = _facts()
    table.add_row("records", f"{recount.records:,}")
    table.add_row("classes", f"{recount.classes:,}, the smallest of {counted(recount.min_class, 'record')} (k = {k:,})")
    suppressed, masked = (manifest.suppressed, manifest.masked) if manifest else (0, 0)
    before = {side: figures for side, figures in (manifest.risk if manifest else {}).items() if side == "before"}
    for name, text in risk_rows(before | {"after": release_risk(recount, suppressed, masked)}):
        table.add_row(name, text)
    table.add_row("manifest", "agrees with the files" if manifest else "none: suppression and file digests were not checked")
    return table


def _facts() -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    return table
