"""Construction of an OpenLineage event from names, counts and addresses."""

from __future__ import annotations

import os
from collections.abc import Sequence
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

from tasks.engine.lineage_outputs import OutputTable

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
    facts: dict[str, Any],
    sources: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[tuple[str, str], OutputTable | None]],
) -> RunEvent:
    """Return an OpenLineage run event, with a new run id if ``run`` is empty.

    Args:
        state: A run state of OpenLineage, such as ``START``.
        run: Id of the run; a new one if it is empty.
        name: Of the job.
        facts: Method and k, and for an ended run exit code, message and figures of the release.
        sources: Namespace and name of each source.
        outputs: Namespace and name of each table of the target, and what is published of it; None where there is no release.
    """
    producer = PRODUCER + version("skald")
    facets: dict[str, Any] = {
        "skald": SkaldRunFacet(facts["method"], facts["k"], facts.get("exit"), facts.get("release"), producer=producer)
    }
    if "sentence" in facts:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(facts["sentence"], "python", producer=producer)
    kind = job_type_job.JobTypeJobFacet("BATCH", "SKALD", "ANONYMISATION", producer=producer)
    return RunEvent(
        eventType=RunState[state],
        eventTime=datetime.now(UTC).isoformat(),
        run=Run(run or str(generate_new_uuid()), facets=facets),
        job=Job(os.environ.get(NAMESPACE) or "skald", name, facets={"jobType": kind}),
        producer=producer,
        inputs=[InputDataset(*source) for source in sources],
        outputs=[_output(place, table, producer) if table else OutputDataset(*place) for place, table in outputs],
    )


def _output(place: tuple[str, str], table: OutputTable, producer: str) -> OutputDataset:
    rows, files = table.rows, table.files
    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in table.columns.items()]
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows, fileCount=files, producer=producer)
    return OutputDataset(
        *place,
        facets={
            "version": dataset_version_dataset.DatasetVersionDatasetFacet(table.release, producer=producer),
            "schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=producer),
        },
        outputFacets={"outputStatistics": statistics},
    )
