"""The phase of a run that searches the lattice, as its flow calls it."""

from __future__ import annotations

from core.columns.node import Node
from tasks.counting.coding import load_coding
from tasks.counting.further_roots import sums_of_chunks
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step, takes_wholes
from tasks.lattice import recodings
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.store.store import Artifact


def search_lattice(
    run: Run, domain: Artifact, root: Node, histogram: Artifact, parts: list[Artifact], pairs: list[Artifact]
) -> RecodingArtifacts:
    """Phase 2: the best node and its recoding.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
        SkaldError: whatever a step raises.
    """
    job = run.job
    key = recodings.search_key(job, load_coding(job, domain, run.store), root, histogram, parts, pairs)
    arguments = (job, domain, root, histogram, parts, pairs, run.store)
    # Whose the records are, and what becomes of single ones that are left, is read record by record: where a worker may take as much
    # memory as the flow, it searches. Else the flow does, and has further roots counted. A release that is replayed is here.
    if (pairs or job.suppression.is_local) and job.replay is None and takes_wholes(run):
        return run_step(run, "search", recodings.search, Call(key, "search", arguments, elsewhere=True, whole=True))
    return run_step(run, "search", recodings.search, Call(key, "search", (*arguments, sums_of_chunks(run, domain, parts))))
