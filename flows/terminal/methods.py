"""Terminal output of a comparison of methods, as Rich tables that fit 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flows.terminal.screen import NameTable
from schemas.errors.base import counted
from schemas.release.method_comparison import Figures, MethodComparison
from tasks.report.page import percent
from tasks.utility.methods import unit_of


def methods_summary(comparison: MethodComparison, folder: str) -> RenderableType:
    """Return a comparison of methods as a table per k, with the advice.

    Args:
        comparison: The figures.
        folder: Where they lie.
    """
    unit = unit_of(comparison)
    whose = " k counts different persons." if unit.of_persons else ""
    parts: list[RenderableType] = [
        Text(f"{counted(comparison.records, comparison.counts)}, at most {comparison.limit} of them suppressed.{whose}")
    ]
    if said := unit.warning():
        parts.append(Text(f"Warning: {said}"))
    for one in comparison.advice:
        parts += ["", Text(f"k = {one.k:,}", "bold"), _table(comparison, one.k, one.method), Text(one.verdict)]
        parts += [Text(f"- {sentence}") for sentence in one.others]
    if len(comparison.advice) > 1:
        parts += ["", Text(comparison.summary)]
    return Group(*parts, "", Text(f"Figures and pictures: {folder}/methods.html (and .json, .csv)"))


def _table(comparison: MethodComparison, k: int, chosen: str | None) -> Table:
    """Return the table of methods at one k."""
    table = NameTable("method", box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("GCP", "DM", "C_avg", "kept", "mean risk", f"> {comparison.threshold:g}", "CPU s", "MB"):
        table.add_column(name, justify="right")
    for run in comparison.runs:
        if run.k == k:
            table.add_row(Text(run.method, "bold" if run.method == chosen else ""), *(_row(run.figures) if run.figures else ["–"] * 8))
    return table


def _row(one: Figures) -> list[str]:
    """Return the cells of one method's figures."""
    return [
        f"{one.gcp:.4f}", _large(one.dm), f"{one.c_avg:,.2f}", percent(one.share_in_classes), f"{one.prosecutor_mean:.4f}",
        percent(one.share_above), f"{one.cpu:,.1f}", f"{one.peak / 1e6:,.0f}",
    ]  # fmt: skip


def _large(value: int) -> str:
    """Return a number with thousands separators, or in short form from 10 million on."""
    return f"{value:,}" if value < 10_000_000 else f"{value:.3g}"
