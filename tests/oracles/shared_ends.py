"""Where ranges may end, decided part by part in Python's integers: no loop is shared with what makes a release."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Part(NamedTuple):
    """Values that no range tells apart by where it ends: their places, and the lines between which they lie, None at an open end."""

    places: tuple[int, ...]
    low: int | None
    high: int | None


def lines_inside(low: int, high: int, width: int) -> list[int]:
    """The lines of a width strictly between two others."""
    return [line for line in range((low // width) * width, high, width) if line > low]


def cut_line(low: int, high: int, widths: Sequence[int]) -> int | None:
    """The line at which a part is cut: of the widest bins, nearest to the middle, the lower of two that are as near."""
    for width in sorted(widths, reverse=True):
        if lines := lines_inside(low, high, width):
            return min(lines, key=lambda line: (abs(2 * line - low - high), line))
    return None


def parts(people: dict[int, int], widths: Sequence[int], k: int) -> list[Part]:
    """All parts, ascending; ``people`` by place."""
    bottom = -widths[-1] if min(people) < 0 else 0
    cuts = sorted(_cuts(people, bottom, widths[-1], widths, k))
    ends = [None, *cuts, None]
    return [
        Part(tuple(sorted(place for place in people if (low is None or place >= low) and (high is None or place < high))), low, high)
        for low, high in pairwise(ends)
    ]


def _cuts(segment: dict[int, int], low: int, high: int, widths: Sequence[int], k: int) -> list[int]:
    """The cuts of a segment, of which the lines from ``low`` to ``high`` are looked at."""
    line = cut_line(low, high, widths)
    if line is None:
        return []
    left = {place: count for place, count in segment.items() if place < line}
    right = {place: count for place, count in segment.items() if place >= line}
    if min(sum(left.values()), sum(right.values())) >= k:
        return [*_cuts(left, low, line, widths, k), line, *_cuts(right, line, high, widths, k)]
    if sum(left.values()) >= k:
        return _cuts(segment, low, line, widths, k)
    return _cuts(segment, line, high, widths, k) if sum(right.values()) >= k else []
