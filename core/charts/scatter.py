"""Charts of single points by two figures, each with a number of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from core.charts.chart import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, Axes, Chart, ChartStyle, Scale, mark, scale_of, short
from core.charts.picture import Picture, paint, text

RIGHT = 24


@dataclass(frozen=True)
class ChartPoint:
    """A point, what stands beside it, whether it is marked as one to look at, and to which place of its page it leads."""

    across: float
    up: float
    name: str
    style: ChartStyle
    chosen: bool = False
    leads_to: str = ""


def scatter(title: str, note: str, points: Sequence[ChartPoint], axis: str, spelt: Callable[[float], str] = short) -> Picture:
    """Returns points over two figures.

    Args:
        title: What is shown.
        note: How it is read.
        points: The points.
        axis: What the figure across is.
        spelt: Writes a figure across.
    """
    chart = Chart(title, note, {title: [one.up for one in points]}, short)
    across = scale_of([0.0, *(one.across for one in points)])
    axes = Axes(scale_of([0.0, *chart.known_figures]), WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)
    width = max(WIDTH, chart.heading_width)
    parts = [*chart.heading(), *axes.draw(chart, {spelt(tick): _x(across, tick) for tick in across.ticks}, axis)]
    for one in points:
        x, y = _x(across, one.across), axes.height(one.up)
        drawn = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='9' {paint(stroke='chosen')} stroke-width='2.5'/>"] if one.chosen else []
        drawn.append(mark(one.style, x, y))
        drawn.append(text(x + 7, y - 6, one.name, "chosen" if one.chosen else "soft", size=10, bold=one.chosen, halo=True))
        # A finger needs more room than a mark has.
        room = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='12' fill='none' pointer-events='all'/>"
        parts += [f"<a href='{escape(one.leads_to)}'>", *drawn, room, "</a>"] if one.leads_to else drawn
    return Picture(title, note, width, HEIGHT, "".join(parts))


def _x(scale: Scale, value: float) -> float:
    return LEFT + 8 + (WIDTH - RIGHT - LEFT - 16) * scale.relative_position(value)
