"""Search of a job's lattice without a release, for the picture of the lattice.

It uses the artefacts of the job's run and counts only what is missing.
"""

from __future__ import annotations

from core.lattice.map import LatticeMap
from schemas.errors.methods import NoLatticeError
from schemas.job.job import Job
from schemas.job.method import SkaldMethod
from tasks.counting.chunk_histograms import count_histograms, count_pairs
from tasks.counting.coding import load_coding
from tasks.counting.source_domains import count_domains, merge_domains
from tasks.counting.source_sizes import merge_histograms
from tasks.lattice.lattice_maps import read_map
from tasks.lattice.recodings import check_hierarchies, choose_root, search_lattice
from tasks.source.extracts import open_run
from tasks.source.sources import read_source


def lattice_of(job: Job) -> LatticeMap:
    """Return the lattice map of a job, from its run's artefacts or a new search; publish nothing."""
    if not isinstance(job.method, SkaldMethod):
        raise NoLatticeError.other_method(job.method.name)
    check_hierarchies(job)
    with open_run(job) as run:
        source = read_source(run)
        domain = merge_domains(run, source, count_domains(run, source, cells=True))
        root = choose_root(job, load_coding(job, domain, run.store))
        pairs = count_pairs(run, source)
        parts = count_histograms(run, source)
        found = search_lattice(run, domain, root, merge_histograms(run, domain, root, parts), parts, pairs)
        drawn = read_map(found.outcome, run.store)
    if drawn is None:
        raise NoLatticeError.without_nodes()
    return drawn
