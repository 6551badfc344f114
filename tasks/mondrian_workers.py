"""What a worker of distributed Mondrian does: it reads its fragment, anonymises it alone, writes it, and tells its losses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict

from core.coding import Words, single_word
from core.mondrian_fragments import Group
from core.mondrian_recoding import Published, publish
from core.ordering import first_files
from core.records import canonical, marks
from core.rollups import packing_of
from schemas.job import Job
from schemas.mondrian import MondrianMethod
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import Coding, load_coding
from tasks.mondrian import cutting_of, recoding_key
from tasks.record_fragments import published_fragment
from tasks.releases import set_apart, write_part
from tasks.risk import Sizes, sizes_of_words
from tasks.sources import Source

VERSION = 2


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


def fragment_key(job: Job, coding: Coding, source: Source, group: Group, runs: Sequence[Artifact]) -> str:
    """Returns the fingerprint of all that an anonymised fragment depends on."""
    return key_of(VERSION, recoding_key(job, coding), group, sorted(run.sha256 for run in runs), source.payload_key, job.rows_per_file)


def anonymise(job: Job, domain: Artifact, source: Source, group: Group, runs: Sequence[Artifact], store: Store) -> FragmentArtifacts:
    """Anonymises one fragment and writes its files.

    Args:
        job: The job.
        domain: The domain table.
        source: Says what is published.
        group: The leaves that the fragment is made of.
        runs: The records of every chunk, apart by leaf.
        store: Gets what is made.
    """
    coding = load_coding(job, domain, store)
    key = fragment_key(job, coding, source, group, runs)
    if found := _found(key, store):
        return found
    words, payload = _gathered(coding, source, group, [store.path(run) for run in runs])
    before = sizes_of_words(coding, words)
    published, classes = _published(job, coding, words, payload)
    first, spread = first_files(published.sizes, job.rows_per_file)
    run = store.make("runs", key, ".arrow", lambda path: set_apart(path, job, source, published.labels, published.sizes, classes, payload))
    files = [
        _written(key, number, published.labels, source, store.path(run), store) for number in range(int((first + spread).max(initial=0)))
    ]
    told = FragmentLosses(
        losses=dict(published.losses),
        penalties=dict(published.penalties),
        files=len(files),
        figures=dict(published.figures),
        before=before,
    ).model_dump_json()
    return FragmentArtifacts(losses=store.make("losses", key, ".json", lambda path: path.write_text(told)), files=files)


def _found(key: str, store: Store) -> FragmentArtifacts | None:
    losses = store.find("losses", key)
    if losses is None:
        return None
    files = [store.find("files", key_of(key, number)) for number in range(read_losses(losses, store).files)]
    return None if None in files else FragmentArtifacts.model_validate({"losses": losses, "files": files})


def _written(key: str, number: int, labels: pa.Table, source: Source, run: Path, store: Store) -> Artifact:
    return store.make("files", key_of(key, number), ".parquet", lambda path: write_part(path, labels, source, [run], number))


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
