"""Comparison of two releases by source files of equal content and histograms of their chunks.

Where a cluster has workers, one of them makes it: it reads records, which the flow itself never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import codes_in
from core.composition.classes import JointCells, count_records_at_risk
from core.hierarchies.hierarchy import build_hierarchy
from core.recoding.recoding import Recoding
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job, hierarchy_digests
from schemas.release.increments import Overlap
from tasks.composition.release_history import Entry, Recoded, read_entry
from tasks.counting.chunk_counts import HISTOGRAMS, ChunkReading, axis_names
from tasks.counting.coding import ChunkCells, Coding, bundled_cells, load_coding
from tasks.engine.calls import Call, artifacts_of
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, run_step
from tasks.lattice.kept_recodings import RecodingArtifacts, read_recoding_of
from tasks.source.chunks import Chunk, ChunkedSource, PieceKey
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_domains

STEP = StepCode("overlaps", __name__)

Figures = Mapping[str, int | str]
"""Records that both have, or either has alone, and how many of each are at risk, by field of the overlap."""
FiguresOrReason = list[Any]
"""Figures, None where the two have no records in common, and the reason if they cannot be counted; as JSON has them."""


def returning_reason(function: Callable[..., Figures | None]) -> Callable[..., FiguresOrReason]:
    """Wrap a function to return ``[figures, ""]``, or ``[None, reason]`` for an ``UnmeasuredError``.

    A worker can return the message; ``run_comparison`` raises the error again.
    """

    @wraps(function)
    def answer(*arguments: Any) -> FiguresOrReason:
        try:
            return [function(*arguments), ""]
        except UnmeasuredError as reason:
            return [None, str(reason)]

    return answer


def run_comparison(run: Run, function: Callable[..., FiguresOrReason], *arguments: Any, here: bool = False) -> Figures | None:
    """Call a wrapped comparison, on a worker if any; return its figures or raise ``UnmeasuredError``.

    Args:
        function: The comparison, wrapped by ``returning_reason``; a function of a module.
        here: Whether only this process can read its inputs.
    """
    if here or not count_remote_workers():
        found, reason = function(*arguments)
    else:
        # What an earlier release left may be gone tomorrow: no later run finds this call made.
        found, reason = run_step(run, "overlaps", function, Call.once(STEP, "releases together", arguments))
    if reason:
        raise UnmeasuredError(reason)
    figures: Figures | None = found
    return figures


BYTES_PER_CELL = 64
Parts: TypeAlias = list[tuple[Chunk, Artifact]]
"""Chunks of the source with their histograms."""


class ReleaseView(NamedTuple):
    """The domains and hierarchies of a release, and its recoding of cells to classes."""

    coding: Coding
    recoding: Recoding

    @property
    def groups(self) -> list[list[NDArray[np.integer[Any]]]]:
        """Return the group of each value code at the recoding's levels, by stage and by QID."""
        stages = self.recoding.stages
        return [[of.groups[level] for of, level in zip(self.coding.hierarchies, stage.node, strict=True)] for stage in stages]


class Ours(NamedTuple):
    """The job, the recoding and the source of the current run.

    Attributes:
        recoded: Domain table and recoding of the source's cells.
    """

    job: Job
    recoded: tuple[Artifact, RecodingArtifacts]
    source: ChunkedSource


def figures_by_files(run: Run, source: ChunkedSource, overlap: Overlap) -> Figures | None:
    """Return records at risk in two releases by ``Overlap`` field; raise ``UnmeasuredError`` if unknown."""
    entry = _comparable(run, overlap.release)
    readings = _readings(chunk.key for chunk in source.chunks)
    if any(readings.get(digest, reading) != reading for digest, reading in _readings(entry.chunks).items()):
        raise UnmeasuredError("it read other values of the same file, and classes are compared by values")
    # Runs that keep none were told apart above.
    assert run.recoded is not None
    return run_comparison(run, compare_by_files, Ours(run.job, run.recoded, source), entry, overlap, run.store)


@returning_reason
def compare_by_files(ours: Ours, entry: Entry, overlap: Overlap, store: Store) -> Figures:
    """Return ``[figures, reason]``: records at risk in two releases, counted from chunk histograms."""
    job, (domain, recoding), source = ours
    assert entry.recoded is not None
    coding = load_coding(job, domain, store)
    now = ReleaseView(coding, read_recoding_of(coding, recoding, job.intervals, store))
    then = _seen(job, entry, entry.recoded, store)
    theirs = {digest for _, digest, _ in entry.files}
    reading = ChunkReading(job, source.columns, store)
    parts = _parts(reading, source)
    # Files share chunks in a way that keeps those together which releases have in common; what was kept of that may be gone.
    if any(chunk.digests & theirs and chunk.digests - theirs for chunk, _ in parts):
        raise UnmeasuredError("files of both were counted together with others")

    def risk(coding: Coding, releases: Sequence[ReleaseView], parts: Sequence[Artifact], less: Sequence[Artifact] = ()) -> int:
        return _at_risk(coding, releases, bundled_cells(coding, [*parts, *less], store), len(parts), job.memory, overlap.k)

    figures: dict[str, int | str] = {
        "shared_at_risk": risk(coding, [now, then], [part for chunk, part in parts if chunk.digests & theirs]),
        "added_at_risk": risk(coding, [now], [part for chunk, part in parts if not chunk.digests & theirs]),
    }
    if not overlap.removed:
        figures["removed_at_risk"] = 0
    else:
        try:
            figures["removed_at_risk"] = risk(then.coding, [then], *_left(reading, entry, parts))
        except UnmeasuredError as reason:
            figures["unmeasured"] = str(reason)
    return figures


def _readings(chunks: Iterable[tuple[PieceKey, ...]]) -> dict[str, set[PieceKey]]:
    """Return by digest of a file what else the rows depend on that chunks with these keys have of it."""
    found: dict[str, set[PieceKey]] = {}
    for digest, _first, _rows, *reading in (piece for chunk in chunks for piece in chunk):
        found.setdefault(str(digest), set()).add(tuple(reading))
    return found


def _comparable(run: Run, release: str) -> Entry:
    """Return the history entry of an earlier release if its classes are comparable with this run's."""
    if run.recoded is None:
        raise UnmeasuredError("equal records may come to different classes here, and classes are compared by combinations")
    if run.recoded[1].withheld:
        raise UnmeasuredError("records of a combination are published or not by whose they are, and classes are compared by combinations")
    if run.job.privacy.columns:
        raise UnmeasuredError("l or t is promised here, and cells are added up without sensitive values")
    if run.job.columns.means:
        raise UnmeasuredError("means are published here, and cells are added up without them")
    entry = read_entry(release, run.store)
    if entry is None:
        raise UnmeasuredError("nothing is kept of it here, because another job made it or its artefacts were removed")
    if entry.promised != {}:
        raise UnmeasuredError("l or t is promised there, and cells are added up without sensitive values")
    if not entry.is_readable:
        raise UnmeasuredError("another version of this program made it, and might have meant something else by what is kept")
    if entry.recoded is None or entry.recoded.recoding.withheld:
        raise UnmeasuredError("equal records may have come to different classes there, and classes are compared by combinations")
    if list(entry.hierarchies.items()) != list(hierarchy_digests(run.job).items()):
        raise UnmeasuredError("its quasi-identifiers or hierarchies are not those of this job")
    recoding = entry.recoded.recoding
    if not all(run.store.is_complete(artifact) for artifact in (entry.recoded.domain, *artifacts_of(recoding))):
        raise UnmeasuredError("its artefacts are gone")
    return entry


def _seen(job: Job, entry: Entry, recoded: Recoded, store: Store) -> ReleaseView:
    """Read domains and recoding of an earlier release that has the job's hierarchies."""
    domains = load_domains(store, recoded.domain, entry.names)
    qids = job.columns.quasi_identifiers
    hierarchies = [build_hierarchy(qid, domain, job.folder) for qid, domain in zip(qids, domains, strict=False)]
    coding = Coding(domains[: len(qids)], tuple(hierarchies), (recoded.domain.sha256, ""), domains[len(qids) :])
    return ReleaseView(coding, read_recoding_of(coding, recoded.recoding, recoded.intervals, store))


def _parts(reading: ChunkReading, source: ChunkedSource) -> Parts:
    """Return the source's chunks with their histograms; raise ``UnmeasuredError`` if one is missing."""
    found = [(chunk, HISTOGRAMS.find(reading, chunk)) for chunk in source.chunks]
    parts = [(chunk, part) for chunk, part in found if part is not None]
    if len(parts) < len(found):
        raise UnmeasuredError("the combinations of its chunks were not counted")
    return parts


def _left(reading: ChunkReading, entry: Entry, now: Parts) -> tuple[list[Artifact], list[Artifact]]:
    """Return the histograms of removed chunks, and those of their files that are still in the source."""
    if list(entry.names) != axis_names(reading.job):
        raise UnmeasuredError("they were counted with other sensitive columns")
    here = {digest for chunk, _ in now for digest in chunk.digests}
    found, stayed = [], []
    for chunk in entry.chunks:
        digests = {str(piece[0]) for piece in chunk}
        if digests <= here:
            continue
        found.append(HISTOGRAMS.find_by(reading, chunk))
        # Files of equal content have equal histograms.
        kept = {mine.key: (mine.digests, part) for mine, part in now if mine.digests <= digests}
        if digests & here != {digest for mine, _ in kept.values() for digest in mine}:
            raise UnmeasuredError("they were counted together with others")
        stayed += [part for _, part in kept.values()]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        raise UnmeasuredError("their counts are gone")
    return parts, stayed


def _at_risk(coding: Coding, releases: Sequence[ReleaseView], cells: Iterable[ChunkCells], added: int, memory: int, k: int) -> int:
    """Return how many records of some chunks share their joint class with fewer than k.

    A joint class holds the records that have the same class in every release. The coding must know all values of the chunks.

    Args:
        releases: How each sees records.
        cells: Of the chunks' histograms, first those that are added up, then those of records of these that are not asked for.
    """
    maps = [groups for release in releases for groups in _maps(coding, release)]
    joint = JointCells(maps, [domain.size for domain in coding.sensitive], memory // BYTES_PER_CELL)
    for number, (bundles, codes, counts) in enumerate(cells):
        if not joint.fits:
            break
        # Counts add up, so that what is left of a chunk without some of its records is a difference.
        joint.add(bundles, codes, counts if number < added else -counts)
    if not joint.fits:
        raise UnmeasuredError("together they tell more combinations apart than the job's memory holds")
    return count_records_at_risk(*joint.classes([release.recoding.stages for release in releases]), k)


def _maps(coding: Coding, release: ReleaseView) -> list[list[NDArray[np.integer[Any]]]]:
    """Return the group of each code in a release, per stage and QID.

    A value that the release does not know has any group, as no record that is counted holds it.
    """
    codes = [codes_in(whole, domain) for whole, domain in zip(coding.domains, release.coding.domains, strict=True)]
    return [[groups.astype(np.int64)[np.maximum(mine, 0)] for mine, groups in zip(codes, stage, strict=True)] for stage in release.groups]
