"""What is done on several cores comes in the order in which one would have done it, and what goes wrong is told."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from core.columns.data_parallel import each_in_parallel, feed_in_parallel, limit_threads, prefetch, threads_here


@pytest.mark.parametrize("threads", [1, 3])
def test_items_come_in_their_order(threads: int) -> None:
    with limit_threads(threads):
        assert list(prefetch(iter(range(10)))) == list(range(10))
        assert each_in_parallel(lambda item: item * item, range(10)) == [item * item for item in range(10)]
        assert each_in_parallel(str, []) == list(prefetch([])) == []


def test_threads_share_what_there_is_among_what_they_do() -> None:
    with limit_threads(6):
        assert each_in_parallel(lambda _: threads_here(), range(3)) == [2, 2, 2]
        assert each_in_parallel(lambda _: threads_here(), range(9)) == [1] * 9
        assert list(prefetch(threads_here() for _ in range(2))) == [6, 6]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_made_comes_before_what_went_wrong(threads: int) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise LookupError

    with limit_threads(threads):
        items = prefetch(failing())
        assert next(items) == 1
        with pytest.raises(LookupError):
            next(items)


def test_one_item_alone_is_made_before_it_is_asked_for() -> None:
    made = list[int]()

    def items() -> Iterator[int]:
        for item in range(5):
            made.append(item)
            yield item

    with limit_threads(2):
        coming = prefetch(items())
        assert next(coming) == 0
        assert next(coming) == 1
        coming.close()  # type: ignore[attr-defined]
    assert made in ([0, 1], [0, 1, 2])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_everybody_gets_everything_one_at_a_time(threads: int) -> None:
    takers: list[tuple[list[int], list[int]]] = [([], []) for _ in range(3)]

    def give(taker: tuple[list[int], list[int]], item: int) -> None:
        begun, done = taker
        assert len(begun) == len(done)
        begun.append(item)
        time.sleep(0.0001 * (item % 3))
        done.append(item)

    with limit_threads(threads):
        feed_in_parallel(give, iter(range(50)), takers)
        feed_in_parallel(give, iter(range(50)), [])
    assert all(sorted(done) == list(range(50)) for _, done in takers)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("last", [0, 1, 9])
def test_what_goes_wrong_with_a_taker_is_told(threads: int, last: int) -> None:
    def give(taker: int, item: int) -> None:
        if taker and item == last:
            raise LookupError

    with limit_threads(threads), pytest.raises(LookupError):
        feed_in_parallel(give, iter(range(10)), [0, 1])


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_than_the_next_item_is_looked_for(threads: int) -> None:
    given = list[int]()

    def items() -> Iterator[int]:
        for item in range(6):
            # Whoever looks for this one has seen the one before the last given to all.
            assert sorted(given).count(item - 2) == 2 or item < 2
            yield item

    with limit_threads(threads):
        feed_in_parallel(lambda _, item: given.append(item), items(), [0, 1])
    assert sorted(given) == sorted([*range(6), *range(6)])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("takers", [1, 3])
def test_what_makes_items_ends_with_the_call_whatever_goes_wrong(threads: int, takers: int) -> None:
    closed = list[int]()

    def items() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append(1)

    def give(_: int, item: int) -> None:
        if item == 2:
            raise LookupError

    # What is collected later may be collected anywhere: also where a thread must not be waited for.
    gc.disable()
    try:
        with limit_threads(threads), pytest.raises(LookupError):
            feed_in_parallel(give, prefetch(items()), range(takers))
        assert closed == [1]
    finally:
        gc.enable()
