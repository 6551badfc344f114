"""What a refused split tells whoever knows the algorithm (minimality; Wong et al., VLDB 2007), and which splits are not tried for it.

Somebody who knows all quasi-identifiers and the algorithm sees that a class could have been split with k on both sides and was not: one of
its halves breaks l or t. The class publishes its values, so he can try in his mind all ways to give them to its people. Where in all ways
in which a half fails the same half has the same single value, he knows that of everybody in it, though the class holds several.

So a split is tried only if its refusal would leave everybody in both halves with as many possible values as the model asks for. That is
a function of what is published, the values of the class and the sizes of its halves: not to try tells nothing. And what is tried and
refused tells too little. Which ways there are is worked out from those in which one half is filled up with one value first, then with
nulls, then with the most frequent values. They hold every way that gives a half a single value, and the least even ones; what they leave
out can only make a split be not tried that could have been.
"""

from __future__ import annotations

from math import ceil, exp

import numpy as np
from numpy.typing import NDArray

from core.columns.compiled import compiler
from core.privacy.kernels import Demands, keeps
from core.privacy.models import SLACK

kernel = compiler("privacy.kernels", "privacy.refusals")
TRIED = 8
"""Values that are tried first, besides those that a half could have alone."""


@kernel
def least_values(column: int, demands: Demands) -> int:
    """Returns how many different values everybody in a class must possibly have."""
    least = max(demands.distinct[column], demands.recursive[column, 2], np.int64(2))
    if demands.entropies[column] >= 0:
        least = max(least, np.int64(ceil(exp(demands.entropies[column]) - SLACK)))
    return int(least)


@kernel
def refusal_tells(
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    column: int,
    demands: Demands,
    counts: NDArray[np.int64],
    present: NDArray[np.int64],
) -> bool:
    """Tells whether the refusal of a split would leave somebody with fewer possible values than the model asks for.

    Args:
        codes: Shape (values,), the sensitive codes that occur in the class.
        totals: Shape (values,), records of each.
        sizes: Shape (2,), records of both halves.
        column: The sensitive column.
        demands: What is asked.
        counts: Shape (2, sensitive codes), scratch, all 0 before and after.
        present: Likewise, what is in it does not matter.
    """
    values, null, least = codes.shape[0], demands.nulls[column], least_values(column, demands)
    falling = np.argsort(-np.where(codes == null, totals.sum() + 1, totals), kind="mergesort")
    possible = np.zeros((2, values), np.bool_)
    failed = False
    for place in range(values):
        if place > TRIED and totals[falling[place]] < sizes.min():
            break
        for half in range(2):
            held = _filled(totals, falling, place, sizes[half])
            if not (_fails(held, codes, sizes[half], column, demands, counts[0], present[0])
                    or _fails(totals - held, codes, sizes[1 - half], column, demands, counts[0], present[0])):  # fmt: skip
                continue
            failed = True
            for at in range(values):
                if codes[at] != null:
                    possible[half, at] |= held[at] > 0
                    possible[1 - half, at] |= totals[at] > held[at]
            if possible[0].sum() >= least and possible[1].sum() >= least:
                return False
    return failed


@kernel
def refusals_tell(
    owners: NDArray[np.int64],
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    column: int,
    demands: Demands,
) -> NDArray[np.bool_]:
    """Tells the same of many classes, shape (classes,).

    Args:
        owners: Shape (entries,), ascending: the class of each entry.
        codes: Shape (entries,), a sensitive code that occurs in it.
        totals: Shape (entries,), its records there.
        sizes: Shape (classes, 2), records of both halves.
        column: The sensitive column.
        demands: What is asked.
    """
    telling = np.zeros(sizes.shape[0], np.bool_)
    counts = np.zeros((2, demands.sizes[column]), np.int64)
    present = np.zeros_like(counts)
    begin = 0
    for owner in range(sizes.shape[0]):
        end = begin
        while end < owners.shape[0] and owners[end] == owner:
            end += 1
        telling[owner] = refusal_tells(codes[begin:end], totals[begin:end], sizes[owner], column, demands, counts, present)
        begin = end
    return telling


@kernel
def _filled(totals: NDArray[np.int64], falling: NDArray[np.int64], first: int, size: int) -> NDArray[np.int64]:
    """Returns how many records of each value a half gets that is filled with one value first and then with the others in their order."""
    held = np.zeros(totals.shape[0], np.int64)
    held[falling[first]] = min(totals[falling[first]], size)
    left = size - held[falling[first]]
    for place in range(totals.shape[0]):
        if place != first:
            held[falling[place]] = min(totals[falling[place]], left)
            left -= held[falling[place]]
    return held


@kernel
def _fails(
    held: NDArray[np.int64],
    codes: NDArray[np.int64],
    size: int,
    column: int,
    demands: Demands,
    counts: NDArray[np.int64],
    present: NDArray[np.int64],
) -> bool:
    """Tells whether a half with so many records of each value breaks the model."""
    values = 0
    for at in range(codes.shape[0]):
        if held[at] > 0:
            counts[codes[at]] = held[at]
            present[values] = codes[at]
            values += 1
    kept = keeps(size, counts, present, values, column, demands)
    for at in range(values):
        counts[present[at]] = 0
    return not kept
