"""``skald attack``: the command, which imports its modules when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import AsJson, Settings
from flows.terminal.screen import Screen, print_json

# ruff: noqa: PLC0415 - each command imports what it needs


def attack(
    release: Annotated[str, typer.Argument(help="A release folder, or its address in an object store.", show_default=False)],
    job: Annotated[Path, typer.Option("--job", help="The job that made it.", show_default=False)],
    settings: Settings = None,
    everybody: Annotated[bool, typer.Option("--all", help="Attack everybody, and not a sample.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a release and run simulated attacks on it.

    Singling out, linkage, inference, membership, downcoding and joins.

    Exits with 0 if nothing is to be refused, and with 4 if the release does not verify. Exits with 3 if an attack wins more than the job
    accepts and the job or the policy says to refuse that. The figures follow from the source: do not hand them on with the release.
    """
    from flows.attacking import attacked_release, attacked_tables, check_attacked
    from flows.terminal.runs import attack_summary
    from flows.verification import is_about_tables
    from schemas.job.job import load_job
    from schemas.relational.table_jobs import unit_job
    from schemas.relational.tables_job import load_tables_job
    from tasks.verification.published_releases import release_folder

    if is_about_tables(release, job, settings or ()):
        of_tables = load_tables_job(job, settings or ())
        with release_folder(release) as folder:
            loaded, attacked = unit_job(of_tables), attacked_tables(of_tables, folder)
    else:
        loaded = load_job(job, settings or ())
        attacked = attacked_release(loaded, release, everybody=everybody)
    if as_json:
        print_json(attacked.content())
    else:
        Screen().print(attack_summary(attacked.attacks, attacked.basis))
    check_attacked(loaded, attacked)
