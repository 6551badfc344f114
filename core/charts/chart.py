"""What charts of all kinds show, and what they have in common: headings, looks of series, marks, axes and a legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from core.charts.picture import SLOTS, Picture, paint, text, width_of

WIDE = 12.0
"""Positive figures that are so many times apart are drawn on a logarithmic scale."""


@dataclass(frozen=True)
class Scale:
    """Places figures between 0 and 1.

    Attributes:
        low: Figure at 0.
        high: Figure at 1.
        ticks: Figures that are marked.
        log: Whether the scale is logarithmic.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def relative_position(self, value: float) -> float:
        """Returns where a figure lies, from 0 to 1 for those between the ends."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)


def scale_of(values: Sequence[float]) -> Scale:
    """Returns the scale for some figures: from 0, or logarithmic where all are positive and far apart."""
    known = [value for value in values if value is not None]
    high = max(known, default=1.0)
    if known and min(known) > 0 and high / min(known) >= WIDE:
        return logarithmic(min(known), high)
    return linear(high)


def linear(high: float, wanted: int = 5) -> Scale:
    """Returns a scale from 0 to a round number at or above ``high``, in about as many steps as are wanted."""
    if high <= 0:
        return Scale(0.0, 1.0, (0.0, 1.0))
    rough = high / wanted
    unit = 10.0 ** floor(log10(rough))
    # Products of round numbers, so that rounding shows nowhere.
    step = next(times for times in (1, 2, 2.5, 5, 10) if times * unit >= rough * (1 - 1e-9)) * unit
    count = ceil(high / step - 1e-9)
    return Scale(0.0, step * count, tuple(float(f"{step * number:.12g}") for number in range(count + 1)))


def logarithmic(low: float, high: float) -> Scale:
    """Returns a scale over whole powers of ten, or from and to 1, 2 or 5 times such where there are few of them."""
    ends = floor(log10(low)), ceil(log10(high))
    marks = [times * 10.0**power for power in range(ends[0], ends[1] + 1) for times in (1, 2, 5)]
    first = max((mark for mark in marks if mark <= low * (1 + 1e-9)), default=marks[0])
    last = min((mark for mark in marks if mark >= high * (1 - 1e-9)), default=marks[-1])
    within = [mark for mark in marks if first <= mark <= last]
    decades = [mark for mark in within if abs(log10(mark) - round(log10(mark))) < 1e-9]
    return Scale(first, last, tuple(within if len(within) <= 7 else decades[:: len(decades) // 8 + 1]), log=True)


def short(value: float) -> str:
    """Returns a figure in few characters: 1.5 M, 20 k, 0.25."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= unit:
            return f"{value / (1e3 if name == ' k' else unit):.3g}{name}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


WIDTH, HEIGHT = 480, 310
LEFT, TOP, BOTTOM = 58, 52, 40
SHAPES, HOLLOW = 7, 5
SWATCH, LEGEND_GAP = 12, 18


@dataclass(frozen=True)
class ChartStyle:
    """How a series looks.

    Attributes:
        slot: Which colour, and which shape of marks.
        quiet: Whether it is what others are compared with: pale bars, dashed lines, hollow marks.
        strength: From 0 to 1, for bars of one colour that are steps of one thing.
    """

    slot: int
    quiet: bool = False
    strength: float = 1.0

    @property
    def colour(self) -> str:
        """Its name in ``COLOURS``."""
        return f"series-{self.slot % SLOTS}"

    def bar(self) -> str:
        """Returns the attributes of a bar."""
        if self.quiet:
            return paint("quiet", "edge") + " stroke-width='0.7'"
        faded = f" fill-opacity='{self.strength:.2f}'" if self.strength < 1 else ""
        return paint(self.colour, self.colour) + f"{faded} stroke-width='0.7'"


@dataclass(frozen=True)
class Chart:
    """What a chart shows.

    Attributes:
        title: What is measured.
        note: Which way is better, and how it is measured, in few words.
        series: Figures by name; None where there is none.
        spelt: How a figure is written.
        styles: How series look; those that are not in it take colours in turn.
        missing: What is written for a figure that there is not.
    """

    title: str
    note: str
    series: Mapping[str, Sequence[float | None]]
    spelt: Callable[[float], str] = short
    styles: Mapping[str, ChartStyle] = field(default_factory=dict)
    missing: str = "not measured"

    @property
    def known_figures(self) -> list[float]:
        """All figures that there are."""
        return [value for values in self.series.values() for value in values if value is not None]

    @property
    def named(self) -> list[tuple[str, ChartStyle, Sequence[float | None]]]:
        """Every series: its name, its look, its figures."""
        return [(name, self.styles.get(name, ChartStyle(number)), values) for number, (name, values) in enumerate(self.series.items())]

    def heading(self) -> list[str]:
        """Draws title and note."""
        return [text(8, 18, self.title, size=14, bold=True), text(8, 34, self.note, "soft", size=11)]

    @property
    def heading_width(self) -> float:
        """Of what :meth:`heading` draws."""
        return 16 + max(width_of(self.title, 14), width_of(self.note, 11))


@dataclass(frozen=True)
class Axes:
    """A height for every figure, and names of places below.

    Attributes:
        scale: Of the figures.
        right, top, bottom: Ends of the area, in pixels; its left end is ``LEFT``.
    """

    scale: Scale
    right: float
    top: float
    bottom: float

    def height(self, value: float) -> float:
        """Returns the y of a figure."""
        return self.bottom - (self.bottom - self.top) * self.scale.relative_position(value)

    def draw(self, chart: Chart, places: Mapping[str, float], axis: str) -> list[str]:
        """Draws the ticks of the figures, the names of places at their x, and what the places are."""
        parts = []
        for tick in self.scale.ticks:
            y = self.height(tick)
            parts.append(f"<line x1='{LEFT}' x2='{self.right:g}' y1='{y:.1f}' y2='{y:.1f}' {paint(stroke='grid')}/>")
            parts.append(text(LEFT - 6, y + 4, chart.spelt(tick), "soft", "end", 11))
        parts += [text(x, self.bottom + 16, name, "soft", "middle", 11) for name, x in places.items()]
        how = f"{axis} (vertical scale: logarithmic)" if self.scale.log else axis
        return [*parts, text((LEFT + self.right) / 2, self.bottom + 32, how, "soft", "middle", 11)]


def mark(look: ChartStyle, x: float, y: float) -> str:
    """Draws a mark; its shape tells series apart where colours do not."""
    shapes = (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4'",
        f"<rect x='{x - 3.6:.1f}' y='{y - 3.6:.1f}' width='7.2' height='7.2'",
        f"<path d='M{x:.1f} {y - 5:.1f}l4.6 8.4h-9.2z'",
        f"<path d='M{x:.1f} {y - 5.2:.1f}l4.6 5.2l-4.6 5.2l-4.6 -5.2z'",
        f"<path d='M{x:.1f} {y + 5:.1f}l4.6 -8.4h-9.2z'",
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.6'",
        f"<rect x='{x - 3.2:.1f}' y='{y - 3.2:.1f}' width='6.4' height='6.4'",
    )
    hollow = look.quiet or look.slot % SHAPES >= HOLLOW
    return f"{shapes[look.slot % SHAPES]} {paint('paper' if hollow else look.colour, look.colour)} stroke-width='1.6'/>"


def legend(chart: Chart, x: float, y: float) -> tuple[list[str], float]:
    """Draws a swatch and a name per series, in one row from ``x``; returns them and where the row ends."""
    parts = []
    for name, look, _ in chart.named:
        parts.append(f"<rect x='{x:.1f}' y='{y - 10:.1f}' width='{SWATCH}' height='{SWATCH}' rx='2' {look.bar()}/>")
        parts.append(text(x + SWATCH + 6, y, name))
        x += SWATCH + 6 + width_of(name) + LEGEND_GAP
    return parts, x


BAR, BETWEEN_BARS, BETWEEN_ROWS = 14, 2, 11
LONGEST = 24
"""Letters of a name that are shown; the whole one stands in the table and under the pointer."""

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
