"""``skald.anonymise`` for one or several tables in memory: returns verified tables of the same kinds."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.python.calls import JobFile, path_of_job, run_as_guest, run_job, run_tables_job
from flows.python.shown import Anonymised, AnonymisedTables
from schemas.errors.base import JobError, listed, verb_of
from schemas.reading.regular_files import GivenJob, scratch_job, setting_texts

if TYPE_CHECKING:
    from tasks.relational.publication import PublishedTables

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later

OF_THE_TABLE = ("source", "target", "work", "output")
"""What a job for a table does not say."""
OF_THE_TABLES = ("target", "work")
"""What a job for tables in memory does not say, beside the source of each."""


def anonymise_table(frame: Any, job: Path | GivenJob, settings: tuple[str, ...]) -> tuple[Any, Anonymised]:
    """Anonymise a table in memory; return a released table of the same kind, manifest and report.

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
            path = folder / "table.parquet"
            kind = write_frame(frame, path)
            published = run_job(given, (*settings, *_places(folder, {"source": path})), direct=True)
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
    data, _ = _content(job, settings)
    if not isinstance(data, dict):
        return
    faults = [f"{key}: the table is read and given back where it is; leave {key} out" for key in OF_THE_TABLE if key in data]
    if data.get("overlaps") == "refuse":
        faults.append("overlaps: a table that is given back is held against no earlier release; leave overlaps out, or run it on files")
    if faults:
        raise JobError(str(job), faults)


def _content(job: GivenJob, settings: Sequence[str]) -> tuple[Any, list[str]]:
    """Return what a job says with its settings replaced, and the faults of its text."""
    from schemas.reading.job_files import apply_overrides, parse

    data, faults = parse(job.text)
    if isinstance(data, dict):
        # What is wrong with a setting is said where the job is read.
        apply_overrides(data, settings)
    return data, faults


def _places(folder: Path, sources: Mapping[str, Path]) -> tuple[str, ...]:
    """Return settings that put the sources, by dotted key, and target and work into a temporary folder."""
    # In a path of a source brackets and stars would be a pattern.
    read = {key: {"path": glob.escape(str(path)), "format": "parquet"} for key, path in sources.items()}
    return setting_texts(read | {"target": folder / "releases", "work": folder / "work"})


def anonymise_tables(frames: Mapping[str, Any], job: Path | GivenJob, settings: tuple[str, ...]) -> tuple[dict[str, Any], AnonymisedTables]:
    """Anonymise tables in memory; return released tables of the same kinds, manifest and report.

    The tables are written as Parquet into a private temporary folder, run like any job, and read back.

    Args:
        frames: The tables by name.
        job: A job of several tables without sources and target.
        settings: What replaces settings of it.

    Returns:
        The released tables, each of the kind that was given, and what was proved of them.

    Raises:
        SkaldError: with one sentence.
    """

    def made() -> tuple[dict[str, Any], AnonymisedTables]:
        from flows.python.frames import read_frame, write_frame
        from schemas.relational.fitting import raw_linking_columns
        from schemas.relational.manifest import files_by_table
        from tasks.store.files import random_temporary_folder

        given = scratch_job(job)
        tables = _tables_named(given, frames, settings)
        with random_temporary_folder("table") as folder:
            kinds, sources = {}, {}
            for number, (name, frame) in enumerate(frames.items()):
                path = sources[f"tables.{name}.source"] = folder / f"table-{number}.parquet"
                kinds[name] = write_frame(frame, path, raw_linking_columns(tables[name]))
            published: PublishedTables = run_tables_job(given, (*settings, *_places(folder, sources)))
            manifest = published.manifest.model_dump(mode="json")
            documents = {name: (published.folder / name).read_text("utf-8") for name in ("report.json", "report.html")}
            files = files_by_table(published.manifest.files, published.folder, frames)
            return {name: read_frame(files[name], kind) for name, kind in kinds.items()}, AnonymisedTables(manifest, documents)

    return run_as_guest(made)


def check_forms(frame: object, job: JobFile) -> None:
    """Raise unless several tables come with a job of several, and one table with a job of one.

    Raises:
        JobError: the job cannot be read.
        FrameError: tables and job are not of the same form.
    """
    from schemas.errors.tables import FrameError
    from schemas.reading.job_files import names_tables, parse

    data: object = job
    if not isinstance(job, Mapping):
        path = path_of_job(job)
        data, faults = parse(scratch_job(path).text)
        if faults:
            raise JobError(str(path), faults)
    of_several = isinstance(data, Mapping) and ("tables" in data or names_tables(data))
    if isinstance(frame, Mapping) and not of_several:
        # Of columns by name it is said that they are no table.
        are_tables = all(hasattr(type(one), "columns") for one in frame.values())
        raise FrameError.job_of_one() if are_tables else FrameError.no_table(type(frame).__name__)
    if of_several and not isinstance(frame, Mapping):
        raise FrameError.job_of_several()


def _tables_named(job: GivenJob, frames: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return a job's tables after checking that it names the given ones and no places.

    Raises:
        JobError: something does, or its tables are not those that are given.
    """
    data, faults = _content(job, settings)
    tables = data.get("tables") if isinstance(data, dict) else None
    if faults or not isinstance(data, dict) or not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        raise JobError(str(job), faults or ["a job for several tables must name them under tables"])
    faults = [f"{key}: the tables are read and given back where they are; leave {key} out" for key in OF_THE_TABLES if key in data]
    faults += [f"tables.{name}.source: the table is given; leave source out" for name, one in tables.items() if "source" in one]
    if data.get("overlaps") == "refuse":
        faults.append("overlaps: tables that are given back are held against no earlier release; leave overlaps out, or run them on files")
    if unexpected := sorted(map(str, tables.keys() ^ frames.keys())):
        verb = verb_of(len(unexpected), "are")
        faults.append(f"tables: {listed(unexpected)} {verb} in the job or among the tables given, and not in both")
    if faults:
        raise JobError(str(job), faults)
    return tables
