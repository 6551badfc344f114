"""Signals within the product: caught where they mean something, never shown."""

from __future__ import annotations


class UnmeasuredError(Exception):
    """Why two releases cannot be compared record by record."""


class RefusedError(Exception):
    """A key or vault that cannot be used; the text says why, without what it holds."""


class UnfitError(ValueError):
    """Values that a treatment cannot take; ``count`` of them, ``reason`` says why without showing any."""

    def __init__(self, count: int, reason: str) -> None:
        self.count, self.reason = count, reason
        super().__init__(reason)


class SpentError(Exception):
    """The effort is spent."""


class MisplacedError(Exception):
    """An override leads to a place that the job does not have."""


class UnreadableError(Exception):
    """The document cannot be read any further; the text says why, without its content."""
