"""SKALD from Python: a job in, a verified k-anonymous release out.

    import skald

    published = skald.run("job.yaml", {"privacy.k": 10})
    table, report = skald.anonymise(frame, job)

A job is the path of its file or its content, with paths relative to the current folder; settings replace some of it by dotted keys.
Whatever goes wrong is a `SkaldError`, whose text holds no value of the data. Nothing heavy is imported before it is used.
"""

import sys
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

if not __package__:
    # A checkout, where the floors are top-level names: these, before others of the same names. A wheel has them inside.
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from flows.python.anonymising import anonymise_table, anonymise_tables, check_forms
from flows.python.calls import JobFile, job_and_settings, plan_job, run_job, verify_for
from flows.python.shown import Anonymised, Published
from schemas.errors.base import SkaldError

__all__ = ["Anonymised", "Published", "SkaldError", "anonymise", "plan", "run", "verify"]


def run(job: JobFile, settings: Mapping[str, Any] | None = None, *, direct: bool = True) -> Published:
    """Anonymise a source, verify and publish the release, and return it, as ``skald run`` does.

    A run that was killed continues with the same call.

    Args:
        job: Path of the job file, or its content.
        settings: What replaces settings of the job: ``{"privacy.k": 10}``.
        direct: Runs the steps in this process; else as a flow of Prefect, whose records keep the path of the job.

    Raises:
        SkaldError: the job or the data are wrong, or the promise cannot be kept; nothing was published.
    """
    return run_job(*job_and_settings(job, settings), direct=direct)


def plan(job: JobFile, settings: Mapping[str, Any] | None = None, *, quick: bool = False) -> dict[str, Any]:
    """Scan the source, and return the plan of a run, as ``skald plan --json`` prints it.

    It holds sizes, lattice, memory, how unique the records are and which columns make them so.

    Args:
        job: Path of the job file, or its content.
        settings: What replaces settings of the job.
        quick: Leaves out how unique records are, which takes a scan.

    Raises:
        SkaldError: the job or the data are wrong.
    """
    return plan_job(*job_and_settings(job, settings), quick=quick)


def verify(
    release: str | PathLike[str],
    job: JobFile | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    key: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Verify a release or raise; return the counts, as ``skald verify --json`` prints them.

    The files are recounted, and every byte is checked.

    Args:
        release: Its folder, or its address in an object store.
        job: The job whose promise is checked; without one, that of the manifest.
        settings: What replaced settings of the job.
        key: File of the public key that must have signed it.

    Raises:
        SkaldError: anything is not as it was published, with a sentence for each fault.
    """
    read, texts = job_and_settings(job, settings) if job is not None else (None, ())
    return verify_for(read, texts, fspath(release), None if key is None else Path(key))


def anonymise(frame: Any, job: JobFile, settings: Mapping[str, Any] | None = None) -> tuple[Any, Anonymised]:
    """Anonymise one or several tables in memory; return them released, with manifest and report.

    The released table is verified like every release. The table is in a private temporary folder meanwhile, together with the counts made
    from it, and nothing of it stays.

    Args:
        frame: A table of Polars, pandas or Arrow, or whatever else gives a stream of Arrow's; an index of pandas is left out. Several
            tables of one person by name, ``{"person": …, "visit": …}``, for a job of several tables.
        job: Content or path of a job without source, target, work and output; a content may leave out ``version``, ``name`` and ``memory``.
        settings: What replaces settings of the job.

    Returns:
        The released records, of the kind that was given, and what was proved of them; of several tables each by its name.

    Raises:
        SkaldError: the job or the data are wrong, or the promise cannot be kept.
    """
    check_forms(frame, job)
    if isinstance(frame, Mapping):
        if isinstance(job, Mapping):
            job = {"version": 2, "name": "tables", "memory": "1GB"} | dict(job)
        return anonymise_tables(frame, *job_and_settings(job, settings))
    if isinstance(job, Mapping):
        job = {"version": 1, "name": "table", "memory": "1GB"} | dict(job)
    return anonymise_table(frame, *job_and_settings(job, settings))


if __name__ == "__main__":
    from flows.process import as_process

    as_process()
