"""``skald deploy``: deploys a job on Prefect's server; imports its modules when it runs."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import Settings
from flows.terminal.screen import Screen

# ruff: noqa: PLC0415 - each command imports what it needs


def deploy(
    job: Annotated[Path, typer.Argument(help="The job, a YAML file, under the path by which the worker sees it.", show_default=False)],
    cron: Annotated[
        str | None,
        typer.Option(metavar="'M H D M W'", help="When it runs, as in '0 2 * * *'; by hand if left out.", show_default=False),
    ] = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="In which zone --cron is meant, as in Europe/Berlin.")] = "UTC",
    pool: Annotated[str, typer.Option(metavar="NAME", help="The work pool; one of processes is made if there is none.")] = "skald",
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Change the deployment though another host made it: both see the same job file.")
    ] = False,
    settings: Settings = None,
) -> None:
    """Deploy a job on a Prefect server.

    PREFECT_API_URL names the server. Runs of the job wait for one another.
    """
    from flows.server.local_api import prefect_api, prepare_prefect
    from schemas.errors.storage import DeploymentError
    from schemas.relational.tables_job import load_any_job

    loaded = load_any_job(job, settings or ())
    if not prepare_prefect():
        raise DeploymentError.no_server()
    with prefect_api(configured=True):
        from flows.server.deployments import deploy_job

        done = deploy_job(loaded, job.absolute(), settings or (), cron=cron, timezone=timezone, pool=pool, take_over=take_over)
    console = Screen(highlight=False)
    for former in done.former:
        console.print(f"{former}: removed, as {done.name} takes its place.")
    when = f"at '{cron}' ({timezone})" if cron else "by hand"
    console.print(f"{done.name}: runs {when}, one at a time; another one waits. Start it: prefect deployment run {shlex.quote(done.name)}")
    if done.is_paused:
        console.print("The deployment is paused on the server and stays so: no run starts until it is resumed on its page.")
    if done.pool_is_new:
        console.print(f"The work pool '{pool}' is new. It needs a worker: prefect worker start --pool {shlex.quote(pool)}")
