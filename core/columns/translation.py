"""From the coding of a chunk, whose domains are its own, to that of the whole source.

A chunk's cells are counted against the values that occur in it, so that they stay true whatever other files bring. Both domains ascend,
so the map from one to the other does too, and cells keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing
from core.columns.domains import Domain
from core.columns.positions import position_finder


@dataclass(frozen=True, eq=False)
class Translation:
    """How the cells of a chunk read in the coding of the whole.

    Attributes:
        own: How the chunk's cells are packed.
        maps: Per axis, shape (own size,), int64: the whole's code of each of the chunk's.
        whole: How the whole's cells are packed.
    """

    own: Packing
    maps: tuple[NDArray[np.int64], ...]
    target_packing: Packing

    @classmethod
    def between(cls, own: Sequence[Domain], whole: Sequence[Domain]) -> Translation:
        """Returns the translation from the domains of a chunk to those of a source that it belongs to, axis by axis.

        Raises:
            LookupError: a value of the chunk is not in the whole.
        """
        maps = tuple(codes_in(mine, all_of) for mine, all_of in zip(own, whole, strict=True))
        for mine, codes in zip(own, maps, strict=True):
            if (codes < 0).any():
                raise LookupError(mine.qid)
        return cls(Packing(tuple(map(len, maps))), maps, Packing(tuple(domain.size for domain in whole)))

    @property
    def changes(self) -> bool:
        """Whether any code becomes another; a chunk that holds every value of the source is coded as the source is."""
        # A chunk's values are among the whole's, so that as many are the same ones.
        return self.own.sizes != self.target_packing.sizes

    def same_as(self, other: Translation) -> bool:
        """Tells whether another chunk is translated in just the same way."""
        return self.own == other.own and all(np.array_equal(mine, theirs) for mine, theirs in zip(self.maps, other.maps, strict=True))

    def translated(self, words: PackedWords) -> PackedWords:
        """Returns cells of the chunk as cells of the whole, in the same order, ascending if they were."""
        if not self.changes:
            return words
        return self.target_packing.pack_mapped(tuple(self.own.unpack(words).T), self.maps)


def codes_in(own: Domain, whole: Domain) -> NDArray[np.int64]:
    """Returns the code in one domain of each code of another, shape (own size,); -1 for a value that is not there."""
    codes = position_finder(whole.values, -1)(own.values).astype(np.int64)
    return np.append(codes, len(whole.values) if whole.nulls else -1) if own.nulls else codes
