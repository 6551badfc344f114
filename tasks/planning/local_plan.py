"""Plan of a method of local recoding: rows to process, memory and fragments."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.lattice.lattice import most_cells
from core.mondrian.recoding import Codes
from schemas.job.job import Job
from schemas.job.record_methods import MondrianMethod
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, DomainTable
from tasks.engine.runs import Run
from tasks.mondrian import cells as mondrian
from tasks.mondrian import fragments
from tasks.mondrian.fragments import SAMPLES, SampleReading
from tasks.mondrian.ways import draw_samples
from tasks.records import coding as records
from tasks.records.recodings import need_fragments
from tasks.report.criteria import uncut_classes_advice
from tasks.source.chunks import ChunkedSource
from tasks.store.store import Artifact

ENOUGH = 100_000


class LocalPlan(FrozenModel):
    """Expected rows, fragments and memory of a run of Mondrian or a record method, from samples.

    Attributes:
        rows: What is cut or compared: ``cells``, distinct combinations with their counts, or single ``records``.
        most_rows: Upper bound on their number, from the domains.
        sampled: Records that were drawn to look at, 100,000 or so at least; all records of a combination are drawn together.
        distinct: Share of distinct combinations among them (QIDs, and sensitive columns that ``l`` or ``t`` look at): 1 if all differ.
        samples_to_scan: Chunks that they had not yet been drawn from when the plan was made.
        parted: Whether records are shared out before classes are made.
        fragments: How many there would be; thin ones are still merged, and too large ones cut again.
        reason: Why there are several, or one.
        most_records: Records that a fragment may hold.
        needed: Bytes that all rows at once would take, about.
        advice: What to write where classes of the sampled records stay whole because l or t refuse cuts; None if none stay so.
    """

    rows: Literal["cells", "records"]
    most_rows: int
    sampled: int
    distinct: float
    samples_to_scan: int
    parted: bool
    fragments: int
    reason: str
    most_records: int
    needed: int
    advice: str | None = None


def forecast_local_run(run: Run, source: ChunkedSource, domain: Artifact, coding: Coding) -> LocalPlan:
    """Draw samples and return the expected rows, memory and fragments of a local method's run."""
    job = run.job
    parted = _needs_fragments(job, coding)
    share = fragments.sample_share(job, coding, 0)
    # The share that cuts need may be too small to tell how many combinations differ.
    telling = min(max(share, ENOUGH / coding.records), 1.0)
    # Asked before they are drawn, after which none would be missing.
    given = SampleReading(job, domain, run.store, run.spill, telling)
    undrawn = sum(SAMPLES.find(given, chunk) is None for chunk in source.chunks)
    codes, counts = fragments.gather_samples(coding, draw_samples(run, source, domain, telling), run.store)
    most, leaves = fragments.most_records(job, coding, source), 1
    if parted:
        # The sample that the run would draw, and its cuts.
        samples = draw_samples(run, source, domain, share)
        leaves = fragments.choose_fragment_cuts(DomainTable.of(run, domain), samples, share, 0, most).tree.leaves
    sampled = int(counts.sum())
    rows = most_cells(coding.axes, coding.finest, coding.records) if mondrian.works_on_cells(job) else coding.records
    of_rows = isinstance(job.method, MondrianMethod)
    needed = mondrian.bytes_of_rows(coding, rows) if of_rows else records.bytes_of_records(job, coding, rows)
    return LocalPlan(
        rows="cells" if mondrian.works_on_cells(job) else "records",
        most_rows=rows,
        sampled=sampled,
        distinct=len(counts) / sampled if sampled else 1.0,
        samples_to_scan=undrawn,
        parted=parted,
        fragments=leaves,
        reason=_reason(job, needed) if parted else "all fit the memory at once",
        most_records=most if parted else coding.records,
        needed=needed,
        advice=_advised(job, coding, codes, counts),
    )


def _advised(job: Job, coding: Coding, codes: Codes, counts: NDArray[np.int64]) -> str | None:
    """Cut the sample as the run will; return advice if classes stay far larger than k, else None.

    There is none where persons are named or records are cut: then a sample of cells does not show which cuts are refused.

    Args:
        codes: Shape (cells, QIDs and sensitive columns), of the sample.
        counts: Shape (cells,), the records of each.
    """
    guarded = job.privacy.l or job.privacy.t
    if (
        not guarded
        or job.columns.person
        or not mondrian.works_on_cells(job)
        or mondrian.method_of(job).refused == "next"
        or not len(counts)
    ):
        return None
    made = mondrian.cutting_of(job, coding).cut(codes, counts)
    sizes = np.add.reduceat(counts[made.order], made.starts[:-1]).astype(np.float64)
    return uncut_classes_advice(float((sizes**2).sum() / sizes.sum()), job.privacy.k, int(sizes.sum()))


def _needs_fragments(job: Job, coding: Coding) -> bool:
    if not isinstance(job.method, MondrianMethod):
        return need_fragments(job, coding)
    mondrian.check_job_can_be_cut(job, coding)
    return mondrian.in_fragments(job, coding)


def _reason(job: Job, needed: int) -> str:
    if needed > job.memory:
        return "all at once do not fit the memory"
    if mondrian.method_of(job).fragments.count > 1:
        return "as the job asks"
    return "relaxed cuts part equal records, which takes the records themselves"
