"""Scatter and line charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from core.charts.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Axes,
    Chart,
    ChartStyle,
    Picture,
    Scale,
    draw_mark,
    paint,
    scale_of,
    short_figure,
    text,
    width_of,
)

RIGHT = 24


@dataclass(frozen=True)
class ChartPoint:
    """Point of a scatter chart: position, name, style, emphasis and link."""

    across: float
    up: float
    name: str
    style: ChartStyle
    chosen: bool = False
    leads_to: str = ""


def scatter_chart(title: str, points: Sequence[ChartPoint], axis: str, spelt: Callable[[float], str]) -> Picture:
    """Return a scatter chart of points with their GCP upwards.

    Args:
        title: What is shown.
        axis: What the figure across is.
        spelt: Writes a figure across.
    """
    note = "GCP upwards: less is better, and so is further left"
    chart = Chart(title, note, {title: [one.up for one in points]}, short_figure)
    across = scale_of([0.0, *(one.across for one in points)])
    axes = Axes(scale_of([0.0, *chart.known_figures]), WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)
    width = max(WIDTH, chart.heading_width)
    parts = [*chart.heading(), *axes.draw(chart, {spelt(tick): _x(across, tick) for tick in across.ticks}, axis)]
    for one in points:
        x, y = _x(across, one.across), axes.height(one.up)
        drawn = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='9' {paint(stroke='chosen')} stroke-width='2.5'/>"] if one.chosen else []
        drawn.append(draw_mark(one.style, x, y))
        drawn.append(text(x + 7, y - 6, one.name, "chosen" if one.chosen else "soft", size=10, bold=one.chosen, halo=True))
        # A finger needs more room than a mark has.
        room = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='12' fill='none' pointer-events='all'/>"
        parts += [f"<a href='{escape(one.leads_to)}'>", *drawn, room, "</a>"] if one.leads_to else drawn
    return Picture(title, note, width, HEIGHT, "".join(parts))


def _x(scale: Scale, value: float) -> float:
    """Return the x coordinate of a figure in a scatter chart."""
    return LEFT + 8 + (WIDTH - RIGHT - LEFT - 16) * scale.relative_position(value)


LINES_RIGHT, LABEL_GAP = 112, 14
DASHED = " stroke-dasharray='5 4'"


def line_chart(chart: Chart, places: Sequence[str], axis: str, scale: Scale | None = None) -> Picture:
    """Return a line chart: a line per series over categories such as values of k.

    Args:
        chart: What is shown; as many figures per series as there are places.
        places: Their names.
        axis: What they are.
        scale: Of the figures; chosen by them if left out.
    """
    scale = scale or scale_of(chart.known_figures)
    right = WIDTH - LINES_RIGHT
    width = max(right + 30 + max(map(width_of, chart.series)), chart.heading_width)
    # Names need room of their own, one below the other.
    height = max(HEIGHT, TOP + BOTTOM + LABEL_GAP * len(chart.series))
    axes = Axes(scale, right, TOP, height - BOTTOM)
    across = [_across(place, len(places)) for place in range(len(places))]
    parts = [*chart.heading(), *axes.draw(chart, dict(zip(places, across, strict=True)), axis)]
    for _, look, values in chart.named:
        parts += _line(look, [None if value is None else (x, axes.height(value)) for x, value in zip(across, values, strict=True)])
    return Picture(chart.title, chart.note, width, height, "".join([*parts, *_names(chart, axes)]))


def _across(place: int, places: int) -> float:
    """Return the x coordinate of a category in a line chart."""
    share = 0.5 if places == 1 else 0.04 + 0.92 * place / (places - 1)
    return LEFT + (WIDTH - LINES_RIGHT - LEFT) * share


def _line(look: ChartStyle, points: Sequence[tuple[float, float] | None]) -> list[str]:
    """Draw the points of a line; neighbouring points are joined, missing points leave gaps."""
    path, pen = "", "M"
    for point in points:
        path += "" if point is None else f"{pen}{point[0]:.1f} {point[1]:.1f}"
        pen = "M" if point is None else "L"
    marks = [draw_mark(look, *point) for point in points if point is not None]
    joined = f"<path d='{path}' {paint(stroke=look.colour)} stroke-width='2'{DASHED if look.quiet else ''}/>"
    return [joined, *marks] if marks else []


def _names(chart: Chart, axes: Axes) -> list[str]:
    """Draw the names of lines at their right ends, far enough apart to be read."""
    ends = []
    for number, (name, look, values) in enumerate(chart.named):
        known = [value for value in values if value is not None]
        if known:
            ends.append((axes.height(known[-1]), number, name, look))
    placed: list[tuple[float, str, ChartStyle]] = []
    for y, _, name, look in sorted(ends, key=lambda end: end[:2]):
        placed.append((max(y, placed[-1][0] + LABEL_GAP) if placed else y, name, look))
    parts: list[str] = []
    # What was pushed off the bottom moves up again, and pushes what is above it.
    ceiling = axes.bottom + 4
    for y, name, look in reversed(placed):
        ceiling = min(y, ceiling)
        parts += [draw_mark(look, axes.right + 12, ceiling), text(axes.right + 22, ceiling + 4, name)]
        ceiling -= LABEL_GAP
    return parts
