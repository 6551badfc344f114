"""Class sizes of the source before anonymisation, in records or in persons, counted out of core.

They are counted from the histograms of a run, if it counts any, else from the records that it codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import PackedWords, single_word
from core.columns.domains import Node
from core.columns.numbers import to_numpy
from core.histograms.histogram import count_cells
from core.histograms.projections import BYTES_PER_ROW, SMALL, Combinations
from core.units.losses import ClassSizes, Figures, risk_of
from core.units.unit import Records, Unit
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.chunk_counts import OF_CHUNK
from tasks.counting.coding import Coding, DomainTable, bundled_cells, cell_files_in_source_coding
from tasks.counting.histograms import HISTOGRAM, RootTable, bundled_histograms, fingerprints, write_root_histogram
from tasks.counting.person_cells import combinations_of, persons_of_combinations, qids_of_words
from tasks.engine.runs import Run
from tasks.engine.steps import Merge, remote_takes_all_chunks, run_for_item
from tasks.store.database import connect, parquet_sql
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store

MOST_ROWS = 30_000_000
"""Cells of all chunks together beyond which adding them up once more would cost too much of a run."""

BATCH = 1 << 20
"""Rows of a histogram that are looked at at a time."""

SHARE = 4
"""Which part of the memory the cells of all chunks may take while combinations are counted."""


class Sizes(FrozenModel):
    """Numbers of combinations of QID values by size, in records or in persons."""

    sizes: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Self:
        """Count the combinations of each size from an array of their sizes, without those of size 0."""
        sizes, classes = np.unique(counts[counts > 0], return_counts=True)
        return cls(sizes=tuple(sizes.tolist()), classes=tuple(classes.tolist()))

    @classmethod
    def of_combinations(cls, combinations: Combinations) -> Self:
        """Return the numbers of combinations by size, from an accumulator filled by all chunks."""
        sizes, classes = combinations.sizes()
        return cls(sizes=tuple(sizes.tolist()), classes=tuple(classes.tolist()))

    @property
    def by_size(self) -> dict[int, int]:
        """Number of combinations of each size, by size."""
        return dict(zip(self.sizes, self.classes, strict=True))

    def risk(self) -> Figures | None:
        """Return the re-identification risk of the source; None if its classes were not counted."""
        if not self.sizes:
            return None
        counts = np.array(self.sizes, np.int64)
        return risk_of(ClassSizes(counts, np.array(self.classes, np.int64), counts))


def summed_sizes(parts: Sequence[Sizes]) -> Sizes:
    """Return the class sizes of disjoint parts of the source, such as fragments, added up."""
    added: Counter[int] = Counter()
    for part in parts:
        added.update(part.by_size)
    return Sizes(sizes=tuple(sorted(added)), classes=tuple(added[size] for size in sorted(added)))


def sizes_sql(histograms: str, words: Sequence[str]) -> str:
    """Return SQL that counts QID combinations (``classes``) by their number of records (``size``).

    It is right because counts of disjoint chunks add up, and so do those of cells that differ in a sensitive value alone.

    Args:
        histograms: The SQL relation of histograms at the finest node.
        words: SQL expressions that name a combination; at least one.
    """
    summed = f"SELECT sum(count)::BIGINT AS count FROM {histograms} GROUP BY {', '.join(words)}"
    return f"SELECT count AS size, count(*) AS classes FROM ({summed}) GROUP BY size ORDER BY size"


def qid_words(coding: Coding) -> list[str]:
    """Return SQL expressions for the packed QID values of cells, without sensitive columns."""
    return [f"cell_{number} // {worth}" for number, (mine, worth) in enumerate(qids_of_words(coding)) if mine]


def can_count_sizes(coding: Coding, root: Node, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact] = ()) -> bool:
    """Return whether class sizes can be counted cheaply: at the finest node, or from few cells or pairs.

    Pairs of cells and persons count where there are any.
    """
    return (root == coding.finest and not pairs) or sum(part.rows for part in pairs or chunk_histograms) <= MOST_ROWS


class CellFiles(NamedTuple):
    """The histograms and person–cell pairs from which class sizes are counted.

    Attributes:
        files: Histograms at the finest node, of the whole source or of its chunks; of these where there are pairs.
        pairs: Pairs of person and cell of the chunks, in the same order; none where the job has no person column.
    """

    files: Sequence[Artifact]
    pairs: Sequence[Artifact] = ()


def _count(given: DomainTable, cells: CellFiles, path: Path) -> int:
    """Count the source's combinations of QID values by number of records or persons."""
    if not cells.pairs:
        return _write(_counted(given, cells.files), path)
    parts = persons_of_combinations(given.coding, cells.files, cells.pairs, given.store, given.job.memory)
    return _write(summed_sizes([Sizes.of(part) for part in parts]), path)


def _write(found: Sizes, path: Path) -> int:
    path.write_text(found.model_dump_json())
    return len(found.sizes)


SIZES = FileStep(
    "sizes",
    make=_count,
    reads=lambda given, cells: [given.coding.key, fingerprints(cells.files), fingerprints(cells.pairs)],
    settings=lambda given: len(given.coding.domains),
    suffix=".json",
)
"""The class sizes of the source."""


def _add(given: RootTable, merge: Merge, path: Path) -> int:
    """Sum the histograms of all chunks, and count class sizes from the same read.

    That is, where the cells are read one by one for a coarser root, and few enough to be held.
    """
    cells = CellFiles(merge.parts)
    wanted = can_count_sizes(given.coding, given.root, merge.parts) and SIZES.find(given, cells) is None
    # What workers of a cluster summed at the root tells nothing finer.
    combinations = _combinations(given.job, given.coding, merge.parts) if wanted and merge.read[0].step == OF_CHUNK else None
    rows = write_root_histogram(given, merge, path, [combinations] if combinations else [])
    if combinations and combinations.rows:
        SIZES.save_artifact(given, cells, partial(_write, Sizes.of_combinations(combinations)))
    return rows


WITH_SIZES = FileStep(HISTOGRAM.name, make=_add, reads=HISTOGRAM.reads, under=HISTOGRAM)
"""The root histogram, and the class sizes with it where one reading serves both."""


def merge_histograms(run: Run, domain: Artifact, root: Node, chunk_histograms: Sequence[Artifact]) -> Artifact:
    """Return the artefact of the root histogram, merged from chunks (phase 2); may save class sizes too."""
    given = RootTable.at(DomainTable.of(run, domain), root)
    # Sizes of persons are counted of pairs, and those of the finest root of the sum.
    alone = root == given.coding.finest or bool(run.job.columns.person)
    merge = Merge(chunk_histograms, bundled_histograms(run, given, chunk_histograms))
    return run_for_item(run, HISTOGRAM if alone else WITH_SIZES, given, merge, "merge histograms")


def count_sizes(
    run: Run, domain: Artifact, root: Node, histogram: Artifact, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact]
) -> Artifact | None:
    """Return the artefact of the source's class sizes, counted if missing; None if cells are too many.

    They are of records, or of persons where there are ``pairs``.
    """
    given = DomainTable.of(run, domain)
    if not can_count_sizes(given.coding, root, chunk_histograms, pairs):
        return None
    files = [histogram] if root == given.coding.finest and not pairs else chunk_histograms
    # The histogram of all chunks is the flow's to read; theirs, and pairs, are as many as there are records.
    return run_for_item(
        run, SIZES, given, CellFiles(files, pairs), "sizes", elsewhere=remote_takes_all_chunks(run) and files != [histogram]
    )


def _combinations(job: Job, coding: Coding, parts: Sequence[Artifact]) -> Combinations | None:
    """Return an accumulator of chunks' combinations in memory; None if they are too many or too wide."""
    rows, qids = sum(part.rows for part in parts), len(coding.domains)
    if rows * BYTES_PER_ROW > job.memory // SHARE or not Combinations.fit(coding.packing, qids, coding.records):
        return None
    return Combinations(coding.packing, qids, coding.records, rows)


def _counted(given: DomainTable, files: Sequence[Artifact]) -> Sizes:
    job, coding, store, spill = given.job, given.coding, given.store, given.spill
    # One histogram of QIDs alone has a row for each combination: nothing is left to add up.
    words = qid_words(coding) if len(files) > 1 or coding.sensitive else []
    if words and (combinations := _combinations(job, coding, files)):
        for bundles, codes, counts in bundled_cells(coding, files, store):
            combinations.add(bundles, codes, counts)
        return Sizes.of_combinations(combinations)
    whole = cell_files_in_source_coding(coding, files, store, spill / "sizes")
    if not words:
        return summed_sizes([sizes for file in whole for sizes in _sizes_of(file)])
    with connect(job, spill) as connection:
        rows = connection.execute(sizes_sql(parquet_sql(whole), words)).fetchall()
    return Sizes(sizes=tuple(int(size) for size, _ in rows), classes=tuple(int(classes) for _, classes in rows))


def _sizes_of(file: Path) -> Iterator[Sizes]:
    """Yield the sizes of combinations from a histogram with one row per combination.

    Large sizes come batch by batch, small ones at the end.
    """
    tally = np.zeros(SMALL, np.int64)
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(BATCH, columns=["count"]):
            counts = to_numpy(batch.column(0))
            large = counts >= SMALL
            if large.any():
                yield Sizes.of(counts[large])
                counts = counts[~large]
            # Nearly all are small, and to sort them or look each up would take longer than to read them.
            tally += np.bincount(counts, minlength=SMALL)
    small = np.flatnonzero(tally)
    yield Sizes(sizes=tuple(small.tolist()), classes=tuple(tally[small].tolist()))


def sizes_of_words(coding: Coding, words: PackedWords, unit: Unit) -> Sizes:
    """Return the numbers of QID combinations by size in records or persons, from packed cells.

    Args:
        words: Cells at the finest node, arrays of shape (n,).
        unit: What k counts in these cells.
    """
    key = single_word(combinations_of(coding, words))
    if isinstance(unit, Records):
        # To sort and add up takes less than to number combinations, whose order nobody asks for.
        return Sizes.of(count_cells((key,), int(key.max(initial=0)) + 1, unit.per_cell)[1])
    return Sizes.of(unit.per_class(np.unique(key, return_inverse=True)[1]))


def read_sizes(sizes: Artifact | None, store: Store) -> Sizes:
    """Return the stored class sizes of the source; empty if they were not counted."""
    return Sizes() if sizes is None else store.read_model(sizes, Sizes)
