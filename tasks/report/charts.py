"""The charts of a report, as SVG that stands inside its page; its style sheet colours them on dark paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from core.charts.bars import bars
from core.charts.chart import Chart, ChartStyle
from core.lattice.map import LatticeMap
from core.lattice.page_picture import heights_within, nodes_within
from schemas.release.report import Report, RiskFigure
from schemas.release.terms import Band

SOURCE, RELEASE = "Source", "Release"
# By name, so that the release looks the same with and without a source beside it.
CHART_STYLES = {SOURCE: ChartStyle(0, quiet=True), RELEASE: ChartStyle(0)}
TABLE_NOTE = "The table below says the same."


def size_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns the share of records or persons by the size of their class, before and after."""
    rows = size_rows(report)
    sides = {SOURCE: [source for _, source, _ in rows], RELEASE: [after for _, _, after in rows]}
    # A side that was not counted is left out: drawn, it would look like one that has nothing.
    series = {side: _shares(bands) for side, bands in sides.items() if any(bands)}
    unit = report.came_out.unit
    return _shares_chart(f"Share of {unit}s by the number of {unit}s in their class", [label for label, _, _ in rows], series, percent)


def size_rows(report: Report) -> list[tuple[str, Band | None, Band | None]]:
    """Returns every band of class sizes: its label, and what the source and the release have of it."""
    before, after = ({band.least: band for band in bands} for bands in (report.came_out.source_bands, report.came_out.bands))
    starts = sorted(before.keys() | after.keys())
    # The last band of one side is open only if it is the last of all.
    last = (after if starts[-1] in after else before)[starts[-1]] if starts else None
    ends = [start - 1 for start in starts[1:]] + [last.most if last else None]
    return [(_range(start, end), before.get(start), after.get(start)) for start, end in zip(starts, ends, strict=True)]


def _shares(bands: Sequence[Band | None]) -> list[float | None]:
    total = sum(band.records for band in bands if band)
    return [band.records / total if band and band.records else None for band in bands]


def _range(least: int, most: int | None) -> str:
    return f"{least:,}" + (" or more" if most is None else "" if most == least else f" to {most:,}")


def risk_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns the risks that are shares, before and after; empty where none was counted."""
    shares = [risk for risk in report.risk if risk.share]
    sides: dict[str, Callable[[RiskFigure], float | None]] = {SOURCE: lambda risk: risk.before, RELEASE: lambda risk: risk.after}
    series = {side: [value(risk) for risk in shares] for side, value in sides.items()}
    counted = {side: values for side, values in series.items() if any(value is not None for value in values)}
    return _shares_chart("Risk of re-identification", [risk.title for risk in shares], counted, percent) if counted else ""


def loss_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns what each quasi-identifier lost; empty where it was not counted."""
    known = [qid for qid in report.qids if qid.ncp is not None]
    return (
        _shares_chart("Loss of each quasi-identifier (NCP)", [qid.name for qid in known], {RELEASE: [q.ncp for q in known]}, percent)
        if known
        else ""
    )


def _shares_chart(
    title: str, names: Sequence[str], series: Mapping[str, Sequence[float | None]], percent: Callable[[float | None], str]
) -> str:
    """Returns lying bars from 0 to 100 %, under the heading that the page has for them."""
    # Always up to 100 %, so that the charts of two releases can be held against each other.
    chart = Chart(title, TABLE_NOTE, series, percent, CHART_STYLES, missing="")
    return bars(chart, names, most=1.0, headed=False).inline()


def lattice_charts(drawn: LatticeMap, width: int) -> tuple[str, str]:
    """Returns the pictures of the lattice, its heights and its nodes around the chosen one, at most so many pixels wide."""
    return heights_within(drawn, width).inline("lattice"), nodes_within(drawn, width).inline("lattice")
