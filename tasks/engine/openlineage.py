"""Construction of an OpenLineage event from names, counts and addresses."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

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
    """Run facet with method, k, exit code and release; ``exit`` is None during the run."""

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
    """Build an OpenLineage run event.

    Args:
        state: A run state of OpenLineage, such as ``START``.
        run: Id of the run; a new one if it is empty.
        name: Of the job.
        said: Method and k, and for an ended run exit code and message.
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
