"""What a worker of distributed Mondrian does: it reads its fragment, anonymises it alone, writes it, and tells its losses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict

from core.columns.coding import Words, single_word
from core.columns.records import canonical, marks
from core.columns.release_order import first_files
from core.histograms.histogram import count_cells, merge_parts
from core.histograms.rollups import packing_of
from core.mondrian.fragments import Group
from core.mondrian.recoding import Published, publish
from core.recoding.recoding import Recoding
from schemas.errors.base import PrivacyError
from schemas.job.job import Job
from schemas.job.mondrian import MondrianMethod
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_sizes import Sizes, sizes_of_words
from tasks.lattice.promises import asked
from tasks.mondrian.cells import bytes_of_rows, cutting_of
from tasks.records.fragments import published_fragment
from tasks.source.chunks import Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.writing.classes import set_apart, write_part

STEP = Step("fragment", __name__)
Part = tuple[NDArray[np.int32], pa.RecordBatch]


class FragmentLosses(BaseModel):
    """Sums over the records of a fragment; they add up (papers/distributed-mondrian.txt, section 6).

    Attributes:
        losses: By name.
        penalties: NCP by QID.
        files: How many files the fragment fills; some may be without a record.
        figures: What the algorithm counted, by name.
        before: Class sizes of its records as they are.
    """

    model_config = ConfigDict(frozen=True)

    losses: dict[str, int | float]
    penalties: dict[str, float]
    files: int
    figures: dict[str, int] = {}
    before: Sizes = Sizes()


class FragmentArtifacts(BaseModel):
    """What a worker leaves: the losses (JSON) and the files of the release."""

    model_config = ConfigDict(frozen=True)

    losses: Artifact
    files: list[Artifact]


def fragment_key(job: Job, coding: Coding, source: Source, group: Group, lots: Sequence[Sequence[Artifact]]) -> Key:
    """Returns the key of an anonymised fragment.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
    """
    # Chunks in another order hold the same records.
    runs = sorted(run.sha256 for lot in lots for run in lot)
    return STEP.key(group, runs, source.payload_key, job.rows_per_file, *asked(job, coding))


def anonymise(
    job: Job, domain: Artifact, source: Source, group: Group, lots: Sequence[Sequence[Artifact]], store: Store
) -> FragmentArtifacts:
    """Anonymises one fragment and writes its files.

    Args:
        job: The job.
        domain: The domain table.
        source: Says what is published.
        group: The leaves that the fragment is made of.
        lots: The records of every chunk, apart by leaf; of several lots one is held at a time.
        store: Gets what is made.

    Raises:
        PrivacyError: the memory cannot hold the different combinations of the fragment.
        HierarchyError: the hierarchy's file cannot be read.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
    """
    coding = load_coding(job, domain, store)
    key = fragment_key(job, coding, source, group, lots)
    if found := _found(key, store):
        return found
    published, before, parts = _classified(job, coding, source, group, [[store.path(run) for run in lot] for lot in lots])
    first, spread = first_files(published.sizes, job.rows_per_file)
    runs = []
    for number, (classes, payload) in enumerate(parts):
        write = partial(set_apart, job=job, source=source, labels=published.labels, sizes=published.sizes, classes=classes, payload=payload)
        runs.append(store.path(store.make("runs", STEP.key(key, number), ".arrow", write)))
    files = [_written(key, number, published.labels, source, runs, store) for number in range(int((first + spread).max(initial=0)))]
    told = FragmentLosses(
        losses=dict(published.losses),
        penalties=dict(published.penalties),
        files=len(files),
        figures=dict(published.figures),
        before=before,
    ).model_dump_json()
    return FragmentArtifacts(losses=store.make("losses", key, ".json", lambda path: path.write_text(told)), files=files)


def _classified(
    job: Job, coding: Coding, source: Source, group: Group, lots: Sequence[Sequence[Path]]
) -> tuple[Published, Sizes, Iterable[Part]]:
    """Makes classes of a fragment and labels them.

    Returns:
        What is published, the class sizes of the records as they are, and lot by lot the class of each record and its payload.
    """
    if len(lots) > 1:
        return _classified_cells(job, coding, source, group, lots)
    words, payload = _gathered(coding, source, group, lots[0])
    before = sizes_of_words(coding, words)
    published, classes = _published(job, coding, words, payload)
    return published, before, [(classes, payload)]


def _found(key: Key, store: Store) -> FragmentArtifacts | None:
    losses = store.find("losses", key)
    if losses is None:
        return None
    files = [store.find("files", STEP.key(key, number)) for number in range(read_losses(losses, store).files)]
    return None if None in files else FragmentArtifacts.model_validate({"losses": losses, "files": files})


def _written(key: Key, number: int, labels: pa.Table, source: Source, runs: Sequence[Path], store: Store) -> Artifact:
    return store.make("files", STEP.key(key, number), ".parquet", lambda path: write_part(path, labels, source, runs, number))


def read_losses(artifact: Artifact, store: Store) -> FragmentLosses:
    """Reads what a fragment cost."""
    return FragmentLosses.model_validate_json(store.path(artifact).read_bytes())


def _gathered(coding: Coding, source: Source, group: Group, runs: Sequence[Path]) -> tuple[Words, pa.RecordBatch]:
    """Returns the cells and the payload of a fragment's records."""
    batches = []
    for path in runs:
        with pa.memory_map(str(path)) as mapped:
            run = ipc.open_file(mapped)
            batches += [run.get_batch(leaf) for leaf in group if leaf < run.num_record_batches]
            schema = run.schema
    table = pa.Table.from_batches(batches, schema).unify_dictionaries().combine_chunks()
    width = len(packing_of(coding.finest, coding.axes).words)
    words = tuple(table.column(position).to_numpy() for position in range(width))
    others = table.select(list(range(width, table.num_columns)))
    if not others.num_columns:
        return words, pa.RecordBatch.from_arrays([], names=[])
    return words, others.to_batches()[0] if len(others) else pa.RecordBatch.from_pylist([], schema=others.schema)


def _published(job: Job, coding: Coding, words: Words, payload: pa.RecordBatch) -> tuple[Published, NDArray[np.int32]]:
    """Makes classes of a fragment and labels them; returns the class of each record as well, shape (records,)."""
    if not isinstance(job.method, MondrianMethod):
        return published_fragment(job, coding, packing_of(coding.finest, coding.axes).unpack(words), payload)
    cutting, packing = cutting_of(job, coding), packing_of(coding.finest, coding.axes)
    if cutting.mode == "relaxed":
        # Records of one cell may come into two classes: which of them, their other values decide.
        codes = packing.unpack(words)
        order = canonical(list(codes.T), packing.sizes, marks(payload.columns, len(codes)))
        rows, weights, cell = codes[order], np.ones(len(codes), np.int64), np.empty(len(codes), np.int64)
        cell[order] = np.arange(len(codes))
    else:
        _, firsts, cell, weights = np.unique(single_word(words), return_index=True, return_inverse=True, return_counts=True)
        rows = packing.unpack(tuple(word[firsts] for word in words))
    made = cutting.cut(rows, weights)
    published = publish(cutting, rows, weights, made)
    return published, published.numbers[made.of_rows()][cell].astype(np.int32)


def _classified_cells(
    job: Job, coding: Coding, source: Source, group: Group, lots: Sequence[Sequence[Path]]
) -> tuple[Published, Sizes, Iterable[Part]]:
    """Does the same on the cells of a fragment whose records do not fit the memory.

    Raises:
        PrivacyError: the cells do not fit either.
    """
    cutting, packing = cutting_of(job, coding), packing_of(coding.finest, coding.axes)
    words, counts = merge_parts((count_cells(_gathered(coding, source, group, lot)[0], packing.product) for lot in lots), packing.product)
    needed = bytes_of_rows(coding, len(counts))
    if needed > job.memory:
        raise PrivacyError.fragment_too_large(job.method.name, len(counts), needed)
    rows = packing.unpack(words)
    made = cutting.cut(rows, counts)
    published = publish(cutting, rows, counts, made)
    classes = published.numbers[made.of_rows()].astype(np.int32)
    assigner = Recoding(coding.finest, packing, words, classes, published.labels, published.sizes).assigner
    parts = ((assigner.assign(mine), payload) for mine, payload in (_gathered(coding, source, group, lot) for lot in lots))
    return published, sizes_of_words(coding, words, counts), parts
