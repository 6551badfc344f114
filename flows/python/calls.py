"""``skald.run``, ``plan`` and ``verify``: the commands of these names, with exceptions for exit codes."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from flows.python.shown import Published
from schemas.errors.base import JobError
from schemas.reading.regular_files import GivenJob, given_job, setting_texts

if TYPE_CHECKING:
    from schemas.job.job import Job

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later

JobFile = str | os.PathLike[str] | Mapping[str, Any]
"""A job: the path of its file, or what that would say."""
JobAndSettings: TypeAlias = tuple[Path | GivenJob, tuple[str, ...]]
Result = TypeVar("Result")


def job_and_settings(job: JobFile, settings: Mapping[str, Any] | None) -> JobAndSettings:
    """Return a job and settings in the form that flows take; raise for values that no job can hold.

    Raises:
        JobError: the content or a setting holds what no job can.
    """
    read = given_job(job, Path.cwd()) if isinstance(job, Mapping) else path_of_job(job)
    return read, setting_texts(settings or {})


def path_of_job(job: object) -> Path:
    """Return a job's path, given as text or path; raise ``JobError`` for anything else.

    Raises:
        JobError: the job is neither a path nor a content.
    """
    if not isinstance(job, str | os.PathLike):
        raise JobError("The job given", [f"'{type(job).__name__}' is no job; give the path of its file, or its content as a dict"])
    return Path(fspath(job))


def run_job(job: Path | GivenJob, settings: tuple[str, ...], *, direct: bool) -> Published:
    """Run a job of one or of several tables, and return the published release, or raise.

    Args:
        settings: What replaces settings of it.
        direct: Whether to do without Prefect.

    Raises:
        SkaldError: with one sentence.
    """

    def made() -> Published:
        from schemas.job.job import load_job
        from schemas.reading.job_files import is_of_tables
        from tasks.store.place import target_of

        if is_of_tables(job, settings):
            of_tables = run_tables_job(job, settings, direct=direct)
            return Published(of_tables.manifest.model_dump(mode="json"), of_tables.manifest.release, of_tables.folder, of_tables.new)
        loaded = load_job(job, settings)
        done = _flow(loaded, job, settings, direct)()
        release = done.manifest.release
        place = target_of(loaded).below(release)
        return Published(done.manifest.model_dump(mode="json"), release, place.folder or place.location, done.new)

    return run_as_guest(made)


def plan_job(job: Path | GivenJob, settings: tuple[str, ...], *, quick: bool) -> dict[str, Any]:
    """Make the plan of a job, which scans the source; return it as JSON data.

    Args:
        settings: What replaces settings of it.
        quick: Leaves out how unique records are, which takes a scan.

    Raises:
        SkaldError: with one sentence.
    """

    def made() -> dict[str, Any]:
        from schemas.job.job import load_job
        from schemas.reading.job_files import is_of_tables
        from schemas.relational.tables_job import load_tables_job
        from tasks.planning.plan import make_plan
        from tasks.relational.plan import plan_tables

        if is_of_tables(job, settings):
            return plan_tables(load_tables_job(job, settings), quick=quick).model_dump(mode="json")
        return make_plan(load_job(job, settings), quick=quick).model_dump(mode="json")

    return run_as_guest(made)


def verify_for(job: Path | GivenJob | None, settings: tuple[str, ...], release: str, key: Path | None) -> dict[str, Any]:
    """Verify a release, or raise; return its counts as JSON data.

    Args:
        job: The job whose promise is checked, if it is at hand.
        settings: What replaced settings of it.
        release: Folder or address.
        key: File of the public key that must have signed it.

    Raises:
        SkaldError: anything is not as it was published.
    """

    def made() -> dict[str, Any]:
        from flows.verification import figures_of, is_about_tables, verified_release, verified_release_of_tables
        from schemas.job.job import load_job
        from tasks.relational.verified import figures_of_tables

        if is_about_tables(release, job, settings):
            return figures_of_tables(verified_release_of_tables(release, job, settings, key))
        return figures_of(verified_release(load_job(job, settings) if job is not None else None, release, key))

    return run_as_guest(made)


def _flow(job: Job, file: Path | GivenJob, settings: tuple[str, ...], direct: bool) -> Callable[[], Any]:
    """Return the function that runs a job, with Prefect or without.

    It does so however the process has imported the flows.
    """
    from schemas.job.method import METHODS
    from tasks.engine.flows import SWITCH, plain_flow, prefect_flow, without_prefect

    entry = METHODS[job.method.name]
    if direct or without_prefect():
        with _variable(SWITCH, "1"):
            entry.flow.load()
        return partial(plain_flow(entry.name), file, settings)
    if not isinstance(file, Path):
        raise JobError(str(file), ["Prefect keeps the parameters of a run, and there could be values in a job; write it into a file"])
    from schemas.job.run_parameters import RunParameters

    parameters = RunParameters.of(file.absolute(), settings)
    _serve()
    entry.flow.load()
    return partial(prefect_flow(entry.name), parameters)


def run_tables_job(job: Path | GivenJob, settings: tuple[str, ...], *, direct: bool = True) -> Any:
    """Run a job of several tables without Prefect, or raise; return the published release.

    Raises:
        SkaldError: with one sentence.
    """
    from tasks.engine.flows import SWITCH, without_prefect

    if not (direct or without_prefect()):
        raise JobError(str(job), ["a job of several tables runs in this process, or through Prefect by 'skald run'; leave direct at True"])
    with _variable(SWITCH, "1"):
        from flows.tables import tables
    return tables(job, settings)


@cache
def _serve() -> None:
    """Start Prefect's API and keep it until the process ends.

    Prefect remembers the first API that it met, and another would cost one more second.
    """
    from flows.server.local_api import prefect_api, prepare_prefect

    kept = ExitStack()
    kept.enter_context(prefect_api(prepare_prefect()))
    atexit.register(kept.close)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable during the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def run_as_guest(make: Callable[[], Result]) -> Result:
    """Return a function's result; every error becomes a SkaldError, and the caller's umask stays.

    The function runs as a guest in the user's process, whose files must get their own mode.

    Raises:
        SkaldError: whatever went wrong.
    """
    # Imported before: the module asks which mode the user's files have.
    from tasks.engine.guard import guarded
    from tasks.engine.progress import hearing
    from tasks.store import files

    files.restrict_new_files()
    try:
        with hearing(logging.getLogger("skald").warning):
            return guarded(make)()
    finally:
        os.umask(files.USER_UMASK)
