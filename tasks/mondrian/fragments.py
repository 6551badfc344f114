"""Preparation of distributed Mondrian: sampling, cuts between fragments, division of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import PackedWords
from core.histograms.cells import packing_of
from core.histograms.histogram import count_cells
from core.mondrian.fragments import CutTree, Group, cut_tree_by_mondrian, cut_tree_by_quantiles, sample_mask
from core.mondrian.ranks import ranks_of_columns
from core.units.pairs import Pairs
from schemas.errors.base import SourceError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.chunk_counts import axis_names, cell_table, write_pairs
from tasks.counting.coding import CellCoder, Coding, DomainTable
from tasks.counting.contents import CONTENTS, ContentReading, digested_by
from tasks.mondrian.cells import bytes_of_people, bytes_of_rows, cutting_of, method_of, order_of
from tasks.mondrian.leaf_statistics import leaf_table
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.keys import StepCode
from tasks.store.step import FilesStep, FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import chunk_histogram_types, read_table, write_table, write_undeclared_table
from tasks.writing.pseudonyms import read_published
from tasks.writing.runs import write_run

PLANTED = StepCode("plant", __name__)
AT_A_TIME = 2
"""Fragments of the largest size that the memory has room for at a time: how large they are changes a release, their workers do not."""
BYTES_PER_COLUMN = 24
# A sample tells only about how large a fragment will be.
MARGIN = 0.8
RESERVED = 8
"""One part in so many of the memory is left to the program itself."""
LARGER = 4


def most_records(job: Job, coding: Coding, source: ChunkedSource) -> int:
    """Return how many records a fragment may hold so that concurrent fragments fit the memory."""
    # One column more, for linkage keys.
    each = bytes_of_rows(coding, 1) + bytes_of_people(job, 1) + BYTES_PER_COLUMN * (len(source.payload) + 1)
    return max((job.task_memory - job.task_memory // RESERVED) // (AT_A_TIME * each), 1)


def sample_share(job: Job, coding: Coding, attempt: int) -> float:
    """Return the share of records to sample: the job's, raised after failed attempts, limited by memory."""
    fits = job.memory / 2 / bytes_of_rows(coding, coding.records)
    share = min(float(method_of(job).fragments.sample) * LARGER**attempt, max(fits, 1 / coding.records), 1.0)
    return float(share)


@dataclass(frozen=True)
class SampleReading(DomainTable):
    """The inputs of sampling: the domain table and the share of records to draw."""

    share: float


def _sample(given: SampleReading, chunk: Chunk, path: Path) -> int:
    """Count the sampled cells of a chunk."""
    coder, seed = CellCoder.at(given.coding, given.coding.finest), method_of(given.job).fragments.seed
    found: list[PackedWords] = [tuple(np.empty(0, np.int64) for _ in coder.packing.words)]
    try:
        for batch in read_chunk(chunk, axis_names(given.job)):
            words = coder.cells(batch.columns)
            drawn = sample_mask(words, given.share, seed)
            found.append(tuple(word[drawn] for word in words))
    except LookupError:
        raise SourceError.changed(chunk.name) from None
    words, counts = count_cells(tuple(np.concatenate(parts) for parts in zip(*found, strict=True)), coder.packing.product)
    return write_table(path, cell_table(words, counts), chunk_histogram_types(len(words)), "samples", "cell_0")


SAMPLES = FileStep(
    "samples",
    make=_sample,
    reads=lambda given, chunk: [chunk.key, given.coding.key],
    settings=lambda given: [given.share, method_of(given.job).fragments.seed],
    phase="sample",
)
"""The cells of a chunk that are in the sample."""


def gather_samples(coding: Coding, samples: Sequence[Artifact], store: Store) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
    """Return the merged samples of all chunks: codes of shape (cells, axes), counts of shape (cells,)."""
    packing = packing_of(coding.finest, coding.axes)
    tables = [read_table(store, sample) for sample in samples]
    words = tuple(np.concatenate([table[f"cell_{word}"].to_numpy() for table in tables]) for word in range(len(packing.words)))
    words, counts = count_cells(words, packing.product, np.concatenate([table["count"].to_numpy() for table in tables]))
    return packing.unpack(words), counts


def choose_fragment_cuts(table: DomainTable, samples: Sequence[Artifact], share: float, attempt: int, most_records: int) -> FragmentCuts:
    """Return the cut tree between fragments, chosen from a sample, and the number of sampled records.

    Args:
        table: Its job gives the kind of cuts and the number of fragments; its store holds the samples.
        samples: The samples of all chunks.
        share: Share of the records that they hold.
        attempt: How often fragments came out too large.
        most_records: Records that a fragment may hold.
    """
    job, coding = table.job, table.coding
    codes, counts = gather_samples(coding, samples, table.store)
    cutting, asked, sampled = cutting_of(job, coding), method_of(job).fragments, int(counts.sum())
    needed = -(-coding.records // int(max(most_records * MARGIN, 1)))
    if asked.cut == "quantile":
        tree = cut_tree_by_quantiles(cutting, codes, counts, max(asked.count, needed) << attempt)
    else:
        tree = cut_tree_by_mondrian(cutting, codes, counts, asked.count, share, most_records * MARGIN / (1 << attempt))
    return FragmentCuts(tree=tree, sampled=sampled)


class FragmentCuts(FrozenModel):
    """The cut tree between fragments, and the number of sampled records."""

    tree: CutTree
    sampled: int


@dataclass(frozen=True)
class PartReading(DomainTable):
    """The inputs of dividing chunks by fragment: domain table, source and cut tree."""

    source: ChunkedSource
    tree: CutTree

    @property
    def contents(self) -> ContentReading:
        """Return the inputs of the digests of records."""
        return ContentReading(self.job, self.source.columns, self.store, digested_by(self.job, self.source.payload))


class Parted(FrozenModel):
    """Artefacts of a chunk divided by leaf: its records, its counts, and its person–leaf pairs.

    The pairs are None where the job has no person column.
    """

    run: Artifact
    leaf_counts: Artifact
    pairs: Artifact | None


def _part(given: PartReading, chunk: Chunk) -> Parted:
    """Divide the records of a chunk by the leaves of the cut tree, and count them.

    Returns:
        One record batch per leaf, of cells, payload, linkage keys and, where they are named, the digests of persons.
        Then the records per leaf and, for records with a person, per leaf and sensitive value. Last come the persons per leaf.
    """
    store, key, person = given.store, PARTED.key(given, chunk), bool(given.job.columns.person)
    run, census, pairs = (store.find(step, key) for step in ("runs", "census", "pairs"))
    # All or none: a kill between two leaves one, and the chunk is read again.
    if run and census and (pairs or not person):
        return Parted(run=run, leaf_counts=census, pairs=pairs)
    leaf, cell, codes, payload = _led(given, chunk)
    # Kept, because the linkage keys of the source are computed from the same digests.
    known = pq.read_table(store.path(CONTENTS.result(given.contents, chunk))).combine_chunks()
    digests = known["person"].to_numpy() if person else None
    columns = [*payload.columns, *(column.combine_chunks() for column in known.columns)]
    places = map(str, range(payload.num_columns))
    payload = pa.RecordBatch.from_arrays(columns, names=[*places, *known.column_names])
    counted = leaf_table(leaf, codes, digests)
    return Parted(
        run=store.make("runs", key, ".arrow", lambda path: write_run(path, cell, payload, leaf, narrow=False)),
        leaf_counts=store.make("census", key, ".parquet", partial(write_undeclared_table, counted)),
        pairs=None if digests is None else store.make("pairs", key, ".parquet", lambda path: write_pairs(path, Pairs.of(digests, leaf))),
    )


def _settings(given: PartReading) -> list[object]:
    # Ranks mean what they do in the order of siblings that the cuts were made along.
    cuts = given.tree.qids, given.tree.ranks, given.tree.lefts, order_of(method_of(given.job))
    return [given.source.payload_key, *cuts, CONTENTS.settings(given.contents)]


PARTED = FilesStep("part", make=_part, reads=lambda given, chunk: [chunk.key, given.coding.key], settings=_settings)
"""The records of a chunk apart by fragment, and their census."""


def known_leaf_counts(given: PartReading) -> list[Artifact] | None:
    """Return each chunk's stored artefact of leaf counts for this cut tree; None if any is missing.

    They are there if an earlier attempt or an interrupted run counted them.
    """
    kept = [given.store.find("census", PARTED.key(given, chunk)) for chunk in given.source.chunks]
    found = [artifact for artifact in kept if artifact]
    return found if len(found) == len(kept) else None


def _led(given: PartReading, chunk: Chunk) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.integer]], pa.RecordBatch]:
    """Return leaf, first word of the cell, sensitive codes and payload of each record of a chunk.

    The payload begins with the further words of the cell.
    """
    job, coding, source, tree = given.job, given.coding, given.source, given.tree
    coder, cutting = CellCoder.at(coding, coding.finest), cutting_of(job, coding)
    names = list(dict.fromkeys([*axis_names(job), *source.payload]))
    places = [names.index(name) for name in source.payload]
    batches, cells, leaves, codes = [], [], [], []
    try:
        for batch in read_published(job, source, chunk, names):
            mine = coder.codes(batch.columns[: len(coding.axes)])
            words = coder.packing.pack(mine)
            leaves.append(tree.leaf_of(ranks_of_columns(mine, cutting.axes)))
            cells.append(words[0])
            codes.append(mine[len(coding.hierarchies) :])
            columns = [*map(pa.array, words[1:]), *(batch.column(place) for place in places)]
            batches.append(pa.RecordBatch.from_arrays(columns, names=[str(position) for position in range(len(columns))]))
    except LookupError:
        raise SourceError.changed(chunk.name) from None
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    payload = table.to_batches()[0] if table.num_columns else pa.RecordBatch.from_arrays([], names=[])
    return np.concatenate(leaves), np.concatenate(cells), [np.concatenate(column) for column in zip(*codes, strict=True)], payload


def batches_of_runs(runs: Sequence[Artifact], censuses: Sequence[pa.Table], group: Group, most_records: int) -> list[list[Artifact]]:
    """Return neighbouring chunks' runs in batches of at most ``most_records`` records of a fragment.

    Args:
        runs: The records of every chunk, divided by leaf.
        censuses: Their leaf counts, in the same order.
        group: The leaves of the fragment.
        most_records: Records that are worked on at a time; a single chunk may hold more.
    """
    found: list[list[Artifact]] = [[]]
    held = 0
    for run, table in zip(runs, censuses, strict=True):
        mine = (table["column"].to_numpy() < 0) & np.isin(table["leaf"].to_numpy(), group)
        records = int(table["count"].to_numpy()[mine].sum())
        if held and held + records > most_records:
            found.append([])
            held = 0
        found[-1].append(run)
        held += records
    return found
