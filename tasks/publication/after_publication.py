"""What is said of a run that fails once its release is there: never that nothing was published."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from schemas.errors.storage import AfterPublicationError


@dataclass
class Publication:
    """A release on its way.

    Attributes:
        undone: What is left undone if the run fails now, as the end of a sentence; empty as long as the release is not there.
    """

    undone: str = ""


@contextmanager
def true_of(release: str) -> Iterator[Publication]:
    """Lets a block note that its release is published, and turns what fails from then on into a sentence that says so.

    Args:
        release: Its id.

    Raises:
        AfterwardsError: anything failed after the publication.
        SkaldError: whatever the block raises before.
    """
    publication = Publication()
    try:
        yield publication
    except Exception as error:
        if not publication.undone or os.environ.get("SKALD_DEBUG"):
            raise
        raise AfterPublicationError.of_release(release, publication.undone, _reason(error)) from None


def _reason(error: BaseException) -> str:
    """Returns what the system said, or else the kind of the error alone: its text may hold a cell, or say that nothing was published."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__
