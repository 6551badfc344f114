"""The command line: ``skald run``, ``plan``, ``clean``, ``make-data``, ``schema`` and ``studio``.

Exit codes: 0 published (or as asked), 2 wrong job or data, 3 privacy cannot be met, 4 verification failed, 1 a fault of ours; 130 after
Ctrl-C, 143 after SIGTERM.
"""

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.deploy import deploy
from flows.commands.hierarchy import hierarchy
from flows.commands.init import init
from flows.commands.measures import compare_command, lattice, utility
from flows.commands.releases import attack, report, reveal, verify
from flows.commands.running import AsJson, JobFile, Settings, job_flow_by
from flows.loading import check_address_space, prepare_quick_start, run_and_exit
from flows.terminal.screen import Screen, print_json, say
from schemas.errors.base import STAYS, SkaldError, counted, verb_of
from schemas.errors.runners import RunnerName
from schemas.errors.storage import ServerError

INTERRUPTED, TERMINATED = 130, 128 + signal.SIGTERM
CONTINUING = (["run"], ["compare"])
"""Commands that go on where an earlier one of the same words was cut off."""

# Help without Rich's boxes: to load what draws them takes longer than all else that help needs.
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)


def main() -> None:
    """Run the command line and exit with its exit code."""
    # What was closed before the process began is opened, so that nothing is printed into a file that is opened later.
    sys.stdout, sys.stderr = (stream or Path(os.devnull).open("w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path may hold bytes that are no text, and to say it must not fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        if "--help" not in sys.argv:
            check_address_space()
        with _terminated_like_interrupted() as signals:
            # Typer turns an interrupt into this exit code, and returns it.
            code = app(standalone_mode=False) or 0
        sys.stdout.flush()  # here, where a full disk is told
        if code == INTERRUPTED:
            say(f"Interrupted. {STAYS}" if _continues() else "Interrupted.")
        sys.exit(TERMINATED if code == INTERRUPTED and signals else code)
    except SkaldError as error:
        say(error.message(continues=_continues()))
        if isinstance(error, ServerError):  # Prefect's threads would try to reach it for minutes; everything of ours is closed
            sys.stdout.flush()
            os._exit(error.exit_code)
        sys.exit(error.exit_code)
    except typer.TyperException as error:
        say(error.format_message())
        sys.exit(2)
    except BaseException as error:  # a panic in Polars is no Exception
        if isinstance(error, SystemExit | KeyboardInterrupt) or os.environ.get("SKALD_DEBUG"):
            raise
        from tasks.engine.guard import sanitised_error

        told = sanitised_error(error)
        say(told.message(continues=_continues()))
        sys.exit(told.exit_code)


def _continues() -> bool:
    """Return whether the command that was given keeps its finished steps for the next time."""
    return sys.argv[1:2] in CONTINUING and "--scratch" not in sys.argv


@contextmanager
def _terminated_like_interrupted() -> Iterator[list[int]]:
    """Make SIGTERM end a run like Ctrl-C, and yield the list of received signals.

    Services and containers send SIGTERM.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        # Once: what has begun comes to its end, and whoever cannot wait for that has SIGKILL.
        signal.signal(number, signal.SIG_IGN)
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def _version(asked: bool) -> None:
    """Print the version and exit, if ``--version`` is given."""
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"skald {version('skald')}\n")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")] = False,
) -> None:
    """Make verified k-anonymous releases from a job file."""


@app.command()
def run(
    job: JobFile,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest on standard output, nothing if the run fails.")] = False,
    direct: Annotated[bool, typer.Option("--direct", help="Run the same steps in this process, without Prefect.")] = False,
    runner: Annotated[RunnerName | None, typer.Option(help="Where chunks are worked on; threads if left out.", show_default=False)] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler that runs, as in tcp://host:8786.", show_default=False)
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="RELEASE", help="Apply the levels or cuts of an earlier release and verify them.", show_default=False),
    ] = None,
    scratch: Annotated[bool, typer.Option("--scratch", hidden=True)] = False,
) -> None:
    """Anonymise a source, verify the release and publish it.

    A run that was killed continues with the same command.
    """
    from schemas.job.job import load_job
    from schemas.reading.job_files import is_of_tables
    from schemas.reading.regular_files import scratch_job

    if is_of_tables(job, settings or ()):
        from flows.commands.tables import run_tables

        if replay is not None:
            raise typer.BadParameter("jobs of several tables take no --replay yet")
        return run_tables(
            scratch_job(job) if scratch else job, settings or (), as_json=as_json, direct=direct, runner=runner, scheduler=scheduler
        )
    if replay is not None:
        settings = [*(settings or ()), f"replay={json.dumps(str(replay.resolve() if replay.is_dir() else replay))}"]
    loaded = load_job(job, settings or ())
    from tasks.engine.flows import without_prefect
    from tasks.engine.lineage import events_are_enabled
    from tasks.engine.runners import set_runner

    # Prefect's start costs more than many jobs: what can be said without counting is said before.
    direct = direct or scratch or without_prefect()
    set_runner(runner, scheduler, direct=direct)
    if not direct:
        from schemas.job.run_parameters import RunParameters

        RunParameters.of(job, settings or ())  # refuses what Prefect must not keep
    manifest, untold = None, None
    if not (direct or events_are_enabled()):
        from tasks.planning.plan import find_existing_release

        manifest = find_existing_release(loaded)
    new = manifest is None
    if manifest is None:
        from flows.terminal.runs import progress_bars
        from schemas.job.method import METHODS

        with job_flow_by(METHODS[loaded.method.name].flow.load, direct=direct) as flow, progress_bars():
            published = flow(scratch_job(job) if scratch else job, tuple(settings or ()))
        manifest, new, untold = published.manifest, published.new, published.untold
    from flows.terminal.runs import print_published

    print_published(manifest, loaded.release_location(manifest.release), new=new, as_json=as_json, untold=untold)


@app.command()
def plan(
    job: JobFile,
    settings: Settings = None,
    as_json: AsJson = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out how unique records are, and what several tables would publish.")
    ] = False,
) -> None:
    """Show what a run would do, without touching the target.

    Sizes, lattice, memory, how unique the records are and which columns make them so.
    """
    from flows.terminal.plans import plan_summary
    from flows.terminal.runs import progress_bars
    from schemas.job.job import load_job
    from schemas.reading.job_files import is_of_tables
    from tasks.planning.plan import make_plan

    if is_of_tables(job, settings or ()):
        from flows.commands.tables import plan_of_tables

        return plan_of_tables(job, settings or (), as_json=as_json, quick=quick)
    with progress_bars():
        made = make_plan(load_job(job, settings or ()), quick=quick)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        Screen().print(plan_summary(made))


@app.command()
def clean(
    job: JobFile,
    settings: Settings = None,
    keep_last: Annotated[
        int | None, typer.Option(min=1, max=10, help="Keep what so many of the newest releases need.", show_default=False)
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Keep what a run has used within so many days.", show_default=False)
    ] = None,
) -> None:
    """Remove the artefacts of a job, which hold raw values.

    The secret of its ids goes too. Releases stay, and stay registered.
    """
    from schemas.job.job import load_job
    from schemas.reading.job_files import is_of_tables
    from tasks.store.work import clean_work

    if is_of_tables(job, settings or ()):
        from schemas.relational.table_jobs import unit_job
        from schemas.relational.tables_job import load_tables_job

        loaded = unit_job(load_tables_job(job, settings or ()))
    else:
        loaded = load_job(job, settings or ())
    if keep_last is not None or keep_days is not None:
        from tasks.composition.registry import remove_unneeded

        freed = remove_unneeded(loaded, keep_last, keep_days)
        said = f"Removed {freed / 1e6:,.1f} MB of artefacts" if freed else "No artefact is older than what is kept"
        return Screen(highlight=False).print(f"{said}. The key of digests and the newest release's artefacts stay.")
    freed, left, at_work = clean_work(loaded)
    said = f"Removed {freed / 1e6:,.1f} MB of artefacts." if freed else "There are no artefacts."
    if left:
        stay = "entries stay" if left > 1 else "entry stays"
        said += f" {left:,} {stay} in '{loaded.work_location}', as SKALD did not make {'them' if left > 1 else 'it'}."
    if at_work:
        said += f" {counted(at_work, 'command')} still at work there, which {verb_of(at_work, 'remove')} its own at the end."
    Screen(highlight=False).print(said)


@app.command()
def make_data(
    name: Annotated[
        str,
        typer.Argument(help="Which data set: hospital (three tables), medical (patients), visits or poker (hands).", show_default=False),
    ],
    rows: Annotated[int, typer.Option(help="Number of records.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    files: Annotated[int | None, typer.Option(help="Number of files; one per million records if left out.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same data.")] = 0,
) -> None:
    """Make example data.

    Persons with visits and conditions (hospital), patients (medical), their visits, or poker hands (poker).
    """
    from data.tables import check_absent, maker

    try:
        make = maker(name)
        check_absent(name, out)
        written = make(out, rows, files, seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    Screen(highlight=False).print(f"{counted(rows, 'record')} in {counted(len(written), 'file')} in {out}")


@app.command()
def schema(
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Where it goes; standard output if left out.", show_default=False)] = None,
) -> None:
    """Print the JSON Schema of job files.

    Editors complete and check job files by it.
    """
    from schemas.relational.tables_job import jobs_json_schema
    from tasks.store.files import write_atomically

    text = json.dumps(jobs_json_schema(), indent=2) + "\n"
    if to is None:
        sys.stdout.write(text)
    else:
        write_atomically(to, lambda part: part.write_text(text, "utf-8"), 0o644)


@app.command()
def studio(
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SOURCE | JOB]", help="What is anonymised, or a job file; the page asks if left out.", show_default=False),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Where it listens; any that is free if left out.", show_default=False)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; only print the address.")] = False,
) -> None:
    """Open a page on this machine to decide on a job.

    It has columns, hierarchies, choices, run and comparison. It ends with the terminal.
    """
    from flows.studio.serving import serve

    serve(tuple(source or ()), port, browser=not no_browser)


app.command()(attack)
app.command("compare")(compare_command)
app.command()(init)
app.command()(deploy)
app.add_typer(hierarchy, name="hierarchy")
app.command()(utility)
app.command()(lattice)
app.command()(report)
app.command()(reveal)
app.command()(verify)

if __name__ == "__main__":
    prepare_quick_start()
    run_and_exit(main)
