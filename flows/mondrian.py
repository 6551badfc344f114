"""Flow of Mondrian, centralised or in fragments (papers/distributed-mondrian.txt, Fig. 3)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from core.recount.classes import Recount
from schemas.job.job import Job
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import Manifest
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_domains import count_domains, merge_domains
from tasks.engine.flows import as_job_flow
from tasks.engine.runs import Run
from tasks.lattice.recodings import check_hierarchies
from tasks.mondrian.cells import check_job_can_be_cut, in_fragments
from tasks.mondrian.replay import anonymise_replayed
from tasks.mondrian.ways import anonymise_cells, anonymise_fragments
from tasks.publication.manifests import make_local_manifest
from tasks.publication.verify_and_publish import PublishedRelease, read_or_recall, verify_and_publish
from tasks.records.outcomes import LocalOutcome
from tasks.source.chunks import ChunkedSource
from tasks.source.extracts import open_run
from tasks.store.store import Artifact
from tasks.writing.people import WrittenPersons

Way: TypeAlias = Callable[[Run, ChunkedSource, Artifact], tuple[Sequence[Artifact], LocalOutcome, WrittenPersons]]


@as_job_flow
def mondrian(job: Job) -> PublishedRelease:
    """Run a job with Mondrian, from counting the domains to a verified release.

    The cuts are made of all cells at once or fragment by fragment.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    check_hierarchies(job)
    with open_run(job) as run:
        source, known = read_or_recall(run)
        if known:
            return known
        with run.phase("domains"):
            domain = merge_domains(run, source, count_domains(run, source, known=True))
            anonymise = _way(job, load_coding(job, domain, run.store))
        files, outcome, people = anonymise(run, source, domain)

        def describe(staged: Sequence[PublishedFile], counted: Recount) -> Manifest:
            return make_local_manifest(run, source, outcome, staged, counted)

        return verify_and_publish(run, source, files, describe, people)


def _way(job: Job, coding: Coding) -> Way:
    """Return the function that recodes the records: by replay, in fragments, or all at once."""
    check_job_can_be_cut(job, coding)
    if job.replay is not None:
        return anonymise_replayed
    return anonymise_fragments if in_fragments(job, coding) else anonymise_cells
