"""Plays kinds of tampering: releases are made once, and a copy of job, source and release is tampered with for each kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from schemas.errors.base import SkaldError
from schemas.job.job import load_job
from schemas.release.evidence import SIGNING_KEY
from tasks.release.signatures import read_public_key
from tasks.verification.release import VerificationContext, verify_published
from tests.jobs import JOB, people, people_job
from tests.tampering.kinds import Kind, private_key

LAYOUTS: Mapping[str, tuple[str, ...]] = {
    "parquet": ("rows_per_file=40",),
    "csv": ("rows_per_file=40", "output.format=csv"),
    "duckdb": ("output.format=duckdb",),
    "hive": ("output.partition_by=[zip]",),
}
"""Settings of the job that makes a release, by layout."""
METHOD = {"name": "skald", "objective": "dm_star"}
COLUMNS = JOB["columns"] | {
    "identifiers": ["person", "height", "smoker", "born"],
    "quasi_identifiers": [qid for qid in JOB["columns"]["quasi_identifiers"] if qid["name"] in {"sex", "age", "zip"}],
}
"""Few quasi-identifiers: every kind costs a recount."""
VALUES = ("Alice", "Bob", "Smith")
"""What those who tamper lay into a release, and no message may say."""
MISSED = "NOT CAUGHT"


def finished(folder: Path, publish: Callable[..., Path]) -> dict[str, Path]:
    """Make folders with a job and its release, by layout; ``signed`` is that of Parquet with a signature and another release beside it.

    Args:
        folder: Where.
        publish: Runs a job file with settings and returns the folder of its release.
    """
    made = {}
    for layout, settings in LAYOUTS.items():
        made[layout] = folder / layout / "job"
        publish(people_job(made[layout], people(120), columns=COLUMNS, method=METHOD), *settings)
    made["signed"] = folder / "signed" / "job"
    job = people_job(made["signed"], people(120), columns=COLUMNS, method=METHOD)
    with signing_with(private_key(folder / "signed")):
        other = publish(job, *LAYOUTS["parquet"], "privacy.k=7")
        for name in ("manifest.json", "manifest.sig"):
            shutil.copy(other / name, made["signed"] / f"other{Path(name).suffix}")
        shutil.move(other, made["signed"] / "other")
        publish(job, *LAYOUTS["parquet"])
    return made


@contextmanager
def signing_with(key: Path) -> Iterator[None]:
    """Let runs in the block sign with a key."""
    before = os.environ.get(SIGNING_KEY)
    os.environ[SIGNING_KEY] = str(key)
    try:
        yield
    finally:
        os.environ.pop(SIGNING_KEY)
        if before is not None:
            os.environ[SIGNING_KEY] = before


def copy_of(folder: Path, to: Path) -> Path:
    """Copy job, source and release, and nothing that the run folder keeps; return the release."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(".skald"))
    return to / "releases" / (to / "releases" / "CURRENT").read_text().strip()


def trusted_key(folder: Path) -> bytes:
    """Return the public key of the folder ``signed``."""
    return read_public_key(folder.parent / "public-signing.pem")


def played(kind: Kind, made: Mapping[str, Path], to: Path) -> str:
    """Return the message by which a kind is noticed, or ``NOT CAUGHT`` and why.

    Args:
        kind: What is done.
        made: As ``finished`` returns them.
        to: A folder that is not there yet.
    """
    base = made["signed" if kind.keyed else kind.layout]
    release = copy_of(base, to)
    try:
        kind.tamper(release)
        if not release.exists():
            # It has another name now.
            [release] = [path for path in release.parent.iterdir() if path.is_dir()]
        known = VerificationContext(str(release), key=trusted_key(base) if kind.keyed else None)
        verify_published(load_job(to / "job.yaml", LAYOUTS[kind.layout]), release, known)
    except SkaldError as error:
        told = str(error).replace(str(to), "")
        if error.exit_code != 4:
            return f"{MISSED}: exit code {error.exit_code}: {told}"
        return f"{MISSED}: a value is told: {told}" if any(value in told for value in VALUES) else told
    except Exception as error:
        return f"{MISSED}: {type(error).__name__}: {error}"
    return MISSED
