"""The phases of a comparison as its flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from core.columns.node import Node
from schemas.job.job import Job
from tasks.comparison import chunks as comparison
from tasks.comparison.chunks import OptimumArtifacts, Portion, Recounted, read_recount
from tasks.counting.coding import load_coding
from tasks.counting.phases import Artifacts, count_histograms, count_pairs, merge_histograms
from tasks.engine.calls import Call, groups
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, run_step
from tasks.lattice.optimum import memory_for_cells
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import key_of_all
from tasks.store.store import Artifact, Store

BYTES_PER_RECORD = 64
"""Memory of a histogram at full resolution while it is searched, where all records differ."""

Optima = list[OptimumArtifacts]


def count_units(run: Run, source: Source, domain: Artifact, units: int) -> list[Portion]:
    """Counts every unit of the source at full resolution: the one scan that all experiments share.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    cuts = comparison.cut_source(source, units)
    finest = (0,) * len(run.job.columns.quasi_identifiers)
    pieces = source.model_copy(update={"chunks": tuple(piece for cut in cuts for piece in cut)})
    # One call for all pieces, so that units are counted side by side; the parts come back in the order of the pieces.
    pairs = iter(count_pairs(run, pieces))
    parts = iter(count_histograms(run, pieces))
    return [_unit(run, domain, finest, cut, [next(parts) for _ in cut], list(islice(pairs, len(cut)))) for cut in cuts]


def _unit(run: Run, domain: Artifact, finest: Node, cut: Sequence[Chunk], parts: Artifacts, pairs: Artifacts) -> Portion:
    records = sum(piece.rows for piece in cut)
    # Cells that persons are paired with are told by their place in the histogram of the piece.
    pieces = tuple(parts) if pairs else ()
    return Portion(histogram=_merged(run, domain, finest, parts), root=finest, records=records, pieces=pieces, pairs=tuple(pairs))


def _merged(run: Run, domain: Artifact, root: Node, parts: Artifacts) -> Artifact:
    # A coarser root has to be rolled up even from a single part; at the finest node that part is the sum already.
    return parts[0] if len(parts) == 1 and not any(root) else merge_histograms(run, domain, root, parts)


def portion_of(run: Run, domain: Artifact, units: Sequence[Portion], *, bins: bool) -> Portion:
    """Adds up the histograms of units, at full resolution or, where memory demands it, at a coarser root.

    Args:
        run: The run.
        domain: Of the whole source.
        units: One or more.
        bins: Whether the root is bounded as the job's ``method.root`` says.

    Raises:
        SkaldError: whatever is wrong with job, source, store or release, in one sentence.
    """
    coding = load_coding(run.job, domain, run.store)
    records = sum(unit.records for unit in units)
    root = comparison.root_of(run.job, coding, records, bins=bins)
    parts = [unit.histogram for unit in units]
    return Portion(
        histogram=_merged(run, domain, root, parts),
        root=root,
        records=records,
        parts=tuple(parts),
        pieces=tuple(piece for unit in units for piece in unit.pieces),
        pairs=tuple(pairs for unit in units for pairs in unit.pairs),
    )


def optima_of_chunks(
    run: Run, domain: Artifact, units: Sequence[Portion], chunks: Iterable[range], ks: Sequence[int]
) -> dict[range, Optima]:
    """Searches each chunk alone; a chunk that belongs to several experiments is searched once.

    Returns:
        Per chunk, told by the units that it is made of, one optimum per k.

    Raises:
        SkaldError: whatever is wrong with job, source, store or release, in one sentence.
    """
    # Ranges have no order of their own.
    ordered = sorted(set(chunks), key=lambda chunk: (chunk.start, chunk.stop))
    # `root: dense` is SKALD's bound; each chunk alone stands for ARX, which knows no such bound.
    portions = [portion_of(run, domain, units[chunk.start : chunk.stop], bins=False) for chunk in ordered]
    return dict(zip(ordered, find_optima(run, domain, portions, ks), strict=True))


def find_optima(run: Run, domain: Artifact, portions: Sequence[Portion], ks: Sequence[int]) -> list[Optima]:
    """Searches portions, each for every k: side by side where several fit the job's memory, else one after the other.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    key = [comparison.optima_key(run.job, coding, portion, k) for portion in portions for k in ks]
    parts = groups(range(len(portions)))
    calls = [
        Call(
            key_of_all([key[position * len(ks) + number] for position in part for number in range(len(ks))]),
            f"optima {number} of {len(parts)}",
            (run.job, domain, tuple(ks), run.store, [portions[position] for position in part]),
        )
        for number, part in enumerate(parts, start=1)
    ]
    # Every worker may hold a portion at the same time, and none knows what the others hold.
    abreast = memory_for_cells(run.job) // (max(portion.records for portion in portions) * BYTES_PER_RECORD)
    workers = max(min(run.workers, abreast), 1)
    return [optima for result in map_step(run, "optima", _find_optima, calls, workers) for optima in result]


def _find_optima(job: Job, domain: Artifact, ks: Sequence[int], store: Store, portions: Sequence[Portion]) -> list[Optima]:
    return [comparison.search_portions(job, domain, ks, store, portion) for portion in portions]


def recount_chunks(run: Run, domain: Artifact, releases: Sequence[OptimumArtifacts]) -> Recounted:
    """Counts the classes of the releases of chunks, concatenated.

    Raises:
        SkaldError: whatever a step raises.
    """
    call = Call(comparison.recount_key(releases), f"recount {len(releases)}", (run.job, domain, releases, run.store, run.spill))
    return read_recount(run_step(run, "recounts", comparison.recount_releases, call), run.store)
