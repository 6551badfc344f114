"""Phase 1: the first read of all chunks, and the merge of their domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tasks.counting.bundles import Merge, merge_on_cluster
from tasks.counting.chunk_histograms import HISTOGRAMS, count_cells_of
from tasks.counting.contents import CONTENTS, ContentReading, Digested, digest_contents, digested_by
from tasks.counting.domains import BUNDLED, DOMAINS, MERGED, ChunkReading, RowCache, axis_names, count_domains_of
from tasks.counting.endpoints import PERSONS, PersonsReading, needs_persons
from tasks.engine.runs import Run
from tasks.engine.steps import each, one
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.step import FilesStep
from tasks.store.store import Artifact

SHARE_IN_MEMORY = 8
"""Which part of the memory the rows of chunks may take between two looks at them, all that are worked on at a time together."""


@dataclass(frozen=True)
class FirstReading(ChunkReading):
    """Settings of the first read of chunks, and of the counts made from it.

    Further counts are made of chunks that are small enough to be held.

    Attributes:
        most: Bytes that are small enough.
        cells: Whether their cells are counted.
        by: By what their records are digested; None where they are not.
    """

    most: int
    cells: bool
    by: Digested | None


def _read(given: FirstReading, chunk: Chunk) -> Artifact:
    others = [name for name in (given.by.read if given.by else ()) if name not in axis_names(given.job)]
    held = RowCache(given.most, others if given.most else ())
    made = DOMAINS.save_artifact(given, chunk, lambda path: count_domains_of(given, chunk, path, held))
    if held.batches is not None and given.cells:
        HISTOGRAMS.save_artifact(given, chunk, partial(count_cells_of, given, chunk, batches=held.batches))
    if held.batches is not None and given.by:
        contents = ContentReading(given.job, given.columns, given.store, given.by)
        CONTENTS.save_artifact(contents, chunk, partial(digest_contents, contents, chunk, batches=held.batches))
    return made


READ: FilesStep[FirstReading, Chunk, Artifact] = FilesStep("domains", make=_read, reads=DOMAINS.reads, under=DOMAINS)
"""The domains of a chunk, and what the next steps would read it for once more."""


def count_domains(run: Run, source: ChunkedSource, *, cells: bool = False, known: bool = False) -> Sequence[Artifact]:
    """Count the domains of all chunks (phase 1), and further counts from the same read.

    Args:
        run: The run.
        source: Its chunks.
        cells: Whether their histograms are wanted next: those of chunks that are small enough to be held are counted without another look.
        known: The same for the digests by which their records are re-linked.
    """
    by = digested_by(run.job, source.payload) if known and not run.job.is_scratch else None
    # With persons, cells are counted together with their pairs.
    most = run.job.task_memory // (SHARE_IN_MEMORY * run.workers) if (cells or by) and not run.job.columns.person else 0
    return each(run, READ, FirstReading(run.job, source.columns, run.store, most, cells, by), source.chunks)


def merge_domains(run: Run, source: ChunkedSource, parts: Sequence[Artifact]) -> Artifact:
    """Merge the chunks' domains to the domain table of the source (phase 1).

    It has the persons of values where ranges may end only at values that k persons share.
    """
    given = ChunkReading.of(run, source)
    merged = run.domain = one(run, MERGED, given, Merge(parts, merge_on_cluster(run, BUNDLED, given, parts)), "merge domains")
    if not needs_persons(run.job):
        return merged
    return one(run, PERSONS, PersonsReading(run.job, source, run.store, run.spill), merged, "persons of values", elsewhere=True)
