"""Numbers of persons per combination of QID values, from chunk histograms and person–cell pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, single_word
from core.histograms.cells import packing_of
from core.persons.pairs import ALONE, count_different, positions_of_repeated_keys
from tasks.counting.chunk_cells import cells_in_source_coding
from tasks.counting.chunk_histograms import read_pairs
from tasks.counting.coding import Coding
from tasks.store.store import Artifact, Store

BYTES_PER_ROW = 28
"""Bytes of a cell or a pair of a chunk while they are brought together, at most."""
NOT_AT_HAND = -2
"""The place of a cell that is not among those at hand."""

Counts = NDArray[np.int64]
PositionNumbers = NDArray[np.int32]


def qids_of_words(coding: Coding) -> list[tuple[list[int], int]]:
    """Return the QID positions in each packed word of a cell, and the radix weight of the last QID."""
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
        coding: Of the run.
        chunk_histograms: The histograms of the chunks at the finest node.
        pairs: Their pairs, in the same order.
        store: Has both.
        memory: Bytes of the job, of which three quarters may be taken.
    """
    rows = max(sum(part.rows for part in chunk_histograms), sum(part.rows for part in pairs))
    spans = max(-(-rows * BYTES_PER_ROW // (memory * 3 // 4)), 1)
    for number in range(spans):
        places, shared = _places(coding, chunk_histograms, store, number, spans)
        owners, persons = [np.empty(0, np.int32)], [np.empty(0, np.uint64)]
        for mine, paired in zip(places, pairs, strict=True):
            found = read_pairs(paired, store, 0, 1)
            yield np.bincount(found.cells, minlength=len(mine))[mine == ALONE]
            place = mine[found.cells]
            kept = np.flatnonzero(place >= 0)
            owners.append(place[kept])
            persons.append(found.persons[kept])
        yield count_different(np.concatenate(owners), np.concatenate(persons), shared)


def _places(coding: Coding, parts: Sequence[Artifact], store: Store, number: int, spans: int) -> tuple[list[PositionNumbers], int]:
    """Return the position of each cell's combination among repeated combinations, and their number.

    Repeated are combinations that occur in several cells.

    Args:
        coding: Of the run.
        parts: The histograms of the chunks.
        store: Has them.
        number: Of the span of all combinations that is looked at, from 0.
        spans: How many there are.

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
