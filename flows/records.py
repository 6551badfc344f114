"""Flows of all methods that recode single records: they differ only in the algorithm.

RAYDEN and CANON (papers/rayden.txt), Mondrian with RAYDEN's outlier step, semantic clustering (papers/semantic-clustering.txt), and
k-member clustering.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from core.recount.classes import Recount
from schemas.job.job import Job
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import Manifest
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_domains import count_domains
from tasks.engine.flows import as_job_flow
from tasks.engine.runs import Run
from tasks.lattice.recodings import check_hierarchies
from tasks.mondrian.ways import anonymise_fragments
from tasks.publication.manifests import make_local_manifest
from tasks.publication.verify_and_publish import PublishedRelease, read_or_recall, verify_and_publish
from tasks.records.coding import code_records
from tasks.records.outcomes import LocalOutcome
from tasks.records.recodings import need_fragments, recode_all_records, rewrite_records
from tasks.source.chunks import ChunkedSource
from tasks.source.extracts import open_run
from tasks.store.store import Artifact
from tasks.writing.people import WrittenPersons

Way: TypeAlias = Callable[[Run, ChunkedSource, Artifact], tuple[Sequence[Artifact], LocalOutcome, WrittenPersons]]
"""Recodes the records of a source, given its domains; returns the files of the release, its costs, and the persons of its classes."""


def anonymise_records(job: Job, way_for: Callable[[Job, Coding], Way]) -> PublishedRelease:
    """Run a job whose method recodes single records; return its verified and published release.

    Args:
        way_for: Returns how the records are recoded, once the domains are known.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    check_hierarchies(job)
    with open_run(job) as run:
        source, known = read_or_recall(run)
        if known:
            return known
        with run.phase("domains"):
            domain = count_domains(run, source, digest_records=True)
            anonymise = way_for(job, load_coding(job, domain, run.store))
        files, outcome, people = anonymise(run, source, domain)

        def describe(staged: Sequence[PublishedFile], counted: Recount) -> Manifest:
            return make_local_manifest(run, source, outcome, staged, counted)

        return verify_and_publish(run, source, files, describe, people)


def _way(job: Job, coding: Coding) -> Way:
    """Return the function that recodes the records, in fragments where they do not fit the memory."""
    return anonymise_fragments if need_fragments(job, coding) else _anonymise_whole


def _anonymise_whole(run: Run, source: ChunkedSource, domain: Artifact) -> tuple[list[Artifact], LocalOutcome, WrittenPersons]:
    """Recode all records at once."""
    with run.phase("records"):
        coded = code_records(run, source, domain)
    with run.phase(run.job.method.name):
        recoding = recode_all_records(run, domain, coded)
    with run.phase("rewrite"):
        files, people = rewrite_records(run, source, domain, recoding)
    return files, run.store.read_model(recoding.outcome, LocalOutcome), people


def record_flow(method: str) -> Any:
    """Return the flow of a method that recodes single records, named after the method.

    Raises:
        SkaldError: with one sentence, and the exit code of the command line.
    """

    def run(job: Job) -> PublishedRelease:
        return anonymise_records(job, _way)

    run.__name__ = run.__qualname__ = method
    run.__doc__ = f"Run a job with ``method: {{name: {method}}}``, from coding its records to a verified release."
    return as_job_flow(run)


rayden = record_flow("rayden")
canon = record_flow("canon")
mondrian_cof = record_flow("mondrian_cof")
clustering = record_flow("clustering")
kmember = record_flow("kmember")
