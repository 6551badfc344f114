"""Published values of columns that are not quasi-identifiers: shared, rounded, bounded or means.

Once the values of the source are counted, each way of publishing depends on the value alone. Some values are published as they are
(*kept*), the others by the step of values that they lie in. So the other records of a release do not change how a record is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.compiling.compiled import compiler
from core.formats.published import PublishedValues, value_keys
from core.recoding.classes import cut_grid_lines
from core.recoding.ends import grid_of
from schemas.job.identifiers import OTHER, SHARED, Publishing, Way

kernel = compiler("recoding.publishing")


PLACES = 16
"""Places at which a stretch of values is cut at most, at none of which a person is counted."""


def cut_groups(numbers: NDArray[np.float64], records: NDArray[np.int64], people: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Return where groups of ``least`` people or more start, cut for least squared error, shape (groups,).

    Between two values at which persons are counted lie thousands where persons have thousands of values each. A cut is tried at
    ``PLACES`` of these only.

    Args:
        numbers: Shape (m,), ascending, distinct.
        records: Shape (m,), how many records have each.
        people: Shape (m,), how many people have each, no person twice; at least ``least`` together.
    """
    starts = _cut_places(people)
    means, errors = numbers[starts], np.zeros(len(starts))
    weights, held = np.add.reduceat(records, starts), np.add.reduceat(people, starts)
    ends = np.append(starts[1:], len(numbers))
    for block in np.flatnonzero(ends - starts > 1).tolist():
        part, times = numbers[starts[block] : ends[block]], records[starts[block] : ends[block]].astype(np.float64)
        means[block] = math.fsum(part * times) / float(weights[block])
        apart = part - means[block]
        errors[block] = math.fsum(apart * apart * times)
    return starts[_cut_blocks(means, errors, weights, held, least)]


def _cut_places(people: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the values before which a cut is tried, shape (places,), ascending from 0."""
    places, counted = np.arange(len(people)), people > 0
    first = np.maximum.accumulate(np.where(counted, places + 1, 0))
    after = np.minimum.accumulate(np.where(counted, places, len(people))[::-1])[::-1]
    step = np.maximum((after - first + PLACES - 1) // PLACES, 1)
    return np.flatnonzero(counted | ((places - first) % step == 0))


@kernel
def _cut_blocks(
    means: NDArray[np.float64], errors: NDArray[np.float64], weights: NDArray[np.int64], people: NDArray[np.int64], least: int
) -> NDArray[np.int64]:
    """Return the first block of each group, shape (groups,).

    A block of values is as one value that has an error of its own, shape (blocks,).
    A group that could be cut in two is never better than its parts, so that only short groups are looked at.
    """
    count = means.shape[0]
    before = np.zeros(count + 1, np.int64)
    for place in range(count):
        before[place + 1] = before[place] + people[place]
    best, start = np.full(count + 1, np.inf), np.full(count + 1, -1, np.int64)
    best[0] = 0.0
    for end in range(1, count + 1):
        weight, mean, error, most = 0.0, 0.0, 0.0, 0
        for first in range(end - 1, -1, -1):
            # Welford's sums: differences of large squares would lose all digits.
            added = float(weights[first])
            weight += added
            apart = means[first] - mean
            mean += apart * added / weight
            error += apart * (means[first] - mean) * added + errors[first]
            held = before[end] - before[first]
            if held >= least and best[first] + error < best[end]:
                best[end], start[end] = best[first] + error, first
            most = max(most, people[first])
            # There is a cut with enough people on either side, whichever value it falls upon.
            if held >= 2 * least + most:
                break
    groups, after, made = np.empty(count, np.int64), count, 0
    while after > 0:
        groups[made] = start[after]
        after = int(start[after])
        made += 1
    return groups[:made][::-1].copy()


Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountedValues:
    """Values of a column, with the persons and records that have them.

    Attributes:
        values: Shape (m,), distinct, ascending, without null and without what is not a number.
        people: Shape (m,), int64: different persons, or records where no persons are named.
        drawn: Shape (m,), int64: the same, each person once, at the value of a drawn record with a value that fewer than k people have;
            zeros where ``counts_in_steps`` is false.
        records: Shape (m,), int64: records.
        nulls: People with a null.
        rare_people: People with a value that fewer than k people have.
    """

    values: pa.Array
    people: Counts
    drawn: Counts
    records: Counts
    nulls: int
    rare_people: int


def published_values(value_counts: CountedValues, way: Way, k: int) -> PublishedValues:
    """Return the published value of each source value, for one way of publishing.

    Args:
        k: People who share a value, at least.
    """
    if way == SHARED:
        return _shared_texts(value_counts, k) if not _is_ordered(value_counts.values.type) else _shared_numbers(value_counts, k)
    assert isinstance(way, Publishing)
    if way.microaggregate is not None:
        return _means(value_counts, max(way.microaggregate, k), k)
    made = _rounded(value_counts.values, way.round) if way.round is not None else _within(value_counts.values, way)
    nothing = pa.nulls(1, made.type)
    return PublishedValues(value_counts.values[:0], made[:0], value_counts.values, made, nothing, nothing)


def counts_in_steps(kind: pa.DataType, way: Way) -> bool:
    """Return whether a way of publishing groups a type's values, so that a person must count in one group."""
    return _is_ordered(kind) if way == SHARED else isinstance(way, Publishing) and way.microaggregate is not None


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type holds numbers."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def nearest_doubles(values: pa.Array) -> NDArray[np.float64]:
    """Return the double next to each number, shape (n,), as the recount reads them."""
    if pt.is_decimal(values.type):
        # Arrow's own conversion often takes the double beside it: of groups that are as good, another would be best.
        return np.array([float(one) for one in values.to_pylist()], np.float64)
    return np.asarray(values.cast(pa.float64(), safe=False))


def _is_ordered(kind: pa.DataType) -> bool:
    """Return whether the values of a type are ordered: numbers, dates or timestamps."""
    return is_number(kind) or bool(pt.is_date(kind) or pt.is_timestamp(kind))


def _shared_texts(value_counts: CountedValues, k: int) -> PublishedValues:
    """Keep texts that k persons have; the others become ``other``, or null where the column is no text.

    Nulls of fewer than k persons become the same.
    """
    kind, shared = value_counts.values.type, value_counts.people >= k
    nulls = 0 if value_counts.nulls >= k else value_counts.nulls
    rest = max(value_counts.rare_people, nulls)
    lone = 0 < rest < k
    # Where no text is shared but nulls are, a word for the others would be that of fewer than k people.
    missing = lone and not shared.any() and value_counts.nulls > nulls
    if lone and shared.any():
        shared = shared & ~_fewest(value_counts.people, shared)
    kept = value_counts.values.filter(pa.array(shared))
    rest_as = pa.array([None if missing else _other(kept, kind)], kind)
    return PublishedValues(kept, kept, kept[:0], kept[:0], rest_as, rest_as if nulls else pa.nulls(1, kind))


def _other(kept: pa.Array, kind: pa.DataType) -> str | None:
    """Return the word that replaces rare texts; it differs from every kept text.

    So it reveals nothing about whether a single person has that text. It is None where the column is no text.
    """
    if not is_text(kind):
        return None
    taken, word = set(pc.cast(kept, pa.string()).to_pylist()), OTHER
    while word in taken:
        word += "*"
    return word


def _fewest(people: Counts, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the marked value with the fewest persons, the first of several."""
    chosen = np.zeros(len(people), np.bool_)
    places = np.flatnonzero(among)
    chosen[places[np.argmin(people[places])]] = True
    return chosen


def _shared_numbers(value_counts: CountedValues, k: int) -> PublishedValues:
    """Keep numbers and dates that k persons have; the others become steps of a grid, or null.

    Each step has k persons.
    """
    values, shared = value_counts.values, value_counts.people >= k
    kind, nothing = values.type, pa.nulls(1, values.type)
    rare = pa.array(~shared)
    others = values.filter(rare)
    starts, published, people = _steps(others, value_counts.drawn[~shared], k)
    # Those in no step are null, as nulls are: together they are k people, or one published value more is null.
    unpublished = int(value_counts.drawn[~shared].sum()) if len(others) and not len(starts) else 0
    if len(others) and not len(starts):
        starts, published, people = others[:1], nothing, np.zeros(1, np.int64)
    missing = max(value_counts.nulls, value_counts.rare_people if len(others) and published.null_count else unpublished)
    kept = values.filter(pa.array(shared))
    kept_as = kept
    if 0 < missing < k and (len(kept) or people.any()):
        every = np.concatenate([value_counts.people[shared], np.where(people > 0, people, np.iinfo(np.int64).max)])
        gone = _fewest(every, np.ones(len(every), np.bool_))
        kept_as = pc.if_else(pa.array(gone[: len(kept)]), pa.scalar(None, kind), kept)
        published = pc.if_else(pa.array(gone[len(kept) :]), pa.scalar(None, kind), published)
    return PublishedValues(kept, kept_as, starts, published, nothing, nothing)


def _steps(values: pa.Array, people: Counts, k: int) -> tuple[pa.Array, pa.Array, Counts]:
    """Cut values into steps of k persons: the first value, published value and persons of each step.

    The result is empty where no cut is possible.
    """
    none = values[:0], values[:0], np.zeros(0, np.int64)
    if not len(values):
        return none
    grid, before = grid_of(values, None), np.append(0, np.cumsum(people))
    lines = np.zeros(len(values), np.int64)
    cuts = cut_grid_lines(grid.grid_lines, before, grid.widths, k, lines)
    cuts[0] = False
    firsts = np.flatnonzero(cuts)
    if not len(firsts):
        return none
    at = lines[firsts]
    # Beyond the outermost cuts nobody says how far values lie, and in a step they may lie anywhere.
    middles = grid.spell((at[:-1] + at[1:]) // 2, 0)
    published = pa.concat_arrays([grid.spell(at[:1], -1), middles, grid.spell(at[-1:], 0)])
    starts = np.append(0, firsts)
    return values.take(pa.array(starts)), published, np.add.reduceat(people, starts)


def _rounded(values: pa.Array, base: Decimal) -> pa.Array:
    """Round values to multiples of a number, ties to even."""
    kind, keys = values.type, value_keys(values)
    if pt.is_floating(kind):
        ratio = Fraction(base)
        # Zero has no sign: it would tell from which side a value came.
        whole = np.rint(keys.astype(np.float64) / float(base)) + 0.0
        return pa.array(whole * float(ratio.numerator) / float(ratio.denominator), pa.float64()).cast(kind)
    unit = int(base.scaleb(kind.scale)) if pt.is_decimal(kind) else int(base)
    low = keys.astype(object) // unit
    over = keys.astype(object) - low * unit
    up = (2 * over > unit) | ((2 * over == unit) & (low % 2 == 1))
    made = [int(one) for one in (low + up) * unit]
    if pt.is_decimal(kind):
        return pa.array([Decimal(one).scaleb(-kind.scale) for one in made], kind)
    return pa.array(made, kind)


def _within(values: pa.Array, way: Publishing) -> pa.Array:
    """Bound numbers by the top and bottom of a way of publishing."""
    made = values
    if way.top is not None:
        made = pc.min_element_wise(made, scalar_of(way.top, values.type))
    if way.bottom is not None:
        made = pc.max_element_wise(made, scalar_of(way.bottom, values.type))
    return made


def scalar_of(number: Decimal, kind: pa.DataType) -> pa.Scalar:
    """Convert a job's number to a value of a column's type; raise ValueError for a fraction of integers."""
    if pt.is_integer(kind):
        if number != number.to_integral_value():
            msg = "a fraction, where values are whole numbers"
            raise ValueError(msg)
        return pa.scalar(int(number), kind)
    return pa.scalar(float(number), kind) if pt.is_floating(kind) else pa.scalar(number, kind)


def _means(value_counts: CountedValues, least: int, k: int) -> PublishedValues:
    """Put numbers into groups of at least ``least`` persons, each published as its group's mean.

    The squared error is least. The best groups are of neighbours and are found by dynamic programming (Hansen and Mukherjee 2003). Equal
    numbers stay together.
    """
    values, nothing = value_counts.values, pa.nulls(1, pa.float64())
    numbers = nearest_doubles(values)
    if value_counts.drawn.sum() < least:
        # Fewer people than a group has: nothing is published.
        return PublishedValues(values[:0], nothing[:0], values[:1], nothing[: len(values[:1])], nothing, nothing)
    starts = cut_groups(numbers, value_counts.records, value_counts.drawn, least)
    exact = [one.as_integer_ratio() for one in values.to_pylist()]
    ends = np.append(starts[1:], len(values))
    means = []
    for first, after in zip(starts.tolist(), ends.tolist(), strict=True):
        held = value_counts.records[first:after].tolist()
        # Over one denominator: to add fractions takes as long as all else.
        below = math.lcm(*(denominator for _, denominator in exact[first:after]))
        total = sum(number * (below // own) * count for (number, own), count in zip(exact[first:after], held, strict=True))
        means.append(float(Fraction(total, below * sum(held))))
    published = pa.array(means, pa.float64())
    if 0 < value_counts.nulls < k:
        # Nulls of so few would tell: the smallest group joins them.
        people = np.add.reduceat(value_counts.drawn, starts)
        gone = _fewest(people, np.ones(len(people), np.bool_))
        published = pc.if_else(pa.array(gone), pa.scalar(None, pa.float64()), published)
    return PublishedValues(values[:0], nothing[:0], values.take(pa.array(starts)), published, nothing, nothing)
