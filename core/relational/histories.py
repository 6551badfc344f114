"""Profiles and histories of persons as numbers: equal numbers mean equal histories.

A person's profile in each part of the tables is a number; the numbers of all parts make the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.relational.kernels import Lanes

MOST = 1 << 62
"""What a number that stands for several may not pass."""
DENSE = 4
"""Up to how many times their count numbers reach that are counted in an array."""


@dataclass(frozen=True)
class Profile:
    """Profile number of each person in one part of the tables.

    Attributes:
        numbers: Shape (persons,), unsigned, from 0.
        size: More than any of them.
    """

    numbers: NDArray[np.unsignedinteger]
    size: int


def number_profiles(sums: Lanes) -> Profile:
    """Return profile numbers for the digests of persons; equal digests get equal numbers.

    Args:
        sums: Shape (persons, 2).
    """
    first, second = sums[:, 0], sums[:, 1]
    # In which order equal ones come does not matter, and an order that is not stable costs half.
    order = np.argsort(first)
    new = _begins(first[order])
    if (~new & _begins(second[order])).any():
        # Half a digest in common, and not the other half: the sort must look at both.
        order = np.lexsort((second, first))
        new = _begins(first[order]) | _begins(second[order])
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = (np.cumsum(new) - 1).astype(np.uint32)
    return Profile(numbers, max(int(new.sum()), 1))


def combine_profiles(parts: Sequence[Profile]) -> NDArray[np.uint64]:
    """Return one number per person that combines the profiles of all parts, shape (persons,).

    It is exact: where the product of the sizes exceeds 62 bits, the numbers combined so far are renumbered.
    """
    first, *others = parts
    numbers, size = first.numbers.astype(np.uint64), first.size
    for part in others:
        if size * part.size > MOST:
            _, inverse = np.unique(numbers, return_inverse=True)
            numbers, size = inverse.astype(np.uint64), int(inverse.max(initial=0)) + 1
        numbers *= np.uint64(part.size)
        numbers += part.numbers
        size *= part.size
    return numbers


def failing_persons(numbers: NDArray[np.uint64], k: int) -> int:
    """Return the number of persons whose history fewer than k persons share."""
    # Of few numbers it costs less to count each than to sort all.
    sizes = np.bincount(numbers.view(np.int64)) if _are_dense(numbers) else _sizes(np.sort(numbers))
    return int(sizes[sizes < k].sum())


def class_of_each(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class of each person, shape (persons,), and the persons of each class, shape (classes,)."""
    if _are_dense(numbers):
        counts = np.bincount(numbers.view(np.int64))
        there = counts > 0
        return (np.cumsum(there) - 1)[numbers], counts[there]
    order = np.argsort(numbers)
    new = _begins(numbers[order])
    classes = np.empty(len(order), np.int64)
    classes[order] = np.cumsum(new) - 1
    return classes, np.diff(np.append(np.flatnonzero(new), len(order)))


def _are_dense(numbers: NDArray[np.uint64]) -> bool:
    """Return whether the greatest number is small relative to the count of numbers."""
    return bool(len(numbers)) and int(numbers.max()) < DENSE * len(numbers)


def _sizes(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the lengths of runs of equal numbers."""
    return np.diff(np.append(np.flatnonzero(_begins(ordered)), len(ordered)))


def _begins(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask of the positions where a run of equal numbers begins, shape (n,)."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new
