"""The HTML page that compares methods: one file without scripts or network access."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from core.charts.chart import DARK_STYLE, Chart, bar_chart, short_figure
from core.charts.scatter import line_chart
from schemas.job.method import METHODS
from schemas.release.method_comparison import Figures, MethodComparison
from tasks.report.page import number, page, percent, size
from tasks.report.terms import UnitWording

TEMPLATE = "methods.html"


class Measured(NamedTuple):
    """A figure of the comparison, with its title and formats.

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
    of: Callable[[Figures], float | int | None]
    spelt: Callable[[float], str]
    marked: Callable[[float], str]
    pictured: bool = True


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if value < 100 else f"{value:,.0f} s"


def compared_figures(threshold: float, unit: UnitWording) -> tuple[Measured, ...]:
    """Return the definitions of the compared figures, in display order."""
    several = unit.several
    return (
        Measured("GCP", "coarsening of what is published: 0 none, 1 all; less is better", attrgetter("gcp"), number, short_figure),
        Measured(
            "GCP of values held",
            "as if classes published just the values in them; less is better",
            attrgetter("gcp_values"),
            number,
            short_figure,
        ),
        Measured("DM", "sum of squared class sizes, and s·N; less is better", attrgetter("dm"), number, short_figure),
        Measured(
            "C_avg", f"{several} per class in units of k; 1 is the finest", attrgetter("c_avg"), lambda value: f"{value:,.2f}", short_figure
        ),
        Measured("Records kept", "in classes; more is better", attrgetter("share_in_classes"), percent, _share),
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
        Measured("Suppressed", "records", attrgetter("suppressed"), number, short_figure, pictured=False),
        Measured("Classes", "", attrgetter("classes"), number, short_figure, pictured=False),
    )


HIGHEST = {False: "of a record whose person is known to be in the data", True: "of a person who is known to be in the data"}


def _memory(value: float) -> str:
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"


def unit_of(comparison: MethodComparison) -> UnitWording:
    """Return the wording for the unit that a comparison's k counts."""
    return UnitWording(comparison.unit, comparison.repeats)


def charts(comparison: MethodComparison) -> list[str]:
    """Draw a chart per figure: bars for one k, a line per method for several."""
    found = {(run.method, run.k): run.figures for run in comparison.runs}
    drawn = []
    for one in compared_figures(comparison.threshold, unit_of(comparison)):
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
    """Render the HTML page of a comparison; equal comparisons give equal pages."""
    return page(
        TEMPLATE,
        comparison=comparison,
        columns=compared_figures(comparison.threshold, unit_of(comparison)),
        unit=unit_of(comparison),
        charts=charts(comparison),
        dark=DARK_STYLE,
        words={name: method.words for name, method in METHODS.items()},
        chosen={one.k: one.method for one in comparison.advice},
    )
