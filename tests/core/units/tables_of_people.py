"""Tables whose records belong to people, and whose the cells of their nodes are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.columns.coding import Coder, single_word
from core.columns.domains import Node
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram
from core.units.pairs import Pairs
from core.units.persons import CellPersons, share_of
from tests.oracles.tables import Example, examples


@dataclass(frozen=True)
class People:
    """A table, and whose each of its records is."""

    example: Example
    people: list[int | None]

    def cells(self, node: Node) -> NDArray[np.int64]:
        """The place of each record's cell among those of a node's histogram, ascending."""
        parts = zip(self.example.domains, self.example.hierarchies, node, strict=True)
        coders = [Coder(domain, hierarchy.groups[level]) for domain, hierarchy, level in parts]
        columns = [coder.code(self.example.column(position)) for position, coder in enumerate(coders)]
        words = packing_of(node, self.example.hierarchies).pack(columns)
        return np.unique(single_word(words), return_inverse=True)[1].astype(np.int64)

    def persons(self, node: Node, shares: int = 1) -> CellPersons:
        """The persons of these cells, in shares."""
        digests = np.array([0 if person is None else (person + 1) * (2**61 + 12345) % 2**64 for person in self.people], np.uint64)
        cells = self.cells(node)
        pairs = Pairs.of(digests, cells)
        return CellPersons.of([share_of([pairs.share(number, shares)], int(cells.max()) + 1) for number in range(shares)])

    def persons_of(self, root: Histogram) -> CellPersons:
        """The persons of the cells of a root."""
        return self.persons(root.node, 2)


@st.composite
def tables_of_people(draw: st.DrawFn, most_qids: int = 4) -> People:
    """A table of people with one record, several, or nearly all of them; some records are nobody's."""
    example = draw(examples(most_qids))
    people = draw(st.integers(0, 12))
    whose = st.one_of(st.integers(0, people), st.integers(0, people), st.just(0), st.none())
    return People(example, draw(st.lists(whose, min_size=len(example.rows), max_size=len(example.rows))))
