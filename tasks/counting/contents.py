"""Digests of a source's records and persons, chunk by chunk, for re-linking; never published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised
from core.units.digests import NOBODY, Digests, digests_of
from core.units.source_digests import Sketch, contents_of, row_digests
from schemas.job.job import Job
from tasks.counting.chunk_counts import ChunkReading, person_key
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, merge_on_cluster, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store


class Sketches(NamedTuple):
    """Distinct-count sketches of a source's records and persons.

    That of persons is empty where none are named.
    """

    records: Sketch
    persons: Sketch

    @classmethod
    def of_all(cls, sketches: Iterable[Sketches]) -> Sketches:
        """Return the merged sketches of several sources, in any order."""
        return cls(*(Sketch.of_all(parts) for parts in zip(*sketches, strict=True)))


_NONE = np.empty(0, np.uint64)
NO_CONTENTS = Sketches(Sketch.of(_NONE), Sketch.of(_NONE))


MOST_BY_COLUMN = 48
"""Digests of single untreated columns of a record, of 32 bits each: of 4 billion changes they overlook one."""


class DigestedColumns(NamedTuple):
    """The columns whose values are kept as digests of each record.

    Attributes:
        names: By which records are linked, in an order that does not depend on the job's.
        untreated: Columns that are published besides, and sensitive ones whose published values are not those of the source, or are
            spelled otherwise. One digest of all of them shows whose have changed, and one of each which of them.
        values: Sensitive columns, and those with means of groups, each with a digest of its own as it is published. l and t are counted
            from these, and whether two releases together show means of fewer people.
        shown: Of several tables, the columns of which digests are kept as they stand together in a person's rows; ``labels`` the
            quasi-identifiers among these rows.
    """

    names: tuple[str, ...]
    untreated: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def read(self) -> list[str]:
        """All digested columns, each once."""
        return list(dict.fromkeys([*self.linking, *self.values]))

    @property
    def linking(self) -> list[str]:
        """The columns of the two digests of several columns, the linking and the untreated ones, each once."""
        return list(dict.fromkeys([*self.names, *self.untreated]))

    @property
    def single_columns(self) -> list[tuple[str, ...]]:
        """The untreated columns with digests of their own beside that of all; the last may be several."""
        first = MOST_BY_COLUMN - 1
        each = [(name,) for name in self.untreated[:first]] + [self.untreated[first:]] * (len(self.untreated) > first)
        return each if len(each) > 1 else []

    @property
    def republished(self) -> set[str]:
        """The columns of ``values`` whose published values are not those of the source."""
        return {*self.values} & {*self.untreated}

    def arranged(self) -> DigestedColumns:
        """Return a copy with ``shown`` and ``labels`` set, as several tables publish these columns."""
        shown = {*self.untreated, *self.values}
        return self._replace(shown=tuple(sorted(shown)), labels=tuple(sorted({*self.names} - shown)))


def digested_by(job: Job, payload: Sequence[str]) -> DigestedColumns:
    """Return the columns whose digests a release keeps: linking, untreated and sensitive ones.

    Records are linked by what a release is about: the quasi-identifiers and the sensitive columns. Identifiers are renamed and other
    columns change from one extract to the next, so that the same person would not be found. What they are linked by are values of the
    source: what ``publish`` makes of them depends on the job and on all other records. How they are spelled does not matter, since jobs
    may normalise one source in different ways.

    Args:
        payload: The columns of the source that are published besides the quasi-identifiers.
    """
    sensitive = sorted(job.columns.sensitive)
    others = {*sensitive, *(one.name for one in job.columns.pseudonyms)}
    names = sorted({*(qid.name for qid in job.columns.quasi_identifiers), *sensitive})
    remade = job.columns.ways.keys() | job.columns.normalised.keys()
    untreated = {name for name in payload if name not in others} | {name for name in sensitive if name in remade}
    means = set() if job.is_of_several else untreated & {*job.columns.means}
    return DigestedColumns(tuple(names), tuple(sorted(untreated)), tuple(sorted({*sensitive, *means})))


Found = Mapping[str, list[NDArray[np.unsignedinteger[Any]]]]
"""Digests of records, batch by batch, each of shape (rows,)."""


@dataclass(frozen=True)
class ContentReading(ChunkReading):
    """Settings for digesting records: job, types, store and digested columns."""

    digested: DigestedColumns


def digest_contents(given: ContentReading, chunk: Chunk, path: Path, batches: Iterable[pa.RecordBatch] | None = None) -> int:
    """Write digests of a chunk's records, and of the job's person columns if any; return the record count.

    Args:
        batches: Its rows with these columns as they are published, where they are at hand and the job names no person.
    """
    table = record_digest_table(given.job, given.digested, chunk, batches)
    # Of single columns there are few values; most other digests are all different.
    packed = [name for name in table.column_names if "_" in name]
    pq.write_table(table, path, compression="none", use_dictionary=packed, write_statistics=False)
    return len(table)


CONTENTS = FileStep(
    "contents",
    make=digest_contents,
    reads=lambda _given, chunk: chunk.key,
    settings=lambda given: [[list(part) for part in given.digested], person_key(given.job, given.columns)],
)
"""The digests by which the records of a chunk are re-linked."""


def contents_of_chunks(run: Run, source: ChunkedSource, columns: DigestedColumns) -> list[Artifact]:
    """Return each chunk's artefact of record and person digests in some columns; make missing ones."""
    return run_for_items(run, CONTENTS, ContentReading(run.job, source.columns, run.store, columns), source.chunks)


def record_digest_table(job: Job, columns: DigestedColumns, chunk: Chunk, batches: Iterable[pa.RecordBatch] | None) -> pa.Table:
    """Return a table of each record's digests: ``content``, ``person``, ``untreated``, ``value_0`` ….

    All are uint64, in the order of the records. ``person`` is there where the job names persons, ``untreated``
    where there are such columns, of the source, and ``published`` where the job publishes other values of these. Of
    several there are ``untreated_0`` … and ``published_0`` … too, one for each, uint32. A null value has the digest 0.

    Args:
        batches: As for ``digest_contents``.
    """
    person = job.columns.person
    republished = not job.columns.ways.keys().isdisjoint(columns.linking)
    wanted = list(dict.fromkeys([*(columns.untreated if republished else columns.linking), *columns.values, *person]))
    found: Found = {name: [np.empty(0, dtype)] for name, dtype in record_digest_columns(job, columns).items()}
    for batch in read_chunk(chunk, wanted, plain=person) if batches is None or republished else batches:
        if not republished:
            _append_together(batch, columns, found)
        if "published" in found:
            _append_each(batch.select(columns.untreated).columns, batch.num_rows, columns, "published", found)
        if person:
            found["person"].append(digests_of([batch.column(name) for name in person], batch.num_rows))
        for number, name in enumerate(columns.values):
            found[f"value_{number}"].append(digests_of([batch.column(name)], batch.num_rows))
    for batch in read_chunk(chunk.with_source_values(), columns.linking) if republished else ():
        _append_together(batch, columns, found)
    return pa.table({name: np.concatenate(parts) for name, parts in found.items()})


def _append_together(batch: pa.RecordBatch, columns: DigestedColumns, found: Found) -> None:
    """Append the digests of the columns that link records, and of those that show a change."""
    found["content"].append(contents_of(_folded(batch, columns.names, columns.names), batch.num_rows))
    if columns.untreated:
        _append_each(_folded(batch, columns.untreated, columns.names), batch.num_rows, columns, "untreated", found)


def _append_each(values: Sequence[pa.Array], rows: int, columns: DigestedColumns, name: str, found: Found) -> None:
    """Append the digest of the values of all untreated columns, and the high bits of those of single ones."""
    each = {column: digests_of([array], rows) for column, array in zip(columns.untreated, values, strict=True)}
    found[name].append(row_digests(list(each.values()), rows))
    for number, names in enumerate(columns.single_columns):
        found[f"{name}_{number}"].append(high_bits(row_digests([each[one] for one in names], rows)))


def high_bits(digests: Digests) -> NDArray[np.uint32]:
    """Return the high 32 bits of digests, shape (n,)."""
    return (digests >> np.uint64(32)).astype(np.uint32)


def record_digest_columns(job: Job, columns: DigestedColumns) -> dict[str, type[np.uint64 | np.uint32]]:
    """Return name and type of each column of a chunk's table of digests, such as ``content``."""
    persons, untreated = ["person"] * bool(job.columns.person), ["untreated"] * bool(columns.untreated)
    untreated += ["published"] * (not job.columns.ways.keys().isdisjoint(columns.untreated))
    values = (f"value_{number}" for number in range(len(columns.values)))
    each = (f"{name}_{number}" for name in untreated for number in range(len(columns.single_columns)))
    return dict.fromkeys(["content", *persons, *untreated, *values], np.uint64) | dict.fromkeys(each, np.uint32)


def _folded(batch: pa.RecordBatch, names: Sequence[str], folded: Sequence[str]) -> list[pa.Array]:
    """Return some columns of records to digest; the spelling of linking columns does not count."""
    return [normalised(column, ALL) if name in folded else column for name, column in zip(names, batch.select(names).columns, strict=True)]


@dataclass(frozen=True)
class SketchFolder:
    """The store from which steps that merge sketches read record digests."""

    store: Store


def _sketch(given: SketchFolder, parts: Sequence[Artifact], path: Path) -> int:
    """Write the merged sketches of some chunks' records and persons.

    The parts are digests of chunks, or sketches of them.
    """
    made = NO_CONTENTS
    for part in parts:
        made = Sketches.of_all([made, read_sketches(part, given.store, made)])
    sizes = [len(one.digests) for one in made]
    table = pa.table({name: np.concatenate([getattr(one, name) for one in made]) for name in ("digests", "counts")})
    said = {"sizes": json.dumps(sizes), "whole": json.dumps([one.is_complete for one in made])}
    pq.write_table(table.replace_schema_metadata(said), path, compression="none", use_dictionary=False, write_statistics=False)
    return len(table)


SKETCHED = FileStep(BUNDLES, make=_sketch, reads=lambda _given, parts: [part.sha256 for part in parts], phase="sketch")
"""Sketches of the records of several chunks."""


def sketch_contents(run: Run, digests: Sequence[Artifact]) -> Sequence[Artifact]:
    """Return the artefacts to read sketches from: merged sketches on a cluster, else record digests."""
    return merge_on_cluster(run, SKETCHED, SketchFolder(run.store), digests, always_merged=CONTENTS.name)


def read_sketches(part: Artifact, store: Store, beside: Sketches) -> Sketches:
    """Return sketches of an artefact's records and persons, read from it or computed from its digests.

    Args:
        beside: Sketches to merge with; digests that cannot be among the smallest of both may be left out.
    """
    table = pq.read_table(store.path(part))
    if part.step == CONTENTS.name:
        return sketches_of(table, beside)
    size, whole = (json.loads(table.schema.metadata[name]) for name in (b"sizes", b"whole"))
    digests, counts = (table[name].to_numpy() for name in ("digests", "counts"))
    cut = size[0]
    return Sketches(Sketch(digests[:cut], counts[:cut], whole[0]), Sketch(digests[cut:], counts[cut:], whole[1]))


def sketches_of(table: pa.Table, beside: Sketches = NO_CONTENTS) -> Sketches:
    """Return the sketches of records and persons in a table of ``content`` and ``person`` digests.

    Args:
        table: Has a row for each record.
        beside: As for ``read_sketches``.
    """
    persons = table["person"].to_numpy() if "person" in table.column_names else _NONE
    return Sketches(Sketch.of(table["content"].to_numpy(), beside.records), Sketch.of(persons[persons != NOBODY], beside.persons))
