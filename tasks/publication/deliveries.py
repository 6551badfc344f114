"""Data files of a release in an object store: put there by tasks, several at a time, and recounted by one that reads them back from there.

What a task is given and gives back are references and digests; no byte of a record passes through the flow.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from core.recount.classes import Recount
from schemas.errors.storage import ObjectStoreError
from schemas.job.job import Job
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest, PublishedFile
from schemas.release.report import Example
from schemas.release.terms import Terms
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import cut, map_step, run_step
from tasks.publication.objects import fetch_object, put_object
from tasks.publication.outputs import check_folders, csv_layout, stage_output
from tasks.publication.staged_files import Numbered, numbered
from tasks.recount.original import Original
from tasks.recount.people import PeopleFiles
from tasks.recount.recount import recount
from tasks.release.examples import examples_of, looked_through
from tasks.release.files import Csv
from tasks.source.chunks import Source
from tasks.store.files import private_folder
from tasks.store.keys import Step
from tasks.store.object_stores import file_system, told
from tasks.store.store import Artifact, Store

DELIVERED, RECOUNTED, EXAMPLES = Step("delivered", __name__), Step("recounted", __name__), Step("examples", __name__)
_RECOUNT = TypeAdapter(Recount)


class Delivery(BaseModel):
    """What a task put into the store.

    Attributes:
        files: The files.
        types: DuckDB's types of their columns, where the format has none.
    """

    model_config = ConfigDict(frozen=True)

    files: tuple[PublishedFile, ...]
    types: dict[str, str]


def deliver_files(run: Run, files: Sequence[Artifact], release: str) -> tuple[list[PublishedFile], Csv]:
    """Puts the data files of a release into the target, in the job's format; returns them, and how CSV is read back.

    Raises:
        ObjectStoreError: the store cannot be written.
        StorageError: the disk is full, or values cannot be the names of folders.
        SkaldError: whatever else a step raises.
    """
    job, there = run.job, numbered(files)
    parts = cut(there) if job.output.format != "duckdb" else [there]
    # What is in a bucket may be gone or replaced tomorrow: no later run finds these calls made.
    once = secrets.token_hex(16)
    calls = [
        Call(DELIVERED.key(once, number), f"deliver {number} of {len(parts)}", (job, release, run.store, part), elsewhere=True)
        for number, part in enumerate(parts, start=1)
    ]
    made = map_step(run, "deliver", _deliver, calls)
    staged = [file for one in made for file in one.files]
    check_folders(staged)
    types: Mapping[str, str] = next((one.types for one in made), {})
    return staged, Csv(job.output.delimiter, types) if job.output.format == "csv" else Csv()


def _deliver(job: Job, release: str, store: Store, files: Sequence[Numbered]) -> Delivery:
    system, root = file_system(str(job.target_address))
    with told(job.place_of(release)):
        # A task that comes late, of a run that was taken over, must not put its files in the place of published ones.
        if system.exists(f"{root}/{release}/{MANIFEST}"):
            raise ObjectStoreError.exists(job.place_of(release))
    with _scratch(store) as staging:
        private_folder(staging / "data")
        staged = stage_output(job.in_task(), files, store, staging, staging / "spill")
        with told(job.place_of(release)):
            for file in staged:
                put_object(system, staging / file.path, f"{root}/{release}/{file.path}")
        layout = csv_layout(job, [file for _, file in files], store)
    return Delivery(files=tuple(staged), types=dict(layout.types))


def recount_delivered(
    run: Run, release: str, staged: Sequence[PublishedFile], source: Source, layout: Csv, people: PeopleFiles | None
) -> Recount:
    """Recounts data files as they are read back from the target, in a task.

    Args:
        run: The run.
        release: Whose files they are.
        staged: The files.
        source: What it was made of.
        layout: How CSV files are read.
        people: Where the persons of the classes are, for jobs that name them.

    Raises:
        ObjectStoreError: the store cannot be read, or reads back otherwise.
        SkaldError: whatever a recount raises.
    """
    arguments = (run.job, release, list(staged), source, layout, people, run.store)
    call = Call(RECOUNTED.key(secrets.token_hex(16)), "recount", arguments, elsewhere=True)
    return _read(run_step(run, "verify", _recount, call))


def examples_delivered(run: Run, staged: Sequence[PublishedFile], manifest: Manifest, terms: Terms) -> tuple[Example, ...]:
    """Finds records that the report may show in data files as they are read back from the target, in a task.

    Raises:
        ObjectStoreError: the store cannot be read, or reads back otherwise.
        SkaldError: whatever the look for examples raises.
    """
    call = Call(EXAMPLES.key(secrets.token_hex(16)), "examples", (run.job, list(staged), manifest, terms, run.store), elsewhere=True)
    return run_step(run, "publish", _examples, call)


def _examples(job: Job, staged: Sequence[PublishedFile], manifest: Manifest, terms: Terms, store: Store) -> tuple[Example, ...]:
    with _fetched(job, manifest.release, looked_through(sorted(staged, key=lambda file: Path(file.path))), store) as (_, files):
        return examples_of(f"release '{manifest.release}'", files, manifest, terms)


def _recount(
    job: Job, release: str, staged: Sequence[PublishedFile], source: Source, layout: Csv, people: PeopleFiles | None, store: Store
) -> str:
    with _fetched(job, release, staged, store) as (spill, written):
        # Made here: what was converted lies elsewhere on each machine.
        original = Original(source.relation, source.columns)
        return _text(recount(job.in_task(), written, spill, f"release '{release}'", original, layout, "", people))


@contextmanager
def _fetched(job: Job, release: str, staged: Sequence[PublishedFile], store: Store) -> Iterator[tuple[Path, list[Path]]]:
    """Yields a folder to spill into, and data files as they are read back from the target.

    Raises:
        ObjectStoreError: the store cannot be read, or reads back otherwise.
    """
    system, root = file_system(str(job.target_address))
    wrong = 0
    with _scratch(store) as folder:
        with told(job.place_of(release)):
            for file in staged:
                path = folder / file.path
                private_folder(path.parent)
                # What a store says it has taken is not yet what it gives.
                wrong += fetch_object(system, f"{root}/{release}/{file.path}", path) != file.sha256
        if wrong:
            raise ObjectStoreError.differs(job.place_of(release), wrong)
        yield folder / "spill", [folder / file.path for file in staged]


@contextmanager
def _scratch(store: Store) -> Iterator[Path]:
    """Yields a folder for as long as a task works; what a killed run leaves of it, the next one clears away."""
    folder = private_folder(store.folder.parent / "spill" / f"delivery-{secrets.token_hex(8)}")
    try:
        private_folder(folder / "spill")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _text(found: Recount) -> str:
    """Returns a recount as JSON, in which a pair can be no key."""
    rows, fits = found.population or (0, {})
    population = [rows, [[*pair, classes] for pair, classes in fits.items()]] if found.population else None
    return json.dumps([_RECOUNT.dump_python(replace(found, population=None)), population])


def _read(text: str) -> Recount:
    told_of, population = json.loads(text)
    found = _RECOUNT.validate_python(told_of)
    if population is None:
        return found
    rows, fits = population
    return replace(found, population=(rows, {(one, other): classes for one, other, classes in fits}))
