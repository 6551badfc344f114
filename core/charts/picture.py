"""A picture as SVG: inside a page, or a file of its own that reads in light, in dark and in print and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

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
    """Returns the attributes that give an element colours of ``COLOURS``; without a fill it has none."""
    classes = " ".join(f"{kind}-{name}" for kind, name in (("f", fill), ("s", stroke)) if name)
    given = f"fill='{COLOURS[fill][0]}'" if fill else "fill='none'"
    return f"class='{classes}' {given}" + (f" stroke='{COLOURS[stroke][0]}'" if stroke else "")


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
SIZE = 12
WIDE_LETTERS = frozenset("WF")
LETTER = 0.58
"""Width of a letter in units of the font's size, rather too much than too little: no text may run into another."""
GUTTER = 28
FIT_PAPER = "@media print{:root{width:100%;height:auto}}"
"""A page of paper cannot be scrolled."""


@dataclass(frozen=True)
class Picture:
    """What is drawn, and what it says to people who cannot see it.

    Attributes:
        title: What it shows, read out and shown under the pointer.
        alt_text: How to read it, or where its figures stand as text.
        width, height: In pixels of a screen; a page may scale it.
        body: The drawn elements.
    """

    title: str
    alt_text: str
    width: float
    height: float
    body: str

    def inline(self, kind: str = "chart") -> str:
        """Returns the picture for a page whose style sheet holds ``DARK_STYLE``; ``kind`` is its class there."""
        return self._svg(f" class='{kind}'", self.body)

    def alone(self) -> str:
        """Returns the picture as a file, with paper under it and its own colours for light and dark."""
        style = f"<style>@media screen and (prefers-color-scheme: dark){{{DARK_STYLE}}}{FIT_PAPER}</style>"
        paper = f"<rect width='100%' height='100%' {paint('paper')}/>"
        return self._svg(" xmlns='http://www.w3.org/2000/svg'", style + paper + self.body) + "\n"

    def _svg(self, attributes: str, body: str) -> str:
        size = f"viewBox='0 0 {self.width:g} {self.height:g}' width='{self.width:g}' height='{self.height:g}'"
        said = f"<title>{escape(self.title)}</title>" + (f"<desc>{escape(self.alt_text)}</desc>" if self.alt_text else "")
        frame = f"<svg{attributes} {size} role='img' font-family=\"{FONT}\" font-size='{SIZE}'>"
        return f"{frame}{said}{body}</svg>"


def side_by_side(title: str, says: str, pictures: Sequence[Picture]) -> Picture:
    """Returns pictures side by side, under one heading."""
    top, x, parts = 40, 0.0, [text(8, 24, title, size=16, bold=True)]
    for one in pictures:
        # Each is a group with its own title, so that the parts are told one by one.
        parts.append(f"<g transform='translate({x:g} {top})'><title>{escape(one.title)}</title>{one.body}</g>")
        x += one.width + GUTTER
    width = max(x - GUTTER, 16 + width_of(title, 16))
    return Picture(title, says, width, top + max(one.height for one in pictures), "".join(parts))


def text(
    x: float, y: float, words: str, colour: str = "ink", anchor: str = "start", size: int = SIZE, *, bold: bool = False, halo: bool = False
) -> str:
    """Returns words on a line ``y``, their start, middle or end at ``x`` as ``anchor`` says; a halo parts them from lines behind them."""
    weight = " font-weight='600'" if bold else ""
    look = f"{paint(colour, 'paper')} stroke-width='3' paint-order='stroke'" if halo else paint(colour)
    return f"<text x='{x:.1f}' y='{y:.1f}' {look} text-anchor='{anchor}' font-size='{size}'{weight}>{escape(words)}</text>"


def width_of(words: str, size: int = SIZE) -> float:
    """Returns about how wide words are, in pixels, rather too much than too little."""
    return size * LETTER * sum(2 if east_asian_width(letter) in WIDE_LETTERS else 1 for letter in words)
