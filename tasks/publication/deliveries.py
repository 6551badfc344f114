"""Data files of a release in an object store: put there by tasks, several at a time, and read back by those that recount them.

What a task is given and gives back are references and digests; no byte of a record passes through the flow.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from schemas.errors.storage import ObjectStoreError
from schemas.job.job import Job
from schemas.release.evidence import MANIFEST
from schemas.release.files import PublishedFile
from schemas.release.manifest import Manifest
from schemas.release.report import Example
from schemas.release.terms import Terms
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, run_step, split_for_workers
from tasks.publication.outputs import Numbered, check_folders, csv_layout, numbered, stage_output
from tasks.release.examples import example_files, examples_of
from tasks.release.files import Csv
from tasks.store.bucket import file_system, is_refusal, knows_no_condition, sanitised_errors
from tasks.store.files import file_digest, private_folder
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store

BLOCK = 1 << 22


def unpublished(job: Job, release: str) -> tuple[Any, str]:
    """Return the store that a job publishes in, and where the target is in there, if it has no such release by now.

    A task that comes late, of a run that was taken over, must not put its files in the place of published ones.
    """
    system, root = file_system(str(job.target_address))
    with sanitised_errors(job.release_location(release)):
        if system.exists(f"{root}/{release}/{MANIFEST}"):
            raise ObjectStoreError.exists(job.release_location(release))
    return system, root


def replace_object(system: Any, remote: str, content: bytes) -> bool:
    """Write a small object over the one that was read, or where there is none; tells whether it has the content then.

    Where the store knows conditions, as S3's do, another one that was put there meanwhile stays.
    """
    try:
        there = system.info(remote)
        if there["size"] == len(content) and system.cat_file(remote) == content:
            return True
    except FileNotFoundError:
        there = None
    condition: dict[str, str] = {}
    if "s3" in system.protocol:
        condition = {"IfMatch": str(there["ETag"])} if there else {"mode": "create"}
    try:
        system.pipe_file(remote, content, **condition)
    except OSError as error:
        if condition and knows_no_condition(error):
            system.pipe_file(remote, content)
            return True
        if not (condition and is_refusal(error)):
            raise
        # The library may have tried again, and met its own object.
        return bool(system.exists(remote) and system.cat_file(remote) == content)
    return True


def put_object(system: Any, path: Path, remote: str) -> None:
    """Write a file where there is none; what a killed run left there stays if it is the same, and is replaced if not.

    Args:
        system: Of fsspec.
        path: The file.
        remote: Where it is to be.
    """
    try:
        create_object(system, path, remote)
    except FileExistsError:
        if fetch_object(system, remote) != file_digest(path):
            system.rm_file(remote)
            create_object(system, path, remote)


def create_object(system: Any, path: Path, remote: str) -> None:
    """Write a file only if there is none of its name, in one step where the store knows how."""
    # Stores that pass over the condition are asked first.
    if system.exists(remote):
        raise FileExistsError
    try:
        system.put_file(str(path), remote, mode="create")
    except NotImplementedError:
        system.put_file(str(path), remote)


def fetch_object(system: Any, remote: str, path: Path | None = None) -> str:
    """Read an object whole, and return its SHA-256, in hex.

    Args:
        system: Of fsspec.
        remote: Where it is.
        path: Where its bytes are to be written; nowhere if left out.
    """
    digest = hashlib.sha256()
    with system.open(remote, "rb", block_size=BLOCK) as file, path.open("wb") if path else nullcontext() as copied:
        while block := file.read(BLOCK):
            digest.update(block)
            if copied:
                copied.write(block)
    return digest.hexdigest()


DELIVERED, EXAMPLES = StepCode("delivered", __name__), StepCode("examples", __name__)


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
    """Put the data files of a release into the target, in the job's format; return them, and how CSV is read back."""
    job, there = run.job, numbered(files)
    parts = split_for_workers(there) if job.output.format != "duckdb" else [there]
    # What is in a bucket may be gone or replaced tomorrow: no later run finds these calls made.
    calls = [
        Call.once(DELIVERED, f"deliver {number} of {len(parts)}", (job, release, run.store, part))
        for number, part in enumerate(parts, start=1)
    ]
    made = map_step(run, "deliver", _deliver, calls)
    staged = [file for one in made for file in one.files]
    check_folders(staged)
    types: Mapping[str, str] = next((one.types for one in made), {})
    return staged, Csv(job.output.delimiter, types) if job.output.format == "csv" else Csv()


def _deliver(job: Job, release: str, store: Store, files: Sequence[Numbered]) -> Delivery:
    system, root = unpublished(job, release)
    with scratch(store) as staging:
        private_folder(staging / "data")
        staged = stage_output(job.with_task_memory(), files, store, staging, staging / "spill")
        with sanitised_errors(job.release_location(release)):
            for file in staged:
                put_object(system, staging / file.path, f"{root}/{release}/{file.path}")
        layout = csv_layout(job, [file for _, file in files], store)
    return Delivery(files=tuple(staged), types=dict(layout.types))


def examples_delivered(run: Run, staged: Sequence[PublishedFile], manifest: Manifest, terms: Terms) -> tuple[Example, ...]:
    """Find records that the report may show in data files as they are read back from the target, in a task."""
    call = Call.once(EXAMPLES, "examples", (run.job, list(staged), manifest, terms, run.store))
    return run_step(run, "publish", _examples, call)


def _examples(job: Job, staged: Sequence[PublishedFile], manifest: Manifest, terms: Terms, store: Store) -> tuple[Example, ...]:
    with fetched_files(job, manifest.release, example_files(sorted(staged, key=lambda file: Path(file.path))), store) as (_, files):
        return examples_of(f"release '{manifest.release}'", files, manifest, terms)


@contextmanager
def fetched_files(job: Job, release: str, staged: Sequence[PublishedFile], store: Store) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a folder to spill into, and data files as they are read back from the target."""
    system, root = file_system(str(job.target_address))
    wrong = 0
    with scratch(store) as folder:
        with sanitised_errors(job.release_location(release)):
            for file in staged:
                path = folder / file.path
                private_folder(path.parent)
                # What a store says it has taken is not yet what it gives.
                wrong += fetch_object(system, f"{root}/{release}/{file.path}", path) != file.sha256
        if wrong:
            raise ObjectStoreError.differs(job.release_location(release), wrong)
        yield folder / "spill", [folder / file.path for file in staged]


@contextmanager
def scratch(store: Store) -> Iterator[Path]:
    """Yield a folder for as long as a task works; what a killed run leaves of it, the next one clears away."""
    folder = private_folder(store.folder.parent / "spill" / f"delivery-{secrets.token_hex(8)}")
    try:
        private_folder(folder / "spill")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
