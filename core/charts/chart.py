"""Pictures as SVG: colours, text, scales, axes, marks and legends of all charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from unicodedata import east_asian_width

from schemas.errors.base import printable

SLOTS = 8
"""Series that have a colour of their own; further ones begin anew."""

# After Okabe and Ito, darker on light paper and lighter on dark; marks of other shapes say the same.
SERIES = (
    ("#0072B2", "#56B4E9"),
    ("#C44E00", "#FF8F50"),
    ("#007A5A", "#2FC99A"),
    ("#A8487F", "#E79CC9"),
    ("#8A6500", "#EFC447"),
    ("#444C55", "#C3CBD3"),
    ("#2A8CC4", "#9AD2F5"),
    ("#6B4FA3", "#B9A4E8"),
)

COLOURS = {
    "paper": ("#FFFFFF", "#12171D"),
    "ink": ("#18212B", "#E8EDF2"),
    "soft": ("#4D5B69", "#A9B6C3"),
    "grid": ("#D3DAE1", "#34404C"),
    "edge": ("#6B7783", "#8795A3"),
    "quiet": ("#B9C6D3", "#55626F"),
    "chosen": ("#B34700", "#FF9D5C"),
    "fails": ("#D9D9D9", "#3A424B"),
    "passes": ("#00734F", "#2FA37A"),
    "cut": ("#B3DDF2", "#1D4A66"),
    "unexamined": ("#FFFFFF", "#12171D"),
    "on-fails": ("#444444", "#D3DAE1"),
    "on-passes": ("#FFFFFF", "#06140E"),
    "on-cut": ("#0B4F76", "#CFE9FA"),
    "on-unexamined": ("#333333", "#E8EDF2"),
    **{f"series-{slot}": pair for slot, pair in enumerate(SERIES)},
}
"""By name: the colour on light paper, the colour on dark. Text has a contrast of 4.5 or more on its ground, marks of 3 or more."""

DARK_STYLE = "".join(f".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}" for name, (_, dark) in COLOURS.items())
"""What changes on dark paper, as CSS. A page that holds pictures puts it under the media query of its own dark colours."""


def paint(fill: str | None = None, stroke: str | None = None) -> str:
    """Return the SVG attributes for a fill and a stroke named in ``COLOURS``; no fill without a name."""
    classes = " ".join(f"{kind}-{name}" for kind, name in (("f", fill), ("s", stroke)) if name)
    given = f"fill='{COLOURS[fill][0]}'" if fill else "fill='none'"
    return f"class='{classes}' {given}" + (f" stroke='{COLOURS[stroke][0]}'" if stroke else "")


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
SIZE = 12
WIDE_LETTERS = frozenset("WF")
LETTER = 0.58
"""Width of a letter in units of the font's size, rather too much than too little: no text may run into another."""
FIT_PAPER = "@media print{:root{width:100%;height:auto}}"
"""A page of paper cannot be scrolled."""


@dataclass(frozen=True)
class Picture:
    """Drawn picture as SVG elements, with a title and a text for people who cannot see it.

    Attributes:
        title: What it shows, read out and shown under the pointer.
        alt_text: How to read it, or where its figures stand as text.
        width, height: In pixels of a screen; a page may scale it.
    """

    title: str
    alt_text: str
    width: float
    height: float
    body: str

    def inline(self, kind: str = "chart") -> str:
        """Return the picture as an SVG element for a page whose style sheet holds ``DARK_STYLE``.

        ``kind`` is its CSS class on the page.
        """
        return self._svg(f" class='{kind}'", self.body)

    def alone(self) -> str:
        """Return the picture as an SVG file with a background and its own colours for light and dark."""
        style = f"<style>@media screen and (prefers-color-scheme: dark){{{DARK_STYLE}}}{FIT_PAPER}</style>"
        paper = f"<rect width='100%' height='100%' {paint('paper')}/>"
        return self._svg(" xmlns='http://www.w3.org/2000/svg'", style + paper + self.body) + "\n"

    def _svg(self, attributes: str, body: str) -> str:
        """Return the SVG element with the given attributes and body."""
        size = f"viewBox='0 0 {self.width:g} {self.height:g}' width='{self.width:g}' height='{self.height:g}'"
        said = f"<title>{svg_words(self.title)}</title>" + (f"<desc>{svg_words(self.alt_text)}</desc>" if self.alt_text else "")
        frame = f"<svg{attributes} {size} role='img' font-family=\"{FONT}\" font-size='{SIZE}'>"
        return f"{frame}{said}{body}</svg>"


def svg_words(words: str) -> str:
    """Return words escaped for SVG, with control characters, which no XML may have, as escapes."""
    return escape(printable(words, lines=False))


def text(
    x: float, y: float, words: str, colour: str = "ink", anchor: str = "start", size: int = SIZE, *, bold: bool = False, halo: bool = False
) -> str:
    """Return an SVG text at ``x`` on the base line ``y``.

    ``anchor`` says whether its start, middle or end is at ``x``. A halo separates it from lines behind it.
    """
    weight = " font-weight='600'" if bold else ""
    look = f"{paint(colour, 'paper')} stroke-width='3' paint-order='stroke'" if halo else paint(colour)
    return f"<text x='{x:.1f}' y='{y:.1f}' {look} text-anchor='{anchor}' font-size='{size}'{weight}>{svg_words(words)}</text>"


def width_of(words: str, size: int = SIZE) -> float:
    """Return the approximate width of a text in pixels, rather too much than too little."""
    return size * LETTER * sum(2 if east_asian_width(letter) in WIDE_LETTERS else 1 for letter in words)


WIDE = 12.0
"""Positive figures that are so many times apart are drawn on a logarithmic scale."""


@dataclass(frozen=True)
class Scale:
    """Linear or logarithmic scale that maps figures to positions between 0 and 1.

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
        """Return the position of a figure on the scale, 0 and 1 being the ends."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)


def scale_of(values: Sequence[float]) -> Scale:
    """Return a scale for figures: from 0, or logarithmic where all are positive and far apart."""
    known = [value for value in values if value is not None]
    high = max(known, default=1.0)
    if known and min(known) > 0 and high / min(known) >= WIDE:
        return logarithmic_scale(min(known), high)
    return linear_scale(high)


def linear_scale(high: float) -> Scale:
    """Return a linear scale from 0 to a round number at or above ``high``, with about five steps."""
    if high <= 0:
        return Scale(0.0, 1.0, (0.0, 1.0))
    rough = high / 5
    unit = 10.0 ** floor(log10(rough))
    # Products of round numbers, so that rounding shows nowhere.
    step = next(times for times in (1, 2, 2.5, 5, 10) if times * unit >= rough * (1 - 1e-9)) * unit
    count = ceil(high / step - 1e-9)
    return Scale(0.0, step * count, tuple(float(f"{step * number:.12g}") for number in range(count + 1)))


def logarithmic_scale(low: float, high: float) -> Scale:
    """Return a logarithmic scale from and to 1, 2 or 5 times a power of ten.

    All such figures are marked, or powers of ten alone where these would be many.
    """
    ends = floor(log10(low)), ceil(log10(high))
    marks = [times * 10.0**power for power in range(ends[0], ends[1] + 1) for times in (1, 2, 5)]
    first = max((mark for mark in marks if mark <= low * (1 + 1e-9)), default=marks[0])
    last = min((mark for mark in marks if mark >= high * (1 - 1e-9)), default=marks[-1])
    within = [mark for mark in marks if first <= mark <= last]
    decades = [mark for mark in within if abs(log10(mark) - round(log10(mark))) < 1e-9]
    return Scale(first, last, tuple(within if len(within) <= 7 else decades[:: len(decades) // 8 + 1]), log=True)


def short_figure(value: float) -> str:
    """Return a figure in few characters: 1.5 M, 20 k, 0.25."""
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
    """Look of a series: colour, shape of marks and strength.

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
        """Name of the colour in ``COLOURS``."""
        return f"series-{self.slot % SLOTS}"

    def bar(self) -> str:
        """Return the SVG attributes of a bar in this style."""
        if self.quiet:
            return paint("quiet", "edge") + " stroke-width='0.7'"
        faded = f" fill-opacity='{self.strength:.2f}'" if self.strength < 1 else ""
        return paint(self.colour, self.colour) + f"{faded} stroke-width='0.7'"


@dataclass(frozen=True)
class Chart:
    """Contents of a chart: title, note, series of figures and their styles.

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
    spelt: Callable[[float], str] = short_figure
    styles: Mapping[str, ChartStyle] = field(default_factory=dict)
    missing: str = "not measured"

    @property
    def known_figures(self) -> list[float]:
        """All figures of the chart that are not missing."""
        return [value for values in self.series.values() for value in values if value is not None]

    @property
    def named(self) -> list[tuple[str, ChartStyle, Sequence[float | None]]]:
        """Name, style and figures of every series."""
        return [(name, self.styles.get(name, ChartStyle(number)), values) for number, (name, values) in enumerate(self.series.items())]

    def heading(self) -> list[str]:
        """Return the SVG elements of the chart's title and note."""
        return [text(8, 18, self.title, size=14, bold=True), text(8, 34, self.note, "soft", size=11)]

    @property
    def heading_width(self) -> float:
        """Width of the heading that :meth:`heading` draws, in pixels."""
        return 16 + max(width_of(self.title, 14), width_of(self.note, 11))


@dataclass(frozen=True)
class Axes:
    """Axes of a chart: a vertical scale for figures, and names along the horizontal axis.

    Attributes:
        scale: Of the figures.
        right, top, bottom: Ends of the area, in pixels; its left end is ``LEFT``.
    """

    scale: Scale
    right: float
    top: float
    bottom: float

    def height(self, value: float) -> float:
        """Return the y coordinate of a figure."""
        return self.bottom - (self.bottom - self.top) * self.scale.relative_position(value)

    def draw(self, chart: Chart, places: Mapping[str, float], axis: str) -> list[str]:
        """Return the SVG elements of grid lines, their figures, category names and the axis title."""
        parts = []
        for tick in self.scale.ticks:
            y = self.height(tick)
            parts.append(f"<line x1='{LEFT}' x2='{self.right:g}' y1='{y:.1f}' y2='{y:.1f}' {paint(stroke='grid')}/>")
            parts.append(text(LEFT - 6, y + 4, chart.spelt(tick), "soft", "end", 11))
        parts += [text(x, self.bottom + 16, name, "soft", "middle", 11) for name, x in places.items()]
        how = f"{axis} (vertical scale: logarithmic)" if self.scale.log else axis
        return [*parts, text((LEFT + self.right) / 2, self.bottom + 32, how, "soft", "middle", 11)]


def draw_mark(look: ChartStyle, x: float, y: float) -> str:
    """Return the SVG mark of a point; its shape identifies the series where colours do not."""
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


def draw_legend(chart: Chart, x: float, y: float) -> tuple[list[str], float]:
    """Return the SVG elements of a legend in one row from ``x``, and the x at which the row ends."""
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


def bar_chart(
    chart: Chart, names: Sequence[str], *, axis_end: float | None = None, chosen: str | None = None, headed: bool = True
) -> Picture:
    """Return a chart of horizontal bars: a group per name, a bar per series, with its figure.

    Args:
        chart: What is shown; a figure per series and name.
        names: Of the groups, from top to bottom.
        axis_end: The figure of the longest bar there can be; the greatest one if left out.
        chosen: The one that is emphasised.
        headed: Whether title and note are drawn; a page may have said them.
    """
    full = axis_end or max(chart.known_figures, default=0.0) or 1.0
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
        parts += draw_legend(chart, left, bottom + 12)[0]
        bottom += LEGEND
    return Picture(chart.title, chart.note, max(WIDTH, left + long + written + 16), bottom, "".join(parts))


def _cut(name: str) -> str:
    """Shorten a name to the longest length that is shown."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _named(x: float, y: float, name: str, *, bold: bool) -> str:
    """Draw a name beside its bars, shortened, with the complete name as a tooltip."""
    words = text(x, y, _cut(name), anchor="end", bold=bold)
    return words if len(name) <= LONGEST else f"<g><title>{svg_words(name)}</title>{words}</g>"


def _bar(chart: Chart, left: float, y: float, value: float | None, unit: float, look: ChartStyle) -> list[str]:
    """Draw a bar with its figure, or the text for a missing figure."""
    if value is None:
        return [text(left + 6, y + BAR - 3, chart.missing, "soft")] if chart.missing else []
    width = max(value * unit, 0.0)
    # A share that is not nothing is seen.
    shown = max(width, 1.0) if value else 0.0
    bar = f"<rect x='{left:.1f}' y='{y:.1f}' width='{shown:.1f}' height='{BAR}' rx='1.5' {look.bar()}/>"
    return [*([bar] if shown else []), text(left + shown + 6, y + BAR - 3, chart.spelt(value))]
