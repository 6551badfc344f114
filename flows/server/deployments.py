"""Deployments of jobs on Prefect's server, with the runs of a job one after another."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from schemas.errors.storage import DeploymentError
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.run_parameters import RunParameters

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.responses import DeploymentResponse

    from schemas.relational.tables_job import TablesJob

FIELDS = 5
TAG = "skald"
"""By which the automations in ``deployments`` know runs of ours."""
HOST, HOST_TAG = "SKALD_HOST", "host:"
"""What a host calls itself where its own name changes, as in containers; and what the tag begins with that tells whose a deployment is."""
ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    # A run that has not been heard of for five times as long is taken for dead.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}


class Deployed(NamedTuple):
    """Full name of a job's deployment, whether its work pool is new, and names of removed deployments.

    The removed ones were of the job's former methods. A deployment that somebody has paused stays paused.
    """

    name: str
    is_paused: bool
    pool_is_new: bool
    former: tuple[str, ...]


def deploy_job(
    job: Job | TablesJob, file: Path, settings: Sequence[str], *, cron: str | None, timezone: str, pool: str, take_over: bool
) -> Deployed:
    """Create or change a job's deployment on Prefect's server, and delete those of its former methods.

    It is of the method's flow, or of that of several tables, under the job's name.

    Args:
        job: The job, of one table or of several.
        file: Its file, as the worker sees it; absolute.
        settings: What every run replaces of it.
        cron: When it runs, in five fields; None for by hand only.
        timezone: In which zone that is meant, as in ``Europe/Berlin``.
        pool: The work pool; one of processes is made if there is none.
        take_over: Whether a deployment of a job at the same path that another host made is changed: it is the same job, which both see.

    Raises:
        JobError: a setting could hold values of cells, which Prefect would keep.
        DeploymentError: another job has the name, or one at this path on another host, or the times are none.
    """
    schedules = _schedules(cron, timezone)
    parameters = RunParameters.of(file, settings).model_dump(mode="json", exclude_defaults=True)
    flow, words = _flow_of(job)
    with get_client(sync_client=True) as client:
        former = _of_other_flows(client, job, flow.name, file, take_over=take_over)
        pool_is_new = _make_pool(client, pool)
        made = client.create_deployment(
            flow_id=client.create_flow_from_name(flow.name),
            name=job.name,
            description=words,
            tags=[TAG, _host_tag()],
            entrypoint=f"{flow.fn.__module__}:{flow.fn.__name__}",
            pull_steps=[],
            parameters={"job": parameters},
            parameter_openapi_schema=parameter_schema(flow).model_dump_for_openapi(),
            enforce_parameter_schema=True,
            work_pool_name=pool,
            job_variables={"env": ENVIRONMENT},
            # Two runs of one job cannot share its folder: the one that comes second begins when the first has ended.
            concurrency_limit=1,
            concurrency_options=ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.ENQUEUE),
            schedules=schedules,
            # What somebody paused stays paused; left out, it is as it was.
            paused=any(one.paused for one in former.values()) or None,
        )
        is_paused = client.read_deployment(made).paused
        for one in former.values():
            client.delete_deployment(one.id)
    return Deployed(f"{flow.name}/{job.name}", is_paused, pool_is_new, tuple(former))


def _flow_of(job: Job | TablesJob) -> tuple[Any, str]:
    """Return the flow that runs a job, and what it does in words."""
    if isinstance(job, Job):
        return METHODS[job.method.name].flow.load(), METHODS[job.method.name].words
    from flows.tables import tables  # noqa: PLC0415 - what jobs of one table do without

    return tables, "Several tables of the same persons, joinable and k-anonymous together."


def _schedules(cron: str | None, timezone: str) -> list[DeploymentScheduleCreate]:
    """Return the schedule of a cron expression, as a list of 0 or 1 schedules."""
    if cron is None:
        return []
    fields = cron.split()
    # Prefect takes a sixth field for seconds, at the end, where others begin with them.
    if len(fields) != FIELDS and not cron.startswith("@"):
        raise DeploymentError.not_five_fields(cron, len(fields))
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
        times = import_module("prefect._vendor.croniter")  # what Prefect's schedules go by
        comes = _comes(times, cron)
    except (ValidationError, ValueError):
        raise DeploymentError.no_times(cron, timezone) from None
    if not comes:
        raise DeploymentError.never_due(cron)
    return [DeploymentScheduleCreate(schedule=schedule, active=True)]


def _comes(times: Any, cron: str) -> bool:
    """Return whether a cron expression has any future time."""
    try:
        times.croniter(cron, datetime.now(UTC)).get_next(datetime)
    except times.CroniterBadDateError:
        return False
    return True


def _host_tag() -> str:
    """Return the tag that names this host."""
    return f"{HOST_TAG}{os.environ.get(HOST) or socket.gethostname()}"


def _of_other_flows(
    client: SyncPrefectClient, job: Job | TablesJob, flow: str, file: Path, *, take_over: bool
) -> dict[str, DeploymentResponse]:
    """Return the deployments of the same job by its former methods, by full name.

    Their runs could only fail.

    Raises:
        DeploymentError: another job's deployment has the name, or that of a job at this path on another host.
    """
    found, here = {}, _host_tag()
    for one in client.read_deployments(deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[job.name]))):
        method = client.read_flow(one.flow_id).name
        theirs = (one.parameters.get("job") or {}).get("job_file")
        # A path is one job on one host; what was deployed before hosts were told apart says nothing of them.
        hosts = [tag for tag in one.tags if tag.startswith(HOST_TAG)]
        if theirs == str(file) and hosts and here not in hosts and not take_over:
            if method == flow:
                raise DeploymentError.other_host(f"{method}/{job.name}", hosts[0].removeprefix(HOST_TAG))
        elif theirs == str(file) and method != flow and TAG in one.tags:
            found[f"{method}/{job.name}"] = one
        elif theirs != str(file) and method == flow:
            raise DeploymentError.name_taken(f"{method}/{job.name}", theirs or "no job")
    return found


def _make_pool(client: SyncPrefectClient, name: str) -> bool:
    """Create a work pool if it does not exist; return whether it was created."""
    try:
        client.read_work_pool(name)
    except ObjectNotFound:
        client.create_work_pool(WorkPoolCreate(name=name, type="process"))
        return True
    return False
