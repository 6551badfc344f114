"""Blocks of records, each made into classes by itself; compiled by numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.kmember.classes import Classes, seated
from core.kmember.dissolving import dissolve, split_grown
from core.kmember.exchange import exchange
from core.kmember.growing import grow
from core.kmember.hulls import Numbers, Places, Prices, Records, kernel, whole, words_for


@kernel
def improve_blocks(
    records: Records, counted: NDArray[np.bool_], starts: Numbers, owners: Places, k: int, prices: Prices, passes: int, figures: Numbers
) -> Places:
    """Makes classes of each block, or betters those that there are.

    Args:
        records: All of them, block by block; their bits are worked out here, block by block.
        counted: Shape (columns,): whose values are counted.
        starts: Shape (blocks + 1,): where each block starts.
        owners: Shape (n,), int32: the class of each record, ascending; no entry where none are made yet.
        k: Persons or records of a class.
        prices: What labels cost.
        passes: How often all records are looked at for a step, at most.
        figures: Shape (3,): added to are the steps, the classes that were dissolved, and those that were split.

    Returns:
        Shape (n,), int32: the class of each record, dense from 0.
    """
    found, classes = np.empty(records.places.shape[0], np.int32), whole(0)
    # One more than places of values: that of a null.
    scratch = np.zeros(prices.sizes.max() + 1, np.int32)
    for number in range(starts.shape[0] - 1):
        first, end = starts[number], starts[number + 1]
        people = records.people[first:end] if records.people.shape[0] else records.people
        block = Records(records.places[first:end], _bits(records.places[first:end], counted, scratch), people)
        if owners.shape[0]:
            mine = _dense(owners[first:end])
        else:
            mine = np.zeros(end - first, np.int32)
            rows, names = np.arange(end - first).astype(np.int32), np.arange((end - first) // k)
            grow(block, rows, k, prices, mine, names, words_for(block))
        if passes:
            _better(block, seated(block, prices, mine, k), k, prices, passes, figures)
            mine = _dense(mine)
        for row in range(first, end):
            found[row] = classes + mine[row - first]
        classes += mine.max() + 1
    return found


@kernel
def _better(records: Records, classes: Classes, k: int, prices: Prices, passes: int, figures: Numbers) -> None:
    for _ in range(passes):
        gone = dissolve(records, prices, classes)
        steps = exchange(records, prices, classes, k)
        figures[0] += steps
        figures[1] += gone
        figures[2] += split_grown(records, prices, classes, k)
        if not steps and not gone:
            break


@kernel
def _dense(owners: Places) -> Places:
    """Numbers classes without gaps, in the order of their numbers."""
    low = owners.min()
    used = np.zeros(owners.max() - low + 1, np.int32)
    for owner in owners:
        used[owner - low] = 1
    places = np.cumsum(used) - 1
    made = np.empty(owners.shape[0], np.int32)
    for row in range(owners.shape[0]):
        made[row] = places[owners[row] - low]
    return made


@kernel
def _bits(places: Places, counted: NDArray[np.bool_], scratch: Places) -> Places:
    """Numbers the different values of a block, through all columns that count them; -1 elsewhere. ``scratch`` is 0 before and after."""
    bits = np.full(places.shape, np.int32(-1))
    number = 0
    for column in range(places.shape[1]):
        if not counted[column]:
            continue
        for row in range(places.shape[0]):
            place = places[row, column]
            if scratch[place] == 0:
                number += 1
                scratch[place] = number
            bits[row, column] = scratch[place] - 1
        for row in range(places.shape[0]):
            scratch[places[row, column]] = 0
    return bits
