"""Persons of a source by cell and by combination of QID values, from person–cell pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, single_word
from core.columns.domains import Node
from core.histograms import projections
from core.histograms.cells import packing_of, positions_of_finer_cells
from core.histograms.histogram import Histogram
from core.units.pairs import ALONE, Pairs, count_different, merge_pairs, positions_of_repeated_keys
from core.units.persons import CellPersons, share_of
from tasks.counting.chunk_counts import read_pairs
from tasks.counting.coding import Coding, bundled_cells, cells_in_source_coding
from tasks.counting.histograms import fingerprints
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_array

STEP = StepCode("person_cells", __name__)
BYTES_PER_PAIR, BYTES_PER_VISIT = 64, 4
PART = 4
"""One part in so many of the memory is for persons."""


Numbers = Callable[[], NDArray[np.int32]]
"""What returns numbers, from memory or from the store."""


class PersonsOfCells(NamedTuple):
    """The persons of a root's cells, their number, and the most records of one person."""

    of_cells: CellPersons
    number: int
    most_records: int


@dataclass(frozen=True, eq=False)
class PersonsOfSource:
    """The person–cell pairs of a source, from which incidences at any root are made.

    Attributes:
        coding: Of the run.
        cells: The histograms of the chunks.
        pairs: Their pairs, in the same order.
        store: Has them, and gets what does not fit into memory.
        memory: Bytes of the job.
        by_node: The persons of the cells of the last root.
    """

    coding: Coding
    cells: Sequence[Artifact]
    pairs: Sequence[Artifact]
    store: Store
    memory: int
    by_node: dict[Node, PersonsOfCells] = field(default_factory=dict)

    def key(self, cells: CellPositions, *parts: object) -> Key:
        """Return the key of an artefact made from the pairs for some cells."""
        return STEP.key(self.coding.key, cells.named, fingerprints(self.cells), fingerprints(self.pairs), *parts)


@dataclass(frozen=True, eq=False)
class CellPositions:
    """Target cells into which the cells of all chunks fall.

    Attributes:
        cells: How many there are.
        of: Yields where the cells of each chunk fall, shape (cells of the chunk,), int32, given their histograms at the finest node.
        named: The name of these cells in keys, as JSON content.
    """

    cells: int
    of: Callable[[Sequence[Artifact]], Iterable[NDArray[np.int32]]]
    named: object


def persons_of(source_persons: PersonsOfSource, root: Histogram) -> PersonsOfCells:
    """Return which persons have records in each cell of a root histogram; cached for the last root."""
    if root.node not in source_persons.by_node:
        # Those to the last root make room first.
        source_persons.by_node.clear()
        source_persons.by_node[root.node] = persons_among(source_persons, _cells_of(source_persons, root))
    return source_persons.by_node[root.node]


def _cells_of(known: PersonsOfSource, root: Histogram) -> CellPositions:
    coding = known.coding

    def places(parts: Sequence[Artifact]) -> Iterator[NDArray[np.int32]]:
        if len(root.words) > 1:
            for part in parts:
                codes = coding.packing.unpack(cells_in_source_coding(coding, part, known.store)[0])
                yield positions_of_finer_cells(root, coding.finest, codes, coding.axes).astype(np.int32)
            return
        among = projections.ProjectedCells(coding.finest, root, coding.axes)
        for bundles, codes, _ in bundled_cells(coding, parts, known.store):
            yield among.of(bundles, codes)

    return CellPositions(root.cells, places, root.node)


def persons_among(source_persons: PersonsOfSource, wanted: CellPositions) -> PersonsOfCells:
    """Return the persons of each of the wanted cells, counted one share of the persons at a time."""
    shares, holds = shares_of(source_persons.pairs, source_persons.memory)
    places = list(_places(source_persons, wanted, kept=shares > 1))

    def keep(number: int, person_cells: NDArray[np.int32]) -> Numbers:
        return (
            reader_of_array(person_cells)
            if holds
            else reader_of_artifact(source_persons.store, source_persons.key(wanted, "person_cells", number, shares), person_cells)
        )

    return persons_in_shares(source_persons.pairs, places, wanted.cells, shares, source_persons.store, keep)


def shares_of(pairs: Sequence[Artifact], memory: int) -> tuple[int, bool]:
    """Return in how many shares of persons to count within memory, and whether all person–cell pairs fit."""
    room, size = memory // PART, sum(part.rows for part in pairs)
    return max(-(-size * BYTES_PER_PAIR // room), 1), size * BYTES_PER_VISIT <= room


def persons_in_shares(
    pairs: Sequence[Artifact],
    cell_positions: Sequence[Numbers] | None,
    cell_count: int,
    share_count: int,
    store: Store,
    keep: Callable[[int, NDArray[np.int32]], Numbers],
) -> PersonsOfCells:
    """Return the persons of each cell, from pairs that are read one share of the persons at a time.

    Args:
        cell_positions: By chunk, what returns the cell that each of its cells falls into; None where chunks have their cells in common.
        keep: Keeps the incidences of a share, by its number, and returns a function that returns them.
    """
    per_cell, person_cells, persons, most = np.zeros(cell_count, np.int64), list[Numbers](), 0, 0
    for number in range(share_count):
        made = share_of(_pairs_of(pairs, cell_positions, store, number, share_count), cell_count)
        per_cell += made.per_cell
        persons, most = persons + made.size, max(most, made.most_records)
        person_cells.append(keep(number, made.person_cells))
    return PersonsOfCells(CellPersons(per_cell, _Shares(person_cells)), persons, most)


def pairs_by_share(source_persons: PersonsOfSource, root: Histogram) -> list[Callable[[], Pairs]]:
    """Return a function for each share of the persons that reads its person–cell pairs at a root."""
    shares, _ = shares_of(source_persons.pairs, source_persons.memory)
    places = list(_places(source_persons, _cells_of(source_persons, root), kept=shares > 1))

    def read(number: int) -> Pairs:
        return merge_pairs(_pairs_of(source_persons.pairs, places, source_persons.store, number, shares))

    if shares > 1:
        return [partial(read, number) for number in range(shares)]
    made = read(0)
    return [lambda: made]


def pairs_at(source_persons: PersonsOfSource, root: Histogram) -> list[Pairs]:
    """Return, per chunk, its person–cell pairs at a root's cells, all in memory at once."""
    return _pairs_of(
        source_persons.pairs, list(_places(source_persons, _cells_of(source_persons, root), kept=False)), source_persons.store, 0, 1
    )


def _pairs_of(pairs: Sequence[Artifact], places: Sequence[Numbers] | None, store: Store, number: int, shares: int) -> list[Pairs]:
    found = [read_pairs(part, store, number, shares) for part in pairs]
    return found if places is None else [part.moved(place()) for part, place in zip(found, places, strict=True)]


def _places(known: PersonsOfSource, wanted: CellPositions, *, kept: bool) -> Iterator[Numbers]:
    """Yield a function for each chunk that returns the target cell of each of the chunk's cells."""
    for part, made in zip(known.cells, wanted.of(known.cells), strict=True):
        yield reader_of_artifact(known.store, known.key(wanted, "places", part.key), made) if kept else reader_of_array(made)


class _Shares:
    """Shares of person–cell incidences, each read in turn."""

    def __init__(self, shares: Sequence[Numbers]) -> None:
        self._shares = shares

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (share() for share in self._shares)


def reader_of_array(numbers: NDArray[np.int32]) -> Numbers:
    """Return a function that returns this array."""
    return lambda: numbers


def reader_of_artifact(store: Store, key: Key, numbers: NDArray[np.int32]) -> Numbers:
    """Store an array as an artefact; return a function that reads it back."""
    artifact = store.make("person_cells", key, ".npy", lambda path: write_array(path, numbers))
    return lambda: np.load(store.path(artifact))


BYTES_PER_ROW = 28
"""Bytes of a cell or a pair of a chunk while they are brought together, at most."""
NOT_AT_HAND = -2
"""The place of a cell that is not among those at hand."""

Counts = NDArray[np.int64]
PositionNumbers = NDArray[np.int32]


def qids_of_words(coding: Coding) -> list[tuple[list[int], int]]:
    """Return per word its QID positions, and the divisor that drops sensitive columns, 0 if it has no QID."""
    packing, qids = packing_of(coding.finest, coding.axes), len(coding.domains)
    mine = [[position for position in positions if position < qids] for positions in packing.words]
    return [(positions, packing.weights[positions[-1]] if positions else 0) for positions in mine]


def combinations_of(coding: Coding, words: PackedWords) -> PackedWords:
    """Return the packed QID values of cells at the finest node, without sensitive columns."""
    return tuple(word // worth if worth > 1 else word for word, (mine, worth) in zip(words, qids_of_words(coding), strict=True) if mine)


def persons_of_combinations(
    coding: Coding, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact], store: Store, memory: int
) -> Iterator[Counts]:
    """Yield the number of distinct persons of each combination, in arrays of disjoint combinations.

    Args:
        chunk_histograms: The histograms of the chunks at the finest node.
        pairs: Their pairs, in the same order.
        memory: Bytes of the job, of which three quarters may be taken.
    """
    rows = max(sum(part.rows for part in chunk_histograms), sum(part.rows for part in pairs))
    spans = max(-(-rows * BYTES_PER_ROW // (memory * 3 // 4)), 1)
    for number in range(spans):
        places, shared = _numbered_places(coding, chunk_histograms, store, number, spans)
        owners, persons = [np.empty(0, np.int32)], [np.empty(0, np.uint64)]
        for mine, paired in zip(places, pairs, strict=True):
            found = read_pairs(paired, store, 0, 1)
            yield np.bincount(found.cells, minlength=len(mine))[mine == ALONE]
            place = mine[found.cells]
            kept = np.flatnonzero(place >= 0)
            owners.append(place[kept])
            persons.append(found.persons[kept])
        yield count_different(np.concatenate(owners), np.concatenate(persons), shared)


def _numbered_places(coding: Coding, parts: Sequence[Artifact], store: Store, number: int, spans: int) -> tuple[list[PositionNumbers], int]:
    """Return the position of each cell's combination among repeated combinations, and their number.

    Repeated are combinations that occur in several cells.

    Args:
        parts: The histograms of the chunks.
        number: Of the span of all combinations that is looked at, from 0.

    Returns:
        Shape (cells,) for each chunk: ``ALONE`` for a combination of one cell, ``NOT_AT_HAND`` for one of another span.
    """
    chosen, words = [], []
    for part in parts:
        mine = combinations_of(coding, cells_in_source_coding(coding, part, store)[0])
        chosen.append(_span_of(mine, spans) == number if spans > 1 else np.ones(len(mine[0]), np.bool_))
        words.append(tuple(word[chosen[-1]] for word in mine) if spans > 1 else mine)
    places, shared = positions_of_repeated_keys(single_word(tuple(map(np.concatenate, zip(*words, strict=True)))))
    bounds = np.cumsum([0, *map(np.count_nonzero, chosen)])
    found = [np.full(len(taken), NOT_AT_HAND, np.int32) for taken in chosen]
    for (start, end), taken, place in zip(pairwise(bounds), chosen, found, strict=True):
        place[taken] = places[start:end]
    return found, shared


def _span_of(words: PackedWords, spans: int) -> Counts:
    """Return the span of each combination, a hash value below ``spans``, shape (n,)."""
    mixed = np.zeros(len(words[0]), np.uint64)
    for word in words:
        mixed = (mixed + word.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(spans)).astype(np.int64)
