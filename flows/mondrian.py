"""Flow of Mondrian, centralised or in fragments (papers/distributed-mondrian.txt, Fig. 3)."""

from flows.records import Way, anonymise_records
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.engine.flows import as_job_flow
from tasks.mondrian.cells import check_job_can_be_cut, in_fragments
from tasks.mondrian.ways import anonymise_cells, anonymise_fragments
from tasks.publication.verify_and_publish import PublishedRelease


@as_job_flow
def mondrian(job: Job) -> PublishedRelease:
    """Run a job with Mondrian, and return its verified and published release.

    The cuts are made of all cells at once or fragment by fragment.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    return anonymise_records(job, _way)


def _way(job: Job, coding: Coding) -> Way:
    """Return the function that recodes the records: in fragments, or all at once, as replays are."""
    check_job_can_be_cut(job, coding)
    return anonymise_fragments if job.replay is None and in_fragments(job, coding) else anonymise_cells
