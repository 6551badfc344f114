"""Drafts of hierarchies from a column's values, to be edited, and rows for values that one lacks.

Labels at the ends of ranges name no extreme value, which may be one person's: the outermost ranges are open.

A value that a listed hierarchy lacks gets its row from the other rows. Values without a plausible place go to a group of others.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.levels import spellings
from schemas.errors.hierarchies import HierarchyError

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_BETWEEN = re.compile(rf"([\[(]?)\s*{_NUMBER}\s*(?:-|–|,|;|to|\.\.)\s*{_NUMBER}\s*([\])]?)")
_BELOW = re.compile(rf"(<=|<|≤|under|below|up to)\s*{_NUMBER}", re.IGNORECASE)
_ABOVE = re.compile(rf"(>=|>|≥|over|above|from)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|and over|or more|and above)", re.IGNORECASE)


class ValueBand(NamedTuple):
    """Range of numbers read from a text; bands sort by where they begin.

    Attributes:
        low, high: Its ends; infinite where there is none.
        opening, closing: How they are written.
    """

    low: Decimal
    high: Decimal
    opening: str
    closing: str


def band_of(text: str) -> ValueBand | None:
    """Parse a text as a range of numbers; None if it is not a range."""
    text = text.strip()
    if found := _BETWEEN.fullmatch(text):
        low, high = Decimal(found[2]), Decimal(found[3])
        return ValueBand(low, high, found[1], found[4]) if low <= high else None
    if found := _BELOW.fullmatch(text):
        return ValueBand(Decimal("-Infinity"), Decimal(found[2]), "", "]" if found[1] in {"<=", "≤", "up to"} else ")")
    if found := _ABOVE.fullmatch(text):
        return ValueBand(Decimal(found[2] or found[3]), Decimal("Infinity"), "(" if found[1] in {">", "over", "above"} else "[", "")
    return None


def merged_label(bands: Sequence[ValueBand]) -> str:
    """Return the label of neighbouring ranges joined to one; ``*`` if that is open at both ends."""
    first, last = bands[0], max(bands, key=lambda band: band.high)
    if first.low.is_infinite() and last.high.is_infinite():
        return "*"
    if first.low.is_infinite():
        return f"{'<=' if last.closing == ']' else '<'} {last.high}"
    if last.high.is_infinite():
        return f"{'>' if first.opening == '(' else '>='} {first.low}"
    return f"{first.opening}{first.low} - {last.high}{last.closing}"


OTHER, STAR = "other", "*"
RANGES = "ranges, joined with their neighbours"
RARE = (0.01, 0.05, 0.2)
"""Shares of all records below which values are folded, level by level."""
CLEARLY = 0.5
"""How frequent rare values are on average, at most, measured by those that are kept."""
MOST_BINS = 5
"""The finest bins of numbers are 2 to this power."""
LONGEST_CODE = 12
FEWER = 0.75
"""A level is worth having if it has at most so many groups for each of the level below."""
SHARED = 0.6
"""Share of the values that must have a word in common with another, for words to define groups."""
_WORD = re.compile(r"[^\W\d_]{3,}")

Labels = list[str]


@dataclass(frozen=True)
class Draft:
    """Drafted hierarchy: its rows, and how its groups were found.

    Attributes:
        rows: One per value, in the order of the domain: the value, then its labels, finest first; the last is ``*``.
        how: What was seen in the values, in words that hold none of them.
    """

    rows: tuple[tuple[str, ...], ...]
    how: str

    @property
    def groups(self) -> tuple[int, ...]:
        """Number of groups at each level, the values first."""
        return tuple(len(set(column)) for column in zip(*self.rows, strict=True))


def draft_hierarchy(domain: Domain) -> Draft:
    """Draft a hierarchy for a domain's values; raise HierarchyError for a type without texts.

    Args:
        domain: The values and counts of the column; of numbers, dates, truth values or texts.
    """
    texts = spellings(domain.values)
    if not texts:
        raise HierarchyError.unlisted_type(domain.qid, str(domain.values.type))
    values = texts[0].to_pylist()
    how, columns = _levels(values, domain.counts, domain.values.type)
    kept: list[Labels] = []
    for column in columns:
        groups = len(set(column))
        # What joins next to nothing is a step of the search for nothing.
        if 1 < groups <= FEWER * len(set(kept[-1] if kept else values)):
            kept.append(column)
    return Draft(tuple(zip(values, *kept, [STAR] * len(values), strict=True)), how if kept else "too few values to group")


def _levels(values: Sequence[str], counts: NDArray[np.int64], kind: pa.DataType) -> tuple[str, list[Labels]]:
    """Return how the values are grouped, in words, and their labels at each candidate level."""
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return "dates, by month, quarter, year and decade", [[unit(text) for text in values] for unit in _CALENDAR]
    if not is_text(kind) and not pt.is_boolean(kind):
        return "numbers, in ranges of about equally many records", _quantiles(values, counts)
    for how, levels in (
        (RANGES, _bands(values)),
        ("codes, by what they begin with", _beginnings(values)),
        ("texts, by a word that they share", _words(values, counts)),
    ):
        if levels:
            return how, levels
    return "texts, the rare ones joined", _frequencies(values, counts)


_CALENDAR: tuple[Callable[[str], str], ...] = (
    lambda day: day[:7],
    lambda day: f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}",
    lambda day: day[:4],
    lambda day: f"{day[:3]}0s",
)


def _quantiles(values: Sequence[str], counts: NDArray[np.int64]) -> list[Labels]:
    """Return labels of bins with about equal record counts; each level joins pairs of bins below."""
    bins = min(MOST_BINS, max(int(np.log2(max(len(values), 1))) - 1, 0))
    # By the middle of what a value has, so that one with half of all records is a bin of its own.
    middle = np.cumsum(counts) - counts / 2
    finest = np.minimum((middle * 2**bins / max(counts.sum(), 1)).astype(np.int64), 2**bins - 1)
    return [_ranges(values, finest >> level) for level in range(bins)]


def _ranges(values: Sequence[str], groups: NDArray[np.int64]) -> Labels:
    """Return the label of each value: the range of its group of neighbouring values."""
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    edges = [values[start] for start in starts[1:]]
    if not edges:
        return [STAR] * len(values)
    labels = [f"< {edges[0]}", *(f"[{low} - {high})" for low, high in pairwise(edges)), f">= {edges[-1]}"]
    return [labels[place] for place in np.searchsorted(starts, np.arange(len(values)), side="right") - 1]


def _bands(values: Sequence[str]) -> list[Labels]:
    """Join ranges that the data contain with their neighbours, in pairs level by level.

    Values that are no range become another group. Nothing is returned where too few values are ranges.
    """
    read = [band_of(value) for value in values]
    found = sorted({band for band in read if band is not None})
    if len(found) < 3 or sum(band is None for band in read) > max(len(values) / 10, 1):
        return []
    place = {band: number for number, band in enumerate(found)}
    levels = []
    for power in range(1, len(found).bit_length() + 1):
        size = 2**power
        labels = [merged_label(found[start : start + size]) for start in range(0, len(found), size)]
        levels.append([OTHER if band is None else labels[place[band] // size] for band in read])
    return levels


def _beginnings(values: Sequence[str]) -> list[Labels]:
    """Return the prefixes of codes, longest first; nothing where the values are no codes.

    Codes are short texts without spaces, most of them with a digit.
    """
    if any(len(value) > LONGEST_CODE or " " in value for value in values):
        return []
    if sum(any(letter.isdigit() for letter in value) for value in values) < 0.8 * len(values):
        return []
    return [[f"{value[:kept]}{STAR}" for value in values] for kept in range(max(map(len, values), default=0) - 1, 0, -1)]


def _words(values: Sequence[str], counts: NDArray[np.int64]) -> list[Labels]:
    """Group texts that begin, or end, with the same word; nothing where most share no word."""
    for pick, shape in ((0, "{} …"), (-1, "… {}")):
        heads = [words[pick].casefold() if (words := _WORD.findall(value)) else "" for value in values]
        several = {head for head, many in Counter(heads).items() if head and many > 1}
        covered = sum(head in several for head in heads)
        if len(several) > 1 and covered >= SHARED * len(values):
            labels = [shape.format(head) if head in several else OTHER for head in heads]
            return [labels, *_frequencies(labels, counts)]
    return []


def _frequencies(values: Sequence[str], counts: NDArray[np.int64]) -> list[Labels]:
    """Keep the frequent values and fold the rare ones into one group, with fewer kept at each level.

    No value is rare that has its even share. Where those below a share are about as frequent as the others, none is rare.
    """
    names, inverse = np.unique(np.asarray(values, dtype=object), return_inverse=True)
    records = np.bincount(inverse, counts, len(names))
    share = records / max(counts.sum(), 1)
    levels = []
    for least in RARE:
        rare = (share < least) & (records * len(names) < counts.sum())
        if rare.any() and share[rare].mean() <= CLEARLY * share[~rare].mean():
            levels.append([OTHER if rare[place] else value for value, place in zip(values, inverse, strict=True)])
    return levels


Row = tuple[str, ...]
LEAST_BEGINNING = 2


@dataclass(frozen=True)
class UnlistedRows:
    """Rows for values that a hierarchy lacked, and how many were found in each way.

    Attributes:
        rows: One per value: the value, then its labels.
        spelt: How many are another one with other capitals or spaces.
        between: How many are numbers whose neighbours on both sides are in one group.
        beginning: How many are codes that begin as those of one group do.
        others: How many went to a group of others.
    """

    rows: tuple[Row, ...]
    spelt: int
    between: int
    beginning: int
    others: int


def rows_for_unlisted_values(missing: Sequence[str], rows: Sequence[Row]) -> UnlistedRows:
    """Return a row for each missing value, with the labels of rows most alike; count the kinds of match.

    Args:
        missing: The values as text.
        rows: Of the hierarchy, at least one, all of one length, values first.
    """
    by_spelling = {_folded(row[0]): row[1:] for row in rows}
    numbers = sorted((number, row[1:]) for row in rows if (number := _number(row[0])) is not None)
    beginnings = _rows_by_beginning(rows)
    found: list[Row] = []
    counts = {"spelt": 0, "between": 0, "beginning": 0, "others": 0}
    for value in missing:
        labels, why = by_spelling.get(_folded(value)), "spelt"
        if labels is None:
            labels, why = _between(value, numbers), "between"
        if labels is None:
            labels, why = _beginning(value, beginnings), "beginning"
        if labels is None:
            labels, why = _others(rows), "others"
        found.append((value, *labels))
        counts[why] += 1
    return UnlistedRows(tuple(found), **counts)


def _folded(text: str) -> str:
    """Return a text without capitals and repeated spaces."""
    return " ".join(text.casefold().split())


def _number(text: str) -> float | None:
    """Parse a text as a number; None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def _between(value: str, numbers: Sequence[tuple[float, Row]]) -> Row | None:
    """Return the labels shared by the next lesser and next greater number of the hierarchy."""
    number = _number(value)
    if number is None:
        return None
    place = bisect(numbers, number, key=lambda one: one[0])
    if not 0 < place < len(numbers):
        return None
    return numbers[place][1] if numbers[place - 1][1] == numbers[place][1] else None


def _rows_by_beginning(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the labels of all values by prefix, for every prefix length of codes."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for kept in range(LEAST_BEGINNING, min(len(row[0]), LONGEST_CODE) + 1):
            found.setdefault(row[0][:kept], []).append(row[1:])
    return found


def _beginning(value: str, beginnings: dict[str, list[Row]]) -> Row | None:
    """Return the labels shared by all codes with the longest prefix in common with this code.

    None where a single code or codes of different labels have that prefix.
    """
    if not any(letter.isdigit() for letter in value):
        return None
    for kept in range(min(len(value) - 1, LONGEST_CODE), LEAST_BEGINNING - 1, -1):
        if every := beginnings.get(value[:kept]):
            return every[0] if len(every) > 1 and len(set(every)) == 1 else None
    return None


def _others(rows: Sequence[Row]) -> Row:
    """Return the labels of a group of others, which ends in the labels that all rows share."""
    labels: list[str] = []
    for level in range(1, len(rows[0])):
        # Where the hierarchy has such a group already, what lies above it is said.
        if chain := next((row[level:] for row in rows if row[level] == OTHER), None):
            return (*labels, *chain)
        column = {row[level] for row in rows}
        labels.append(next(iter(column)) if len(column) == 1 else OTHER)
    return tuple(labels)
