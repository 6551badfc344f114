"""Disclosure by refused splits: splits that are not tried because a refusal would reveal values.

This is the minimality attack (Wong et al., VLDB 2007). A reader who knows all quasi-identifiers and the algorithm sees that a class could
have been split with k on both sides and was not: one of its halves breaks l or t. The class publishes its values, so the reader can go
through all ways to assign them to its persons. If in all ways in which a half fails the same half has the same single value, the reader
learns it for every person of that half, though the class holds several values.

So a split is tried only if its refusal would leave every person in both halves with as many possible values as the model asks for. That is
a function of what is published: the values of the class and the sizes of its halves in records and persons. So not to try a split discloses
nothing, and a refused split discloses too little. The ways considered are those in which one half is filled with one value first, then with
nulls, then with the most frequent values. They hold every way that gives a half a single value, and the least even ones. The ways left out
can only prevent splits that could have been tried.

Where persons have several values, a half can also break the model because too many of its persons hold one value (`core.privacy.holders`).
These ways are worked out by value and half: the fewest persons that are too many have the value once, all other records are free. A person
with several records is then safe only under two conditions. The person may hold as many values as is asked, *and* no value is held by the
person in every such way.
"""

from __future__ import annotations

from math import ceil, exp

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.compiling.compiled import compiler
from core.privacy.holders import fewest_too_many
from core.privacy.kernels import Demands, class_keeps
from core.privacy.models import SLACK

kernel = compiler("columns.sorting", "privacy.holders", "privacy.kernels", "privacy.refusals")
TRIED = 8
"""Values that are tried first, besides those that a half could have alone."""


@kernel
def least_values(column: int, demands: Demands) -> int:
    """Return the fewest sensitive values that a reader must find possible for every person of a class."""
    least = max(demands.distinct[column], demands.recursive[column, 2], np.int64(2))
    if demands.entropies[column] >= 0:
        least = max(least, np.int64(ceil(exp(demands.entropies[column]) - SLACK)))
    return int(least)


@kernel
def refusal_discloses(
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    persons: NDArray[np.int64],
    column: int,
    demands: Demands,
    counts: NDArray[np.int64],
    present: NDArray[np.int64],
) -> bool:
    """Return whether a refused split would leave a person fewer possible values than the model asks.

    Args:
        codes: Shape (values,), the sensitive codes that occur in the class.
        totals: Shape (values,), records of each.
        sizes: Shape (2,), records of both halves.
        persons: Shape (2,), their persons; the same where every record counts as one.
        column: The sensitive column.
        demands: What is asked.
        counts: Shape (2, sensitive codes), scratch, all 0 before and after.
        present: Likewise, what is in it does not matter.
    """
    values, null, least = codes.shape[0], demands.nulls[column], least_values(column, demands)
    keys, every = np.empty(values, np.int64), totals.sum()
    for place in range(values):
        keys[place] = 0 if codes[place] == null else every - totals[place]
    falling, failed, possible = ascending_order(keys), False, np.zeros((2, values), np.bool_)
    # Without bounds on persons, somebody with one value lacks all others.
    lacked = np.full((2, values), not demands.holder_bounds.columns_bounded[column], np.bool_)
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
                other = totals[at] - held[at]
                possible[half, at] |= held[at] > 0
                possible[1 - half, at] |= other > 0
                # Nobody has more records than there would be if all others had one each, and so many may be of other values.
                lacked[half, at] |= held[at] < persons[half]
                lacked[1 - half, at] |= other < persons[1 - half]
            if has_enough_values(possible, lacked, codes, least, null):
                return False
    return _holding_discloses(possible, lacked, codes, totals, sizes, persons, column, demands, least, failed)


@kernel
def _holding_discloses(
    possible: NDArray[np.bool_],
    lacked: NDArray[np.bool_],
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    persons: NDArray[np.int64],
    column: int,
    demands: Demands,
    least: int,
    failed: bool,
) -> bool:
    """Return whether a refusal discloses, where too many persons of a half may also hold one value.

    Args:
        possible: Shape (2, values): which values each person in a half may hold, as far as is known; written to.
        lacked: Shape (2, values): which values each person in a half may be without; written to.
        codes: As of ``refusal_discloses``, like all that follows.
        least: How many different values each person must possibly have.
        failed: Whether a half may fail at all, as far as is known.
    """
    null = demands.nulls[column]
    for half in range(2):
        if not demands.holder_bounds.columns_bounded[column] or sizes[half] == persons[half]:
            continue
        for at in range(codes.shape[0]):
            fewest = fewest_too_many(persons[half], codes[at], column, null, demands.holder_bounds)
            if totals[at] < fewest or fewest > persons[half]:
                continue
            failed = True
            _hold(possible, lacked, codes, totals, sizes, persons, half, at, fewest)
            if has_enough_values(possible, lacked, codes, least, null):
                return False
    return failed


@kernel
def has_enough_values(possible: NDArray[np.bool_], lacked: NDArray[np.bool_], codes: NDArray[np.int64], least: int, null: int) -> bool:
    """Return whether all persons may hold enough values and no value is certain for a person."""
    for half in range(2):
        values = 0
        for at in range(codes.shape[0]):
            # A null is no value that somebody may have, and nobody is told by one.
            if codes[at] != null:
                values += possible[half, at]
                if not lacked[half, at]:
                    return False
        if values < least:
            return False
    return True


@kernel
def _hold(
    possible: NDArray[np.bool_],
    lacked: NDArray[np.bool_],
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    persons: NDArray[np.int64],
    half: int,
    held: int,
    fewest: int,
) -> None:
    """Add the possible values where too many persons of a half hold one value.

    Args:
        possible: Shape (2, values): which values each person in a half may hold; written to.
        lacked: Shape (2, values): which values each person in a half may be without; written to.
        codes: As of ``refusal_discloses``, like ``totals``, ``sizes`` and ``persons``.
        held: Where the value is among ``codes``.
        fewest: How many hold it at least.
    """
    whole = totals.sum()
    most, most_other = sizes[half] - persons[half] + 1, sizes[1 - half] - persons[1 - half] + 1
    for at in range(codes.shape[0]):
        others = whole - totals[at]
        if at == held:
            possible[half, at] = True
            possible[1 - half, at] |= totals[at] > fewest
            # Somebody of the half need not be one of them, or else all are.
            lacked[half, at] |= fewest < persons[half] and others >= most
            # As many records of the value as there is room for are in the half: elsewhere are all others, or none of the value.
            lacked[1 - half, at] |= others >= most_other
        else:
            possible[half, at] |= fewest < persons[half]
            possible[1 - half, at] = True
            lacked[half, at] |= others - fewest >= most - 1
            lacked[1 - half, at] |= others - fewest >= most_other


@kernel
def disclosing_refusals(
    owners: NDArray[np.int64],
    codes: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    persons: NDArray[np.int64],
    column: int,
    demands: Demands,
) -> NDArray[np.bool_]:
    """Return a mask of the classes whose refused split would disclose a record's value, shape (classes,).

    The check is that of ``refusal_discloses``.

    Args:
        owners: Shape (entries,), ascending: the class of each entry.
        codes: Shape (entries,), a sensitive code that occurs in it.
        totals: Shape (entries,), its records there.
        sizes: Shape (classes, 2), records of both halves.
        persons: Shape (classes, 2), their persons; the same where every record counts as one.
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
        telling[owner] = refusal_discloses(
            codes[begin:end], totals[begin:end], sizes[owner], persons[owner], column, demands, counts, present
        )
        begin = end
    return telling


@kernel
def _filled(totals: NDArray[np.int64], falling: NDArray[np.int64], first: int, size: int) -> NDArray[np.int64]:
    """Return the records of each value in a half filled with one value first, then the others in order."""
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
    """Return whether a half with the given records of each value breaks the model."""
    values = 0
    for at in range(codes.shape[0]):
        if held[at] > 0:
            counts[codes[at]] = held[at]
            present[values] = codes[at]
            values += 1
    kept = class_keeps(size, size, counts, present, values, column, demands)
    for at in range(values):
        counts[present[at]] = 0
    return not kept
