"""``skald report``: the command, which imports its modules when it runs."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import Settings
from flows.terminal.screen import Screen

# ruff: noqa: PLC0415 - each command imports what it needs


def report(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    job: Annotated[Path | None, typer.Option("--job", help="The job that made it, with which it is compared.", show_default=False)] = None,
    settings: Settings = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the report goes; back into the release if left out.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json, and write files only with --to.")] = False,
) -> None:
    """Rebuild the report of a release from its manifest and files alone.

    Exits with 4 if they do not agree.
    """
    from schemas.job.job import load_job
    from tasks.publication.staging import restore_report, write_report
    from tasks.release.manifest import is_of_tables_as_its_job
    from tasks.report.report import rebuild_report
    from tasks.store.files import check_takes_files, open_folder
    from tasks.store.work import read_only_store

    if to:
        check_takes_files(to)
    if is_of_tables_as_its_job(release, job, settings or ()):
        from flows.commands.tables import report_of_tables

        return report_of_tables(release, to, as_json=as_json)
    loaded = load_job(job, settings or ()) if job else None
    with read_only_store(loaded) if loaded else nullcontext():
        made = rebuild_report(release, loaded)
    written = []
    if to or not as_json:
        written = write_report(open_folder(to), made) if to else restore_report(release, made)
    if as_json:
        sys.stdout.write(made.model_dump_json(indent=2) + "\n")
    else:
        Screen(highlight=False).print(f"Made again from manifest.json and the data files: {' and '.join(map(str, written))}")
