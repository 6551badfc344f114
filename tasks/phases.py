"""The phases of a run as a flow calls them; each hands references to a step and gets references back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from core.columns.node import Node
from schemas.job.job import Job
from tasks import domains, histograms, recodings, releases, risk
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import load_coding
from tasks.recodings import RecodingArtifacts
from tasks.runs import Run
from tasks.sources import Chunk, Source
from tasks.steps import Call, map_groups, run_step

Artifacts = list[Artifact]


def count_domains(run: Run, source: Source) -> Artifacts:
    """Phase 1: the domain tables of all chunks."""
    key = (domains.VERSION, domains.axis_names(run.job))
    return map_groups(run, "domains", _count_domains, source.chunks, key, run.job, source.columns, run.store)


def _count_domains(job: Job, columns: pa.Schema, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [domains.count_domains(job, columns, chunk, store) for chunk in chunks]


def merge_domains(run: Run, source: Source, parts: Artifacts) -> Artifact:
    """Phase 1: the domain table of the whole source."""
    key = key_of(domains.VERSION, [part.sha256 for part in parts])
    return run_step(run, "domain", domains.merge_chunks, Call(key, "merge domains", (run.job, source, parts, run.store)))


def count_histograms(run: Run, source: Source) -> Artifacts:
    """Phase 2: the histograms of all chunks at the finest node, each coded against the chunk's own domains."""
    key = (histograms.VERSION, domains.VERSION, domains.axis_names(run.job))
    return map_groups(run, "histograms", _count_histograms, source.chunks, key, run.job, source.columns, run.store)


def _count_histograms(job: Job, columns: pa.Schema, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    return [histograms.count_histogram(job, columns, chunk, store) for chunk in chunks]


def merge_histograms(run: Run, domain: Artifact, root: Node, parts: Artifacts) -> Artifact:
    """Phase 2: the root histogram of the whole source."""
    key = key_of(histograms.VERSION, load_coding(run.job, domain, run.store).key, root, histograms.fingerprints(parts))
    call = Call(key, "merge histograms", (run.job, domain, root, parts, run.store, run.spill))
    return run_step(run, "histogram", histograms.merge_histograms, call)


def count_sizes(run: Run, domain: Artifact, root: Node, histogram: Artifact, parts: Artifacts) -> Artifact | None:
    """Class sizes of the source as it is, for the risk before; None where they were not counted and would cost too much."""
    coding = load_coding(run.job, domain, run.store)
    if not risk.is_counted(coding, root, parts):
        return None
    files = [histogram] if root == coding.finest else parts
    return run_step(
        run, "sizes", risk.count_sizes, Call(risk.sizes_key(coding, files), "sizes", (run.job, domain, files, run.store, run.spill))
    )


def search(run: Run, domain: Artifact, root: Node, histogram: Artifact, parts: Artifacts) -> RecodingArtifacts:
    """Phase 2: the best node and its recoding."""
    key = recodings.search_key(run.job, load_coding(run.job, domain, run.store), root, histogram)
    return run_step(run, "search", recodings.search, Call(key, "search", (run.job, domain, root, histogram, parts, run.store)))


def rewrite(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts) -> Artifacts:
    """Phase 3: every chunk joined to the recoding."""
    # All records of a combination share a class, with stars and rounds too: so releases can be compared by combinations.
    run.recoded = domain, recoding
    key = releases.rewrite_key(run.job, source, domain, recoding)
    return map_groups(run, "rewrite", _rewrite, source.chunks, key, run.job, domain, recoding, source, run.store)


def _rewrite(job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, store: Store, chunks: Sequence[Chunk]) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [releases.rewrite_chunk(job, coding, recoding, source, chunk, store) for chunk in chunks]


def write_files(run: Run, source: Source, domain: Artifact, recoding: RecodingArtifacts, runs: Artifacts) -> Artifacts:
    """Phase 3: the files of the release."""
    coding = load_coding(run.job, domain, run.store)
    count = releases.output_files(recodings.load_recoding(run.job, coding, recoding, run.store), run.job.rows_per_file)
    key = (releases.VERSION, [part.sha256 for part in runs], recoding.classes.sha256, source.payload)
    arguments = (run.job, domain, recoding, source, runs, run.store)
    return map_groups(run, "files", _write_files, range(count), key, *arguments)


def _write_files(
    job: Job, domain: Artifact, recoding: RecodingArtifacts, source: Source, runs: Artifacts, store: Store, numbers: Sequence[int]
) -> Artifacts:
    coding = load_coding(job, domain, store)
    return [releases.write_file(job, coding, recoding, source, runs, number, store) for number in numbers]
