"""A worker of distributed Mondrian: it reads one fragment, anonymises it, and writes files and losses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import ipc

from core.columns.coding import PackedWords, positions_among, single_word
from core.histograms.cells import packing_of
from core.histograms.histogram import count_cells, merge_parts
from core.mondrian.fragments import Group
from core.mondrian.recoding import PublishedClasses
from core.mondrian.replay import RowTable
from core.recoding.recoding import Recoding
from core.recoding.release_order import canonical_record_order, first_files, record_hashes
from core.units.digests import Digests
from core.units.pairs import Pairs
from core.units.persons import RowPersons, unit_of_records
from schemas.errors.base import PrivacyError
from schemas.job.job import Job
from schemas.job.record_methods import MondrianMethod
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, DomainTable
from tasks.counting.contents import digested_by, record_digest_columns
from tasks.counting.source_sizes import Sizes, sizes_of_words
from tasks.lattice.promises import class_settings
from tasks.mondrian.cells import FragmentLosses, bytes_of_people, bytes_of_rows, cut_rows, cutting_of
from tasks.records.recodings import published_fragment
from tasks.source.chunks import ChunkedSource
from tasks.store.keys import Key
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_undeclared_table
from tasks.writing.people import people_table, write_fragment_members
from tasks.writing.rewriting import additional_columns, write_class_records, write_output_file


class FragmentArtifacts(FrozenModel):
    """The artefacts of an anonymised fragment: losses (JSON), release files, and classes of its records.

    Where persons are named, it also has the persons of each class.
    """

    losses: Artifact
    files: list[Artifact]
    members: Artifact
    people: Artifact | None = None
    classes: Artifact | None = None


OF_FRAGMENT = 32
"""Bits of a class's number within its fragment, where persons are kept; the bits above are the fragment's first leaf."""

MOSTLY = 0.5
"""The share of different combinations among records above which these are cut one by one."""


class FragmentRecords(NamedTuple):
    """Records of a fragment: packed cells, payload, and digests as in ``record_digest_table``.

    The digests of persons are None where none is named.
    """

    packed_codes: PackedWords
    payload: pa.RecordBatch
    other_columns: pa.Table

    @property
    def digests(self) -> Digests | None:
        """Return the digest of each record's person; None where the job has no person column."""
        persons: Digests | None = self.other_columns["person"].to_numpy() if "person" in self.other_columns.column_names else None
        return persons


Part = tuple[NDArray[np.int32], FragmentRecords]


@dataclass(frozen=True)
class FragmentReading(DomainTable):
    """The inputs of anonymising fragments: domain table and source."""

    source: ChunkedSource


class FragmentShare(NamedTuple):
    """The leaves of a fragment, and the runs with its records.

    Attributes:
        group: The leaves that the fragment is made of.
        batches_of_runs: The records of every chunk, divided by leaf; of several batches one is in memory at a time.
    """

    group: Group
    batches_of_runs: Sequence[Sequence[Artifact]]


def _anonymise(given: FragmentReading, fragment: FragmentShare) -> FragmentArtifacts:
    """Anonymise one fragment and write its files."""
    job, coding, source, store, (group, batches_of_runs) = given.job, given.coding, given.source, given.store, fragment
    key = FRAGMENT.key(given, fragment)
    if found := _found(job, key, store):
        return found
    published, before, parts = _classified(job, coding, source, group, [[store.path(run) for run in lot] for lot in batches_of_runs])
    first, spread = first_files(published.sizes, source.file_rows(job))
    runs, people, members = [], [], []
    apart = partial(write_class_records, job=job, source=source, labels=published.labels, sizes=published.sizes)
    for number, (classes, lot) in enumerate(parts):
        write = partial(apart, classes=classes, payload=lot.payload)
        runs.append(store.path(store.make("runs", FRAGMENT.keys.key(key, number), ".arrow", write)))
        members.append((classes, lot.other_columns))
        if lot.digests is not None:
            beside = additional_columns(job, source, published.labels, classes, lot.payload)
            people.append(people_table(classes, lot.digests, _values(coding, lot.packed_codes), beside))
    files = [_written(key, number, published.labels, source, runs, store) for number in range(int((first + spread).max(initial=0)))]
    told = FragmentLosses(
        losses=dict(published.losses), penalties=dict(published.penalties), files=len(files), figures=dict(published.figures), before=before
    ).model_dump_json()
    kept = _kept_people(key, group, published.labels, people, store) if people else {}
    kept["members"] = _kept_members(key, group, members, store)
    # Last of all: where it is, the rest is.
    return FragmentArtifacts(losses=store.make("losses", key, ".json", lambda path: path.write_text(told)), files=files, **kept)


FRAGMENT = FilesStep(
    "fragment",
    make=_anonymise,
    # Chunks in another order hold the same records.
    reads=lambda _given, fragment: [fragment.group, sorted(run.sha256 for lot in fragment.batches_of_runs for run in lot)],
    # The version stands in the files.
    settings=lambda given: [
        pa.cpp_version,
        given.source.payload_key,
        given.source.file_rows(given.job),
        *class_settings(given.job, given.coding),
    ],
    phase="fragments",
)
"""A fragment that is anonymised alone, with its files."""


def _values(coding: Coding, words: PackedWords) -> list[pa.Array]:
    """Return the values of records in columns with a privacy model, by their cells: arrays of shape (n,)."""
    codes, found = coding.packing.unpack(words), []
    for column, domain in enumerate(coding.sensitive, start=len(coding.domains)):
        mine = codes[:, column].astype(np.int32)
        found.append(pa.DictionaryArray.from_arrays(pa.array(mine, mask=mine >= len(domain.values)), domain.values))
    return found


def _kept_people(key: Key, group: Group, labels: pa.Table, people: Sequence[pa.Table], store: Store) -> dict[str, Artifact]:
    """Write the persons and labels of a fragment's classes, with class numbers unique over all fragments."""
    first = group[0] << OF_FRAGMENT
    numbers = {"class": np.arange(first, first + len(labels))}
    listed = pa.table(numbers | {f"label_{number}": column for number, column in enumerate(labels.columns)})
    table = pa.concat_tables(people)
    table = table.set_column(0, "class", pc.add(table["class"], first))
    return {
        "people": store.make("people", key, ".parquet", partial(write_undeclared_table, table)),
        "classes": store.make("classes", key, ".parquet", partial(write_undeclared_table, listed)),
    }


def _kept_members(key: Key, group: Group, members: Sequence[tuple[NDArray[np.int32], pa.Table]], store: Store) -> Artifact:
    classes, kept = np.concatenate([one for one, _ in members]), pa.concat_tables([one for _, one in members])
    write = partial(write_fragment_members, first=group[0] << OF_FRAGMENT, classes=classes, digests=kept)
    return store.make("members", key, ".parquet", write)


def _classified(
    job: Job, coding: Coding, source: ChunkedSource, group: Group, batches_of_runs: Sequence[Sequence[Path]]
) -> tuple[PublishedClasses, Sizes, Iterable[Part]]:
    """Make and label the classes of a fragment.

    Returns:
        The labelled classes, the class sizes of the original records, and batch by batch the class of each record.
    """
    gather = partial(_gathered, coding, group, record_digest_columns(job, digested_by(job, source.payload)))
    if len(batches_of_runs) > 1:
        return _classified_cells(job, coding, gather, batches_of_runs)
    lot = gather(batches_of_runs[0])
    before = sizes_of_words(coding, lot.packed_codes, unit_of_records(lot.digests))
    published, classes = _published(job, coding, lot, before)
    return published, before, [(classes, lot)]


def _found(job: Job, key: Key, store: Store) -> FragmentArtifacts | None:
    losses = store.find("losses", key)
    kept = {step: store.find(step, key) for step in ("members", *(("people", "classes") if job.columns.person else ()))}
    if losses is None or None in kept.values():
        return None
    files = [store.find("files", FRAGMENT.keys.key(key, number)) for number in range(store.read_model(losses, FragmentLosses).files)]
    return None if None in files else FragmentArtifacts.model_validate({"losses": losses, "files": files} | kept)


def _written(key: Key, number: int, labels: pa.Table, source: ChunkedSource, runs: Sequence[Path], store: Store) -> Artifact:
    return store.make(
        "files", FRAGMENT.keys.key(key, number), ".parquet", lambda path: write_output_file(path, labels, source, runs, number)
    )


def _gathered(coding: Coding, group: Group, digested: Collection[str], runs: Sequence[Path]) -> FragmentRecords:
    """Read a fragment's records from some runs; the last columns are digests with the given names."""
    batches = []
    for path in runs:
        with pa.memory_map(str(path)) as mapped:
            run = ipc.open_file(mapped)
            batches += [run.get_batch(leaf) for leaf in group if leaf < run.num_record_batches]
            schema = run.schema
    table = pa.Table.from_batches(batches, schema).unify_dictionaries().combine_chunks()
    width, end = len(packing_of(coding.finest, coding.axes).words), table.num_columns - len(digested)
    words = tuple(table.column(position).to_numpy() for position in range(width))
    kept = table.select(list(range(end, table.num_columns))).rename_columns(list(digested))
    others = table.select(list(range(width, end)))
    if not others.num_columns:
        return FragmentRecords(words, pa.RecordBatch.from_arrays([], names=[]), kept)
    payload = others.to_batches()[0] if len(others) else pa.RecordBatch.from_pylist([], schema=others.schema)
    return FragmentRecords(words, payload, kept)


def _published(job: Job, coding: Coding, lot: FragmentRecords, before: Sizes) -> tuple[PublishedClasses, NDArray[np.int32]]:
    """Make and label the classes of a batch of records; return each record's class too, shape (records,).

    Args:
        job: Says how.
        coding: Of the run.
        lot: The records.
        before: The number of their QID combinations, by size.
    """
    packing = packing_of(coding.finest, coding.axes)
    if not isinstance(job.method, MondrianMethod):
        return published_fragment(job, coding, packing.unpack(lot.packed_codes), lot.payload, lot.digests)
    cutting = cutting_of(job, coding)
    if cutting.mode == "relaxed":
        # Records of one cell may come into two classes: which of them, their other values decide.
        codes = packing.unpack(lot.packed_codes)
        order = canonical_record_order(list(codes.T), packing.sizes, record_hashes(lot.payload.columns, len(codes)), lot.digests)
        rows, weights, cell = codes[order], np.ones(len(codes), np.int64), np.empty(len(codes), np.int64)
        cell[order] = np.arange(len(codes))
    elif lot.digests is None and sum(before.classes) > MOSTLY * len(lot.other_columns):
        # Cells would be hardly fewer than the records, and finding them costs more than cutting some combinations twice: equal records
        # stay together in any case.
        rows, weights, cell = packing.unpack(lot.packed_codes), np.ones(len(lot.other_columns), np.int64), np.arange(len(lot.other_columns))
    else:
        _, firsts, cell, weights = np.unique(single_word(lot.packed_codes), return_index=True, return_inverse=True, return_counts=True)
        rows = packing.unpack(tuple(word[firsts] for word in lot.packed_codes))
    unit = None if lot.digests is None else RowPersons.of_pairs([Pairs.of(lot.digests, cell)], len(rows))
    made, published = cut_rows(job, cutting, RowTable.of(rows, weights, unit))
    classes = published.numbers.astype(np.int32)[made.of_rows()]
    return published, classes[cell]


def _classified_cells(
    job: Job, coding: Coding, gather: Callable[[Sequence[Path]], FragmentRecords], batches_of_runs: Sequence[Sequence[Path]]
) -> tuple[PublishedClasses, Sizes, Iterable[Part]]:
    """Make and label the classes of a fragment by its cells, where its records do not fit the memory."""
    packing = packing_of(coding.finest, coding.axes)

    def gathered() -> Iterator[FragmentRecords]:
        return map(gather, batches_of_runs)

    words, counts = merge_parts((count_cells(lot.packed_codes, packing.product) for lot in gathered()), packing.product)
    pairs = [
        Pairs.of(lot.digests, positions_among(words, lot.packed_codes, packing.product)) for lot in gathered() if lot.digests is not None
    ]
    needed = bytes_of_rows(coding, len(counts)) + bytes_of_people(job, sum(len(part.persons) for part in pairs))
    if needed > job.memory:
        raise PrivacyError.fragment_too_large(job.method.name, len(counts), needed)
    rows = RowTable.of(packing.unpack(words), counts, RowPersons.of_pairs(pairs, len(counts)) if job.columns.person else None)
    made, published = cut_rows(job, cutting_of(job, coding), rows)
    classes = published.numbers[made.of_rows()].astype(np.int32)
    assigner = Recoding(coding.finest, packing, words, classes, published.labels, published.sizes).assigner
    before = sizes_of_words(coding, words, rows.unit)
    return published, before, ((assigner.assign(lot.packed_codes), lot) for lot in gathered())
