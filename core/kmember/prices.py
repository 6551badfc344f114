"""What the labels of a job cost, as kernels read it: for each quasi-identifier the order of its values, and the penalty of every hull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import as_numbers, is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.spelling import as_text
from core.kmember.hulls import HELD, LEVELS, PUBLISHED, RANGE, SET, TABLE, UNIT, Numbers, Places, Prices
from core.losses.losses import group_penalties
from core.recoding.ends import Ends, observed_ends
from core.recoding.generalisation import usual_way
from schemas.job.mondrian import Generalisation

MOST_IN_TABLE = 512
"""Values of a column whose pairs are priced one by one; 1 MB."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What the classes of a job publish for one QID.

    Attributes:
        way: How; None for the usual way.
        domain: Of the QID.
        hierarchy: Of the QID.
        ends: Where ranges may end; None for the values of a class.
    """

    way: Generalisation | None
    domain: Domain
    hierarchy: Hierarchy
    ends: Ends | None = None


class _Column(NamedTuple):
    """One column of `Prices`; ``places`` has the place of each code."""

    places: NDArray[np.int64]
    kind: int
    levels: int
    numbers: NDArray[np.int64]
    counted: bool


def label_prices(labels: Sequence[Labels]) -> tuple[Prices, list[Places], NDArray[np.bool_]]:
    """Returns the prices of labels, the place of each code of each QID, and whose values are counted, shape (QIDs,)."""
    columns = [_column(label) for label in labels]
    sizes = [label.domain.size for label in labels]
    counted = np.array([column.counted for column in columns])
    units = np.rint([UNIT / max(size, 1) for size in sizes]).astype(np.int64) * counted
    sets = np.array([column.kind == SET for column in columns])
    made = Prices(
        kinds=np.array([column.kind for column in columns], np.int64),
        firsts=np.cumsum([0, *(len(column.numbers) for column in columns[:-1])], dtype=np.int64),
        sizes=np.array(sizes, np.int64),
        levels=np.array([column.levels for column in columns], np.int64),
        numbers=np.concatenate([column.numbers for column in columns]).astype(np.int32),
        # Of a column whose values are not counted, the label stands for what is held too.
        weights=np.where(counted & ~sets, PUBLISHED, PUBLISHED + HELD).astype(np.int64),
        units=np.where(sets, PUBLISHED + HELD, HELD) * units,
    )
    return made, [column.places.astype(np.int32) for column in columns], counted


def _column(label: Labels) -> _Column:
    domain = label.domain
    match label.way or usual_way(domain, label.hierarchy):
        case "interval":
            return _Column(np.arange(domain.size), RANGE, 0, _ends(domain, label.ends or observed_ends(domain)), False)
        case "set":
            # The place of the null stands for the levels that a set has none of.
            return _Column(np.arange(domain.size), SET, len(domain.values), np.empty(0, np.int64), True)
        case "prefix":
            groups, penalties = _prefixes(domain)
            return _by_levels(groups, penalties, counted=True)
        case _:
            return _by_levels(*_groups(label), counted=not is_numerical(domain))


def _ends(domain: Domain, ends: Ends) -> Numbers:
    """Returns where ranges that begin at each code begin, then where those that end there end, in 2^-20ths of the domain."""
    numbers, size = as_numbers(domain.values), len(domain.values)
    found = np.zeros((2, domain.size), np.int64)
    # Of one value nothing is lost, whatever the ends are.
    for side, (steps, open_end) in enumerate(((ends.low, 0), (ends.high, -1)) if size > 1 else ()):
        # An open end is where the domain ends.
        shown = as_numbers(pc.fill_null(steps, domain.values[open_end]))
        assert shown is not None
        assert numbers is not None
        found[side, :size] = np.rint((shown[ends.steps] - numbers[0]) / (numbers[-1] - numbers[0]) * UNIT)
    # A range that reaches the null is all there is.
    found[1, size:] = found[1, :size].max(initial=0) + 2 * UNIT
    return found.ravel()


def _groups(label: Labels) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Returns the group of each code at every level that may be published, and the penalty of each group."""
    hierarchy, levels = label.hierarchy, range(label.hierarchy.least, label.hierarchy.levels)
    groups = [hierarchy.groups[level].astype(np.int64) for level in levels]
    return groups, [group_penalties(hierarchy, label.domain, level) for level in levels]


def _prefixes(domain: Domain) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Returns the codes grouped by what they begin with, shorter and shorter, and the penalty of each group."""
    words = np.array(as_text(domain.values).to_pylist(), np.str_)
    size, nulls = max(domain.size, 1), domain.size - len(words)
    groups, penalties = [], []
    for length in range(int(np.char.str_len(words).max(initial=0)), 0, -1):
        stems, numbers, counts = np.unique(words.astype(f"U{length}"), return_inverse=True, return_counts=True)
        groups.append(np.append(numbers, np.full(nulls, len(stems))).astype(np.int64))
        # A null begins like nothing else.
        penalties.append(np.append(np.where(counts > 1, counts / size, 0.0), 0.0))
    # Where nothing is common, * is published.
    return [*groups, np.zeros(domain.size, np.int64)], [*penalties, np.array([float(domain.size > 1)])]


def _by_levels(groups: Sequence[NDArray[np.int64]], penalties: Sequence[NDArray[np.float64]], *, counted: bool) -> _Column:
    """Puts codes in an order in which every group is a run, and writes down the groups and what they cost."""
    # The last key, which is the coarsest level, sorts first.
    order = np.lexsort(groups)
    size = len(order)
    places = np.empty(size, np.int64)
    places[order] = np.arange(size)
    runs = np.array([level[order] for level in groups])
    costs = np.array([np.rint(cost * UNIT)[run] for cost, run in zip(penalties, runs, strict=True)]).astype(np.int64)
    # One value is published as it is, if that may be; for that a level is wanted that tells all values apart.
    if len(np.unique(runs[0])) < size:
        runs, costs = np.insert(runs, 0, np.arange(size), axis=0), np.insert(costs, 0, costs[0], axis=0)
    if size > MOST_IN_TABLE:
        return _Column(places, LEVELS, len(runs), np.concatenate([runs.ravel(), costs.ravel()]), counted)
    table = np.zeros((size, size), np.int64)
    for run, cost in zip(runs[::-1], costs[::-1], strict=True):
        table = np.where(run[:, None] == run, cost[:, None], table)
    return _Column(places, TABLE, 0, table.ravel(), counted)
