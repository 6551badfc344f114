"""Recounts written files with DuckDB and refuses what does not keep the job's promise."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from core.verification import Recount, column_faults, manifest_faults, promise_faults, recount_sql
from schemas.errors import StorageError, VerificationError, counted
from schemas.job import Job
from schemas.release import Manifest, published_payload, published_qids
from schemas.tables import release_schema
from tasks.artifacts import file_digest
from tasks.database import connect, literal, quote
from tasks.tables import checked


def recount(job: Job, files: Sequence[Path], spill: Path, what: str) -> Recount:
    """Counts the classes of the data files and checks columns and classes against the job.

    Args:
        job: All that is known.
        files: The written Parquet files.
        spill: Folder for DuckDB's spill files.
        what: How the release is called in a message.

    Raises:
        VerificationError: the files do not keep the job's promise, or cannot be read.
    """
    faults = _columns(job, files)
    if faults:
        raise VerificationError(what, faults)
    statement = recount_sql([literal(str(path)) for path in files], [quote(name) for name in published_qids(job)], job.privacy.k)
    with connect(job, spill) as connection:
        try:
            row = connection.execute(statement).fetchone()
        except duckdb.Error as error:
            raise VerificationError(what, [f"the files cannot be counted ({type(error).__name__})"]) from None
    assert row is not None
    found = Recount(*(int(value) for value in row))
    if faults := promise_faults(job, found):
        raise VerificationError(what, faults)
    return found


def _columns(job: Job, files: Sequence[Path]) -> list[str]:
    faults: list[str] = []
    for path in files:
        try:
            names = pq.read_schema(path).names
            faults += column_faults(job, names)
            payload = published_payload(job)
            qids = published_qids(job)
            rest = [name for name in names if name not in qids] if payload is None else payload
            if not faults:
                text = qids if job.suppression.treatment == "mask" else []
                checked(pa.table(pl.read_parquet(path, n_rows=1000)), release_schema([*qids, *rest], text), "release")
        except (OSError, pa.ArrowException, pl.exceptions.PolarsError):
            faults.append("a data file cannot be read as Parquet")
        except StorageError:
            faults.append("a data file's columns are not those of the job, in its order and types")
    return list(dict.fromkeys(faults))


def data_files(release: Path) -> list[Path]:
    """Returns the data files of a release folder.

    Raises:
        StorageError: it has none.
    """
    files = sorted((release / "data").glob("*.parquet")) if release.is_dir() else []
    if not files:
        raise StorageError.not_a_release(str(release), "it has no data/*.parquet")
    return files


def read_manifest(release: Path) -> Manifest | None:
    """Returns the manifest of a release, or None if it has none.

    Raises:
        StorageError: there is one, but it is not a manifest.
    """
    path = release / "manifest.json"
    if not path.exists():
        return None
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise StorageError.not_a_release(str(release), "manifest.json cannot be read as a manifest") from None


def verify_release(job: Job, release: Path) -> tuple[Recount, Manifest | None]:
    """Verifies a published release: its files against its manifest, its classes against the job.

    A folder without a manifest, such as another tool's release, is recounted all the same; only then nothing is known of suppression.

    Raises:
        StorageError: the folder is not a release.
        VerificationError: anything that does not hold, all at once where the files can be counted.
    """
    files, manifest = data_files(release), read_manifest(release)
    faults = _file_faults(release, files, manifest) if manifest else []
    # DuckDB makes the folder if it has to spill; a run of the job has another one.
    spill = job.work_path / f"verify-{os.getpid()}"
    try:
        found = recount(job, files, spill, f"'{release}'")
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    if manifest:
        faults += manifest_faults(job, manifest, found)
    if faults:
        raise VerificationError(f"'{release}'", faults)
    return found, manifest


def _file_faults(release: Path, files: Sequence[Path], manifest: Manifest) -> list[str]:
    promised = {release / file.path: file.sha256 for file in manifest.files}
    there = set(files)
    faults = []
    if missing := promised.keys() - there:
        faults.append(f"{counted(len(missing), 'data file')} of the manifest missing")
    if strange := there - promised.keys():
        faults.append(f"{counted(len(strange), 'data file')} not in the manifest")
    if altered := [path for path in there & promised.keys() if file_digest(path) != promised[path]]:
        faults.append(f"{counted(len(altered), 'data file')} altered since publication")
    return faults
