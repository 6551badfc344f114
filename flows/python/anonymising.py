"""``skald.anonymise`` for one table in memory: returns a verified table of the same kind."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.python.calls import run_as_guest, run_job
from flows.python.shown import Anonymised
from schemas.errors.base import JobError
from schemas.reading.given_jobs import GivenJob, scratch_job, setting_texts

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later

OF_THE_TABLE = ("source", "target", "work", "output")
"""What a job for a table does not say."""


def anonymise_table(frame: Any, job: Path | GivenJob, settings: tuple[str, ...]) -> tuple[Any, Anonymised]:
    """Anonymise a table in memory, and return a table of the same kind with its evidence.

    The table is written as Parquet into a private temporary folder, run like any job, and read back.

    Args:
        frame: The table.
        job: A job without source and target.
        settings: What replaces settings of it.

    Returns:
        The released records, of the kind that was given, and what was proved of them.

    Raises:
        SkaldError: with one sentence.
    """

    def made() -> tuple[Any, Anonymised]:
        from flows.python.frames import read_frame, write_frame
        from tasks.store.files import random_temporary_folder

        given = scratch_job(job)
        _check_silent(given, settings)
        with random_temporary_folder("table") as folder:
            kind = write_frame(frame, folder / "table.parquet")
            published = run_job(given, (*settings, *_places(folder)), direct=True)
            release = Path(published.folder)
            documents = {name: (release / name).read_text("utf-8") for name in ("report.json", "report.html")}
            return read_frame([release / file["path"] for file in published.manifest["files"]], kind), Anonymised(
                published.manifest, documents
            )

    return run_as_guest(made)


def _check_silent(job: GivenJob, settings: Sequence[str]) -> None:
    """Raise if a job for a table in memory sets keys that the table decides.

    Nor may it refuse overlaps.

    Raises:
        JobError: source, target, work or output is said, or that what overlaps is to be refused.
    """
    from schemas.reading.job_files import apply_overrides
    from schemas.reading.yaml_reading import parse

    data = parse(job.text)[0]
    if not isinstance(data, dict):
        return
    apply_overrides(data, settings)
    faults = [f"{key}: the table is read and given back where it is; leave {key} out" for key in OF_THE_TABLE if key in data]
    if data.get("overlaps") == "refuse":
        faults.append("overlaps: a table that is given back is held against no earlier release; leave overlaps out, or run it on files")
    if faults:
        raise JobError(str(job), faults)


def _places(folder: Path) -> tuple[str, ...]:
    """Return settings that put source, target and work into a temporary folder."""
    # In a path of a source brackets and stars would be a pattern.
    source = {"path": glob.escape(str(folder / "table.parquet")), "format": "parquet"}
    return setting_texts({"source": source, "target": folder / "releases", "work": folder / "work"})
