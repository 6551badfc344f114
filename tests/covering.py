"""Small tables of cases in place of all combinations: every value, or every pair of values, is in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

Case = tuple[Any, ...]


def each_value(*axes: Sequence[Any]) -> list[Case]:
    """Return cases in which every value of every axis occurs: as many as the longest axis has."""
    return [tuple(axis[number % len(axis)] for axis in axes) for number in range(max(map(len, axes)))]


def each_pair(*axes: Sequence[Any]) -> list[Case]:
    """Return cases in which every two values of different axes occur together, of three axes or more (Cohen et al. 1997, greedily)."""
    ranges, cases = [range(len(axis)) for axis in axes], list[tuple[int, ...]]()
    rows = list(product(*ranges))
    left = {pair for row in rows for pair in _pairs(row)}
    while left:
        best = max(rows, key=lambda row: len(left & _pairs(row)))
        left -= _pairs(best)
        cases.append(best)
    return [tuple(axis[place] for axis, place in zip(axes, case, strict=True)) for case in cases]


def _pairs(row: Sequence[int]) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(row), 2))
