"""What stands for values of a column, as the recount works it out: means of groups, and how far values lie from them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.labels.published_values import ValueCount, ValuePublication, publication_of
from schemas.job.publish import Publishing


def means_of(values: dict[int, int], least: int) -> ValuePublication:
    """Publish means of values, of which each has so many persons of one record."""
    counts = [ValueCount(value, people, people, people) for value, people in values.items()]
    return publication_of(counts, 0, 0, pa.int64(), Publishing(microaggregate=least), 1)


def test_a_value_lies_from_its_mean_a_quarter_of_the_way_to_the_means_beside_it_on_average() -> None:
    found = means_of({0: 1, 1: 1, 10: 1, 11: 1, 40: 1, 41: 1}, 2)
    assert found.published == [0.5, 0.5, 10.5, 10.5, 40.5, 40.5, None]
    assert found.error == [10 / 4, 10 / 4, 20 / 4, 20 / 4, 30 / 4, 30 / 4, 0.0]
    assert found.changed == [True] * 6 + [False]


def test_of_fewer_people_than_a_group_must_have_nothing_is_published() -> None:
    assert means_of({3: 1, 4: 1}, 5) == ValuePublication([None] * 3, [True, True, False], [0.0] * 3)


def test_a_value_of_many_is_joined_by_the_few_beside_it() -> None:
    """One person is too few for a group, so that there is one group of all, though it has more than twice as many as it must."""
    assert means_of({4: 1, 12: 4}, 2).published == [(4 + 4 * 12) / 5] * 2 + [None]


@given(st.dictionaries(st.integers(-50, 50), st.integers(1, 4), min_size=1, max_size=12), st.integers(2, 4), st.integers(0, 4))
@example({0: 1, 1: 2, 2: 1, 9: 1, 10: 1}, 2, 0)
def test_what_stands_for_rare_values_does_not_hang_on_those_that_k_people_have(values: dict[int, int], k: int, nulls: int) -> None:
    """Where persons are named, who has a shared value counts at it no more; where each record counts, it is counted all the same."""
    rest = sum(people for people in values.values() if people < k)
    found = []
    for counts_shared in (True, False):
        firsts = {value: people if counts_shared or people < k else 0 for value, people in values.items()}
        counts = [ValueCount(value, values[value], firsts[value], values[value]) for value in sorted(values)]
        found.append(publication_of(counts, nulls, rest, pa.int64(), "shared", k))
    assert found[0] == found[1]
