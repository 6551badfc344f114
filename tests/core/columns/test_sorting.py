"""Numbers put in order by their digits are in the order in which comparing puts them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.columns import sorting
from core.columns.sorting import GREATEST_DIGEST, insertion_sort_order, order_of, order_of_digests, sort_numbers, tied_positions

FEW = 512
"""Fewer than a run leaves to NumPy, so that both ways are tried on little."""
SIZES = st.integers(0, 3 * FEW)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def _few() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "FEW", FEW)
        yield


def drawn(seed: int, size: int, most: int, dtype: type = np.int64) -> NDArray[np.int64]:
    """Numbers of which some are equal, and of which the greatest and the least that there may be are some."""
    random = np.random.default_rng(seed)
    some = random.integers(0, most, max(size // 3, 1), dtype, endpoint=True)
    return random.choice(np.append(some, np.array([0, most], dtype)), size)


@given(SEEDS, SIZES, st.integers(0, 2**63 - 1) | st.integers(0, 5000), st.booleans())
def test_numbers_are_ascending(seed: int, size: int, most: int, kept: bool) -> None:
    numbers = drawn(seed, size, most)
    before = numbers.copy()
    found = sort_numbers(numbers, most, keeps_input=kept)
    assert found.dtype == numbers.dtype
    assert (found == np.sort(before)).all()
    assert not kept or (numbers == before).all()


@pytest.mark.parametrize(("dtype", "most"), [(np.uint32, 2**32 - 1), (np.uint64, 2**64 - 1), (np.int64, 2**63 - 1)])
def test_types_are_sorted_up_to_their_last_bit(dtype: type, most: int) -> None:
    numbers = drawn(1, 2 * FEW, most, dtype)
    assert (sort_numbers(numbers, most) == np.sort(numbers)).all()


@given(SEEDS, SIZES, st.integers(0, 2**63 - 1) | st.integers(0, 5000))
def test_the_order_of_numbers_is_stable(seed: int, size: int, most: int) -> None:
    numbers = drawn(seed, size, most)
    assert (order_of(numbers, most) == np.argsort(numbers, kind="stable")).all()


@given(SEEDS, SIZES, st.integers(0, 2**64 - 1) | st.integers(2**40, 2**56))
def test_the_order_is_stable_where_a_number_and_its_place_are_more_than_one_number(seed: int, size: int, most: int) -> None:
    numbers = drawn(seed, size, most, np.uint64)
    assert (order_of(numbers, most) == np.argsort(numbers, kind="stable")).all()


@given(SEEDS, SIZES, st.integers(0, 63))
def test_digests_are_ascending_whichever_bits_tell_them_apart(seed: int, size: int, low: int) -> None:
    digests = drawn(seed, size, 2**64 - 1, np.uint64) >> np.uint64(low)
    before = digests.copy()
    assert (sort_numbers(digests, GREATEST_DIGEST) == np.sort(before)).all()
    assert (order_of_digests(digests) == np.argsort(before, kind="stable")).all()
    assert (digests == before).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_an_order_is_corrected_and_those_that_are_equal_stay_as_they_stand(listed: list[int], random: Random) -> None:
    numbers, given_order = np.array(listed, np.uint64), random.sample(range(len(listed)), len(listed))
    order = np.array(given_order)
    assert insertion_sort_order(order, numbers, len(listed) ** 2)
    assert order.tolist() == sorted(given_order, key=listed.__getitem__)


@pytest.mark.parametrize("most", [2**22, 2**40, 2**63 - 1])
@pytest.mark.parametrize("size", [FEW - 1, FEW, 2 * FEW])
def test_numbers_that_are_to_stay_as_they_are_stay_so_however_often_they_are_dealt_out(most: int, size: int) -> None:
    numbers = np.random.default_rng(size).integers(0, most, size)
    before = numbers.copy()
    assert (sort_numbers(numbers, most) == np.sort(before)).all()
    assert (numbers == before).all()


@pytest.mark.parametrize("numbers", [[], [4], [4, 4], [1, 2], [1, 1, 2], [1, 2, 2], [1, 2, 2, 3], [1, 1, 1, 2, 3, 3]])
def test_what_has_an_equal_among_others_is_tied(numbers: list[int]) -> None:
    same = np.array(numbers[1:]) == np.array(numbers[:-1])
    assert tied_positions(same).tolist() == [place for place, one in enumerate(numbers) if numbers.count(one) > 1]
