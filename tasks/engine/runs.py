"""Run of a job: its folder, its lock, and the cleaning before and after."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from schemas.errors.refusals import PolicyError
from schemas.job.job import Job
from schemas.job.policy import Policy, origin_faults, policy_faults, read_policy
from schemas.release.figures import PassedColumn
from schemas.release.increments import Increment
from schemas.release.terms import Unreported
from tasks.engine.calls import CHUNK_SHARE, workers_of
from tasks.engine.progress import release_memory
from tasks.store.files import clear_partial_files, clear_temporary_folders, private_folder, restrict_new_files
from tasks.store.keys import FolderSecret, secret_of
from tasks.store.store import Artifact, Store
from tasks.store.work import HeldWork, hold_work
from tasks.store.work_folder import SPILL_FOLDER, UNTOLD, check_pointer, clear_staging

AFTER_PUBLICATION = ("runs", "shuffle_parts", "files", "bundles", "recounted", "tallies", "disclosed")
OF_ALL_CHUNKS = (
    "domain", "histogram", "sizes", "person_cells", "contributors", "samples", "census", "losses", "coded",
    "outcome", "cells", "assigned", "classes", "later", "lattice", "people", "members",
)  # fmt: skip
"""Steps whose results hold for one state of the complete source; counts of a chunk serve every source that has the chunk."""
POLICY = "SKALD_POLICY"
"""The variable that names the policy."""


@dataclass
class Run:
    """State of one run of a job whose folder is locked: job, store, spill folder, and findings so far.

    Attributes:
        spill: Folder for DuckDB's spill files, empty at the start.
        seconds: Wall time per phase.
        increment: What had been counted before this run.
        recoded: Domain table and recoding of the source's cells, once there is one; for comparison with other releases.
        members: The records of the source with their classes, in parts, once there are classes; for comparison with other releases.
        questions_answered: Names of the records of Prefect that this run asked for.
        secret: What every digest is keyed with that leaves the folder.
        work: The work while it is held, in a folder or in a bucket.
        policy: What the job was held against, if this process has a policy.
        passthrough: What was found of columns that are published untreated.
        untold: Findings that the release does not contain, once its manifest is made.
        workers: How many tasks work at a time.
    """

    job: Job
    store: Store
    spill: Path
    secret: FolderSecret
    work: HeldWork
    seconds: dict[str, float] = field(default_factory=dict)
    increment: Increment | None = None
    domain: Artifact | None = None
    recoded: tuple[Artifact, Any] | None = None
    members: Sequence[Any] = ()
    questions_answered: set[str] = field(default_factory=set)
    policy: Policy | None = None
    passthrough: dict[str, PassedColumn] = field(default_factory=dict)
    untold: Unreported | None = None
    workers: int = 1

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """In the block, measure a phase's wall time into ``seconds``; then release memory and renew the lock."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start
            # What one phase held, the next one's library cannot take: each has a heap of its own.
            release_memory()
        self.work.keep()

    def remove_unneeded_artifacts(self, needed: Container[tuple[str, str]] | None = None, since: int | None = None) -> None:
        """Remove artefacts that no later run needs; all of them if the job says ``artifacts: delete``.

        A run that finds its release published does it too: the one that published it may have been killed before it came to it.

        Args:
            needed: Step and key of what earlier releases are compared by; what else was made of earlier states of the source goes. None
                removes nothing of the kind.
            since: What no run had a use for since then goes too, in ns.
        """
        self.store.remove(*AFTER_PUBLICATION)
        if needed is not None:
            self.store.prune(OF_ALL_CHUNKS, needed)
            self.store.mark_used()
            if since is not None:
                self.store.prune_unused(since, needed)
            for record in (self.job.work_path / "results").glob("*"):
                if record.name not in self.questions_answered:
                    record.unlink(missing_ok=True)
        if self.job.artifacts == "delete":
            self.store.clear()
            # Prefect's records too: they would speak of artefacts that are gone.
            shutil.rmtree(self.job.work_path / "results", ignore_errors=True)
            # And what an earlier run found out that its release does not tell.
            (self.job.work_path / UNTOLD).unlink(missing_ok=True)


def named_policy() -> Policy | None:
    """Read the policy that ``SKALD_POLICY`` names; None without; raise ``PolicyError`` if unusable."""
    path = os.environ.get(POLICY)
    return None if path is None else read_policy(path)


def faults_under_policy(policy: Policy, job: Job) -> list[str]:
    """Return faults of a job, its SQL query included, against a policy, as sentences."""
    faults = policy_faults(policy, job)
    if job.source.query is not None and policy.never_published:
        from tasks.store.database import syntax_of  # noqa: PLC0415 - DuckDB, which most policies can do without

        faults += origin_faults(policy, syntax_of(job.source.query))
    return faults


def policy_in_force(job: Job) -> Policy | None:
    """Return the policy of ``SKALD_POLICY`` or None; raise ``PolicyError`` if the job breaks the policy."""
    policy = named_policy()
    if policy and (faults := faults_under_policy(policy, job)):
        raise PolicyError.below(job.name, policy.path, faults)
    return policy


@contextmanager
def locked_run(job: Job) -> Iterator[Run]:
    """Check the policy, lock the run folder, clear killed runs' leftovers, yield a run, clear its spill."""
    policy = policy_in_force(job)
    check_pointer(job)
    # Before anything is made: a mode that is set afterwards leaves a moment for others.
    restrict_new_files()
    with hold_work(job) as work:
        spill = work.folder / "spill"
        shutil.rmtree(spill, ignore_errors=True)
        clear_staging(job)
        clear_temporary_folders(work.folder, SPILL_FOLDER)
        clear_partial_files(work.folder)
        work.store.remove_partial_files()
        secret = secret_of(job)
        # Before anything is made with it: without it the same job on the same data would be another release.
        work.keep()
        try:
            # Until it is known what the source holds: chunks are cut so that none holds more.
            workers = workers_of(job, job.task_memory // CHUNK_SHARE)
            yield Run(job, work.store, private_folder(spill), secret, work, policy=policy, workers=workers)
        finally:
            shutil.rmtree(spill, ignore_errors=True)
            clear_staging(job)


PACKAGES = ("skald", "prefect", "duckdb", "polars", "pyarrow", "numpy", "pandera", "pydantic")


def versions() -> dict[str, str]:
    """Return by name the versions of Python and of the packages that SKALD uses."""
    return {"python": sys.version.split()[0]} | {package: _version(package) for package in PACKAGES}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
