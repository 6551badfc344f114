"""Which failed task is tried again, and after how long one is given up. Without Prefect a step is tried once: the command is run again.

Every step may be tried again: it is made of what is on disk, leaves its artefact by one rename, and finds what it had finished. So the
fault decides, not the step. A refusal (job, data, privacy, verification) would be the same the second time, and a full disk or a missing
permission wants a person; only what the operating system says of a network, a device or a mount may be over in a minute. Publication
is not tried again: its rename either happened or did not, and the next run sees which.
"""

from __future__ import annotations

import errno
import os

from schemas.errors.base import SkaldError

RETRY_SECONDS = (10.0, 60.0)
"""Waits before the second and the third try: a lost packet, and a file server that starts anew."""
CHUNKS_SECONDS = 2 * 3600
"""For a task of chunks, at most a 32nd of the source: at a microsecond per record, 7,200 million records. Longer is a mount that hangs."""
WHOLE_SECONDS = 12 * 3600
"""For a task of the whole run (merge, search, recount), which may spill for hours. A nightly run is over before the next one begins."""

TRANSIENT = frozenset(
    {
        errno.EIO,  # a device or a network file system had a fault
        errno.ESTALE,  # the file server was started anew
        errno.ETIMEDOUT,
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENETRESET,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENOTCONN,  # a mount that is being made again
    }
)
_REASONS = tuple(os.strerror(code) for code in sorted(TRANSIENT))


def is_transient(error: BaseException) -> bool:
    """Tells whether beneath an error lies one of the operating system that may be over the next time.

    Constructors of ours are raised ``from None``, which hides what was being handled but keeps it.
    """
    beneath: BaseException | None = error
    while beneath is not None:
        if isinstance(beneath, SkaldError):
            if beneath.transient:
                return True
        elif isinstance(beneath, OSError):
            if beneath.errno in TRANSIENT:
                return True
        # DuckDB's has no number, only the system's words.
        elif type(beneath).__name__ == "IOException" and any(reason in str(beneath) for reason in _REASONS):
            return True
        beneath = beneath.__cause__ or beneath.__context__
    return False
