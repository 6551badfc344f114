"""The check that ranges of a release end where at least k persons lie at or beyond the end.

The writer of releases does this in compiled loops over arrays (`core.recoding.ends`). Here it is done value by value in Python's
integers, from docs/decisions/shared-ends.md, so that an error in one of the two is noticed.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Context, Decimal
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.value_scales import KEPT_ENDS, value_texts
from schemas.registry.hierarchies import HierarchySpec, WidthsHierarchy
from schemas.release.manifest import NULL_MEMBER

MOST = 10**17
"""Numbers of more digits are cut down by a power of ten until they are less."""
ROOM = 2**62
"""Whole numbers below it are moved by one another and stay numbers of 64 bits."""
SHORT = 18
"""Digits of numbers that are surely as many as decimals keep."""
BLOCK = 1 << 16
"""Values that are written down at a time."""
EXACT = Context(prec=1_000)
"""Python works with 28 digits unless told otherwise: fewer than a decimal of a source may have, and than a float does, written out."""
_RANGE = re.compile(r"\[(.+?) - (.+)\]")
_OPEN = re.compile(r"(>=|<=) (.+)")
_BESIDE_NULL = re.compile(rf"\{{(.+), {NULL_MEMBER}\}}")
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**6}
_DAYS = (1, 32, 96, 384, 3840)
_LAST = 31

Key = Any


class EndsAxis:
    """A column's values as positions on the grid of their hierarchy, and the keys that compare ends.

    Attributes:
        places: Where each value lies, ascending; of ten million values a list would take half a gigabyte, and these take eighty megabytes.
        widths: How far apart lines are, ascending.
        key: Returns what the text of an end is compared by.
        first: Returns the same for the first value from a line on.
        last: Returns it for the last value before a line.
    """

    def __init__(
        self, places: Sequence[int], widths: list[int], key: Callable[[str], Key], first: Callable[[int], Key], last: Callable[[int], Key]
    ):
        self.places, self.widths, self.key, self.first, self.last = places, widths, key, first, last


def unexpected_ends(
    values: pa.Array, people: Sequence[int] | NDArray[np.int64], spec: HierarchySpec, k: int, labels: Iterable[str | None]
) -> int:
    """Count the labels that have an end at which ranges may not end.

    Args:
        values: Shape (m,), ascending, without null: numbers, dates or timestamps of the source.
        people: Shape (m,), how many people count at each, each person at one of theirs.
        labels: As text; what is no range ends nowhere.
    """
    axis = _moments(values) if pt.is_date(values.type) or pt.is_timestamp(values.type) else _numbers(values, spec)
    lows, highs = _ends(axis, values, np.asarray(people, np.int64), k)
    return sum(not _allowed(label, axis, lows, highs) for label in labels if label is not None)


class StepLines(NamedTuple):
    """A step between two grid lines, and the value that is published for its values.

    Attributes:
        first, after: Position of its first value, and of the one after its last.
        middle: The value in its middle; of the outermost steps the value next to their line.
        width: How far apart its lines are, in the unit of the values; 0 of the outermost steps and of moments.
    """

    first: int
    after: int
    middle: Any
    width: float


def step_lines(values: pa.Array, people: Sequence[int], k: int) -> list[StepLines]:
    """Return the steps of a column without hierarchy; none without a line that has k persons on each side.

    Args:
        values: Shape (m,), ascending, without null: numbers, dates or timestamps.
        people: Shape (m,), how many people have each, no person twice.
    """
    moments = pt.is_date(values.type) or pt.is_timestamp(values.type)
    finer = 1_000 if pt.is_timestamp(values.type) and values.type.unit == "ns" else 1
    axis = _moments(values) if moments else _numbers(values, None)
    cuts = _cuts(axis.places, [0, *accumulate(map(int, people))], axis.widths, k)
    if not cuts:
        return []
    edges = [0, *(bisect_left(axis.places, cut) for cut in cuts), len(values)]
    steps = []
    for number, (first, after) in enumerate(pairwise(edges)):
        if number == 0:
            middle, width = axis.last(cuts[0]), 0.0
        elif number == len(cuts):
            middle, width = axis.first(cuts[-1]), 0.0
        else:
            middle = axis.first((cuts[number - 1] + cuts[number]) // 2)
            width = 0.0 if moments else float(axis.first(cuts[number])) - float(axis.first(cuts[number - 1]))
        # Lines of moments are of microseconds at most.
        if finer > 1:
            middle = (middle + 1) * finer - 1 if number == 0 else middle * finer
        steps.append(StepLines(first, after, middle, width))
    return steps


def _allowed(label: str, axis: EndsAxis, lows: set[Key], highs: set[Key]) -> bool:
    beside = _BESIDE_NULL.fullmatch(label)
    try:
        if beside and not (_RANGE.fullmatch(beside[1]) or _OPEN.fullmatch(beside[1])):
            # Of a class with nulls fewer than k people may have its one value.
            return axis.key(beside[1]) in lows and axis.key(beside[1]) in highs
        label = beside[1] if beside else label
        if found := _RANGE.fullmatch(label):
            return axis.key(found[1]) in lows and axis.key(found[2]) in highs
        if found := _OPEN.fullmatch(label):
            return axis.key(found[2]) in (lows if found[1] == ">=" else highs) and None in (highs if found[1] == ">=" else lows)
    except (ValueError, ArithmeticError):
        return False
    return True


def _ends(axis: EndsAxis, values: pa.Array, people: NDArray[np.int64], k: int) -> tuple[set[Key], set[Key]]:
    """Return the ends at which ranges may begin and may end; None where they may be open."""
    so_far = np.zeros(len(people) + 1, np.int64)
    np.cumsum(people, out=so_far[1:])
    cuts = _cuts(axis.places, so_far.data, axis.widths, k)
    del so_far
    edges = array("q", chain([0], (bisect_left(axis.places, cut) for cut in cuts), [len(values)]))
    texts = _texts_at(chain(edges[:-1], (edge - 1 for edge in edges[1:])), values, people, k)
    lows: set[Key] = set()
    highs: set[Key] = set()
    for number, (first, after) in enumerate(pairwise(edges)):
        before, behind = (cuts[number - 1] if number else None), (cuts[number] if number < len(cuts) else None)
        lows.add(axis.key(texts[first]) if first in texts else None if before is None else axis.first(before))
        highs.add(axis.key(texts[after - 1]) if after - 1 in texts else None if behind is None else axis.last(behind))
    return lows, highs


def _texts_at(places: Iterable[int], values: pa.Array, people: NDArray[np.int64], k: int) -> dict[int, str]:
    """Return the text of the value at each given position that at least k persons have."""
    shared = [place for place in places if people[place] >= k]
    return {place: spelt[0] for place, spelt in zip(shared, value_texts(values.take(pa.array(shared, pa.int64()))), strict=True)}


def _cuts(places: Sequence[int], before: Sequence[int], widths: Sequence[int], k: int) -> list[int]:
    """Return the lines at which values are cut, ascending.

    Each has k persons on both sides up to the next line.
    """
    # Segment by its first value and the one after its last, and between which lines it is still looked at.
    todo, cuts = [(0, len(places), -widths[-1] if places[0] < 0 else 0, widths[-1])], []
    while todo:
        first, after, low, high = todo.pop()
        while before[after] - before[first] >= 2 * k:
            line = _line(low, high, widths)
            if line is None:
                break
            at = bisect_left(places, line, first, after)
            if before[at] - before[first] < k:
                low = line
            elif before[after] - before[at] < k:
                high = line
            else:
                cuts.append(line)
                todo.append((at, after, line, high))
                after, high = at, line
    cuts.sort()
    return cuts


def _line(low: int, high: int, widths: Sequence[int]) -> int | None:
    """Return the line at which the span between two lines is cut; None if there is no line between.

    It is a line of the widest bins, nearest to the middle, the lower of two.
    """
    for width in reversed(widths):
        # Widths nest, so that both ends are lines of the widest one that has any between them: their middle is a line of it too, or lies
        # halfway between two.
        line = (low + high) // 2 // width * width
        if low < line < high:
            return line
    return None


def _chain(widths: list[int], places: Sequence[int], factor: int) -> list[int]:
    reach = max(-places[0], places[-1] + 1)
    while widths[-1] < reach:
        widths.append(widths[-1] * factor)
    return widths


def _numbers(values: pa.Array, spec: HierarchySpec | None) -> EndsAxis:
    floating, whole_only = pt.is_floating(values.type), pt.is_integer(values.type)
    used = 0 if whole_only else max(chain([0], (-int(number.as_tuple().exponent) for number in _exact(values))))
    origin, widths = Decimal(0), [Decimal(0)]
    if isinstance(spec, WidthsHierarchy) and not spec.encode and _whole(spec.origin, used) is not None:
        origin, widths = spec.origin, list(spec.widths)
    start = _whole(origin, used) or 0
    reach = max(abs(_shifted(number, used)) for end in (values[:1], values[-1:]) for number in _exact(end)) + abs(start)
    cut = 1
    while reach // cut >= MOST:
        cut *= 10
    places: Sequence[int]
    if whole_only and reach < ROOM:
        # In place: there may be millions.
        whole = np.asarray(values).astype(np.int64)
        whole -= start
        whole //= cut
        places = whole.data
    else:
        places = array("q", ((_shifted(number, used) - start) // cut for number in _exact(values)))
    bins = [wide // cut for width in widths if (wide := _whole(width, used)) and wide % cut == 0 and cut < wide <= 10 * MOST * cut]

    @lru_cache(maxsize=KEPT_ENDS)
    def key(text: str) -> Key:
        # A float is the nearest one, whatever its text.
        if floating:
            return float(values.type.to_pandas_dtype()(text))
        # A whole number and a decimal that are equal are one key, and the first takes less room.
        return int(text) if text.isdecimal() and len(text) <= SHORT else Decimal(text).normalize(EXACT)

    def at(line: int, moved: int) -> Key:
        whole = line * cut + start + moved
        if not used and not floating and abs(whole) < 10**SHORT:
            return whole
        return key(format(Decimal(whole).scaleb(-used, EXACT), "f"))

    return EndsAxis(places, _chain([1, *bins], places, 2 if bins else 10), key, lambda line: at(line, 0), lambda line: at(line, -1))


def _exact(values: pa.Array) -> Iterator[Decimal]:
    """Yield numbers as decimals, one block at a time."""
    for first in range(0, len(values), BLOCK):
        for spelt in value_texts(values.slice(first, BLOCK)):
            yield Decimal(spelt[0]).normalize(EXACT)


def _shifted(number: Decimal, used: int) -> int:
    whole = _whole(number, used)
    assert whole is not None
    return whole


def _whole(number: Decimal, used: int) -> int | None:
    """Return a number in units of the last of ``used`` decimal places; None if it has more places."""
    sign, digits, exponent = Decimal(number).normalize(EXACT).as_tuple()
    moved = int(exponent) + used
    whole = int("".join(map(str, digits))) * (-1 if sign else 1)
    return whole * 10**moved if moved >= 0 else None


def _moments(values: pa.Array) -> EndsAxis:
    """Return the axis of dates or times, on a calendar of 32 days a month; a time with a zone by UTC."""
    dated = pt.is_date(values.type)
    ticks = 1 if dated else _TICKS[values.type.unit]
    day = 1 if dated else 86_400 * ticks
    finer = 1_000 if not dated and values.type.unit == "ns" else 1
    raw = np.asarray(values.cast(pa.date32()).cast(pa.int32()) if dated else values.cast(pa.int64())).astype(np.int64)
    places = array("q", (_place(moment // finer, day) for moment in raw.data))
    clock = [] if dated else sorted({1, min(1_000, ticks), ticks, 60 * ticks, 3_600 * ticks})
    unit = "D" if dated else "us" if values.type.unit == "ns" else values.type.unit

    @lru_cache(maxsize=KEPT_ENDS)
    def key(text: str) -> Key:
        if dated:
            return int(np.datetime64(text, "D").astype(np.int64))
        spelt = datetime.fromisoformat(text)
        zone = spelt.utcoffset()
        plain = np.datetime64(spelt.replace(tzinfo=None), "us") - (np.timedelta64(zone) if zone else np.timedelta64(0, "us"))
        return int(plain.astype(f"datetime64[{unit}]").astype(np.int64))

    return EndsAxis(
        places,
        _chain([*clock, *(days * day for days in _DAYS)], places, 2),
        key,
        lambda line: _moment(line, day),
        lambda line: _moment(line, day) - 1,
    )


def _place(moment: int, day: int) -> int:
    days, rest = divmod(moment, day)
    date = np.datetime64(days, "D")
    month = date.astype("datetime64[M]")
    return (int(month.astype(np.int64)) * (_LAST + 1) + int((date - month.astype("datetime64[D]")).astype(np.int64))) * day + rest


def _moment(line: int, day: int) -> int:
    days, rest = divmod(line, day)
    number, within = divmod(days, _LAST + 1)
    first, following = (int(np.datetime64(month, "M").astype("datetime64[D]").astype(np.int64)) for month in (number, number + 1))
    return following * day if first + within >= following else (first + within) * day + rest
