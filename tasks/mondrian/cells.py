"""Mondrian on the cells of the whole source, and what its fragments share with that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from core.histograms.histogram import Histogram
from core.lattice.lattice import most_cells
from core.mondrian.axes import Order, is_order_free
from core.mondrian.classes import RowTable, column_broken_by_holders, cut_and_publish, cutting_by_persons, one_class_keeps, recode_cells
from core.mondrian.partition import Partition, Rules, Score
from core.mondrian.recoding import Cutting, PublishedClasses, total_losses
from core.units.rows import RowPersons
from schemas.job.job import Job
from schemas.job.mondrian import Fragments, MondrianMethod
from tasks.counting.coding import Coding, DomainTable
from tasks.counting.endpoints import ends_of
from tasks.counting.histograms import fingerprints, load_histogram
from tasks.counting.person_cells import BYTES_PER_PAIR, PersonsOfSource, pairs_at
from tasks.counting.source_sizes import Sizes, read_sizes
from tasks.lattice.kept_recodings import OF_CELLS, RecodingArtifacts, read_cells, read_recoding_artifacts
from tasks.lattice.promises import (
    check_enough,
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
"""The one figure of an algorithm that does not add up: how deep it came."""
NAMES_IN_FRAGMENTS = {"merged": "merged_partitions"}


class Costs(Protocol):
    """Losses and penalties of a fragment, summed over its records, and what was counted in it."""

    @property
    def losses(self) -> Mapping[str, int | float]:
        """By name."""

    @property
    def penalties(self) -> Mapping[str, float]:
        """By QID."""

    @property
    def figures(self) -> Mapping[str, int]:
        """By name."""


def method_of(job: Job) -> MondrianMethod:
    """Return Mondrian's settings: the job's own or, where another algorithm works on its fragments, the usual ones."""
    if isinstance(job.method, MondrianMethod):
        return job.method
    return MondrianMethod(fragments=getattr(job.method, "fragments", Fragments()))


def cutting_of(job: Job, coding: Coding, score: Score | None = None) -> Cutting:
    """Return how the job asks for rows to be cut and published, or how it would by another score."""
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
    """Return the order of siblings: at the ends where cuts are priced, ascending where they are made at medians."""
    if not method.learns_order:
        return "listed"
    return "ends" if method.score == "ncp" else "ascending"


def orders_learnt(job: Job, coding: Coding) -> dict[str, int]:
    """Return for how many QIDs the order of siblings was learnt, by the name of the figure; nothing if for none."""
    if not method_of(job).learns_order:
        return {}
    free = sum(is_order_free(*of) for of in zip(job.columns.quasi_identifiers, coding.domains, strict=True))
    return {"orders_learnt": free} if free else {}


def check_job_can_be_cut(job: Job, coding: Coding) -> None:
    """Refuse what cannot be cut: see ``check_promise``; and intervals of what is no number."""
    check_promise(job, coding)
    check_intervals(coding, cutting_of(job, coding).ways)


def bytes_of_rows(coding: Coding, rows: int) -> int:
    """Return about how much memory Mondrian takes for so many cells or records."""
    return rows * (BYTES_PER_ROW + BYTES_PER_CODE * len(coding.hierarchies))


def bytes_of_people(job: Job, records: int) -> int:
    """Return about how much memory the persons of so many records take; none where no person is named."""
    return records * BYTES_PER_PAIR if job.columns.person else 0


def on_cells(job: Job) -> bool:
    """Return whether the job's method works on cells; others hold every single record."""
    return isinstance(job.method, MondrianMethod) and job.method.mode != "relaxed"


def in_fragments(job: Job, coding: Coding) -> bool:
    """Return whether records are cut in fragments: asked for, needed for memory, or because equal records may come into two classes."""
    method = method_of(job)
    cells = most_cells(coding.axes, coding.finest, coding.records)
    needed = bytes_of_rows(coding, cells) + bytes_of_people(job, coding.records)
    return method.fragments.count > 1 or method.mode == "relaxed" or needed > job.memory


class CutCells(NamedTuple):
    """What is cut.

    Attributes:
        histogram: The cells at full resolution.
        sizes: How many of them there are by their records.
        parts: The chunks' histograms.
        pairs: Their pairs of person and cell; none where no person is named.
    """

    histogram: Artifact
    sizes: Artifact | None
    parts: Sequence[Artifact]
    pairs: Sequence[Artifact]

    @property
    def read(self) -> list[object]:
        """What the cuts are made of."""
        return [self.histogram.sha256, self.sizes and self.sizes.sha256, fingerprints(self.pairs)]


def _cut(given: DomainTable, cells: CutCells) -> RecodingArtifacts:
    """Cut the cells of the whole source and make their recoding."""
    job, coding, store, key = given.job, given.coding, given.store, CUTS.key(given, cells)
    if kept := read_recoding_artifacts(store, key, OF_CELLS):
        return kept
    counted = load_histogram(cells.histogram, coding, coding.finest, store)
    rows = rows_of_cells(job, coding, counted, cells.parts, cells.pairs, store)
    cutting = cutting_by(job, cutting_of(job, coding), rows)
    recoding, published = recode_cells(cutting, counted, rows.unit)
    check_cut(job, cutting, rows, published)
    figures, before = {"cells": counted.cells, "fragments": 1}, read_sizes(cells.sizes, store)
    return read_cells(store, key, recoding, outcome_of(job, coding, [published], figures, before, rows.unit.figures()))


CUTS = FilesStep(
    "cuts",
    make=_cut,
    reads=lambda _given, cells: cells.read,
    settings=lambda given: class_settings(given.job, given.coding),
)
"""The cuts of the cells of the whole source, and the recoding by them."""


def rows_of_cells(
    job: Job, coding: Coding, cells: Histogram, parts: Sequence[Artifact], pairs: Sequence[Artifact], store: Store
) -> RowTable:
    """Return the cells of the whole source as the rows that are cut, with their persons where these are named."""
    unit = None
    if job.columns.person:
        unit = RowPersons.of_pairs(pairs_at(PersonsOfSource(coding, parts, pairs, store, job.memory), cells), cells.cells)
    return RowTable.of(cells.codes, cells.counts, unit)


def cutting_by(job: Job, cutting: Cutting, rows: RowTable) -> Cutting:
    """Return how rows are cut where persons are counted, if they are; refuses rows that break the promise even as one class.

    Args:
        job: The job.
        cutting: How rows are cut where records are counted.
        rows: All rows.
    """
    figures = rows.unit.figures()
    if figures is None:
        return cutting
    check_enough(job, figures[0], "person")
    found = cutting_by_persons(cutting, rows)
    if not one_class_keeps(found, rows) and column_broken_by_holders(found, rows) is None:
        raise one_class_error(job, None)
    return found


def check_cut(job: Job, cutting: Cutting, rows: RowTable, published: PublishedClasses) -> None:
    """Refuse rows in which too many persons hold a value, and that no cut has parted.

    Args:
        job: The job.
        cutting: How rows were cut, as ``cutting_by`` returns it.
        rows: All rows.
        published: What was made of them.
    """
    if rows.unit.adds_up or len(published.sizes) > 1:
        return
    if not one_class_keeps(cutting, rows):
        raise one_class_error(job, column_broken_by_holders(cutting, rows))


def cut_rows(job: Job, cutting: Cutting, rows: RowTable) -> tuple[Partition, PublishedClasses]:
    """Cut rows and labels their classes; refuse what breaks the promise as the one class that it is.

    Args:
        job: The job.
        cutting: How rows are cut where records are counted.
        rows: All rows.
    """
    cutting = cutting_by(job, cutting, rows)
    made, published = cut_and_publish(cutting, rows)
    check_cut(job, cutting, rows, published)
    return made, published


def outcome_of(
    job: Job, coding: Coding, parts: Sequence[Costs], figures: dict[str, int], before: Sizes, people: tuple[int, int] | None = None
) -> LocalOutcome:
    """Add up what fragments cost, and what was counted in them; ``people`` as in ``LocalOutcome``."""
    qids = [hierarchy.qid for hierarchy in coding.hierarchies]
    loss = total_losses([part.losses for part in parts], len(qids), job.privacy.k, coding.records)
    ncp = {qid: sum(part.penalties[qid] for part in parts) / coding.records for qid in qids}
    partitions = sum(int(part.losses["partitions"]) for part in parts)
    search = {"partitions": partitions, **_added([part.figures for part in parts]), **figures, **orders_learnt(job, coding)}
    return LocalOutcome(suppressed=0, masked=0, loss=loss, ncp=ncp, search=search, before=before, people=people)


def _added(figures: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add up what an algorithm counted in fragments; ``merged`` is what became of fragments there, so that of partitions is told apart."""
    names = dict.fromkeys(name for one in figures for name in one)
    found = {name: (max if name == DEEPEST else sum)(one.get(name, 0) for one in figures) for name in names}
    return {NAMES_IN_FRAGMENTS.get(name, name): count for name, count in found.items()}
