"""Charts of bars: lying ones with names on the left, and standing ones in groups."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from core.charts.chart import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, Axes, Chart, ChartStyle, legend, linear, logarithmic
from core.charts.picture import Picture, paint, text, width_of

BAR, BETWEEN_BARS, BETWEEN_ROWS = 14, 2, 11
LONGEST = 24
"""Letters of a name that are shown; the whole one stands in the table and under the pointer."""
WIDE, APART = 32, 22
"""Width of a standing bar with its figure above it, and what is between groups."""
LEGEND = 22


def bars(chart: Chart, names: Sequence[str], *, most: float | None = None, chosen: str | None = None, headed: bool = True) -> Picture:
    """Returns a group of lying bars per name, one bar per series, each with its figure beside it.

    Args:
        chart: What is shown; a figure per series and name.
        names: Of the groups, from top to bottom.
        most: The figure of the longest bar there can be; the greatest one if left out.
        chosen: The one that is emphasised.
        headed: Whether title and note are drawn; a page may have said them.
    """
    full = most or max(chart.known_figures, default=0.0) or 1.0
    written = max([width_of(chart.missing), *(width_of(chart.spelt(value)) for value in chart.known_figures)])
    left = 16 + max((width_of(_cut(name)) for name in names), default=0)
    long = max(WIDTH - left - written - 16, 80)
    top = TOP + 4 if headed else 6
    rows, parts = len(chart.series) * (BAR + BETWEEN_BARS) - BETWEEN_BARS, chart.heading() if headed else []
    for place, name in enumerate(names):
        y = top + place * (rows + BETWEEN_ROWS)
        parts.append(_named(left - 8, y + rows / 2 + 4, name, bold=name == chosen))
        for number, (_, look, values) in enumerate(chart.named):
            shown = ChartStyle(look.slot, quiet=name != chosen) if chosen is not None else look
            parts += _bar(chart, left, y + number * (BAR + BETWEEN_BARS), values[place], long / full, shown)
    bottom = top + len(names) * (rows + BETWEEN_ROWS)
    parts.append(f"<line x1='{left:.1f}' x2='{left:.1f}' y1='{top - 4}' y2='{bottom - BETWEEN_ROWS + 4}' {paint(stroke='edge')}/>")
    if len(chart.series) > 1:
        parts += legend(chart, left, bottom + 12)[0]
        bottom += LEGEND
    return Picture(chart.title, chart.note, max(WIDTH, left + long + written + 16), bottom, "".join(parts))


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _named(x: float, y: float, name: str, *, bold: bool) -> str:
    words = text(x, y, _cut(name), anchor="end", bold=bold)
    return words if len(name) <= LONGEST else f"<g><title>{escape(name)}</title>{words}</g>"


def _bar(chart: Chart, left: float, y: float, value: float | None, unit: float, look: ChartStyle) -> list[str]:
    if value is None:
        return [text(left + 6, y + BAR - 3, chart.missing, "soft")] if chart.missing else []
    width = max(value * unit, 0.0)
    # A share that is not nothing is seen.
    shown = max(width, 1.0) if value else 0.0
    bar = f"<rect x='{left:.1f}' y='{y:.1f}' width='{shown:.1f}' height='{BAR}' rx='1.5' {look.bar()}/>"
    return [*([bar] if shown else []), text(left + shown + 6, y + BAR - 3, chart.spelt(value))]


def grouped_bars(chart: Chart, places: Sequence[str], axis: str, *, base: float | None = None) -> Picture:
    """Returns standing bars, a group per place and in it a bar per series, each with its figure above it.

    Args:
        chart: What is shown; as many figures per series as there are places.
        places: Names of the groups.
        axis: What they are.
        base: Where bars begin, on a logarithmic scale, for ratios 1: what is lower hangs down. Without it they stand on 0.
    """
    signs, end = legend(chart, LEFT, TOP + 6)
    group = len(chart.series) * WIDE
    area = max(len(places) * (group + APART), WIDTH - LEFT - 24, end - LEFT, chart.heading_width - LEFT)
    width, top = LEFT + area + 12, TOP + 30
    scale = (
        linear(max(chart.known_figures, default=1.0))
        if base is None
        else logarithmic(min([*chart.known_figures, base]), max([*chart.known_figures, 2 * base]))
    )
    axes = Axes(scale, LEFT + area, top, HEIGHT - BOTTOM)
    middles = {name: LEFT + area * (place + 0.5) / len(places) for place, name in enumerate(places)}
    parts = [*chart.heading(), *signs, *axes.draw(chart, middles, axis)]
    for number, (_, look, values) in enumerate(chart.named):
        for middle, value in zip(middles.values(), values, strict=True):
            if value is not None:
                parts += _standing(chart, axes, middle - group / 2 + number * WIDE, value, base or scale.low, look)
    ground = axes.height(base or scale.low)
    parts.append(f"<line x1='{LEFT}' x2='{axes.right:g}' y1='{ground:.1f}' y2='{ground:.1f}' {paint(stroke='edge')}/>")
    return Picture(chart.title, chart.note, width, HEIGHT, "".join(parts))


def _standing(chart: Chart, axes: Axes, x: float, value: float, base: float, look: ChartStyle) -> list[str]:
    high, low = sorted((axes.height(value), axes.height(base)))
    bar = f"<rect x='{x + 2:.1f}' y='{high:.1f}' width='{WIDE - 4}' height='{low - high:.1f}' {look.bar()}/>"
    return [bar, text(x + WIDE / 2, high - 4, chart.spelt(value), anchor="middle", size=10, halo=True)]
