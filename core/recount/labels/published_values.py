"""The published values of columns other than quasi-identifiers, computed again for the recount.

The rules are those of docs/howto/publish.md. For every value of the source its published value is computed by Python's arithmetic on
exact numbers, where the writer of releases works on arrays.

The rule: a person's n records stand in the order of their values, with places from 0. The place of the drawn one is a number of the person,
modulo n. It is made of the columns that name the person, and of no value, so that neither order nor file nor how high the highest values
are changes it. At the least of their values nearly all persons of many records would lie in one step.

The writer of releases puts records in order. Here a person's values are counted, and the counts added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.value_scales import is_scale_type
from core.recount.shared_ends import step_lines
from schemas.job.identifiers import OTHER, Publishing, Way

SEPARATOR = "chr(31)"
"""What stands between the texts of several columns."""
MOST_BEGINNINGS = 16
"""Values of those in a row at which nobody is counted where a group may begin."""
MOST_ERRORS = 4_000_000
"""Errors of groups that are held at once."""


def drawn_number_sql(names: Sequence[str], types: Sequence[pa.DataType]) -> str:
    """Return the SQL of the number below 2^64 by which a person's record is drawn.

    It is the last eight bytes of the MD5 of what names the person, the lowest first, with byte 31 between columns. Moments are
    written as microseconds since 1970, floating-point numbers as double, and zero without a sign.

    Args:
        names: Quoted names of the columns that name a person.
        types: Types of these, whether or not encoded by a dictionary.
    """
    texts = [f"CAST({_written_sql(name, kind)} AS VARCHAR)" for name, kind in zip(names, types, strict=True)]
    return f"md5_number_lower({f' || {SEPARATOR} || '.join(texts)})"


def _written_sql(name: str, given: pa.DataType) -> str:
    kind = given.value_type if pt.is_dictionary(given) else given
    if pt.is_timestamp(kind):
        return f"epoch_us(CAST({name} AS {'TIMESTAMPTZ' if kind.tz is not None else 'TIMESTAMP'}))"
    return f"CASE WHEN {name} = 0 THEN 0 ELSE CAST({name} AS DOUBLE) END" if pt.is_floating(kind) else name


def counted_at_sql(records: str, persons: Mapping[str, pa.DataType]) -> str:
    """Return SQL that counts by ``value`` the ``people`` who have it in the one record drawn of each.

    It is right because a person's n records, ascending by value, have the places from 0 to n - 1, and those with one value have as many
    places in a row as they are: from the number of records of lesser values on. The number of the person modulo n is one of the places.

    Args:
        records: What is read as ``value``, which is not null, and the persons.
        persons: By name of a column of it that names a person, its type.
    """
    names = ", ".join(persons)
    return f"""
        WITH values_of_persons AS MATERIALIZED (SELECT {names}, value, count(*) AS records FROM {records} GROUP BY ALL),
        places AS (
            SELECT {names}, {drawn_number_sql([*persons], [*persons.values()])} % sum(records)::UBIGINT AS place
            FROM values_of_persons GROUP BY {names}
        )
        SELECT value, count(*) AS people FROM (
            SELECT value, place, records, sum(records) OVER (PARTITION BY {names} ORDER BY value)::UBIGINT AS until
            FROM values_of_persons JOIN places USING ({names})
        ) WHERE place < until AND place + records >= until GROUP BY value
    """


class ValueCount(NamedTuple):
    """A value of the source, which may be null, with its numbers of persons and records.

    Attributes:
        people: Different persons, or records where none are named.
        drawn: The same, each person once, at the value of a drawn record among those with values that count.
    """

    value: Any
    people: int
    drawn: int
    records: int


class ValuePublication(NamedTuple):
    """The published value of each source value of a column.

    Attributes:
        published: In the order of the values; None for null.
        changed: Whether a value goes to a grid, to ``other`` or to null, in the same order.
        other_values: The published value of values that too few released persons have.
        error: How far values lie from their published value on average where they lie evenly in their step; 0 where that is not defined.
    """

    published: list[Any]
    changed: list[bool]
    error: list[float]
    other_values: Any = None


def plain_values(values: pa.Array) -> list[Any]:
    """Return the values of a column as Python objects: times as integers of their unit, dates as days."""
    if pt.is_date(values.type):
        return list(values.cast(pa.date32()).cast(pa.int32()).to_pylist())
    return list((values.cast(pa.int64()) if pt.is_timestamp(values.type) else values).to_pylist())


def as_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values, as ``plain_values`` returns them, as a column of a data type."""
    if pt.is_date(kind):
        return pa.array(values, pa.int32()).cast(pa.date32()).cast(kind)
    if pt.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pt.is_integer(kind):
        return pa.array([None if one is None else int(one) for one in values], kind)
    if pt.is_decimal(kind):
        return pa.array([None if one is None else Decimal(one) for one in values], kind)
    return pa.array([None if one is None else float(one) for one in values] if pt.is_floating(kind) else list(values), kind)


def publication_of(counts: Sequence[ValueCount], nulls: int, rare_people: int, kind: pa.DataType, way: Way, k: int) -> ValuePublication:
    """Return the published value of each source value of a column, as the recount computes it.

    Args:
        counts: The values, ascending, without null and what is no number.
        rare_people: People with a value that fewer than k people have.
        way: How they are published; a null comes last in what is returned.
    """
    if isinstance(way, Publishing):
        if way.microaggregate is not None:
            return _grouped(counts, nulls, max(way.microaggregate, k), k)
        return _coarsened(counts, way, kind)
    if is_scale_type(kind):
        return _on_grid(counts, nulls, rare_people, kind, k)
    return _in_words(counts, nulls, rare_people, kind, k)


def _in_words(counts: Sequence[ValueCount], nulls: int, rest: int, kind: pa.DataType, k: int) -> ValuePublication:
    kept = {one.value for one in counts if one.people >= k}
    few = nulls if nulls < k else 0
    together = max(rest, few)
    # Fewer than k people have a word of their own: one text more joins them, or where there is none, they join the nulls of k.
    lone = 0 < together < k
    missing = lone and not kept and nulls > few
    if kept and lone:
        kept.discard(min((one for one in counts if one.value in kept), key=lambda one: one.people).value)
    word = OTHER
    while word in kept:
        word += "*"
    instead = word if not pt.is_boolean(kind) and not missing else None
    published = [one.value if one.value in kept else instead for one in counts]
    changed = [one.value not in kept for one in counts]
    return ValuePublication([*published, instead if few else None], [*changed, bool(few)], [0.0] * (len(counts) + 1), instead)


def _on_grid(counts: Sequence[ValueCount], nulls: int, rest: int, kind: pa.DataType, k: int) -> ValuePublication:
    rare = [one for one in counts if one.people < k]
    steps = step_lines(as_column([one.value for one in rare], kind), [one.drawn for one in rare], k) if rare else []
    missing = nulls if steps else max(nulls, rest)
    # Everything that is published, with who shares it: in the order in which one of several is taken, values first.
    shared: list[tuple[int, Any]] = [(one.people, one.value) for one in counts if one.people >= k]
    shared += [(sum(one.drawn for one in rare[step.first : step.after]), step) for step in steps]
    gone = min(shared, key=lambda one: one[0])[1] if shared and 0 < missing < k else None
    of_rare: dict[Any, tuple[Any, float]] = {}
    for step in steps:
        for one in rare[step.first : step.after]:
            of_rare[one.value] = (None if step is gone else step.middle, step.width / 4)
    published, changed, error = [], [], []
    for one in counts:
        exact = one.people >= k
        lost = of_rare.get(one.value, (None, 0.0))
        published.append((None if one.value == gone else one.value) if exact else lost[0])
        changed.append(not exact or one.value == gone)
        error.append(0.0 if exact else lost[1])
    return ValuePublication([*published, None], [*changed, False], [*error, 0.0])


def _coarsened(counts: Sequence[ValueCount], way: Publishing, kind: pa.DataType) -> ValuePublication:
    if way.round is not None:
        base = Fraction(way.round)
        made = [_multiple(one.value, base, kind) for one in counts]
        # What of evenly lying numbers is no multiple: of which ones it is, nobody is told.
        return ValuePublication([*made, None], [True] * len(counts) + [False], [float(base) / 4] * len(counts) + [0.0])
    top, bottom = (None if end is None else _as(end, kind) for end in (way.top, way.bottom))
    published, changed = [], []
    for one in counts:
        value = one.value if top is None else min(one.value, top)
        value = value if bottom is None else max(value, bottom)
        published.append(value)
        changed.append(value in {top, bottom})
    return ValuePublication([*published, None], [*changed, False], [0.0] * (len(counts) + 1))


def _multiple(value: Any, base: Fraction, kind: pa.DataType) -> Any:
    if pt.is_floating(kind):
        whole = round(value / (base.numerator / base.denominator))
        made = float(whole) * float(base.numerator) / float(base.denominator)
        return float(np.float32(made)) if pt.is_float32(kind) else made
    exact = round(Fraction(value) / base) * base
    if pt.is_integer(kind):
        return int(exact)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def _as(number: Decimal, kind: pa.DataType) -> Any:
    if pt.is_integer(kind):
        return int(number)
    return number if pt.is_decimal(kind) else float(np.float32(number)) if pt.is_float32(kind) else float(number)


def _grouped(counts: Sequence[ValueCount], nulls: int, least: int, k: int) -> ValuePublication:
    if sum(one.drawn for one in counts) < least:
        return ValuePublication([None] * (len(counts) + 1), [True] * len(counts) + [False], [0.0] * (len(counts) + 1))
    starts = [*_best_groups(counts, least), len(counts)]
    means = []
    for first, after in pairwise(starts):
        means.append(_mean(counts[first:after]))
    published: list[Any] = []
    error: list[float] = []
    people = [sum(one.drawn for one in counts[first:after]) for first, after in pairwise(starts)]
    gone = people.index(min(people)) if 0 < nulls < k else -1
    for number, (first, after) in enumerate(pairwise(starts)):
        # Half way to the means beside it.
        beside = [abs(means[number] - means[other]) / 2 for other in (number - 1, number + 1) if 0 <= other < len(means)]
        published += [None if number == gone else means[number]] * (after - first)
        error += [sum(beside) / max(len(beside), 1) / 2] * (after - first)
    return ValuePublication([*published, None], [True] * len(counts) + [False], [*error, 0.0])


def _mean(counts: Sequence[ValueCount]) -> float:
    """Return the mean of the records' values, exact until it is rounded at the end."""
    ratios = [one.value.as_integer_ratio() for one in counts]
    # One denominator for all: sums of fractions look for common divisors at every step.
    whole = math.lcm(*(denominator for _, denominator in ratios))
    total = sum(above * (whole // below) * one.records for (above, below), one in zip(ratios, counts, strict=True))
    return float(Fraction(total, whole * sum(one.records for one in counts)))


@np.errstate(over="ignore", invalid="ignore")
def _best_groups(counts: Sequence[ValueCount], least: int) -> list[int]:
    """Return the first positions of the groups of values with the least squared error.

    The search goes from the first value on, and for each group from its last value back.
    """
    firsts = _possible_firsts(counts)
    parts = [counts[first:after] for first, after in pairwise([*firsts, len(counts)])]
    numbers, own_errors = np.array([_centre(part) for part in parts]).T
    records = np.array([float(sum(one.records for one in part)) for part in parts])
    drawn = np.array([sum(one.drawn for one in part) for part in parts])
    best, start = np.full(len(parts) + 1, np.inf), np.full(len(parts) + 1, -1)
    best[0] = 0.0
    for lasts in _blocks(_most_values(drawn, least)):
        for last, errors in zip(lasts.tolist(), _errors_of_groups(numbers, own_errors, records, drawn, lasts, least), strict=True):
            # The last group begins so many values before the last one: none, one and so on.
            reached = min(last + 1, len(errors))
            sums = best[last + 1 - reached : last + 1][::-1] + errors[:reached]
            sums[np.isnan(sums)] = np.inf
            back = int(sums.argmin())
            if sums[back] < np.inf:
                best[last + 1], start[last + 1] = sums[back], last - back
    starts, end = list[int](), len(parts)
    while end > 0:
        end = int(start[end])
        starts.append(firsts[end])
    return starts[::-1]


def _possible_firsts(counts: Sequence[ValueCount]) -> list[int]:
    """Return the positions at which a group may begin.

    They are all values at which somebody is counted. Of values in a row at which nobody is, every one is a position, or every second, or
    every third and so on, so that there are at most sixteen.
    """
    firsts, begin = list[int](), 0
    for end in [*(place for place, one in enumerate(counts) if one.drawn), len(counts)]:
        firsts += [*range(begin, end, -(-(end - begin) // MOST_BEGINNINGS) or 1), end]
        begin = end + 1
    return firsts[:-1]


def _centre(part: Sequence[ValueCount]) -> tuple[float, float]:
    """Return the mean of values that stay together, and their squared error."""
    if len(part) == 1:
        return float(part[0].value), 0.0
    mean = math.fsum(float(one.value) * one.records for one in part) / sum(one.records for one in part)
    apart = [float(one.value) - mean for one in part]
    return mean, math.fsum(far * far * one.records for far, one in zip(apart, part, strict=True))


def _most_values(drawn: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Return how many values a group has at most, by its last value.

    Where persons have many values each, nobody is counted at most of these, and a group has many.
    """
    before = np.append(0, drawn.cumsum())
    too_many = before[1:] - 2 * least - np.maximum.accumulate(drawn)
    widths: NDArray[np.int64] = np.arange(2, len(before) + 1) - np.searchsorted(before, too_many, "right").clip(1)
    return widths


def _blocks(widths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield positions in order, in blocks of at most ``MOST_ERRORS`` errors, or of one position."""
    begin = 0
    while begin < len(widths):
        widest = np.maximum.accumulate(widths[begin : begin + MOST_ERRORS])
        together = max(1, int(np.searchsorted(widest * np.arange(1, len(widest) + 1), MOST_ERRORS, "right")))
        yield np.arange(begin, begin + together)
        begin += together


def _errors_of_groups(
    numbers: NDArray[np.float64],
    own_errors: NDArray[np.float64],
    records: NDArray[np.float64],
    drawn: NDArray[np.int64],
    lasts: NDArray[np.int64],
    least: int,
) -> NDArray[np.float64]:
    """Return the squared errors of groups, by last value and number of values before it.

    The shape is (lasts, most values before a last one). The error is infinite for groups of fewer than ``least`` people, and for those
    that are better as two.
    """
    weight, mean, error = np.zeros((3, len(lasts)))
    held, most = np.zeros((2, len(lasts)), np.int64)
    goes_on, made = np.ones(len(lasts), np.bool_), list[NDArray[np.float64]]()
    while (goes_on := goes_on & (len(made) <= lasts)).any():
        first = (lasts - len(made)).clip(0)
        weight += records[first]
        apart = numbers[first] - mean
        mean += apart * records[first] / weight
        error += apart * (numbers[first] - mean) * records[first] + own_errors[first]
        held += drawn[first]
        most = np.maximum(most, drawn[first])
        made.append(np.where(goes_on & (held >= least), error, np.inf))
        goes_on = goes_on & (held < 2 * least + most)
    return np.stack(made, axis=1)
