"""Flow of SKALD: chunked full-domain k-anonymisation with one global node (papers/skald.txt, Fig. 2)."""

from collections.abc import Sequence

from core.columns.domains import Node
from core.recount.classes import Recount
from schemas.job.job import Job
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import ClaimedLevels, Manifest, claimed_levels
from tasks.counting.chunk_counts import count_histograms, count_pairs
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_domains import count_domains
from tasks.counting.source_sizes import count_sizes, merge_histograms, read_sizes
from tasks.engine.flows import as_job_flow
from tasks.lattice.recodings import Outcome, check_hierarchies, choose_root, read_map, search_lattice
from tasks.publication.manifests import make_manifest
from tasks.publication.verify_and_publish import PublishedRelease, read_or_recall, verify_and_publish
from tasks.source.extracts import open_run
from tasks.writing.cells import rewrite_cells


@as_job_flow
def skald(job: Job) -> PublishedRelease:
    """Run a job with full-domain recoding, and return its verified and published release.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    check_hierarchies(job)
    with open_run(job) as run:
        source, known = read_or_recall(run)
        if known:
            return known
        with run.phase("phase 1: domains"):
            domain = count_domains(run, source, count_cells=True, digest_records=True)
            root, tops = _root_and_tops(job, load_coding(job, domain, run.store))
        with run.phase("phase 2: histogram"):
            # Where persons are named, a chunk is read once for its pairs and its histogram.
            pairs = count_pairs(run, source)
            parts = count_histograms(run, source)
            histogram = merge_histograms(run, domain, root, parts)
            sizes = count_sizes(run, domain, root, histogram, parts, pairs)
        with run.phase("phase 2: search"):
            recoding = search_lattice(run, domain, root, histogram, parts, pairs)
        with run.phase("phase 3: rewrite"):
            files, people = rewrite_cells(run, source, domain, recoding)
        before = read_sizes(sizes, run.store)
        outcome, drawn = run.store.read_model(recoding.outcome, Outcome), read_map(recoding.outcome, run.store)

        def describe(staged: Sequence[PublishedFile], counted: Recount) -> Manifest:
            return make_manifest(run, source, outcome, staged, counted, before, tops, drawn)

        return verify_and_publish(run, source, files, describe, people, _claim(job, outcome, tops))


def _claim(job: Job, outcome: Outcome, tops: Sequence[int]) -> ClaimedLevels:
    """Return the levels that the release claims: those of the node and of further passes."""
    local = outcome.local
    nodes = [outcome.node, *(one.node for one in (local.rounds if local else ()))]
    names = [qid.name for qid in job.columns.quasi_identifiers]
    return claimed_levels(names, nodes, tops, has_suppressed_cells=local is not None and local.stars > 0)


def _root_and_tops(job: Job, coding: Coding) -> tuple[Node, list[int]]:
    """Return the root node at which histograms are counted, and each hierarchy's highest level.

    The run keeps nothing else of the hierarchies.
    """
    return choose_root(job, coding), [hierarchy.top for hierarchy in coding.hierarchies]
