"""The HTML page of a report: one file without scripts or network access.

It is made for a screen, a phone and paper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from core.charts.chart import DARK_STYLE, Chart, ChartStyle, bar_chart
from core.compiling.compiled import compiled_folder
from core.lattice.picture import heights_picture, nodes_picture
from core.lattice.search import LatticeMap
from schemas.errors.base import StorageError, counted, printable
from schemas.release.report import Report, RiskFigure
from schemas.release.terms import Band
from tasks.report.terms import date_text, map_of_report
from tasks.store.files import write_atomically
from tasks.store.keys import code_of, fingerprint_of

SOURCE, RELEASE = "Source", "Release"
# By name, so that the release looks the same with and without a source beside it.
CHART_STYLES = {SOURCE: ChartStyle(0, quiet=True), RELEASE: ChartStyle(0)}
TABLE_NOTE = "The table below says the same."


def size_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Return an SVG chart of the share of records or persons by class size, in source and release."""
    rows = size_rows(report)
    sides = {SOURCE: [source for _, source, _ in rows], RELEASE: [after for _, _, after in rows]}
    # A side that was not counted is left out: drawn, it would look like one that has nothing.
    series = {side: _shares(bands) for side, bands in sides.items() if any(bands)}
    unit = report.came_out.unit
    return _shares_chart(f"Share of {unit}s by the number of {unit}s in their class", [label for label, _, _ in rows], series, percent)


def size_rows(report: Report) -> list[tuple[str, Band | None, Band | None]]:
    """Return table rows of class size bands: label, source's band and release's band or None."""
    before, after = ({band.least: band for band in bands} for bands in (report.came_out.source_bands, report.came_out.bands))
    starts = sorted(before.keys() | after.keys())
    # The last band of one side is open only if it is the last of all.
    last = (after if starts[-1] in after else before)[starts[-1]] if starts else None
    ends = [start - 1 for start in starts[1:]] + [last.most if last else None]
    return [(_range(start, end), before.get(start), after.get(start)) for start, end in zip(starts, ends, strict=True)]


def _shares(bands: Sequence[Band | None]) -> list[float | None]:
    """Return the share of all records in each band; None for an empty band."""
    total = sum(band.records for band in bands if band)
    return [band.records / total if band and band.records else None for band in bands]


def _range(least: int, most: int | None) -> str:
    """Format the bounds of a class size band."""
    return f"{least:,}" + (" or more" if most is None else "" if most == least else f" to {most:,}")


def risk_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Return an SVG chart of the risks of source and release that are shares; empty if none was counted."""
    shares = [risk for risk in report.risk if risk.share]
    sides: dict[str, Callable[[RiskFigure], float | None]] = {SOURCE: lambda risk: risk.before, RELEASE: lambda risk: risk.after}
    series = {side: [value(risk) for risk in shares] for side, value in sides.items()}
    counted = {side: values for side, values in series.items() if any(value is not None for value in values)}
    return _shares_chart("Risk of re-identification", [risk.title for risk in shares], counted, percent) if counted else ""


def loss_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Return an SVG chart of each quasi-identifier's NCP; empty if it was not counted."""
    known = [qid for qid in report.qids if qid.ncp is not None]
    return (
        _shares_chart("Loss of each quasi-identifier (NCP)", [qid.name for qid in known], {RELEASE: [q.ncp for q in known]}, percent)
        if known
        else ""
    )


def _shares_chart(
    title: str, names: Sequence[str], series: Mapping[str, Sequence[float | None]], percent: Callable[[float | None], str]
) -> str:
    """Draw horizontal bars from 0 to 100 % as inline SVG; the page has the heading."""
    # Always up to 100 %, so that the charts of two releases can be held against each other.
    chart = Chart(title, TABLE_NOTE, series, percent, CHART_STYLES, missing="")
    return bar_chart(chart, names, axis_end=1.0, headed=False).inline()


def lattice_charts(drawn: LatticeMap, width: int) -> tuple[str, str]:
    """Return two SVG charts: the lattice's heights, and the nodes around the chosen one."""
    return heights_picture(drawn, width).inline("lattice"), nodes_picture(drawn, width).inline("lattice")


DIGEST = hashlib.sha256().digest_size


class TemplateCache(BytecodeCache):
    """Bytecode cache of Jinja templates in a folder, each file stored with its digest.

    A damaged file is compiled again, and no page fails for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a compiled template into Jinja's bucket; ignore a missing or damaged file."""
        try:
            kept = self._file(bucket).read_bytes()
        except OSError:
            return
        code = kept[DIGEST:]
        if hashlib.sha256(code).digest() == kept[:DIGEST]:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write Jinja's compiled template to the cache folder; ignore write errors."""
        code = bucket.bytecode_to_string()
        try:
            write_atomically(self._file(bucket), lambda path: path.write_bytes(hashlib.sha256(code).digest() + code))
        except StorageError:
            return

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.cache"


def template_cache(made_by: Path) -> TemplateCache | None:
    """Return the cache of compiled templates, its folder created; None if that fails.

    Each version of Jinja and each way of compiling has a folder of its own.

    Args:
        made_by: The file whose code sets up the compilation.
    """
    home = compiled_folder()
    if home is None:
        return None
    folder = home / "templates" / hashlib.sha256(version("jinja2").encode() + made_by.read_bytes()).hexdigest()[:16]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return TemplateCache(folder)


TEMPLATE, SUMMARY = "report.html", "summary.html"
SMALLEST_SHARE = 0.0001
BROAD, SLIM = 900, 320
"""Pixels that the page has for a picture on a screen or paper, and on a phone."""


def render(report: Report) -> str:
    """Return a report as an HTML page; equal reports give equal pages."""
    # What the charts hold is escaped where they are made.
    charts = {name: Markup(chart) for name, chart in _charts(report).items()}
    return page(TEMPLATE, report=report, charts=charts, dark=Markup(DARK_STYLE), sizes=size_rows(report))


def notebook_summary(report: Report) -> str:
    """Return a report's verdict, warnings and counts as an HTML fragment for a notebook."""
    return page("notebook.html", report=report)


def page(template: str, **context: Any) -> str:
    """Return a template rendered to HTML with values escaped; a missing variable raises an error."""
    return _environment().get_template(template).render(**context)


@cache
def report_code() -> str:
    """Return a fingerprint of the code and templates that make a report, cached.

    Where it differs, a rebuilt report may look different.
    """
    texts = [(Path(__file__).parent / "templates" / name).read_text("utf-8") for name in (TEMPLATE, SUMMARY)]
    return fingerprint_of(*map(code_of, ("tasks.report.report", "tasks.release.examples", "tasks.report.page")), texts)


@cache
def _environment() -> Environment:
    """Return the Jinja environment of the report's templates."""
    environment = Environment(
        bytecode_cache=template_cache(Path(__file__)),
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        # Names of columns are free text from outside: all is escaped that does not say it is markup.
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "percent": percent, "counted": counted, "size": size, "date": date_text}
    return environment


def _finalized(value: object) -> object:
    """Return a value as a page shows it: text without control characters and direction marks."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _charts(report: Report) -> dict[str, str]:
    """Draw all charts of a report, by name."""
    drawn = map_of_report(report)
    broad, slim = (lattice_charts(drawn, width) if drawn else ("", "") for width in (BROAD, SLIM))
    return {
        "losses": loss_chart(report, percent),
        "sizes": size_chart(report, percent),
        "risks": risk_chart(report, percent),
        "heights": broad[0],
        "slim_heights": slim[0],
        "nodes": broad[1],
        "slim_nodes": slim[1],
    }


def number(value: float | None) -> str:
    """Return a count with thousands separators, a float with four decimals, or a dash for None."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


def percent(share: float | None) -> str:
    """Return a share as text in percent, never rounded to 0 or 100 %; a dash for None."""
    if share is None:
        return "–"
    if 0 < share < SMALLEST_SHARE:
        return "< 0.01 %"
    if 1 - SMALLEST_SHARE < share < 1:
        return "> 99.99 %"
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


def size(memory: int) -> str:
    """Return a number of bytes as text in MB or GB (decimal)."""
    return f"{memory / 1e9:,.2f} GB" if memory >= 1e9 else f"{memory / 1e6:,.0f} MB"
