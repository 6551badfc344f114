"""A picture as SVG: inside a page, or a file of its own that reads in light, in dark and in print and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from core.charts.colours import DARK_STYLE, paint

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
        says: How to read it, or where its figures stand as text.
        width, height: In pixels of a screen; a page may scale it.
        body: The drawn elements.
    """

    title: str
    says: str
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
        said = f"<title>{escape(self.title)}</title>" + (f"<desc>{escape(self.says)}</desc>" if self.says else "")
        frame = f"<svg{attributes} {size} role='img' font-family=\"{FONT}\" font-size='{SIZE}'>"
        return f"{frame}{said}{body}</svg>"


def beside(title: str, says: str, pictures: Sequence[Picture]) -> Picture:
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
