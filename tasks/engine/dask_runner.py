"""Chunk tasks on Dask, so that the death of a worker costs only the chunk it worked on.

prefect-dask's own runner sends whole Prefect tasks to the workers. Each worker imports Prefect and has to reach its API, and the settings
with their secrets travel along. A task that ends its workers stays "Running". Results are kept on the workers, so that the tasks of a dead
one run again. Here Prefect's tasks stay on threads of the flow's process, which see every state, and only the function of a
chunk task goes to a worker; its result is fetched and released at once. Cluster and client are prefect-dask's, scheduling is Dask's.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Self
from uuid import uuid4

import dask
import distributed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect_dask.task_runners import DaskTaskRunner

from schemas.errors.runners import RunnerError
from tasks.engine.calls import MOST_TASKS
from tasks.engine.remote.call_queues import BucketQueue, CallQueue, queue_of, remove_local_copies
from tasks.engine.remote.calls import Order, RemoteCalls, fulfil
from tasks.store.work import HeldWork

CONNECT_SECONDS = 10
WORKER_SECONDS = 60
CHECK_SECONDS = 5

# TLS with a certificate of the moment: whoever reaches the port of a scheduler runs code as its owner. Dask's own limit on memory would end
# a worker for what the libraries hold; the steps keep to the job's memory themselves. The HTTP port cannot be closed: it gets no pages, and
# any number, for with its usual one Dask would warn of a second run.
ON_THIS_MACHINE: dict[str, Any] = {
    "threads_per_worker": 1,
    "security": True,
    "memory_limit": 0,
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
    "silence_logs": logging.CRITICAL,
}
NO_PAGES: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def dask_runner(address: str | None, workers: int) -> DaskThreadsTaskRunner:
    """Return the task runner for a Dask scheduler, or for a cluster of ``workers`` on this machine.

    The cluster is started for the run.
    """
    if address:
        _check_encryption(address)
        return DaskThreadsTaskRunner(DaskTaskRunner(address=address, client_kwargs={"timeout": CONNECT_SECONDS}))
    dask.config.set(NO_PAGES)
    return DaskThreadsTaskRunner(DaskTaskRunner(cluster_kwargs=ON_THIS_MACHINE | {"n_workers": workers}))


def _check_encryption(address: str) -> None:
    # Asked first: Dask's client would raise halfway through its constructor, and once more when it is thrown away.
    if address.startswith("tls://"):
        loaded = dask.config.get("distributed.client.security-loader", None)
        if not loaded and distributed.Security().get_connection_args("client").get("ssl_context") is None:  # type: ignore[no-untyped-call]
            raise RunnerError.no_certificate(address)
    elif dask.config.get("distributed.comm.require-encryption", False):
        raise RunnerError.not_encrypted(address)


class DaskThreadsTaskRunner(ThreadPoolTaskRunner[Any]):
    """Task runner that keeps Prefect's tasks on threads and sends chunk functions to Dask workers."""

    def __init__(self, dask: DaskTaskRunner) -> None:
        # Each task needs a thread to wait on, and one that waits costs next to nothing.
        super().__init__(max_workers=MOST_TASKS)
        self.dask: Any = dask  # its methods have no types
        self._queue: BucketQueue | None = None

    def duplicate(self) -> DaskThreadsTaskRunner:
        """Return a runner for the same cluster."""
        return type(self)(self.dask.duplicate())

    def __enter__(self) -> Self:
        # Begun first and ended last: threads that still wait need their cluster.
        self.dask.__enter__()
        super().__enter__()
        if self.dask.address:
            # Told at once, while a cluster on this machine is started only when there is something to do.
            _ = self.client
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._remove_copies()
        self.dask.__exit__(*error)

    def _remove_copies(self) -> None:
        """Remove this run's data from the workers of a cluster that outlives the run."""
        if self.dask.address and self._queue:
            # Whoever is gone has nothing any more, and no fault here may hide how the run ended.
            with suppress(Exception):
                self.client.run(remove_local_copies, self._queue, on_error="ignore")

    def calls(self, phase: str, work: HeldWork, spill: Path) -> DaskCalls:
        """Return the caller of one phase's functions on the cluster, which is started if need be."""
        queue = queue_of(work, spill, phase)
        # All phases of a run have the same one, where its work is in a bucket.
        self._queue = queue if isinstance(queue, BucketQueue) else None
        return DaskCalls(self.client, self.dask.address or "this machine", phase, queue)

    def count_workers(self) -> int:
        """Return how many calls the cluster can make at a time now."""
        if not self.dask.address:
            # One that is started for the run is started only when there is something to do.
            return int(self.dask.cluster_kwargs["n_workers"])
        threads: Callable[[], dict[str, int]] = self.client.nthreads
        return sum(threads().values())

    @property
    def client(self) -> distributed.Client:
        """Dask client of the given scheduler, or of a cluster started here; raises ``RunnerError``."""
        _be_quiet()
        try:
            client: distributed.Client = self.dask.client
        except Exception:
            # Refusals, timeouts and broken certificates come as many kinds of error, and mean the same to whoever reads of them.
            raise (RunnerError.unreachable(self.dask.address) if self.dask.address else RunnerError.not_started()) from None
        return client


def _be_quiet() -> None:
    """Silence Dask's loggers in this process, because the command line reports errors once."""
    if not os.environ.get("SKALD_DEBUG"):
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL)


class DaskCalls(RemoteCalls):
    """Caller of one phase's functions on Dask workers, while threads of this process wait.

    Args:
        client: Connected.
        address: How the scheduler is called in a message.
        phase: Names the tasks in Dask.
        queue: Where calls lie meanwhile; empty at the end.
    """

    def __init__(self, client: distributed.Client, address: str, phase: str, queue: CallQueue) -> None:
        super().__init__(queue)
        self._client, self._address, self._phase = client, address, phase
        self._checking, self._checked, self._manned = Lock(), time.monotonic(), time.monotonic()

    def send_and_wait(self, order: Order) -> Any:
        """Send an order to a worker, wait, return its answer; raise ``RunnerError`` if workers are lost."""
        try:
            return self._answer(order)
        except distributed.KilledWorker:
            raise RunnerError.workers_died(self._phase) from None
        # To Dask a connection that is closed is an OSError.
        except (distributed.CancelledError, OSError):
            raise RunnerError.scheduler_lost(self._address) from None

    def _answer(self, order: Order) -> Any:
        # A random key, because equal keys of two runs would be one task to a scheduler that they share.
        key = f"{self._phase}-{uuid4().hex}"
        future: Any = self._client.submit(fulfil, order, key=key, pure=False)
        try:
            while True:
                try:
                    # Looked up now and then: with the last worker gone, a result would be waited for for ever.
                    return future.result(timeout=CHECK_SECONDS)
                except TimeoutError:
                    self._check_workers()
        finally:
            # What is left on a worker is made again when that worker dies.
            future.release()

    def _check_workers(self) -> None:
        workers: Callable[[], dict[str, int]] = self._client.nthreads
        # Many threads wait at a time; one question in a while serves them all.
        with self._checking:
            now = time.monotonic()
            if now - self._checked >= CHECK_SECONDS:
                self._checked = now
                if workers():
                    self._manned = now
            if now - self._manned > WORKER_SECONDS:
                raise RunnerError.no_workers(self._address, WORKER_SECONDS)
