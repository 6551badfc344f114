"""The phase of a run that searches the lattice, as its flow calls it."""

from __future__ import annotations

from core.columns.node import Node
from tasks.counting.coding import load_coding
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step
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
    key = recodings.search_key(run.job, load_coding(run.job, domain, run.store), root, histogram, parts, pairs)
    return run_step(run, "search", recodings.search, Call(key, "search", (run.job, domain, root, histogram, parts, pairs, run.store)))
