"""Privacy rules in the form that Mondrian's kernels read, checked one class at a time.

Compiled by numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.compiling.compiled import compiler
from core.privacy.holders import HolderBounds, Holders, held_by_few_persons, no_holder_bounds, write_holder_bounds
from core.privacy.models import SLACK, Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise

MODULES = (
    "columns.sorting", "recoding.price_kernels", "privacy.holders", "privacy.kernels", "privacy.refusals", "mondrian.rows",
    "mondrian.halves", "mondrian.scores", "mondrian.cuts",
)  # fmt: skip
"""The modules of the kernels that cut, which call each other."""
kernel = compiler(*MODULES)
NO_BOUND = -1.0
COMPILED = (DistinctDiversity, EntropyDiversity, RecursiveDiversity, Closeness, Holders)
"""The models that kernels know; the entries that make them say so."""


class Demands(NamedTuple):
    """Privacy rules for a class, by sensitive column; a rule that is not set is negative.

    Attributes:
        k: Records.
        distinct: Shape (columns,): different values.
        entropies: Shape (columns,): nats.
        recursive: Shape (columns, 3): numerator and denominator of c, and l.
        distances: Shape (columns, 3): the greatest equal, ordered and hierarchical distance.
        source_counts: Shape (columns, most values): the share of each value in the whole source.
        sizes: Shape (columns,): values.
        orders: Shape (columns, most values): the values in the order of the ordered distance.
        parents: Shape (columns, most levels, most values): at each level of the hierarchical distance the group of each group below.
        heights: Shape (columns,): levels.
        nulls: Shape (columns,): the code of the null where it is no value of diversity, else -1.
        holder_bounds: By how many persons a value may be held.
    """

    k: int
    distinct: NDArray[np.int64]
    entropies: NDArray[np.float64]
    recursive: NDArray[np.int64]
    distances: NDArray[np.float64]
    source_counts: NDArray[np.float64]
    sizes: NDArray[np.int64]
    orders: NDArray[np.int64]
    parents: NDArray[np.int64]
    heights: NDArray[np.int64]
    nulls: NDArray[np.int64]
    holder_bounds: HolderBounds


def demands_of(promise: Promise, columns: Sequence[str], source_counts: Sequence[NDArray[np.int64]]) -> Demands:
    """Convert a promise to the demands that kernels read.

    Args:
        promise: What every class must keep.
        columns: The sensitive columns that it looks at, in the order of their codes.
        source_counts: Records of the whole source per value, one array per column.
    """
    count, most = len(columns), max(map(len, source_counts), default=0)
    heights = [len(one.groups) for one in promise.models if isinstance(one, Closeness)]
    made = Demands(
        promise.k,
        np.full(count, -1, np.int64),
        np.full(count, NO_BOUND),
        np.full((count, 3), -1, np.int64),
        np.full((count, 3), NO_BOUND),
        np.zeros((count, most)),
        np.array([len(whole) for whole in source_counts], np.int64),
        np.zeros((count, most), np.int64),
        np.zeros((count, max(heights, default=0), most), np.int64),
        np.zeros(count, np.int64),
        np.full(count, -1, np.int64),
        no_holder_bounds(count, most),
    )
    for column, whole in enumerate(source_counts):
        made.source_counts[column, : len(whole)] = whole / max(int(whole.sum()), 1)
    for one in promise.models:
        if isinstance(one, Holders):
            write_holder_bounds(made.holder_bounds, one, columns.index(one.column), source_counts[columns.index(one.column)])
        else:
            _demand(made, one, columns)
    return made


def is_compiled(promise: Promise) -> bool:
    """Return whether kernels know all models of a promise."""
    return all(isinstance(one, COMPILED) for one in promise.models)


def _demand(made: Demands, model: PrivacyModel, columns: Sequence[str]) -> None:
    """Write a privacy model into the demands."""
    # A column has one model of diversity, so that one code says it for all.
    if isinstance(model, DistinctDiversity | EntropyDiversity | RecursiveDiversity) and model.null is not None:
        made.nulls[columns.index(model.column)] = model.null
    match model:
        case DistinctDiversity():
            made.distinct[columns.index(model.column)] = model.l
        case EntropyDiversity():
            made.entropies[columns.index(model.column)] = np.log(model.l) - SLACK
            # An entropy of ln(1) is that of one value and bounds nothing, being less than 0 here; but nulls alone are none.
            made.distinct[columns.index(model.column)] = 1
        case RecursiveDiversity():
            made.recursive[columns.index(model.column)] = model.c.numerator, model.c.denominator, model.l
            # Of fewer values the tail is empty.
            made.distinct[columns.index(model.column)] = model.l
        case Closeness():
            column = columns.index(model.column)
            made.distances[column, 1 if model.ranks is not None else 2 if model.groups else 0] = model.t + SLACK
            if model.ranks is not None:
                made.orders[column, model.ranks] = np.arange(len(model.ranks))
            made.heights[column] = len(model.groups)
            below = np.arange(made.sizes[column])
            for level, groups in enumerate(model.groups):
                made.parents[column, level, below] = groups
                below = groups
        case _:
            raise TypeError(type(model).__name__)


@kernel
def class_keeps(
    weight: int, person_count: int, counts: NDArray[np.int64], present: NDArray[np.int64], size: int, column: int, demands: Demands
) -> bool:
    """Return whether a class keeps the privacy model in one sensitive column.

    A further model is added here and nowhere else.

    Args:
        weight: Records of the class; where persons count, each person once for each of their values.
        person_count: Persons of the class; as many as records where the job has no person column.
        counts: Records, or persons, by sensitive code; 0 but for ``present``.
        present: The codes that occur, in its first ``size`` entries.
        demands: What is asked.
    """
    null = demands.nulls[column]
    # What is no value adds nothing: neither a value nor records that shares are of.
    lacking = counts[null] if null >= 0 else np.int64(0)
    values = size - 1 if lacking > 0 else size
    if values < demands.distinct[column]:
        return False
    if demands.entropies[column] >= 0:
        # Somebody has a value, as one at least is asked for.
        spread, known = 0.0, weight - lacking
        for index in range(size):
            if present[index] != null:
                spread += counts[present[index]] * log(counts[present[index]])
        if log(known) - spread / known < demands.entropies[column]:
            return False
    if demands.recursive[column, 2] >= 0:
        ordered = np.zeros(size, np.int64)
        for index in range(size):
            if present[index] != null:
                ordered[index] = counts[present[index]]
        # The null, if there is one, is a 0 now, which comes first and adds nothing to the tail.
        order, tail = ascending_order(ordered), np.int64(0)
        for index in range(size - demands.recursive[column, 2] + 1):
            tail += ordered[order[index]]
        # Both sides whole: c is a fraction, and a float product could let a class through that is just at the limit.
        if ordered[order[size - 1]] * demands.recursive[column, 1] >= demands.recursive[column, 0] * tail:
            return False
    return is_close(weight, counts, column, demands) and held_by_few_persons(
        person_count, counts, present, size, column, demands.nulls[column], demands.holder_bounds
    )


@kernel
def is_close(weight: int, counts: NDArray[np.int64], column: int, demands: Demands) -> bool:
    """Return whether a class's distribution is within t of the source's, by every distance.

    See Li et al. 2007.
    """
    equal, ordered, hierarchical = demands.distances[column]
    if equal < 0 and ordered < 0 and hierarchical < 0:
        return True
    values = demands.sizes[column]
    extra, apart, behind, carried = np.empty(values), 0.0, 0.0, 0.0
    for value in range(values):
        extra[value] = counts[value] / weight - demands.source_counts[column, value]
        apart += abs(extra[value])
    if equal >= 0 and apart / 2 > equal:
        return False
    if ordered >= 0:
        for rank in range(values):
            behind += extra[demands.orders[column, rank]]
            carried += abs(behind)
        if carried / max(values - 1, 1) > ordered:
            return False
    if hierarchical < 0:
        return True
    height, total = demands.heights[column], 0.0
    for level in range(height):
        spare, wanted, moved = np.zeros(values), np.zeros(values), 0.0
        for child in range(values):
            parent = demands.parents[column, level, child]
            spare[parent] += max(extra[child], 0.0)
            wanted[parent] += max(-extra[child], 0.0)
        for parent in range(values):
            moved += min(spare[parent], wanted[parent])
            extra[parent] = spare[parent] - wanted[parent]
        total += moved * (level + 1) / height
    return bool(total <= hierarchical)
