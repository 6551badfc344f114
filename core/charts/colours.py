"""Colours of all pictures, by what they say: one for light paper and print, one for dark paper.

An element bears the light colour as an attribute, which every viewer of SVG reads, and a class, by which a style sheet puts the dark one in
its place: on a screen whose reader asked for dark, never in print.
"""

from __future__ import annotations

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
