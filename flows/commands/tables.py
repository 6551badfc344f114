"""Commands on jobs and releases of several tables; imports modules when they run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name

import typer

from flows.commands.running import job_flow_by
from flows.terminal.screen import Screen, print_json, say
from schemas.errors.runners import RunnerName
from schemas.reading.regular_files import GivenJob

# ruff: noqa: PLC0415 - each command imports what it needs


def run_tables(
    job: Path | GivenJob, settings: Sequence[str], *, as_json: bool, direct: bool, runner: RunnerName | None, scheduler: str | None
) -> None:
    """Run a job of several tables, and print the summary of its release, or the manifest as JSON.

    The job is no file where its release is temporary: then it runs in this process.
    """
    from flows.terminal.runs import progress_bars
    from schemas.relational.table_jobs import most_rows_of, unit_job
    from schemas.relational.tables_job import load_tables_job
    from tasks.engine.flows import without_prefect
    from tasks.engine.runners import set_runner

    loaded = load_tables_job(job, settings)
    direct = direct or without_prefect() or isinstance(job, GivenJob)
    set_runner(runner, scheduler, direct=direct)
    with job_flow_by(partial(resolve_name, "flows.tables:tables"), direct=direct) as flow, progress_bars():
        published = flow(job, tuple(settings))
    from flows.terminal.tables import tables_summary, tables_warnings

    if as_json:
        for line in tables_warnings(published.manifest):
            say(line)
        print_json(published.manifest.model_dump(mode="json"))
        return
    place = unit_job(loaded).release_location(published.manifest.release)
    Screen().print(tables_summary(published.manifest, place, most_rows_of(loaded), published.bounded, new=published.new))


def plan_of_tables(job: Path, settings: Sequence[str], *, as_json: bool, quick: bool) -> None:
    """Print the plan of a job of several tables; exit with the plan's code if a run would fail."""
    from flows.terminal.runs import progress_bars
    from flows.terminal.tables import plan_lines
    from schemas.relational.tables_job import load_tables_job
    from tasks.relational.plan import plan_tables

    with progress_bars():
        made = plan_tables(load_tables_job(job, settings), quick=quick)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        Screen().print(plan_lines(made))
    if made.exit_code:
        raise typer.Exit(made.exit_code)


def verify_release_of_tables(release: str, job: Path | None, settings: Sequence[str], key: Path | None, *, as_json: bool) -> bool:
    """Verify a release of several tables and print the result; return whether all it promises was counted."""
    from flows.terminal.tables import verified_summary
    from flows.verification import verified_release_of_tables
    from tasks.relational.verified import figures_of_tables

    verified = verified_release_of_tables(release, job, settings, key)
    if as_json:
        print_json(figures_of_tables(verified))
    else:
        Screen().print(verified_summary(verified))
    return not verified.unverified


def report_of_tables(release: Path, job: Path | None, settings: Sequence[str], to: Path | None, *, as_json: bool) -> None:
    """Rebuild and write the report of a release of several tables, after verifying all else of it.

    It goes to a folder, back into the release if none is named, or is printed as JSON. Another job than that of the release is refused.
    """
    from schemas.errors.base import StorageError, VerificationError
    from schemas.relational.table_jobs import unit_job
    from schemas.relational.tables_job import load_tables_job
    from tasks.publication.staging import restore_documents, write_texts
    from tasks.relational.report import report_content, report_texts
    from tasks.relational.verified import verify_tables
    from tasks.store.files import open_folder
    from tasks.store.work import read_only_store
    from tasks.verification.entries import other_tables_job_note

    loaded = load_tables_job(job, settings) if job else None
    verified = verify_tables(None, release, report=False)
    manifest = verified.manifest
    if loaded:
        with read_only_store(unit_job(loaded)):
            if other_tables_job_note(loaded, manifest):
                raise StorageError.other_job(str(release))
    if verified.recount is None:
        raise VerificationError(f"'{release}'", ["the manifest does not state enough to make its report again"])
    written: list[Path] = []
    if to or not as_json:
        texts = report_texts(manifest)
        written = write_texts(open_folder(to), texts) if to else restore_documents(release, manifest, texts)
    if as_json:
        print_json(report_content(manifest))
    else:
        Screen(highlight=False).print(f"Made again from manifest.json: {' and '.join(map(str, written))}")


def init_of_tables(folders: Sequence[Path], out: Path, *, as_json: bool, accept: bool) -> None:
    """Draft a job file of several tables, one folder each, and print the findings and questions."""
    from rich.text import Text

    from schemas.errors.base import counted
    from tasks.planning.draft_text import next_commands_sentence
    from tasks.relational.draft import draft_tables
    from tasks.relational.draft_text import draft_content, drafted_table_sentences

    drafted = draft_tables(folders, out, accept=accept)
    if as_json:
        print_json(draft_content(drafted, out))
        return
    screen = Screen(highlight=False)
    for name, sentence in drafted_table_sentences(drafted).items():
        screen.print(f"{name}: {sentence}")
    if drafted.ladders:
        screen.print(f"{drafted.ladders[0].parent}: {counted(len(drafted.ladders), 'hierarchy file')}, which you alone can read.")
    for number, one in enumerate(drafted.questions, 1):
        screen.print(Text(f"\n{number}. {one.question} {one.table}: {', '.join(one.columns)}"))
        screen.print(f"   {'Accepted' if accept else 'Meanwhile, and safest'}: {one.safest}, {one.meaning}.")
    decide = f"Decide on {counted(len(drafted.questions), 'question')}." if drafted.questions and not accept else "Read it."
    then = drafted.obstacle or next_commands_sentence(str(out))
    screen.print(f"\n{out}: drafted from {counted(len(drafted.tables), 'table')}. {decide} {then}")
