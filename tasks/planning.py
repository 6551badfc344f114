"""What can be said before a run: that it cannot start, that its release exists, or sizes, lattice, memory and what is left to scan."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from core.lattice import Lattice, Node
from core.roots import bins, most_cells
from schemas.job import Job
from schemas.method import SkaldMethod
from schemas.release import Manifest
from tasks.artifacts import Artifact
from tasks.chunk_cells import OF_CHUNK
from tasks.coding import Coding, load_coding
from tasks.domains import axis_names, domains_key
from tasks.examination import most_suppressed
from tasks.local_planning import LocalPlan, make_local_plan
from tasks.phases import count_domains, merge_domains
from tasks.pseudonyms import in_prefect, with_keys
from tasks.publishing import published, release_id
from tasks.recodings import check_hierarchies, choose_root
from tasks.runs import Run, open_run
from tasks.sources import Source, find_files, read_source


class PlannedQid(BaseModel):
    """One QID: distinct values, nulls, and the number of groups per level."""

    model_config = ConfigDict(frozen=True)

    name: str
    values: int
    nulls: int
    groups: tuple[int, ...]


class Plan(BaseModel):
    """What a run would do.

    Attributes:
        release: The id that the release would have.
        exists: Whether it is published already.
        method: Name of the algorithm.
        files: Number of files, and ``chunks`` they are cut into.
        domains_to_scan: Chunks that phase 1 had not yet counted when the plan was made.
        histograms_to_scan: Chunks that phase 2 has not yet counted; null for methods that need no histogram.
        records: N.
        most_suppressed: Records that the limit allows to suppress.
        qids: One entry per QID.
        nodes: Nodes of the whole lattice; null, like all that is told of its root, for methods that search none.
        root: The finest node whose histogram fits the memory, with at most ``cells`` occupied cells of ``bins`` (eq. 1).
        memory: Bytes.
        local: What a method that searches no lattice would do.
    """

    model_config = ConfigDict(frozen=True)

    release: str
    exists: bool
    method: str
    files: int
    chunks: int
    domains_to_scan: int
    histograms_to_scan: int | None
    records: int
    most_suppressed: int
    qids: tuple[PlannedQid, ...]
    nodes: int | None = None
    root: Node | None = None
    cells: int | None = None
    bins: int | None = None
    memory: int
    local: LocalPlan | None = None


def published_already(job: Job) -> Manifest | None:
    """Returns the manifest of the release that the job would make, if it is published; counts nothing.

    The source's digests are kept for the run, so that nothing is read twice. Without any release of the job in the target, they are not
    even taken; nor where a key is Prefect's to tell, which is not started yet.

    Raises:
        SkaldError: a wrong hierarchy, a source without files; with a release in the target, whatever is wrong with the files.
    """
    check_hierarchies(job)
    find_files(job)
    if in_prefect(job) or not any(job.target_path.glob(f"{job.name}-{'[0-9a-f]' * 16}")):
        return None
    with open_run(job) as run:
        return published(job, release_id(job, with_keys(job, read_source(job, run.store))))


def make_plan(job: Job) -> Plan:
    """Reads the source's footers, counts the domains that are not counted yet, and says what a run would do.

    Raises:
        SkaldError: whatever would stop the run so far.
    """
    check_hierarchies(job)
    with open_run(job) as run:
        source = with_keys(job, read_source(job, run.store))
        names = axis_names(job)
        uncounted = sum(run.store.find("domains", domains_key(chunk, names)) is None for chunk in source.chunks)
        domain = merge_domains(run, source, count_domains(run, source))
        coding = load_coding(job, domain, run.store)
        release = release_id(job, source)
        qids = [
            PlannedQid(name=domain.qid, values=len(domain.values), nulls=domain.nulls, groups=tuple(map(len, hierarchy.labels)))
            for domain, hierarchy in zip(coding.domains, coding.hierarchies, strict=True)
        ]
        return Plan(
            release=release,
            exists=(job.target_path / release).is_dir(),
            method=job.method.name,
            files=len(source.files),
            chunks=len(source.chunks),
            domains_to_scan=uncounted,
            records=source.records,
            most_suppressed=most_suppressed(job, source.records),
            qids=tuple(qids),
            memory=job.memory,
            **(_of_lattice(run, source, coding) if isinstance(job.method, SkaldMethod) else _of_records(run, source, domain, coding)),
        )


def _of_lattice(run: Run, source: Source, coding: Coding) -> dict[str, Any]:
    """Returns what is told of a lattice and its root."""
    root = choose_root(run.job, coding)
    return {
        "histograms_to_scan": _uncounted(run, source),
        "nodes": Lattice.allowed(coding.hierarchies).nodes,
        "root": root[: len(coding.hierarchies)],
        "cells": most_cells(coding.axes, root, source.records),
        "bins": bins(coding.axes, root),
    }


def _of_records(run: Run, source: Source, domain: Artifact, coding: Coding) -> dict[str, Any]:
    """Returns what is told of a method that gives every class labels of its own."""
    local = make_local_plan(run, source, domain, coding)
    whole = local.rows == "cells" and not local.parted
    return {"local": local, "histograms_to_scan": _uncounted(run, source) if whole else None}


def _uncounted(run: Run, source: Source) -> int:
    names = axis_names(run.job)
    return sum(run.store.find(OF_CHUNK, domains_key(chunk, names)) is None for chunk in source.chunks)
