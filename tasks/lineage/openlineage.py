"""An event of OpenLineage, put together with the classes of its client: names, counts and addresses."""

from __future__ import annotations

import logging
import os
import queue
import threading
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from schemas.release.manifest import Manifest

NAMESPACE, PRODUCER = "OPENLINEAGE_NAMESPACE", "urn:skald:"


@attr.define
class SkaldRunFacet(RunFacet):
    """What was run and how it ended; ``exit`` is the exit code of the command line, None while it runs."""

    method: str
    k: int
    exit: int | None = None
    release: dict[str, Any] | None = None


def event(
    state: str,
    run: str,
    name: str,
    said: dict[str, Any],
    release: dict[str, Any],
    manifest: Manifest | None,
    places: tuple[list[tuple[str, str]], tuple[str, str]],
) -> RunEvent:
    """Returns an event.

    Args:
        state: One of OpenLineage's.
        run: Id of the run; a new one if it is empty.
        name: Of the job.
        said: Method, k, and of a run that ended its exit code and sentence.
        release: Figures of the release; empty where there is none.
        manifest: Of the release.
        places: Namespace and name of each source, and of the target.
    """
    sources, (namespace, target) = places
    producer = PRODUCER + version("skald")
    facets: dict[str, Any] = {"skald": SkaldRunFacet(said["method"], said["k"], said.get("exit"), release or None, producer=producer)}
    if "sentence" in said:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(said["sentence"], "python", producer=producer)
    kind = job_type_job.JobTypeJobFacet("BATCH", "SKALD", "ANONYMISATION", producer=producer)
    outputs = [_output(manifest, namespace, target, producer)] if manifest else [OutputDataset(namespace, target)]
    return RunEvent(
        eventType=RunState[state],
        eventTime=datetime.now(UTC).isoformat(),
        run=Run(run or str(generate_new_uuid()), facets=facets),
        job=Job(os.environ.get(NAMESPACE) or "skald", name, facets={"jobType": kind}),
        producer=producer,
        inputs=[InputDataset(*source) for source in sources],
        outputs=outputs,
    )


def _output(manifest: Manifest, namespace: str, target: str, producer: str) -> OutputDataset:
    rows, files = manifest.released, len(manifest.files)
    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=manifest.columns.get(name)) for name in _columns(manifest)]
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows, fileCount=files, producer=producer)
    return OutputDataset(
        namespace,
        target,
        facets={
            "version": dataset_version_dataset.DatasetVersionDatasetFacet(manifest.release, producer=producer),
            "schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=producer),
        },
        outputFacets={"outputStatistics": statistics},
    )


def _columns(manifest: Manifest) -> list[str]:
    asked = manifest.asked
    qids = [name for qid in asked.quasi_identifiers for name in qid.columns] if asked else []
    return [*qids, *manifest.passthrough, *manifest.pseudonyms]


if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

LOG = logging.getLogger("skald.lineage")
SECONDS, SECONDS_INTERRUPTED = 10.0, 3.0
"""How long a run that is over waits for its events; where somebody wants it to end, less."""


class Sender:
    """Sends events until it is closed.

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
        """Leaves an event to the thread."""
        self._asked += 1
        self._events.put(event)

    def failed(self, error: Exception) -> None:
        """Counts an event that could not even be made."""
        self._asked += 1
        self._faults.append(type(error).__name__)

    def close(self, seconds: float = SECONDS) -> None:
        """Waits until all are sent, no longer than so many seconds, and says how many were not."""
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
