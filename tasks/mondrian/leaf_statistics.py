"""Counts of records, sensitive values and persons in the leaves of a cut tree, and thin leaves merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.mondrian.fragments import CutTree, Group, merge_thin
from core.privacy.models import Spread
from core.privacy.promise import Promise
from core.units.class_table import ClassTable
from core.units.digests import NOBODY, Digests
from core.units.unit import Records, Unit
from schemas.errors.methods import FragmentsError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, load_coding
from tasks.counting.histograms import fingerprints
from tasks.counting.person_cells import Numbers, PersonsOfCells, persons_in_shares, reader_of_array, reader_of_artifact, shares_of
from tasks.lattice.promises import check_at_least_k, promise_of
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table

PEOPLE, MERGED = StepCode("people of leaves", __name__), StepCode("merged leaves", __name__)


class Merged(FrozenModel):
    """Groups of leaves that make fragments, and the source's persons and most records of one.

    Attributes:
        groups: The leaves of each.
        people: Persons of the source, and records of the one who has most; None where the job has no person column.
    """

    groups: list[Group]
    people: tuple[int, int] | None


def leaf_table(leaves: NDArray[np.int64], sensitive: Sequence[NDArray[np.integer]], digests: Digests | None) -> pa.Table:
    """Return a chunk's counts per leaf as ``column`` (-1: records), ``leaf``, ``code``, ``count``.

    Where persons are named, values count only for records with a person, since no class can rely on others.
    """
    rows = []
    somebody = slice(None) if digests is None else digests != NOBODY
    for column in range(-1, len(sensitive)):
        mine = leaves if column < 0 else leaves[somebody]
        codes = np.zeros(len(leaves), np.int64) if column < 0 else sensitive[column][somebody].astype(np.int64)
        size = int(codes.max(initial=0)) + 1
        counts = np.bincount(mine * size + codes)
        there = np.flatnonzero(counts)
        rows.append((np.full(len(there), column), there // size, there % size, counts[there]))
    columns, leaf, code, count = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return pa.table({"column": columns, "leaf": leaf, "code": code, "count": count})


@dataclass(frozen=True, eq=False)
class LeafStatistics:
    """Numbers of records, and of each sensitive value, in each leaf of a cut tree.

    Attributes:
        records: Shape (leaves,).
        values: Shape (leaves, values) per sensitive column.
    """

    records: NDArray[np.int64]
    values: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, coding: Coding, leaf_count: int, tables: Sequence[pa.Table]) -> LeafStatistics:
        """Return the statistics of a cut tree's leaves, summed over the leaf tables of all chunks."""
        table = pa.concat_tables(tables)
        column, leaf, code, count = (table[name].to_numpy() for name in ("column", "leaf", "code", "count"))
        made = []
        for position, size in enumerate([1, *(domain.size for domain in coding.sensitive)], start=-1):
            mine = column == position
            sums = np.bincount(leaf[mine] * size + code[mine], weights=count[mine], minlength=leaf_count * size)
            made.append(sums.astype(np.int64).reshape(leaf_count, size))
        return cls(made[0][:, 0], tuple(made[1:]))

    def size_test(self, promise: Promise, unit: Unit) -> Callable[[Group], bool]:
        """Return a function that says whether a group of leaves has at least k units.

        Arguments are those of ``promise_test``.
        """
        units = self._units_of(unit)
        return lambda leaves: not promise.too_few(units(leaves))[0]

    def _units_of(self, unit: Unit) -> Callable[[Group], NDArray[np.int64]]:
        """Return a function from a group of leaves to their number of units together, shape (1,)."""
        alone = unit.per_class(np.arange(len(self.records)))

        def units(leaves: Group) -> NDArray[np.int64]:
            if len(leaves) == 1:
                return alone[list(leaves)]
            owners = np.full(len(self.records), -1)
            owners[list(leaves)] = 0
            return unit.count(owners, 1)

        return units

    def promise_test(self, promise: Promise, columns: Sequence[str], unit: Unit) -> Callable[[Group], bool]:
        """Return a function that says whether a group of leaves keeps the privacy requirements.

        Where persons count, only requirements that hold for unions of classes are checked.

        Args:
            columns: The sensitive columns, in the order of ``values``.
            unit: What k counts in the leaves.
        """
        promise, units = promise if unit.adds_up else promise.relaxed, self._units_of(unit)

        def kept(leaves: Group) -> bool:
            spreads = {}
            for column, values in zip(columns, self.values, strict=True):
                counts = values[list(leaves)].sum(axis=0)
                there = np.flatnonzero(counts)
                spreads[column] = Spread(np.zeros(len(there), np.int64), there, counts[there], values.sum(axis=0))
            records = self.records[list(leaves)].sum(keepdims=True)
            return not ClassTable(records, units(leaves), spreads).failing(promise)[0]

        return kept


def merge_leaves(
    job: Job, domain: Artifact, tree: CutTree, leaf_counts: Sequence[Artifact], pairs: Sequence[Artifact], store: Store
) -> Merged:
    """Return groups of leaves that make fragments, thin leaves merged; raise ``FragmentsError`` if unsafe.

    Args:
        job: Gives the privacy requirements.
        domain: The domain table.
        leaf_counts: Leaf counts of all chunks.
        pairs: Person–leaf pairs of all chunks; none where the job has no person column.
    """
    coding = load_coding(job, domain, store)
    census = LeafStatistics.of(coding, tree.leaves, [read_table(store, one) for one in leaf_counts])
    whose = people_of_leaves(job, pairs, tree.leaves, store) if job.columns.person else None
    unit, promise = whose.of_cells if whose else Records(census.records), promise_of(job, coding)
    made = merge_thin(
        tree, census.size_test(promise, unit), census.promise_test(promise, [domain.qid for domain in coding.sensitive], unit)
    )
    if not unit.adds_up and len(made) > 1 and not promise.is_closed_under_union:
        raise FragmentsError.of_persons(job.method.name)
    return Merged(groups=made, people=(whose.number, whose.most_records) if whose else None)


def people_of_leaves(job: Job, pairs: Sequence[Artifact], leaf_count: int, store: Store) -> PersonsOfCells:
    """Return the persons of each leaf, merged over chunks; raise ``PrivacyError`` if fewer than k."""
    shares, holds = shares_of(pairs, job.memory)

    def keep(number: int, person_cells: NDArray[np.int32]) -> Numbers:
        return (
            reader_of_array(person_cells)
            if holds
            else reader_of_artifact(store, PEOPLE.key(fingerprints(pairs), number, shares), person_cells)
        )

    found = persons_in_shares(pairs, None, leaf_count, shares, store, keep)
    check_at_least_k(job, found.number, "person")
    return found
