"""Tell a person who waits that compiled loops are made for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WAITING: list[Callable[[], None]] = []


@contextmanager
def notified_once_compiling(listener: Callable[[], None]) -> Iterator[None]:
    """Call ``listener`` as soon as a loop has to be compiled within the block. It is called once at most."""
    _WAITING.append(listener)
    try:
        yield
    finally:
        if listener in _WAITING:
            _WAITING.remove(listener)


def report_compiling() -> None:
    """Call all that wait for the first loop to be compiled, and forget them."""
    while _WAITING:
        _WAITING.pop()()
