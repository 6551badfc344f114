"""Exceptions for use within the product: always caught, never shown to a user."""

from __future__ import annotations


class UnmeasuredError(Exception):
    """Raised when two releases cannot be compared record by record."""


class RefusedError(Exception):
    """Raised when a key or vault cannot be used.

    The text gives the reason without their content.
    """


class UnfitError(ValueError):
    """Raised when values do not fit a treatment.

    ``count`` is the number of values; ``reason`` gives the reason without showing any.
    """

    def __init__(self, count: int, reason: str) -> None:
        self.count, self.reason = count, reason
        super().__init__(reason)


class SpentError(Exception):
    """Raised when the effort limit of a computation is reached."""


class MisplacedError(Exception):
    """Raised when an override names a place that the job does not have."""


class UnreadableError(Exception):
    """Raised when a document cannot be read any further.

    The text gives the reason without the document's content.
    """
