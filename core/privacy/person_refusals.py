"""Disclosure by refused splits of persons whose values are published together.

Where all rows of a person go out under one pseudonym, a reader who goes through the ways to assign values to persons
(`core.privacy.refusals`) assigns whole sets of values. So the ways considered here are those of sets. In a way one half is filled with
persons who have one value alone, then with those who have none, then with those whose values are the most frequent ones; or with all who
have one value.

A split is tried if no way can fail, or if the ways that fail leave every person enough possible values and make none certain. Both follow
from the sets of the class and the sizes of its halves, which are published: so not to try a split discloses nothing. That no way can fail
is concluded from a bound: the least even halves that records could form if they came one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.compiling.compiled import compiler
from core.privacy.holders import fewest_too_many
from core.privacy.kernels import Demands, class_keeps
from core.privacy.refusals import TRIED, has_enough_values, least_values

kernel = compiler("columns.sorting", "privacy.holders", "privacy.kernels", "privacy.refusals", "privacy.person_refusals")

Integers = NDArray[np.int64]


@kernel
def disclosing_refusals_of_persons(
    owners: Integers, sets: Integers, many: Integers, sizes: Integers, starts: Integers, codes: Integers, column: int, demands: Demands
) -> NDArray[np.bool_]:
    """Return a mask of the classes whose refused split would disclose a person's value, shape (classes,).

    Args:
        owners: Shape (entries,), ascending: the class of each entry.
        sets: Shape (entries,): a set of values that occurs in it, ascending within the class.
        many: Shape (entries,): its persons with that set.
        sizes: Shape (classes, 2), persons of both halves.
        starts: Shape (sets + 1,), where the values of each set begin.
        codes: Sensitive codes, set by set, each once.
        column: The sensitive column.
        demands: What is asked.
    """
    telling = np.zeros(sizes.shape[0], np.bool_)
    size = demands.sizes[column]
    room, present = np.zeros(size, np.int64), np.zeros(size, np.int64)
    begin = 0
    for owner in range(sizes.shape[0]):
        end = begin
        while end < owners.shape[0] and owners[end] == owner:
            end += 1
        telling[owner] = _discloses(sets[begin:end], many[begin:end], sizes[owner], starts, codes, column, demands, room, present)
        begin = end
    return telling


@kernel
def _discloses(
    sets: Integers, many: Integers, sizes: Integers, starts: Integers, codes: Integers, column: int, demands: Demands, room: Integers,
    present: Integers,
) -> bool:  # fmt: skip
    """Return whether the refused split of one class would disclose."""
    null, totals, blank = demands.nulls[column], np.zeros(demands.sizes[column], np.int64), np.int64(0)
    for entry in range(sets.shape[0]):
        values = 0
        for place in range(starts[sets[entry]], starts[sets[entry] + 1]):
            totals[codes[place]] += many[entry]
            values += codes[place] != null
        if not values:
            blank += many[entry]
    there, falling = _codes_by_frequency(totals, null)
    if not there.shape[0]:
        # Nobody has a row, so that no half is asked.
        return False
    valued = falling.shape[0]
    if not _may_fail(totals, falling, int(blank), sizes, column, demands, room, present):
        return False
    positions = np.full(totals.shape[0], -1, np.int64)
    for place in range(valued):
        positions[falling[place]] = place
    bounded = demands.holder_bounds.columns_bounded[column]
    possible, lacked = np.zeros((2, there.shape[0]), np.bool_), np.full((2, there.shape[0]), not bounded, np.bool_)
    least = least_values(column, demands)
    for place in range(min(valued, TRIED)):
        for mode in range(2 if bounded else 1):
            order = ascending_order(_keys(sets, starts, codes, positions, falling[place], mode == 0))
            for half in range(2):
                held = _filled(sets, many, order, sizes[half], starts, codes, totals.shape[0])
                if not (_fails(held, sizes[half], column, demands, room, present)
                        or _fails(totals - held, sizes[1 - half], column, demands, room, present)):  # fmt: skip
                    continue
                for at in range(there.shape[0]):
                    mine = held[there[at]]
                    other = totals[there[at]] - mine
                    possible[half, at] |= mine > 0
                    possible[1 - half, at] |= other > 0
                    lacked[half, at] |= mine < sizes[half]
                    lacked[1 - half, at] |= other < sizes[1 - half]
                if has_enough_values(possible, lacked, there, least, null):
                    return False
    return True


@kernel
def _codes_by_frequency(totals: Integers, null: int) -> tuple[Integers, Integers]:
    """Return the codes that somebody has, and those of values with the most frequent first.

    Args:
        totals: Shape (codes,), the persons of each value.
        null: The code of the null, which is no value that somebody may have, or -1.

    Returns:
        The codes that somebody has, ascending, and the same without the null, most frequent first.
    """
    there, largest, size = np.empty(totals.shape[0], np.int64), np.int64(0), 0
    for code in range(totals.shape[0]):
        if totals[code] > 0:
            there[size] = code
            largest = max(largest, totals[code])
            size += 1
    there, keys, values = there[:size], np.empty(size, np.int64), size
    for place in range(size):
        # The null comes last, and is left out.
        keys[place] = largest if there[place] == null else largest - totals[there[place]]
        values -= there[place] == null
    falling, order = np.empty(values, np.int64), ascending_order(keys)
    for place in range(values):
        falling[place] = there[order[place]]
    return there, falling


@kernel
def _may_fail(
    totals: Integers, falling: Integers, blank: int, sizes: Integers, column: int, demands: Demands, room: Integers, present: Integers
) -> bool:
    """Return whether a half may break the model in some way; where that is not known, that it may.

    No half is less even than one that is filled with the most frequent values one by one: of as many of them as it has persons with values
    at least. Diversity is the least there. For closeness there is no such bound.

    Args:
        totals: Shape (codes,), the persons of each value.
        falling: The codes that occur but for the null, most frequent first.
        blank: Persons without a value.
        sizes: Shape (2,), persons of both halves.
        column: The sensitive column.
        demands: What is asked.
        room: Scratch, all 0 before and after.
        present: Scratch.
    """
    for distance in demands.distances[column]:
        if distance >= 0:
            return True
    for half in range(2):
        for code in falling:
            if demands.holder_bounds.columns_bounded[column]:
                fewest = fewest_too_many(sizes[half], code, column, demands.nulls[column], demands.holder_bounds)
                if fewest <= sizes[half] and totals[code] >= fewest:
                    return True
        least = sizes[half] - blank
        if least <= 0:
            return True
        held, left = np.zeros(totals.shape[0], np.int64), least
        for code in falling:
            held[code] = min(totals[code], left)
            left -= held[code]
        if _fails(held, sizes[half], column, demands, room, present):
            return True
    return False


@kernel
def _keys(sets: Integers, starts: Integers, codes: Integers, positions: Integers, value: int, alone: bool) -> Integers:
    """Return in which order a half is filled with the sets of a class, shape (entries,).

    Args:
        sets: Shape (entries,), as of ``disclosing_refusals_of_persons``, like ``starts`` and ``codes``.
        positions: Shape (codes,): where each value is among those that occur, most frequent first; -1 for the null.
        value: The value that comes first.
        alone: Whether those come first who have it alone, then those without values, then those of the most frequent values; else all come
            first who have it.
    """
    keys = np.zeros(sets.shape[0], np.int64)
    for entry in range(sets.shape[0]):
        has, last = False, np.int64(-1)
        for place in range(starts[sets[entry]], starts[sets[entry] + 1]):
            code = codes[place]
            if code == value:
                has = True
            else:
                last = max(last, positions[code])
        if not alone or last < 0:
            keys[entry] = 0 if has else 1
        else:
            keys[entry] = 2 + last
    return keys


@kernel
def _filled(sets: Integers, many: Integers, order: Integers, size: int, starts: Integers, codes: Integers, code_count: int) -> Integers:
    """Return the persons of each value in a half that is filled with sets in an order, shape (codes,)."""
    held, left = np.zeros(code_count, np.int64), size
    for entry in order:
        taken = min(many[entry], left)
        left -= taken
        for place in range(starts[sets[entry]], starts[sets[entry] + 1]):
            held[codes[place]] += taken
    return held


@kernel
def _fails(held: Integers, persons: int, column: int, demands: Demands, room: Integers, present: Integers) -> bool:
    """Return whether a half with the given persons of each value breaks the model.

    One without any value is not asked.
    """
    values, weight = 0, np.int64(0)
    for code in range(held.shape[0]):
        if held[code] > 0:
            room[code] = held[code]
            present[values] = code
            values += 1
            weight += held[code]
    kept = values == 0 or class_keeps(int(weight), persons, room, present, values, column, demands)
    for at in range(values):
        room[present[at]] = 0
    return not kept
