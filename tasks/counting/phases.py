"""The phases of a run as a flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from core.columns.node import Node
from schemas.job.job import Job
from schemas.release.repeats import RepeatedColumn
from tasks.counting import chunk_histograms, chunk_people, contents, domains, endpoints, histograms, repeats
from tasks.counting import source_sizes as risk
from tasks.counting.bundles import bundled, bundled_domains, bundled_histograms
from tasks.counting.coding import load_coding
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups, run_step, takes_wholes
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Key
from tasks.store.store import Artifact, Store

Artifacts = list[Artifact]
SHARE_HELD = 8
"""Which part of the memory the rows of chunks may take between two looks at them, all that are worked on at a time together."""


def count_domains(run: Run, source: Source, *, cells: bool = False, known: bool = False) -> Artifacts:
    """Phase 1: the domain tables of all chunks.

    Args:
        run: The run.
        source: Its chunks.
        cells: Whether their histograms are wanted next: those of chunks that are small enough to be held are counted without another look.
        known: The same of what their records are known again by.

    Raises:
        SkaldError: whatever a step raises.
    """
    by = contents.digested_by(run.job, source.payload) if known and not run.job.is_scratch else None
    # With persons, cells are counted together with their pairs.
    most = run.job.task_memory // (SHARE_HELD * run.workers) if (cells or by) and not run.job.columns.person else 0
    wanted = cells, by
    return map_groups(run, "domains", _count_domains, source.chunks, _key_of(run), run.job, source.columns, run.store, most, *wanted)


def _key_of(run: Run) -> Callable[[Chunk], Key]:
    return lambda chunk: domains.chunk_key(run.job, chunk.key)


def _count_domains(
    job: Job, columns: pa.Schema, store: Store, most: int, cells: bool, by: contents.Digested | None, chunks: Sequence[Chunk]
) -> Artifacts:
    made, others = [], [name for name in (by.read if by else ()) if name not in domains.axis_names(job)]
    for chunk in chunks:
        held = domains.Held(most, others if most else ())
        made.append(domains.count_chunk_domains(job, columns, chunk, store, held))
        if held.batches is not None and cells:
            chunk_histograms.count_histogram(job, columns, chunk, store, held.batches)
        if held.batches is not None and by:
            contents.keep_contents(job, columns, by, chunk, store, held.batches)
    return made


def merge_domains(run: Run, source: Source, parts: Artifacts) -> Artifact:
    """Phase 1: the domain table of the whole source, with the persons of its values where ranges may end only at values that k share.

    Raises:
        SkaldError: whatever a step raises.
    """
    bundles = bundled_domains(run, source, parts)
    call = Call(domains.merged_key(parts), "merge domains", (run.job, source, parts, run.store, bundles))
    merged = run.domain = run_step(run, "domain", domains.merge_chunks, call)
    if not endpoints.needs_persons(run.job):
        return merged
    key, arguments = endpoints.persons_key(run.job, source, merged), (run.job, source, merged, run.store, run.spill)
    counting = Call(key, "persons of values", arguments, elsewhere=True)
    return run_step(run, "persons", endpoints.count_persons, counting)


def count_pairs(run: Run, source: Source) -> Artifacts:
    """Phase 2: the pairs of person and cell of all chunks, and their histograms with them; none where the job names no person.

    Raises:
        StorageError: whatever a step raises.
        WithdrawnError: whatever a step raises.
    """
    if not run.job.columns.person:
        return []

    def key(chunk: Chunk) -> Key:
        return chunk_people.pairs_key(run.job, source.columns, chunk.key)

    return map_groups(run, "pairs", _count_pairs, source.chunks, key, run.job, source.columns, run.store)


def _count_pairs(job: Job, columns: pa.Schema, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [chunk_people.count_chunk_pairs(job, columns, chunk, store) for chunk in chunks]


def count_histograms(run: Run, source: Source) -> Artifacts:
    """Phase 2: the histograms of all chunks at the finest node, each coded against the chunk's own domains.

    Raises:
        SkaldError: whatever a step raises.
    """
    return map_groups(run, "histograms", _count_histograms, source.chunks, _key_of(run), run.job, source.columns, run.store)


def _count_histograms(job: Job, columns: pa.Schema, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [chunk_histograms.count_histogram(job, columns, chunk, store) for chunk in chunks]


def find_repeats(run: Run, source: Source) -> dict[str, RepeatedColumn]:
    """Returns the identifiers whose values repeat, with how often; none where persons are named, or the job says that every record is one.

    Raises:
        SkaldError: whatever a step raises.
    """
    columns = repeats.counted_columns(run.job, source)
    if not columns:
        return {}

    def key(chunk: Chunk) -> Key:
        return repeats.repeats_key(columns, chunk)

    parts: Sequence[Artifact] = map_groups(run, "repeats", _count_repeats, source.chunks, key, columns, run.store)
    merged = partial(repeats.bundle_key, columns)
    parts = bundled(run, "bundle repeats", repeats.add_repeats, parts, merged, columns, run.store, raw="repeats")
    return repeats.repeated_columns(columns, parts, run.store)


def _count_repeats(columns: Sequence[str], store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [repeats.count_repeats(columns, chunk, store) for chunk in chunks]


def tell_contents(run: Run, source: Source, by: contents.Digested) -> Artifacts:
    """Returns the digests of the records of all chunks in some columns, and of whose they are where the job names persons.

    Raises:
        SkaldError: whatever a step raises.
    """

    def key(chunk: Chunk) -> Key:
        return contents.contents_key(run.job, source.columns, by, chunk)

    return map_groups(run, "contents", _keep_contents, source.chunks, key, run.job, source.columns, by, run.store)


def _keep_contents(job: Job, columns: pa.Schema, by: contents.Digested, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [contents.keep_contents(job, columns, by, chunk, store) for chunk in chunks]


def sketch_contents(run: Run, parts: Artifacts) -> Sequence[Artifact]:
    """Returns what the sketches of records and persons are made of: bundles of sketches on a cluster, else all that the chunks hold.

    Raises:
        SkaldError: whatever a step raises.
    """
    return bundled(run, "sketch", contents.add_sketches, parts, contents.sketches_key, run.store, raw="contents")


def merge_histograms(run: Run, domain: Artifact, root: Node, parts: Artifacts) -> Artifact:
    """Phase 2: the root histogram of the whole source.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    key, bundles = histograms.histogram_key(coding, root, parts), bundled_histograms(run, domain, coding, root, parts)
    call = Call(key, "merge histograms", (run.job, domain, root, parts, run.store, run.spill, bundles))
    # Sizes of persons are counted of pairs, and those of the finest root of the sum.
    alone = root == coding.finest or bool(run.job.columns.person)
    return run_step(run, "histogram", histograms.add_histograms if alone else risk.add_histograms_and_sizes, call)


def count_sizes(
    run: Run, domain: Artifact, root: Node, histogram: Artifact, parts: Artifacts, pairs: Sequence[Artifact] = ()
) -> Artifact | None:
    """Class sizes of the source as it is, for the risk before; None where they were not counted and would cost too much.

    They are of records, or of persons where there are ``pairs``.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    if not risk.is_counted(coding, root, parts, pairs):
        return None
    files = [histogram] if root == coding.finest and not pairs else parts
    # The histogram of all chunks is the flow's to read; theirs, and pairs, are as many as there are records.
    elsewhere = takes_wholes(run) and files != [histogram]
    arguments = (run.job, domain, files, pairs, run.store, run.spill)
    call = Call(risk.sizes_key(coding, files, pairs), "sizes", arguments, elsewhere=elsewhere, whole=True)
    return run_step(run, "sizes", risk.count_class_sizes, call)
