"""How often values repeat is counted exactly while they are few, and about right from a sample of them where they are many."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units import repeats
from core.units.digests import NOBODY, Digests, digests_of
from core.units.repeats import MOST_VALUES, NOTHING, SAMPLED_RECORDS, ValueCounts, merge_value_counts

VALUES = st.lists(st.none() | st.integers(0, 30), max_size=200)


def counted(values: Digests, batch: int = 1 << 17) -> ValueCounts:
    found = NOTHING
    for first in range(0, len(values), batch):
        found = found.with_records(values[first : first + batch])
    return found


def digests(values: list[int | None]) -> Digests:
    return digests_of([pa.array(values, pa.int64())], len(values))


@given(VALUES, st.integers(1, 50))
def test_few_values_are_counted_one_by_one(values: list[int | None], batch: int) -> None:
    found, plain = counted(digests(values), batch), Counter(value for value in values if value is not None)
    assert (found.distinct, found.most, found.records) == (len(plain), max(plain.values(), default=0), plain.total())
    assert (found.share, found.mean) == (1.0, plain.total() / len(plain) if plain else 0.0)


@given(VALUES, st.lists(st.integers(0, 200), max_size=4), st.integers(1, 20), st.randoms())
def test_parts_add_up_in_whatever_order(values: list[int | None], cuts: list[int], most: int, random: object) -> None:
    known = digests(values)
    parts = [counted(part) for part in np.split(known, sorted(min(cut, len(known)) for cut in cuts))]
    random.shuffle(parts)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repeats, "MOST_VALUES", most)
        together, whole = merge_value_counts(parts), counted(known)
        # What is looked at follows from the values alone; of the few that are seen beside it that is not so.
        assert (together.bits, together.records) == (whole.bits, whole.records)
        assert np.array_equal(together.values, whole.values)
        assert np.array_equal(together.counts, whole.counts)


@pytest.mark.parametrize(("people", "records"), [(1_000_000, 1_000_000), (200_000, 1_000_000), (90_000, 100_000)])
def test_many_values_are_told_from_a_sample(people: int, records: int) -> None:
    whose = np.random.default_rng(7).integers(0, people, records) if people < records else np.arange(records)
    found, plain = counted(digests(whose.tolist())), np.unique(whose, return_counts=True)[1]
    assert len(found.values) <= MOST_VALUES
    assert found.mean == pytest.approx(records / len(plain), rel=0.02)
    assert 1 <= found.most <= plain.max()
    assert (found.most > 1) == (plain.max() > 1)


def test_one_value_that_many_records_share_is_seen_whatever_its_digest() -> None:
    whose = np.arange(1_000_000)
    whose[::25] = -1
    assert counted(digests(whose.tolist())).most > 100


@pytest.mark.parametrize(
    ("length", "looked_at"),
    [
        (0, 0), (1, 1), (SAMPLED_RECORDS, SAMPLED_RECORDS), (2 * SAMPLED_RECORDS - 1, 2 * SAMPLED_RECORDS - 1),
        (2 * SAMPLED_RECORDS, SAMPLED_RECORDS), (3 * SAMPLED_RECORDS + 1, SAMPLED_RECORDS + 1),
    ],
)  # fmt: skip
def test_a_few_thousand_records_of_a_batch_are_looked_at_whatever_their_value(length: int, looked_at: int) -> None:
    """All have one value; records without a value are none of them, and a batch in which fewer are seen changes nothing."""
    batch = np.full(length, digests([1])[0])
    found = NOTHING.with_records(np.ravel(np.column_stack([np.full(length, NOBODY), batch])))
    assert (found.records_counted, found.records, found.most) == (looked_at, length, length)
    assert found.with_records(batch[:1]).records_counted == looked_at
    assert NOTHING.with_records(batch[:1]).with_records(batch).records_counted == looked_at


def test_a_mean_is_one_at_least_as_each_value_has_a_record() -> None:
    """How many values there are is estimated, so that there may seem to be more of them than records."""
    for records, mean in ((10, 1.0), (16, 1.0), (24, 1.5)):
        assert ValueCounts(3, np.array([8, 16], np.uint64), np.ones(2, np.int64), records).mean == mean
    assert NOTHING.mean == 0.0
    nothing = merge_value_counts([])
    assert (nothing.bits, nothing.records, nothing.records_counted, nothing.most, nothing.mean) == (0, 0, 0, 0, 0.0)


@pytest.mark.parametrize("most", [1, 5, 40, 199, 200])
def test_values_are_left_out_by_as_few_bits_as_make_room(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(repeats, "MOST_VALUES", most)
    values = np.unique(np.random.default_rng(3).integers(0, 1 << 62, 200).astype(np.uint64))
    sampled = [[value for value in values.tolist() if value % (1 << bits) == 0] for bits in range(62)]
    least = next(bits for bits, left in enumerate(sampled) if len(left) <= most)
    for found in (counted(values), merge_value_counts([counted(values[:90]), counted(values[60:])])):
        assert (found.bits, found.values.tolist()) == (least, sampled[least])


def test_what_has_no_value_repeats_nothing() -> None:
    assert counted(np.full(10, NOBODY)).most == 0


def test_as_many_values_as_there_is_room_for_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MOST_VALUES", 6)
    values = digests([1, 2, 3, 4, 5, 6, 6])
    assert (counted(values).distinct, counted(values).share) == (6, 1.0)
    assert counted(digests(list(range(7)))).share < 1


def test_values_are_measured_as_soon_as_some_are_and_stay_so() -> None:
    few = digests([1, 2])
    for first, second in ((False, False), (False, True), (True, False), (True, True)):
        found = NOTHING.with_records(few, measured=first).with_records(few, measured=second)
        parts = [NOTHING.with_records(few, measured=measured) for measured in (first, second)]
        assert found.measured == merge_value_counts(parts).measured == (first or second)
