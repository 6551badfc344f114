"""The paper's experiment: chunks that are anonymised alone against one node for all of them (papers/skald.txt, V, Table III, Fig. 3).

What DM* of the chunks' releases is, once they are concatenated, the paper does not say. There are two ways to count it:

*recounted*, the paper's own: eq. 4 of the concatenated table. A class is all records that share one published combination (II.A.4),
whichever chunk they come from, and s is the suppressed records of all chunks. That the paper counts so follows from its figures: with
values spread evenly, the nodes of its Table III give ratios of 2.1, 8.0 and 32 at 5, 25 and 125 chunks, which fits "at least four-fold"
and "nine-fold"; in the other way they give 0.41, 0.32 and 0.26, the opposite of its finding.

*summed*: Σ over the chunks of each chunk's own DM*. It sees every record among those of its own chunk only, so it falls with the size of
a chunk however coarse the node is: cut a table into C chunks, publish all at one node, and it is about C times lower for the very same
published table. It favours the baseline, and is right only where a reader knows from which chunk a record comes.

Both ways divide by the same number of records, so the ratio of losses per record, DM* / N (how large a record's class is, on average),
is the ratio of DM*. The GCP of both releases goes with them: it depends on what a record is published as, and on no way of counting.

In favour of the baseline: a chunk's node is the exact optimum of the measure that is compared, over all nodes, at full resolution; and
two combinations that differ are two classes, even where one chunk publishes 33 and another [32 - 33].

All chunks use hierarchies built on the domain of the whole source. Restricted to a chunk they are the chunk's own: a group without
records has no cell there, and the lattice is the same, so that nodes can be compared. (Ranks of an encoded QID are those of the whole
source.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.arrays import to_numpy
from core.columns.coding import Packing, Words
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram


def layout(chunks: int, units: int, *, cut: bool) -> tuple[range, ...]:
    """Returns which units of the source each chunk of an experiment is made of.

    Args:
        chunks: Number of chunks.
        units: Number of units of equal size that the source is cut into.
        cut: Whether the source is cut into ``chunks`` chunks, which must divide ``units``; else a chunk is one unit and the data grow with
            the number of chunks, as in the paper.
    """
    size = units // chunks if cut else 1
    return tuple(range(first, first + size) for first in range(0, chunks * size, size))


@dataclass(frozen=True)
class Published:
    """Numbers what is published for each group of each QID, so that classes of different nodes can be told apart or found to be one.

    Attributes:
        packing: How the numbers of all QIDs make up a class.
        numbers: Per QID and level, shape (groups,), int64: equal where the published texts are, at whatever level. A null has a number.
    """

    packing: Packing
    numbers: tuple[tuple[NDArray[np.int64], ...], ...]

    @classmethod
    def of(cls, hierarchies: Sequence[Hierarchy]) -> Self:
        """Numbers the labels of all levels."""
        numbered = [_numbered(hierarchy.labels) for hierarchy in hierarchies]
        return cls(Packing(tuple(size for _, size in numbered)), tuple(numbers for numbers, _ in numbered))

    def classes(self, histogram: Histogram, published: NDArray[np.bool_]) -> Words:
        """Returns the published combinations of a histogram's cells.

        Args:
            histogram: Cells of a node.
            published: Shape (cells,), which of them are published.

        Returns:
            Arrays of shape (classes,), int64.
        """
        maps = [levels[level] for levels, level in zip(self.numbers, histogram.node, strict=True)]
        return tuple(word[published] for word in self.packing.pack_mapped(histogram.groups, maps))


def _numbered(labels: Sequence[pa.Array]) -> tuple[tuple[NDArray[np.int64], ...], int]:
    coded = pa.concat_arrays([level.cast(pa.string()) for level in labels]).dictionary_encode(null_encoding="encode")
    numbers = to_numpy(coded.indices).astype(np.int64)
    return tuple(np.split(numbers, np.cumsum([len(level) for level in labels])[:-1])), len(coded.dictionary)


def concatenated_sql(files: Sequence[str], words: int) -> str:
    """Returns the statement that counts the classes of concatenated releases: how many there are, and Σ|E|².

    It is right because a class of the concatenated table is the union of the chunks' classes with the same published combination, so
    that sizes add up; DuckDB spills the hash table, and sums in 128 bits.

    Args:
        files: Placeholders or quoted paths of Parquet files with ``cell_0 … cell_<words-1>`` and ``count``.
        words: Number of words of a class.
    """
    cells = ", ".join(f"cell_{word}" for word in range(words))
    sizes = f"SELECT sum(count) AS size FROM read_parquet([{', '.join(files)}]) GROUP BY {cells}"
    return f"SELECT count(*), coalesce(sum(size::HUGEINT * size::HUGEINT), 0) FROM ({sizes})"


@dataclass(frozen=True)
class Spread:
    """The nodes of many chunks.

    Attributes:
        shares: Distinct nodes and how many chunks chose each, most common first, ties by node.
        lowest: Lowest level of each QID in any of them; None without nodes.
        highest: Highest level.
    """

    shares: tuple[tuple[Node, int], ...]
    lowest: Node | None
    highest: Node | None

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Self:
        """Counts nodes."""
        # A counter by itself leaves equals in the order of the chunks.
        shares = sorted(Counter(nodes).items(), key=lambda share: (-share[1], share[0]))
        levels = list(zip(*(node for node, _ in shares), strict=True))
        return cls(tuple(shares), tuple(map(min, levels)) or None, tuple(map(max, levels)) or None)


def ratio(alone: int, together: int) -> float:
    """Returns the DM* ratio (eq. 5): above 1, one node for all chunks loses less than a node for each."""
    return alone / together


def pooled(values: Sequence[float], records: Sequence[int]) -> float:
    """Returns the mean of a loss per record over chunks of different sizes."""
    return sum(value * size for value, size in zip(values, records, strict=True)) / sum(records)
