"""Persons of several tables as records: sums of rows in any order, and the sets of values that digests stand for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from core.units.digests import NOBODY, digests_of
from core.units.source_digests import RowSums, ValueSets, contents_of, row_digests

PERSONS = 4
rows_of_persons = st.lists(st.tuples(st.integers(0, PERSONS - 1), st.sampled_from(["a", "b", None])), max_size=12)


@given(rows=st.lists(st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["x", None])), min_size=1, max_size=6))
def test_a_row_has_the_digest_that_it_has_in_a_source_of_one_table(rows: list[tuple[int | None, str | None]]) -> None:
    columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())]
    found = row_digests([digests_of([column], len(rows)) for column in columns], len(rows))
    assert found.tolist() == contents_of(columns, len(rows)).tolist()


@given(rows=rows_of_persons, data=st.data())
def test_persons_with_equal_multisets_of_rows_have_equal_sums_in_any_order(rows: list[tuple[int, str | None]], data: st.DataObject) -> None:
    sums = []
    for order in (rows, data.draw(st.permutations(rows))):
        found = RowSums(PERSONS)
        cut = data.draw(st.integers(0, len(order)))
        for part in (order[:cut], order[cut:]):
            digests = digests_of([pa.array([value for _, value in part], pa.string())], len(part))
            found.add(np.array([person for person, _ in part], np.int64), row_digests([digests], len(part)))
        sums.append(found)
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    multisets = [frozenset(Counter(value for person, value in rows if person == one).items()) for one in range(PERSONS)]
    for one in range(PERSONS):
        assert sums[0].counts[one] == sum(person == one for person, _ in rows)
        for other in range(PERSONS):
            assert (sums[0].sums[one] == sums[0].sums[other]) == (multisets[one] == multisets[other])


@given(rows=rows_of_persons)
def test_a_set_has_the_different_values_of_its_persons(rows: list[tuple[int, str | None]]) -> None:
    values = digests_of([pa.array([value for _, value in rows], pa.string())], len(rows))
    held = ValueSets(PERSONS)
    held.add(np.array([person for person, _ in rows], np.int64), values)
    digests, members = held.members()
    pairs = list(zip(digests.tolist(), members.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    for one in range(PERSONS):
        mine = {int(value) for (person, _), value in zip(rows, values, strict=True) if person == one}
        assert bool(held.there[one]) == bool(mine)
        if mine:
            assert int(held.sets[one]) != NOBODY
            assert {value for digest, value in pairs if digest == int(held.sets[one])} == mine
