"""Lease: the lock of work in a bucket, which expires unless its process renews it.

One small object says who holds it and in which generation. It is put only where there is none, or over exactly what was read: of two runs
one gets it. Whoever holds it renews it; one that is not renewed for its whole time is a dead run's, and the next run takes it over in the
next generation. A run that was held up for so long finds out when it renews, and always before it publishes: then it must not. The object
stays when the work is cleared, because what lies in a target is told by its generation from what came later: that never goes back.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.errors.folders import BusyError, WorkError
from schemas.errors.storage import ObjectStoreError
from tasks.store.place import Bucket

LOG = logging.getLogger("skald.lease")
NAME = "lease.json"
SECONDS = 60.0
"""For which a lease holds without being renewed; renewed every third of it, so that two lost packets cost nothing."""
LEASE_CHECKS = 12
"""How often a lease that somebody may hold is looked at before it is taken over."""


class Clock(NamedTuple):
    """Seconds that pass on this machine, and a way to wait, as functions.

    Clocks of two machines are never compared: whoever waits measures for itself how long a lease was not renewed.
    """

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


@dataclass
class Lease:
    """A lease on a prefix of a bucket that this process holds or held.

    Attributes:
        bucket: What it is held of.
        clock: Of this machine.
        seconds: For which it holds.
        generation: How often it was taken before and by this process.
    """

    bucket: Bucket
    clock: Clock
    seconds: float
    generation: int
    _owner: str
    _tag: str
    _until: float

    def __post_init__(self) -> None:
        self._turn, self._renewals, self._lost = threading.Lock(), 0, False

    def renew(self) -> None:
        """Renew the lease; raise ``WorkError`` if it expired or another run has taken it."""
        with self._turn:
            begun = self.clock.now()
            if self._lost or begun >= self._until:
                # Its time is over: even if nobody has taken it, somebody may be about to.
                self._lost = True
                raise WorkError.lease_lost(self.bucket.location)
            self._renewals += 1
            tag = self.bucket.replace(NAME, _said(self._owner, self.generation, self._renewals), self._tag)
            if tag is None:
                self._lost = True
                raise WorkError.lease_lost(self.bucket.location)
            # From before the put: whoever waits cannot have seen it earlier.
            self._tag, self._until = tag, begun + self.seconds
            if self.clock.now() >= self._until:
                # The put took, or this process slept, so long that it may be another's by now.
                self._lost = True
                raise WorkError.lease_lost(self.bucket.location)

    def renewed(self) -> bool:
        """Renew the lease; return whether it is still held, True also after a passing store error."""
        try:
            self.renew()
        except WorkError:
            return False
        except ObjectStoreError:
            self._lost = self._lost or self.clock.now() >= self._until
            return not self._lost
        return True

    def raise_if_lost(self) -> None:
        """Raise ``WorkError`` if a renewal found the lease lost; ask neither clock nor store."""
        if self._lost:
            raise WorkError.lease_lost(self.bucket.location)

    @contextmanager
    def lease_check(self) -> Iterator[None]:
        """Raise ``WorkError`` after the block if the lease was lost by then: what it made is nobody's."""
        yield
        self.raise_if_lost()

    def release(self) -> None:
        """Release the lease, if still held, so that the next run begins at once.

        The object stays, so that generations only rise.
        """
        with self._turn:
            if not self._lost:
                self._lost = True
                self.bucket.replace(NAME, _said("", self.generation, self._renewals), self._tag)


def take_lease(bucket: Bucket, clock: Clock | None = None, seconds: float = SECONDS) -> Lease:
    """Take the lease of a prefix, waiting for another's to expire; raise ``BusyError`` if that is renewed.

    Args:
        bucket: What it is held of.
        clock: Of this machine.
        seconds: For which it holds, and for which that of another is watched.
    """
    clock = clock or Clock()
    begun, owner = clock.now(), secrets.token_hex(16)
    (there, content), is_said = _state(bucket), False
    while content and content["owner"]:
        if clock.now() - begun > seconds:
            break
        if not is_said:
            is_said = True
            LOG.warning("Another run holds '%s', or was killed there. This one watches for %.0f s.", bucket.location, seconds)
        clock.wait(seconds / LEASE_CHECKS)
        before, (there, content) = there, _state(bucket)
        if content and content["owner"] and there != before:
            raise BusyError.at_work(bucket.location)
    generation = int(content["generation"]) + 1 if content else 1
    taken, said = clock.now(), _said(owner, generation, 0)
    tag = bucket.replace(NAME, said, there) if there else bucket.create(NAME, said)
    if tag is None:
        raise BusyError.at_work(bucket.location)
    return Lease(bucket, clock, seconds, generation, owner, tag, taken + seconds)


@contextmanager
def renewed_lease(lease: Lease) -> Iterator[None]:
    """Renew a lease on a thread during the block; release it after."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(lease.seconds / 3):
            if not lease.renewed():
                return

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        # It ends by itself; what ended the block is what the user wants to hear of.
        with suppress(ObjectStoreError):
            lease.release()


def _said(owner: str, generation: int, renewals: int) -> bytes:
    return json.dumps({"owner": owner, "generation": generation, "renewals": renewals}).encode()


def _state(bucket: Bucket) -> tuple[str | None, dict[str, Any] | None]:
    """Return the tag of a lease object, read before its content, and the content; twice None if missing."""
    there = bucket.entry(NAME)
    content = bucket.read(NAME) if there else None
    if there is None or content is None:
        return None, None
    try:
        said = json.loads(content)
        return there.tag, {"owner": str(said["owner"]), "generation": int(said["generation"])}
    except (ValueError, TypeError, KeyError):
        # Damaged: held by somebody until it was watched for its whole time, and its tag may be put over. How often it was taken is lost:
        # the seconds of the clock are more than that, because every time takes longer than one.
        return there.tag, {"owner": "unknown", "generation": int(time.time())}
