"""Mondrian on the cells of the complete source, and functions shared with Mondrian on fragments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.histograms.histogram import Histogram
from core.lattice.lattice import most_cells
from core.mondrian.partition import Partition, Rules, Score
from core.mondrian.ranks import Order, is_order_free
from core.mondrian.recoding import Cutting, PublishedClasses, total_losses
from core.mondrian.replay import RowTable, column_broken_by_holders, cut_and_publish, cutting_by_persons, one_class_keeps, recode_cells
from core.units.persons import RowPersons
from schemas.job.job import Job
from schemas.job.record_methods import Fragments, MondrianMethod
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, DomainTable
from tasks.counting.histograms import fingerprints, load_histogram
from tasks.counting.person_cells import BYTES_PER_PAIR, PersonsOfSource, pairs_at
from tasks.counting.source_domains import ends_of
from tasks.counting.source_sizes import Sizes, read_sizes
from tasks.lattice.kept_recodings import OF_CELLS, RecodingArtifacts, read_recoding_artifacts, write_recoding_of_cells
from tasks.lattice.promises import (
    check_at_least_k,
    check_intervals,
    check_promise,
    class_settings,
    one_class_error,
    promise_of,
    source_value_counts,
)
from tasks.records.coding import axes_of
from tasks.records.outcomes import LocalOutcome
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store

BYTES_PER_ROW, BYTES_PER_CODE = 160, 24
DEEPEST = "levels"
"""The one figure of an algorithm that does not add up: its depth."""
NAMES_IN_FRAGMENTS = {"merged": "merged_partitions"}


class FragmentLosses(FrozenModel):
    """Losses and figures of a fragment, summed over its records.

    They add up over fragments (papers/distributed-mondrian.txt, section 6).

    Attributes:
        losses: By name.
        penalties: NCP by QID.
        files: How many files the fragment fills; some may be without a record.
        figures: The algorithm's counts, by name.
        before: Class sizes of its records as they are.
    """

    losses: dict[str, int | float]
    penalties: dict[str, float]
    files: int
    figures: dict[str, int] = {}
    before: Sizes = Sizes()


def method_of(job: Job) -> MondrianMethod:
    """Return the job's Mondrian settings, or the defaults for a job with another algorithm on fragments."""
    if isinstance(job.method, MondrianMethod):
        return job.method
    return MondrianMethod(fragments=getattr(job.method, "fragments", Fragments()))


def cutting_of(job: Job, coding: Coding, score: Score | None = None) -> Cutting:
    """Return the cutting rules of a job where records are counted, optionally with another score."""
    method, qids = method_of(job), job.columns.quasi_identifiers
    if score is not None:
        method = method.model_copy(update={"score": score})
    columns = tuple(domain.qid for domain in coding.sensitive)
    wholes = tuple(source_value_counts(coding, position) for position in range(len(columns)))
    return Cutting(
        axes=axes_of(job, coding, order_of(method)),
        domains=coding.domains,
        hierarchies=coding.hierarchies,
        rules=Rules(promise_of(job, coding), columns, wholes, method.refused),
        ways=tuple(method.way_of(qid.name) for qid in qids),
        score=method.score,
        mode=method.mode,
        intervals=job.intervals,
        of_fragment=method.spans == "fragment",
        ends=ends_of(job, coding),
    )


def order_of(method: MondrianMethod) -> Order:
    """Return the order of siblings for cuts: listed, at the ends (NCP score), or ascending (medians)."""
    if not method.learns_order:
        return "listed"
    return "ends" if method.score == "ncp" else "ascending"


def orders_learnt(job: Job, coding: Coding) -> dict[str, int]:
    """Return figure ``orders_learnt``, the number of QIDs with a learnt sibling order; empty if none."""
    if not method_of(job).learns_order:
        return {}
    free = sum(is_order_free(*of) for of in zip(job.columns.quasi_identifiers, coding.domains, strict=True))
    return {"orders_learnt": free} if free else {}


def check_job_can_be_cut(job: Job, coding: Coding) -> None:
    """Raise ``PrivacyError`` if all records as one class fail, ``SourceError`` for non-numeric intervals."""
    check_promise(job, coding)
    check_intervals(coding, cutting_of(job, coding).ways)


def bytes_of_rows(coding: Coding, row_count: int) -> int:
    """Return about how many bytes Mondrian takes for so many cells or records."""
    return row_count * (BYTES_PER_ROW + BYTES_PER_CODE * len(coding.hierarchies))


def bytes_of_people(job: Job, record_count: int) -> int:
    """Return about how many bytes the persons of so many records take; 0 if the job has no person column."""
    return record_count * BYTES_PER_PAIR if job.columns.person else 0


def works_on_cells(job: Job) -> bool:
    """Return whether the job's method works on cells rather than on single records."""
    return isinstance(job.method, MondrianMethod) and job.method.mode != "relaxed"


def in_fragments(job: Job, coding: Coding) -> bool:
    """Return whether records must be divided into fragments: as asked, for memory, or in relaxed mode.

    In relaxed mode equal records may come into two classes.
    """
    method = method_of(job)
    cells = most_cells(coding.axes, coding.finest, coding.records)
    needed = bytes_of_rows(coding, cells) + bytes_of_people(job, coding.records)
    return method.fragments.count > 1 or method.mode == "relaxed" or needed > job.memory


class CutCells(NamedTuple):
    """Inputs of Mondrian on cells: finest-node histogram, class sizes, chunks and person–cell pairs.

    Attributes:
        histogram: The cells at full resolution.
        parts: The chunks' histograms.
        pairs: Their pairs of person and cell; none where the job has no person column.
    """

    histogram: Artifact
    sizes: Artifact | None
    parts: Sequence[Artifact]
    pairs: Sequence[Artifact]

    @property
    def inputs(self) -> list[object]:
        """Return the keys of the inputs that determine the cuts."""
        return [self.histogram.sha256, self.sizes and self.sizes.sha256, fingerprints(self.pairs)]


def _cut(given: DomainTable, cells: CutCells) -> RecodingArtifacts:
    """Cut the cells of the complete source and make their recoding."""
    job, coding, store, key = given.job, given.coding, given.store, CUTS.key(given, cells)
    if kept := read_recoding_artifacts(store, key, OF_CELLS):
        return kept
    counted = load_histogram(cells.histogram, coding, coding.finest, store)
    rows = rows_of_cells(job, coding, counted, cells.parts, cells.pairs, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    recoding, published = recode_cells(cutting, counted, rows.unit)
    check_cut(job, cutting, rows, published)
    figures, before = {"cells": counted.cells, "fragments": 1}, read_sizes(cells.sizes, store)
    return write_recoding_of_cells(store, key, recoding, outcome_of(job, coding, [published], figures, before, rows.unit.figures()))


CUTS = FilesStep(
    "cuts",
    make=_cut,
    reads=lambda _given, cells: cells.inputs,
    settings=lambda given: class_settings(given.job, given.coding),
)
"""The cuts of the cells of the whole source, and the recoding by them."""


def rows_of_cells(
    job: Job, coding: Coding, cells: Histogram, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact], store: Store
) -> RowTable:
    """Return all cells of the source as weighted rows for Mondrian, with their persons if it has any."""
    unit = None
    if job.columns.person:
        unit = RowPersons.of_pairs(pairs_at(PersonsOfSource(coding, chunk_histograms, pairs, store, job.memory), cells), cells.cells)
    return RowTable.of(cells.codes, cells.counts, unit)


def cutting_by(job: Job, cutting: Cutting, rows: RowTable) -> Cutting:
    """Return cutting rules that count persons, or the given ones for records; raise if none can keep them.

    One class that fails by a value's holders alone raises nothing yet: each of two halves may have few enough of them.

    Args:
        cutting: The cutting rules where records are counted.
    """
    figures = rows.unit.figures()
    if figures is None:
        return cutting
    check_at_least_k(job, figures[0], "person")
    found = cutting_by_persons(cutting, rows)
    if not one_class_keeps(found, rows) and column_broken_by_holders(found, rows) is None:
        raise one_class_error(job, None)
    return found


def check_cut(job: Job, cutting: Cutting, rows: RowTable, published: PublishedClasses) -> None:
    """Raise ``PrivacyError`` if rows stayed one class in which too many persons hold one value.

    Args:
        cutting: The cutting rules, as returned by ``cutting_by``.
    """
    if rows.unit.adds_up or len(published.sizes) > 1:
        return
    if not one_class_keeps(cutting, rows):
        raise one_class_error(job, column_broken_by_holders(cutting, rows))


def cut_rows(job: Job, cutting: Cutting, rows: RowTable) -> tuple[Partition, PublishedClasses]:
    """Cut rows; return partition and labelled classes; raise ``PrivacyError`` if all fail as one class.

    Args:
        cutting: The cutting rules where records are counted.
    """
    cutting = cutting_by(job, cutting, rows)
    made, published = cut_and_publish(cutting, rows)
    check_cut(job, cutting, rows, published)
    return made, published


def outcome_of(
    job: Job,
    coding: Coding,
    fragments: Sequence[PublishedClasses | FragmentLosses],
    figures: dict[str, int],
    source_sizes: Sizes,
    people: tuple[int, int] | None,
) -> LocalOutcome:
    """Return a run's outcome: the losses and counts of its fragments added up, with nothing suppressed."""
    qids = [hierarchy.qid for hierarchy in coding.hierarchies]
    loss = total_losses([part.losses for part in fragments], len(qids), job.privacy.k, coding.records)
    ncp = {qid: sum(part.penalties[qid] for part in fragments) / coding.records for qid in qids}
    partitions = sum(int(part.losses["partitions"]) for part in fragments)
    search = {"partitions": partitions, **_added([part.figures for part in fragments]), **figures, **orders_learnt(job, coding)}
    return LocalOutcome(suppressed=0, masked=0, loss=loss, ncp=ncp, search=search, before=source_sizes, people=people)


def _added(figures: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add up the algorithm's counts over fragments.

    Its count ``merged`` gets another name, since fragments have a figure of that name too.
    """
    names = dict.fromkeys(name for one in figures for name in one)
    found = {name: (max if name == DEEPEST else sum)(one.get(name, 0) for one in figures) for name in names}
    return {NAMES_IN_FRAGMENTS.get(name, name): count for name, count in found.items()}
