"""Who is told how far a phase has come: the command line listens, nobody else has to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls ``listener(phase, done, total)`` for the time of the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def advance(phase: str, done: int, total: int) -> None:
    """Tells all listeners."""
    for listener in _listeners:
        listener(phase, done, total)
