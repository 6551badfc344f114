"""Who stands out, against a count of every combination one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from core.evaluation.singled_out import (
    SampleUniqueness,
    code_digests,
    column_uniqueness,
    level_uniqueness,
    sample_uniqueness,
    summed_digests,
)

TABLES = some.integers(1, 4).flatmap(
    lambda width: some.lists(some.tuples(*[some.integers(0, 3)] * width), min_size=0, max_size=25).map(lambda rows: (width, rows))
)


def counted(rows: list[tuple[int, ...]], k: int) -> SampleUniqueness:
    sizes = Counter(rows)
    return SampleUniqueness(sum(size == 1 for size in sizes.values()), sum(size for size in sizes.values() if size < k))


@given(TABLES, some.integers(1, 6), some.data())
def test_who_stands_out_is_who_is_counted_one_by_one(table: tuple[int, list[tuple[int, ...]]], k: int, data: some.DataObject) -> None:
    width, rows = table
    names = [f"c{number}" for number in range(width)]
    known = data.draw(some.lists(some.sampled_from(names), unique=True, max_size=width))
    codes = {name: np.array([row[place] for row in rows], np.int64) for place, name in enumerate(names)}
    digests = {name: code_digests(code, place) for place, (name, code) in enumerate(codes.items())}

    def by(*columns: str) -> SampleUniqueness:
        return counted([tuple(row[names.index(one)] for one in sorted(set(columns))) for row in rows], k)

    for name, found in column_uniqueness(digests, known, k).items():
        others = [one for one in known if one != name]
        assert found.own == by(name)
        assert found.together == by(name, *others)
        assert found.without == (by(*others) if others else SampleUniqueness(0, 0))


@given(some.lists(some.tuples(some.integers(0, 15), some.integers(0, 2)), max_size=30), some.integers(1, 6))
def test_a_coarser_level_lets_no_more_people_stand_out(rows: list[tuple[int, int]], k: int) -> None:
    values, others = (np.array([row[place] for row in rows], np.int64) for place in range(2))
    levels = [values, values // 2, values // 8, values * 0]
    found = level_uniqueness(levels, code_digests(others, 1), 0, k)
    for one, groups in zip(found, levels, strict=True):
        assert one.own == counted([(int(group),) for group in groups], k)
        assert one.together == counted(list(zip(groups.tolist(), others.tolist(), strict=True)), k)
        assert one.groups == len(set(groups.tolist()))
    for fine, coarse in pairwise(found):
        assert coarse.own.below <= fine.own.below and coarse.together.below <= fine.together.below


def test_equal_codes_of_two_columns_are_no_combination_of_one() -> None:
    """(1, 2) and (2, 1) are different people."""
    left, right = np.array([1, 2]), np.array([2, 1])
    both = summed_digests([code_digests(left, 0), code_digests(right, 1)], 2)
    assert sample_uniqueness(both, 2) == SampleUniqueness(2, 2)
    assert sample_uniqueness(summed_digests([], 2), 2) == SampleUniqueness(0, 0)
