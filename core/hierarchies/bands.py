"""Ranges that stand in the data as texts, such as ``[0-10)``, ``20 to 29``, ``< 18`` and ``80+``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_BETWEEN = re.compile(rf"([\[(]?)\s*{_NUMBER}\s*(?:-|–|,|;|to|\.\.)\s*{_NUMBER}\s*([\])]?)")
_BELOW = re.compile(rf"(<=|<|≤|under|below|up to)\s*{_NUMBER}", re.IGNORECASE)
_ABOVE = re.compile(rf"(>=|>|≥|over|above|from)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|and over|or more|and above)", re.IGNORECASE)


class Band(NamedTuple):
    """A range of numbers; bands sort by where they begin.

    Attributes:
        low, high: Its ends; infinite where there is none.
        opening, closing: How they are written.
    """

    low: Decimal
    high: Decimal
    opening: str
    closing: str


def band_of(text: str) -> Band | None:
    """Returns the range that a text writes down; None if it is none."""
    text = text.strip()
    if found := _BETWEEN.fullmatch(text):
        low, high = Decimal(found[2]), Decimal(found[3])
        return Band(low, high, found[1], found[4]) if low <= high else None
    if found := _BELOW.fullmatch(text):
        return Band(Decimal("-Infinity"), Decimal(found[2]), "", "]" if found[1] in {"<=", "≤", "up to"} else ")")
    if found := _ABOVE.fullmatch(text):
        return Band(Decimal(found[2] or found[3]), Decimal("Infinity"), "(" if found[1] in {">", "over", "above"} else "[", "")
    return None


def merged_label(bands: Sequence[Band]) -> str:
    """Returns what covers neighbouring ranges, from where the first begins to where the last ends."""
    first, last = bands[0], max(bands, key=lambda band: band.high)
    if first.low.is_infinite() and last.high.is_infinite():
        return "*"
    if first.low.is_infinite():
        return f"{'<=' if last.closing == ']' else '<'} {last.high}"
    if last.high.is_infinite():
        return f"{'>' if first.opening == '(' else '>='} {first.low}"
    return f"{first.opening}{first.low} - {last.high}{last.closing}"
