"""Scales and ticks of charts: round numbers, linear or logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

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

    def place(self, value: float) -> float:
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
