"""Whether what this thread does is still wanted: what takes long looks now and then, so that a run that is told to end does so soon.

A thread cannot be interrupted from outside, and the folder's lock is let go only when all have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from schemas.errors.runners import WithdrawnError

_withdrawn: ContextVar[threading.Event | None] = ContextVar("withdrawn", default=None)


@contextmanager
def withdrawn_by(event: threading.Event) -> Iterator[None]:
    """Lets what this thread does within be taken back by an event."""
    before = _withdrawn.set(event)
    try:
        yield
    finally:
        _withdrawn.reset(before)


def still_wanted() -> None:
    """Returns if what this thread does is still wanted.

    Raises:
        WithdrawnError: it was taken back.
    """
    event = _withdrawn.get()
    if event is not None and event.is_set():
        raise WithdrawnError
