"""Charts as SVG, for a page or by themselves: readable in light and dark, in print and by people who cannot tell all colours apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from core.charts.scales import Scale, scale_of, short

# After Okabe and Ito, darker on light paper and lighter on dark; marks of other shapes say the same.
LIGHT = ("#0072B2", "#C44E00", "#007A5A", "#A8487F", "#8A6500", "#444C55", "#2A8CC4", "#6B4FA3")
DARK = ("#56B4E9", "#FF8F50", "#2FC99A", "#E79CC9", "#EFC447", "#C3CBD3", "#9AD2F5", "#B9A4E8")
INK, SOFT, LINE = "#18212B", "#4D5B69", "#D3DAE1"
WIDTH, HEIGHT = 480, 310
LEFT, RIGHT, TOP, BOTTOM = 58, 112, 52, 40
ROW, BAR = 26, 15
LABEL_GAP = 14
HOLLOW = 5
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

_dark = "".join(
    f".mark-{number}{{stroke:{colour};fill:{colour}}}.line-{number}{{stroke:{colour}}}.bar-{number}{{fill:{colour}}}"
    for number, colour in enumerate(DARK)
)
DARK_STYLE = f".ink{{fill:#E8EDF2}}.soft{{fill:#A9B6C3}}.grid{{stroke:#34404C}}.hollow{{fill:#12171D}}{_dark}"
"""What changes on dark paper, as CSS. Whoever shows a chart puts it under a media query of its own."""
PAPER = "<rect width='100%' height='100%' class='paper' fill='#FFFFFF'/>"


@dataclass(frozen=True)
class Chart:
    """What a chart shows.

    Attributes:
        title: What is measured.
        note: Which way is better, and how it is measured, in few words.
        series: Figures by name, in the order of colours; None where there is none.
        spelt: How a figure is written.
    """

    title: str
    note: str
    series: Mapping[str, Sequence[float | None]]
    spelt: Callable[[float], str] = short

    @property
    def width(self) -> int:
        """Of the picture: names of lines stand on the right, and long ones need more room."""
        return WIDTH - RIGHT + max(RIGHT, 30 + 7 * max(map(len, self.series)))

    @property
    def known(self) -> list[float]:
        """All figures that there are."""
        return [value for values in self.series.values() for value in values if value is not None]


def lines(chart: Chart, places: Sequence[str], axis: str) -> str:
    """Returns a line per series over places at equal distances, such as values of k; each line is named at its end.

    Args:
        chart: What is shown; as many figures per series as there are places.
        places: Their names.
        axis: What they are.
    """
    scale = scale_of(chart.known)
    parts = [*_axes(chart, scale, places, axis)]
    for number, values in enumerate(chart.series.values()):
        parts += _line(number, [None if value is None else _point(scale, place, len(places), value) for place, value in enumerate(values)])
    return _svg(chart, chart.width, HEIGHT, [*parts, *_names(chart, scale)])


def bars(chart: Chart, chosen: str | None = None) -> str:
    """Returns a bar per series, of its one figure; every bar is named and has its figure written beside it.

    Args:
        chart: What is shown; one figure per series.
        chosen: The one whose name is in bold.
    """
    most = max(chart.known, default=0.0) or 1.0
    long = WIDTH - LEFT - 34 - RIGHT
    parts = []
    for row, (name, [value]) in enumerate(chart.series.items()):
        y = TOP + 8 + row * ROW
        parts.append(_text(LEFT + 30, y + BAR - 3, name, "ink", "end", bold=name == chosen))
        if value is None:
            parts.append(_text(LEFT + 38, y + BAR - 3, "not measured", "soft"))
            continue
        width = max(long * value / most, 0.0)
        colour = LIGHT[row % len(LIGHT)]
        parts.append(
            f"<rect x='{LEFT + 36}' y='{y}' width='{width:.1f}' height='{BAR}' rx='2' class='bar-{row % len(LIGHT)}' fill='{colour}'/>"
        )
        parts.append(_text(LEFT + 42 + width, y + BAR - 3, chart.spelt(value), "ink"))
    return _svg(chart, WIDTH, TOP + 16 + len(chart.series) * ROW, parts)


def alone(svg: str) -> str:
    """Returns a chart that needs no page around it: with paper, and colours for light and dark."""
    style = f"<style>@media (prefers-color-scheme: dark){{.paper{{fill:#12171D}}{DARK_STYLE}}}</style>"
    head, body = svg.split(">", 1)
    return f"{head}>{style}{PAPER}{body}\n"


def _svg(chart: Chart, width: int, height: int, parts: Sequence[str]) -> str:
    heading = [_text(8, 18, chart.title, "ink", size=14, bold=True), _text(8, 34, chart.note, "soft", size=11)]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' role='img' "
        f"font-family=\"{FONT}\" font-size='12'><title>{escape(chart.title)}</title>" + "".join([*heading, *parts]) + "</svg>"
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start", size: int = 12, *, bold: bool = False) -> str:
    colour = INK if kind == "ink" else SOFT
    weight = " font-weight='600'" if bold else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' class='{kind}' fill='{colour}' text-anchor='{anchor}' font-size='{size}'{weight}>"
        f"{escape(text)}</text>"
    )


def _point(scale: Scale, place: int, places: int, value: float) -> tuple[float, float]:
    wide = WIDTH - LEFT - RIGHT
    x = LEFT + wide * ((place + 0.5) / places if places == 1 else 0.04 + 0.92 * place / (places - 1))
    return x, _height(scale, value)


def _height(scale: Scale, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale.place(value)


def _axes(chart: Chart, scale: Scale, places: Sequence[str], axis: str) -> list[str]:
    parts = []
    for tick in scale.ticks:
        y = _height(scale, tick)
        parts.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' class='grid' stroke='{LINE}'/>")
        parts.append(_text(LEFT - 6, y + 4, chart.spelt(tick), "soft", "end", 11))
    for place, name in enumerate(places):
        parts.append(_text(_point(scale, place, len(places), scale.high)[0], HEIGHT - BOTTOM + 16, name, "soft", "middle", 11))
    how = f"{axis} (vertical scale: logarithmic)" if scale.log else axis
    return [*parts, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, how, "soft", "middle", 11)]


def _line(number: int, points: Sequence[tuple[float, float] | None]) -> list[str]:
    """Draws the points that there are, joined where neighbours are."""
    colour, slot = LIGHT[number % len(LIGHT)], number % len(LIGHT)
    path, pen = "", "M"
    for point in points:
        path += "" if point is None else f"{pen}{point[0]:.1f} {point[1]:.1f}"
        pen = "M" if point is None else "L"
    marks = [_mark(number, *point) for point in points if point is not None]
    return [f"<path d='{path}' class='line-{slot}' stroke='{colour}' stroke-width='2' fill='none'/>" if marks else "", *marks]


def _mark(number: int, x: float, y: float) -> str:
    colour, slot = LIGHT[number % len(LIGHT)], number % len(LIGHT)
    shapes = (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4'",
        f"<rect x='{x - 3.6:.1f}' y='{y - 3.6:.1f}' width='7.2' height='7.2'",
        f"<path d='M{x:.1f} {y - 5:.1f}l4.6 8.4h-9.2z'",
        f"<path d='M{x:.1f} {y - 5.2:.1f}l4.6 5.2l-4.6 5.2l-4.6 -5.2z'",
        f"<path d='M{x:.1f} {y + 5:.1f}l4.6 -8.4h-9.2z'",
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.6'",
        f"<rect x='{x - 3.2:.1f}' y='{y - 3.2:.1f}' width='6.4' height='6.4'",
    )
    hollow = number % len(shapes) >= HOLLOW
    kind = f"line-{slot} hollow" if hollow else f"mark-{slot}"
    return f"{shapes[number % len(shapes)]} class='{kind}' stroke='{colour}' stroke-width='1.6' fill='{'#FFFFFF' if hollow else colour}'/>"


def _names(chart: Chart, scale: Scale) -> list[str]:
    """Names the lines at their right ends, apart enough to be read."""
    ends = []
    for number, (name, values) in enumerate(chart.series.items()):
        known = [value for value in values if value is not None]
        if known:
            ends.append((_height(scale, known[-1]), number, name))
    parts: list[str] = []
    placed: list[tuple[float, int, str]] = []
    lowest = 0.0
    for y, number, name in sorted(ends):
        lowest = max(y, lowest + LABEL_GAP) if placed else y
        placed.append((lowest, number, name))
    # What was pushed off the bottom moves up again, and pushes what is above it.
    ceiling = float(HEIGHT - BOTTOM + 4)
    for y, number, name in reversed(placed):
        ceiling = min(y, ceiling)
        parts += [_mark(number, WIDTH - RIGHT + 12, ceiling), _text(WIDTH - RIGHT + 22, ceiling + 4, name, "ink")]
        ceiling -= LABEL_GAP
    return parts
