"""Compiled loops (numba) over the person–cell pairs of persons, read person by person.

A class gets one person more with every pair but those of a person that it counted already, and for that only the last person counted must
be known. One pass, no sort, no set of persons.

A pair is written as the number of its cell, the first one of each person as ``~cell``, so that nothing else says where a person begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("units.kernels")

Numbers = NDArray[np.int64]
CellNumbers = NDArray[np.int32]
Classes = NDArray[np.signedinteger[Any]]
PersonMarks = NDArray[np.bool_]


@kernel
def group(owners: Classes, values: Classes, size: int) -> tuple[Numbers, CellNumbers]:
    """Group values by owner, keeping their order; return where each owner's values start, and the values.

    Args:
        owners: Shape (n,), from 0; a negative one is left out.
        values: Shape (n,).

    Returns:
        Where the values of each owner start, shape (size + 1,), and the values.
    """
    starts = np.zeros(size + 1, np.int64)
    for owner in owners:
        if owner >= 0:
            starts[owner + 1] += 1
    for owner in range(size):
        starts[owner + 1] += starts[owner]
    places, grouped = starts[:-1].copy(), np.empty(starts[-1], np.int32)
    for row in range(owners.shape[0]):
        owner = owners[row]
        if owner >= 0:
            grouped[places[owner]] = values[row]
            places[owner] += 1
    return starts, grouped


@kernel
def first_cells(persons: CellNumbers, owners: Classes, size: int) -> CellNumbers:
    """Return the first cell of each person, shape (size,); 0 for a person without cells.

    Args:
        persons: Shape (n,), from 0; a negative one is left out.
        owners: Shape (n,), the cell of each.
    """
    found = np.zeros(size, np.int32)
    for row in range(persons.shape[0] - 1, -1, -1):
        if persons[row] >= 0:
            found[persons[row]] = owners[row]
    return found


@kernel
def _closed(person_cells: CellNumbers, first: np.int64, size: np.int64) -> np.int64:
    """End the pairs of one person: mark the first one, or remove a single one.

    A single pair can never be counted twice.

    Args:
        person_cells: Shape (pairs,), written to.
        first: Where those of the person begin.
        size: Where they end.

    Returns:
        Where the next person's begin.
    """
    if size == first + 1:
        return first
    if size > first:
        person_cells[first] = ~person_cells[first]
    return size


@kernel
def distinct_pairs(starts: Numbers, cells: CellNumbers, per_cell: CellNumbers, last: CellNumbers) -> CellNumbers:
    """Return the distinct person–cell pairs of persons with several cells; count all in ``per_cell``.

    Persons with one cell can never be counted twice.

    Args:
        starts: Shape (persons + 1,), where the cells of each person start.
        cells: Cells, person by person.
        per_cell: Shape (cells,): gets one more for each person of a cell.
        last: Shape (cells,), all -1; written to.
    """
    person_cells, size = np.empty(cells.shape[0], np.int32), np.int64(0)
    for person in range(starts.shape[0] - 1):
        first = size
        for place in range(starts[person], starts[person + 1]):
            cell = cells[place]
            if last[cell] != person:
                last[cell] = person
                per_cell[cell] += 1
                person_cells[size] = cell
                size += 1
        size = _closed(person_cells, first, size)
    return person_cells[:size].copy()


@kernel
def count_repeated_persons(
    person_cells: CellNumbers, class_of: Classes, asked_positions: Classes, last: CellNumbers, repeats: Numbers
) -> None:
    """Add to ``repeats`` each class's person–cell pairs whose person the class has already.

    Args:
        class_of: Shape (cells,), the class of each cell.
        asked_positions: Shape (classes,), the place of each class in ``repeats``; a negative one is not asked for.
        last: Shape (asked classes,), all -1; written to.
        repeats: Shape (asked classes,), added to.
    """
    person = np.int32(-1)
    for visit in person_cells:
        cell = visit
        if visit < 0:
            person += np.int32(1)
            cell = ~visit
        number = asked_positions[class_of[cell]]
        if number >= 0:
            repeats[number] += last[number] == person
            last[number] = person


@kernel
def merge_person_cells(
    person_cells: CellNumbers, class_of: Classes, wanted: PersonMarks, last: CellNumbers, repeats: Numbers
) -> CellNumbers:
    """Return distinct person–cell pairs of wanted coarser cells; count the merged ones in ``repeats``.

    Args:
        class_of: Shape (cells,), the coarser cell of each.
        wanted: Shape (coarser cells,): which of them are of interest.
        last: Shape (coarser cells,), all -1; written to.
        repeats: Shape (coarser cells,): gets one more for each visit that was the person's already.
    """
    merged, size = np.empty(person_cells.shape[0], np.int32), np.int64(0)
    person, begins = np.int32(-1), True
    for visit in person_cells:
        cell = visit
        if visit < 0:
            person += np.int32(1)
            begins = True
            cell = ~visit
        coarser = class_of[cell]
        if not wanted[coarser]:
            continue
        if last[coarser] == person:
            repeats[coarser] += 1
            continue
        last[coarser] = person
        merged[size] = ~coarser if begins else coarser
        begins = False
        size += 1
    return merged[:size].copy()


@kernel
def drop_person_cells(person_cells: CellNumbers, wanted: PersonMarks) -> CellNumbers:
    """Return the pairs with wanted cells, without persons who have only one such pair.

    Args:
        wanted: Shape (cells,).
    """
    left, size, first = np.empty(person_cells.shape[0], np.int32), np.int64(0), np.int64(0)
    for visit in person_cells:
        cell = visit
        if visit < 0:
            first = size = _closed(left, first, size)
            cell = ~visit
        if wanted[cell]:
            left[size] = cell
            size += 1
    size = _closed(left, first, size)
    return left[:size].copy()


@kernel
def count_known_persons(person_cells: CellNumbers, before: PersonMarks, class_of: Classes, last: CellNumbers, known: Numbers) -> None:
    """Add to ``known`` each class's pairs whose person it has already, or who is in a ``before`` cell.

    Args:
        before: Shape (cells,): which cells come before all classes.
        class_of: Shape (cells,), the class of each cell; a negative one is not asked for.
        last: Shape (classes,), all -1; written to.
        known: Shape (classes,), added to.
    """
    person, start = np.int32(-1), 0
    while start < person_cells.shape[0]:
        end, met = start + 1, before[~person_cells[start]]
        while end < person_cells.shape[0] and person_cells[end] >= 0:
            met |= before[person_cells[end]]
            end += 1
        person += np.int32(1)
        for place in range(start, end):
            number = class_of[~person_cells[place] if place == start else person_cells[place]]
            if number >= 0:
                known[number] += met or last[number] == person
                last[number] = person
        start = end


@kernel
def add_weights(class_of: Classes, weights: Classes, sums: Classes) -> None:
    """Add each cell's row of weights to its class's row of ``sums``.

    Args:
        class_of: Shape (cells,).
        weights: Shape (cells, weights).
        sums: Shape (classes, weights), added to.
    """
    for cell in range(class_of.shape[0]):
        for weight in range(weights.shape[1]):
            sums[class_of[cell], weight] += weights[cell, weight]


@kernel
def weigh_cells(
    codes: NDArray[np.unsignedinteger[Any]], starts: Numbers, worth: Numbers, weights: Classes, class_of: CellNumbers, sums: Classes
) -> None:
    """Write each cell's class number to ``class_of`` and add its weights to ``sums``, in one pass.

    Args:
        codes: Shape (cells, QIDs), the group of each QID in each cell.
        starts: Shape (QIDs,), where each QID's part of ``worth`` starts.
        worth: What each group adds to the number of a class.
        weights: Shape (cells, weights).
        class_of: Shape (cells,), written to.
        sums: Shape (classes, weights), added to.
    """
    for cell in range(codes.shape[0]):
        number = 0
        for qid in range(codes.shape[1]):
            number += worth[starts[qid] + np.int64(codes[cell, qid])]
        class_of[cell] = number
        for weight in range(weights.shape[1]):
            sums[number, weight] += weights[cell, weight]
