"""Small tables with hierarchies, drawn at random: what every law about records, cells and nodes is tried on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from core.columns.coding import Coder
from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram, count_cells
from tests.oracles.hierarchies import built, first_appearance, published
from tests.oracles.lattice import DraftLevels

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Example:
    """A table of records with the hierarchies of its columns, each as the product has it and as a mapping per level."""

    rows: list[Row]
    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]

    @property
    def ladders(self) -> list[DraftLevels]:
        """What each value is published as, per QID and level."""
        return [levels_of_values(hierarchy, domain) for hierarchy, domain in zip(self.hierarchies, self.domains, strict=True)]

    def column(self, position: int) -> pa.Array:
        """One column of the table."""
        return pa.array([row[position] for row in self.rows], self.domains[position].values.type)

    def histogram(self, node: tuple[int, ...]) -> Histogram:
        """The cells of a node, counted from the records."""
        packing = packing_of(node, self.hierarchies)
        coders = [
            Coder(domain, hierarchy.groups[level]) for domain, hierarchy, level in zip(self.domains, self.hierarchies, node, strict=True)
        ]
        words = packing.pack([coder.code(self.column(position)) for position, coder in enumerate(coders)])
        return Histogram(node, packing, *count_cells(words, packing.product))


def levels_of_values(hierarchy: Hierarchy, domain: Domain) -> DraftLevels:
    """What each value of a domain is published as, per level."""
    values = [*domain.values.to_pylist(), *([None] if domain.nulls else [])]
    return [dict(zip(values, published(hierarchy, level), strict=True)) for level in range(hierarchy.levels)]


def observed(name: str, values: Sequence[Any], dtype: pa.DataType) -> Domain:
    """The domain of a column, counted one value at a time."""
    counts = Counter(values)
    distinct = sorted(value for value in counts if value is not None)
    return Domain(name, pa.array(distinct, dtype), np.array([counts[value] for value in distinct], np.int64), counts[None])


def nested(draw: st.DrawFn, domain: Domain) -> Hierarchy:
    """A hierarchy of arbitrary nested groups, in no order and of any sizes; a level may repeat the one below."""
    current = list(range(len(domain.values)))
    groups, labels = [current], [domain.values]
    for level in range(draw(st.integers(0, 3))):
        coarser = draw(st.lists(st.integers(0, 3), min_size=max(current, default=-1) + 1, max_size=max(current, default=-1) + 1))
        current = first_appearance([coarser[group] for group in current])
        groups.append(current)
        labels.append(pa.array([f"{level}:{group}" for group in range(max(current, default=-1) + 1)], pa.string()))
    if domain.nulls:
        groups = [[*level, max(level, default=-1) + 1] for level in groups]
        labels = [pa.concat_arrays([level, pa.nulls(1, level.type)]) for level in labels]
    groups.append([0] * domain.size)
    labels.append(pa.array(["*"]))
    arrays = tuple(np.array(level, np.uint32) for level in groups)
    return Hierarchy(domain.qid, arrays, tuple(labels), (None,) * len(arrays), tuple(len(level) for level in labels))


def hierarchy_over(draw: st.DrawFn, domain: Domain) -> Hierarchy:
    """A hierarchy of arbitrary groups, of widths or of ranks."""
    kind = draw(st.sampled_from(["nested", "nested", "widths", "ranks"]))
    if kind == "nested":
        return nested(draw, domain)
    widths = draw(st.sampled_from([[2], [1, 2, 4], [3, 6]]))
    return built({"widths": widths, "encode": kind == "ranks"}, domain)


@st.composite
def examples(draw: st.DrawFn, most_qids: int = 4, most_records: int = 40) -> Example:
    """A table of up to four columns of small integers, some null, with hierarchies over what was observed."""
    qids = draw(st.integers(1, most_qids))
    spans = [draw(st.integers(0, 7)) for _ in range(qids)]
    with_null = [draw(st.booleans()) for _ in range(qids)]
    cells = [st.integers(0, span) | st.none() if null else st.integers(0, span) for span, null in zip(spans, with_null, strict=True)]
    rows = draw(st.lists(st.tuples(*cells), min_size=1, max_size=most_records))
    domains = tuple(observed(f"qid {position}", [row[position] for row in rows], pa.int64()) for position in range(qids))
    return Example(rows, domains, tuple(hierarchy_over(draw, domain) for domain in domains))


@st.composite
def nodes_of(draw: st.DrawFn, example: Example) -> tuple[int, ...]:
    """A node of an example's lattice."""
    return tuple(draw(st.integers(0, hierarchy.top)) for hierarchy in example.hierarchies)
