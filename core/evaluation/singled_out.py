"""Uniqueness of people in a sample: by a column alone, with known columns, and by level.

A column of codes becomes a column of 64-bit digests, which can be summed. So the digest of all columns but one is a subtraction, and each
of five hundred columns costs one sort of the sample. Two different combinations share a digest with a chance of about n² / 2^65.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.units.digests import mixed_numbers

Digests = NDArray[np.uint64]
Numbers = NDArray[np.integer[Any]]
_STEP = np.uint64(0x9E3779B97F4A7C15)


class SampleUniqueness(NamedTuple):
    """Numbers of people with a unique combination, and with one that fewer than k have.

    Attributes:
        alone: People with a unique combination.
        below: People whose combination fewer than k have, those alone among them.
    """

    alone: int
    below: int


class ColumnUniqueness(NamedTuple):
    """Numbers of people who are unique by a column, alone and with the known columns.

    Attributes:
        own: By this column alone.
        together: By it and the known columns.
        without: By the other known columns.
    """

    own: SampleUniqueness
    together: SampleUniqueness
    without: SampleUniqueness


class LevelUniqueness(NamedTuple):
    """Numbers of people who are unique at one level of a hierarchy.

    Attributes:
        level: Its number, 0 for the values.
        groups: How many groups it has among the people of the sample.
        own: People who stand out by this level of the column alone.
        together: The same with the other known columns as they are.
    """

    level: int
    groups: int
    own: SampleUniqueness
    together: SampleUniqueness


def code_digests(codes: Numbers, column: int) -> Digests:
    """Return a digest of each code; equal codes of one column have equal digests.

    Args:
        codes: Shape (people,), whole numbers.
        column: The position of the column, so that equal codes of two columns differ (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
    """
    with np.errstate(over="ignore"):
        mixed = codes.astype(np.uint64) + np.uint64(column + 1) * _STEP * np.uint64(0x1D8E4E27C47D124F)
    return mixed_numbers(mixed_numbers(mixed))


def summed_digests(columns: Iterable[Digests], person_count: int) -> Digests:
    """Return each person's sum of column digests, which identifies the combination; 0 without a column."""
    total = np.zeros(person_count, np.uint64)
    for one in columns:
        total += one
    return total


def sample_uniqueness(digests: Digests, k: int) -> SampleUniqueness:
    """Count the people whose combination is unique, and those who share theirs with fewer than k.

    Args:
        digests: Shape (people,), of each one's combination.
        k: People that must share it.
    """
    if not len(digests):
        return SampleUniqueness(0, 0)
    ordered = np.sort(digests)
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    sizes = np.diff(ends, prepend=-1)
    return SampleUniqueness(int(np.count_nonzero(sizes == 1)), int(sizes[sizes < k].sum()))


def column_uniqueness(columns: Mapping[str, Digests], known: Sequence[str], k: int) -> dict[str, ColumnUniqueness]:
    """Count people unique or below k by each column alone, with the known ones, and by those without it.

    Args:
        columns: Digests by column, each of shape (people,).
        known: Columns that others may know together.
        k: People that must share a combination.
    """
    people = len(next(iter(columns.values()))) if columns else 0
    total = summed_digests((columns[name] for name in known), people)
    whole = sample_uniqueness(total, k)
    found = {}
    for name, digests in columns.items():
        own = sample_uniqueness(digests, k)
        if name in known:
            found[name] = ColumnUniqueness(own, whole, sample_uniqueness(total - digests, k) if len(known) > 1 else SampleUniqueness(0, 0))
        else:
            found[name] = ColumnUniqueness(own, sample_uniqueness(total + digests, k), whole if known else SampleUniqueness(0, 0))
    return found


def level_uniqueness(levels: Sequence[Numbers], others: Digests, column: int, k: int) -> list[LevelUniqueness]:
    """Count by level the people unique or below k, by the column alone and with the other known columns.

    Args:
        levels: For each level the group of each person, shape (people,).
        others: Shape (people,): digests of the other known columns.
        column: The position of the column.
        k: People that must share a combination.
    """
    found = []
    for level, groups in enumerate(levels):
        digests = code_digests(groups, column)
        found.append(LevelUniqueness(level, len(np.unique(groups)), sample_uniqueness(digests, k), sample_uniqueness(others + digests, k)))
    return found
