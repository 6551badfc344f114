"""What is done on several cores comes in the order in which one would have done it, and what goes wrong is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.columns.abreast import ahead, each_abreast
from core.columns.thread_share import at_most


@pytest.mark.parametrize("threads", [1, 3])
def test_items_come_in_their_order(threads: int) -> None:
    with at_most(threads):
        assert list(ahead(iter(range(10)))) == list(range(10))
        assert each_abreast(lambda item: item * item, range(10)) == [item * item for item in range(10)]
        assert each_abreast(str, []) == list(ahead([])) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_made_comes_before_what_went_wrong(threads: int) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise LookupError

    with at_most(threads):
        items = ahead(failing())
        assert next(items) == 1
        with pytest.raises(LookupError):
            next(items)


def test_one_item_alone_is_made_before_it_is_asked_for() -> None:
    made = list[int]()

    def items() -> Iterator[int]:
        for item in range(5):
            made.append(item)
            yield item

    with at_most(2):
        coming = ahead(items())
        assert next(coming) == 0
        assert next(coming) == 1
        coming.close()  # type: ignore[attr-defined]
    assert made in ([0, 1], [0, 1, 2])
