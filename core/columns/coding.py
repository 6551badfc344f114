"""Records as integer codes: positions of values in domains, packed into mixed-radix numbers.

Combinations whose product of axes passes 2^62 are spread over several int64 *words*, so that no lattice is too wide. A cell is the
tuple of its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.data_parallel import parts_in_parallel
from core.columns.domains import Domain
from core.columns.kernels import entries_at, fill_position_table, find_cells, unpack_cells
from core.columns.numbers import (
    Finder,
    as_dictionary,
    dictionary_positions,
    integers_without_nulls,
    null_mask,
    offsets,
    position_finder,
    to_numpy,
)

Codes = NDArray[np.integer]
PackedWords = tuple[NDArray[np.int64], ...]
WORD = 1 << 62
# So wide a span of whole numbers is an array to look up in; else every value of every record is hashed.
LOOKUP_SPAN = 1 << 22
LOOKUPS_PER_CELL = 4


def smallest_type(size: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the narrowest unsigned integer type that holds ``0 … size - 1``."""
    return np.dtype(np.min_scalar_type(max(size - 1, 0)))


class Coder:
    """Coder of one QID: maps values to their position in the domain, or to their group at a level.

    It is built once and used for every batch.

    Args:
        domain: The observed values.
        groups: Shape (domain.size,), the group of each code; the code itself if left out.

    Attributes:
        size: Number of codes that come out.
    """

    def __init__(self, domain: Domain, groups: Codes | None = None) -> None:
        self._domain = domain
        numbers = np.arange(domain.size) if groups is None else groups
        self.size = int(numbers.max()) + 1 if len(numbers) else 0
        # One entry past the codes stands for everything that is not in the domain; the null's code comes right after the values.
        self._out = np.append(numbers, self.size).astype(smallest_type(self.size + 1))
        self._origin = 0
        self._table: Codes | None = None
        values = domain.values
        if pa.types.is_integer(values.type) and len(values):
            whole = to_numpy(values)
            low, high = int(whole[0]), int(whole[-1])
            if high - low < LOOKUP_SPAN:
                self._origin = low
                self._table = np.full(high - low + 1, self.size, self._out.dtype)
                self._table[offsets(whole, low)] = self._out[: len(values)]

    @cached_property
    def _places(self) -> Finder:
        # Not where there is a table at once.
        return position_finder(self._domain.values, self._domain.size)

    def code(self, column: pa.Array) -> Codes:
        """Return each value's code, or its group; raise LookupError for a value outside the domain.

        Args:
            column: Shape (n,), of the domain's type or a dictionary of it.

        Returns:
            Shape (n,), unsigned.
        """
        if self._table is None:
            column = as_dictionary(column)
        if isinstance(column, pa.DictionaryArray):
            entries = self._plain(column.dictionary)
            codes: Codes = entries_at(np.append(entries, self._null), dictionary_positions(column).astype(np.int32))
        else:
            codes = self._plain(column)
        if codes.size and int(codes.max()) >= self.size:
            raise LookupError(self._domain.qid)
        return codes

    @property
    def _null(self) -> np.integer:
        # Without nulls in the domain this entry is the one for foreign values, which code() refuses.
        null: np.integer = self._out[len(self._domain.values)]
        return null

    def _plain(self, column: pa.Array) -> Codes:
        missing = null_mask(column) if column.null_count else None
        if self._table is not None:
            # A null stands in for the least value, which is surely in the table, until it gets its own code below.
            codes: Codes = self._looked_up(integers_without_nulls(column, self._origin))
        else:
            codes = self._out[self._places(column)]
        if missing is not None:
            codes[missing] = self._null
        return codes

    def _looked_up(self, whole: NDArray[np.integer]) -> Codes:
        assert self._table is not None
        low, high = self._origin, self._origin + len(self._table) - 1
        if not whole.size or (int(whole.min()) >= low and int(whole.max()) <= high):
            return self._table[offsets(whole, low)]
        # Refused by code(), unless it is an entry of a dictionary that no record uses.
        codes: Codes = np.full(len(whole), self.size, self._out.dtype)
        inside = (whole >= low) & (whole <= high)
        codes[inside] = self._table[offsets(whole[inside], low)]
        return codes


@dataclass(frozen=True)
class Packing:
    """The packing of the group numbers of all QIDs at one node into int64 words.

    Attributes:
        sizes: Number of groups per QID at the node, in job order.
    """

    sizes: tuple[int, ...]

    @cached_property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the QIDs in each word; consecutive QIDs share a word while their product fits."""
        words: list[list[int]] = [[]]
        product = 1
        for position, size in enumerate(self.sizes):
            if words[-1] and product * size > WORD:
                words.append([])
                product = 1
            words[-1].append(position)
            product *= size
        return tuple(tuple(word) for word in words)

    @property
    def product(self) -> int:
        """The number of possible cells, as a Python integer."""
        product = 1
        for size in self.sizes:
            product *= size
        return product

    def pack(self, groups: Sequence[Codes]) -> PackedWords:
        """Pack group numbers, one array of shape (n,) per QID, into words of shape (n,)."""
        packed = []
        for word in self.words:
            total = np.zeros(len(groups[0]), np.int64)
            share = np.empty_like(total)
            for position in word:
                # By numbers of one type: NumPy makes a float of an unsigned and a signed integer of 64 bits, which is exact to 2^53 only.
                total += np.multiply(groups[position], self.weights[position], out=share, dtype=np.int64, casting="unsafe")
            packed.append(total)
        return tuple(packed)

    def pack_mapped(self, codes: Sequence[Codes], maps: Sequence[NDArray[np.integer]]) -> PackedWords:
        """Map the codes of each QID to groups and pack these into words of shape (n,).

        It costs one look-up per record and QID.

        Args:
            codes: One array of shape (n,) per QID.
            maps: The group of each code, one array per QID.
        """
        packed: list[NDArray[np.int64]] = []
        for word in self.words:
            worth = 1
            total: NDArray[np.int64] | None = None
            for position in reversed(word):
                share = (maps[position].astype(np.int64) * worth)[codes[position]]
                total = share if total is None else np.add(total, share, out=total)
                worth *= self.sizes[position]
            assert total is not None
            packed.append(total)
        return tuple(packed)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The radix weight of each QID in its word."""
        weights = [1] * len(self.sizes)
        for word in self.words:
            for position in reversed(word[:-1]):
                weights[position] = weights[position + 1] * self.sizes[position + 1]
        return tuple(weights)

    def unpack(self, words: PackedWords) -> NDArray[np.unsignedinteger[Any]]:
        """Unpack words into the group number of each QID, shape (n, QIDs); the inverse of ``pack``.

        The type is uint16 or, where a QID has more than 2^16 groups, a wider unsigned type.
        """
        dtype = max(np.dtype(np.uint16), smallest_type(max(self.sizes)))
        codes: NDArray[np.unsignedinteger[Any]] = np.empty((len(words[0]), len(self.sizes)), dtype)

        def unpacked(rows: slice) -> None:
            for word, number in zip(self.words, words, strict=True):
                unpack_cells(number[rows], np.array([self.sizes[position] for position in word], np.int64), word[0], codes[rows])

        parts_in_parallel(unpacked, len(codes))
        return codes


def single_word(words: PackedWords) -> NDArray[np.int64]:
    """Return one int64 key per row that has the same order and equality as the row's words."""
    key = words[0]
    for word in words[1:]:
        # Ranks instead of keys: they keep the order, and two of them fit a word however wide the keys are.
        _, high = np.unique(key, return_inverse=True)
        distinct, low = np.unique(word, return_inverse=True)
        key = high.astype(np.int64) * len(distinct) + low
    return key


def positions_among(cells: PackedWords, wanted: PackedWords, product: int) -> NDArray[np.integer[Any]]:
    """Return the position of each wanted cell in an ascending list that has them all, shape (n,).

    Args:
        cells: Words of shape (cells,), ascending without repeats; every wanted cell is one of them.
        wanted: Words of shape (n,).
        product: How many cells there could be.
    """
    if len(cells) > 1:
        both = single_word(tuple(np.concatenate(pair) for pair in zip(cells, wanted, strict=True)))
        return np.searchsorted(both[: len(cells[0])], both[len(cells[0]) :])
    return finder_of_known_cells(cells[0], product)(wanted[0])


def finder_of_known_cells(cells: NDArray[np.int64], product: int) -> Callable[[NDArray[np.int64]], NDArray[np.int32]]:
    """Return a function that gives the positions of cells, shape (n,), all among known cells.

    Args:
        cells: Shape (cells,), without repeats; every wanted cell is one of them.
        product: How many cells there could be.
    """
    if product <= LOOKUPS_PER_CELL * len(cells):
        table = np.empty(product, np.int32)
        table[cells] = np.arange(len(cells), dtype=np.int32)
        return lambda wanted: table[wanted]
    places = np.full(1 << (2 * len(cells)).bit_length(), -1, np.int32)
    fill_position_table(cells, places)
    return lambda wanted: find_cells(wanted, cells, places)


@dataclass(frozen=True, eq=False)
class Translation:
    """The translation of a chunk's cells into the coding of the complete source.

    Attributes:
        own: How the chunk's cells are packed.
        maps: Per axis, shape (codes,), int64: the source's code of each of the chunk's.
        target_packing: How the source's cells are packed.
    """

    own: Packing
    maps: tuple[NDArray[np.int64], ...]
    target_packing: Packing

    @classmethod
    def between(cls, chunk_domains: Sequence[Domain], source_domains: Sequence[Domain]) -> Translation:
        """Return a chunk's translation into its source's domains; raise LookupError for an unknown value."""
        maps = tuple(codes_in(mine, all_of) for mine, all_of in zip(chunk_domains, source_domains, strict=True))
        for mine, codes in zip(chunk_domains, maps, strict=True):
            if (codes < 0).any():
                raise LookupError(mine.qid)
        return cls(Packing(tuple(map(len, maps))), maps, Packing(tuple(domain.size for domain in source_domains)))

    @property
    def changes(self) -> bool:
        """Whether the translation changes any code.

        It does not if the chunk holds every value of the source.
        """
        # A chunk's values are among the whole's, so that as many are the same ones.
        return self.own.sizes != self.target_packing.sizes

    def same_as(self, other: Translation) -> bool:
        """Return whether another chunk has the same translation."""
        return self.own == other.own and all(np.array_equal(mine, theirs) for mine, theirs in zip(self.maps, other.maps, strict=True))

    def translated(self, words: PackedWords) -> PackedWords:
        """Return cells of the chunk as cells of the source, in the same order, ascending if they were."""
        if not self.changes:
            return words
        return self.target_packing.pack_mapped(tuple(self.own.unpack(words).T), self.maps)


def codes_in(chunk_domain: Domain, source_domain: Domain) -> NDArray[np.int64]:
    """Return the source code of each chunk code, shape (codes,); -1 for a value the source lacks."""
    codes = position_finder(source_domain.values, -1)(chunk_domain.values).astype(np.int64)
    return np.append(codes, len(source_domain.values) if source_domain.nulls else -1) if chunk_domain.nulls else codes
