"""Sending of OpenLineage events by a thread, so that a slow endpoint does not delay the run.

The end of a run waits for a limited time. Unsent events are reported in one line, when the run is over.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

LOG = logging.getLogger("skald.lineage")
SECONDS, SECONDS_INTERRUPTED = 10.0, 3.0
"""How long a run that is over waits for its events; where somebody wants it to end, less."""


class Sender:
    """Background sender of OpenLineage events.

    Args:
        client: OpenLineage's.
    """

    def __init__(self, client: OpenLineageClient) -> None:
        self._client, self._events = client, queue.SimpleQueue[Any]()
        self._asked = self._sent = 0
        self._faults: list[str] = []
        self._given_up = threading.Event()
        # A daemon: a process that ends waits for no endpoint.
        self._thread = threading.Thread(target=self._work, name="skald-lineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Queue an event for sending and return at once."""
        self._asked += 1
        self._events.put(event)

    def failed(self, error: Exception) -> None:
        """Count an event that could not be built, for the report of ``close``."""
        self._asked += 1
        self._faults.append(type(error).__name__)

    def close(self, seconds: float = SECONDS) -> None:
        """Wait at most so many seconds until all events are sent; log a warning on those that were not."""
        self._events.put(None)
        self._thread.join(seconds)
        self._given_up.set()
        if missing := self._asked - self._sent:
            # Of errors their kinds alone: their texts may hold an address with a password.
            kinds = ", ".join(dict.fromkeys(self._faults)) or f"no answer within {seconds:.0f} s"
            LOG.warning("%d of %d events of OpenLineage could not be sent (%s); the run goes on without.", missing, self._asked, kinds)

    def _work(self) -> None:
        while (event := self._events.get()) is not None and not self._given_up.is_set():
            try:
                self._client.emit(event)
            except Exception as error:
                self._faults.append(type(error).__name__)
            else:
                self._sent += 1
        try:
            # Transports that keep events back send them now.
            self._client.close()
        except Exception as error:
            self._faults.append(type(error).__name__)
