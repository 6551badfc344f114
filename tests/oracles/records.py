"""Small tables of mixed columns: numbers and words, some missing, with hierarchies over what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from tests.oracles.tables import Row, nested, observed

WORDS = ["ape", "bee", "cat", "dog", "eel", "fox"]


@dataclass(frozen=True)
class Records:
    """A table in the order that decides ties.

    Attributes:
        rows: The values.
        domains: One per QID.
        hierarchies: One per QID.
        codes: Shape (n, QIDs), the position of each value in its domain.
    """

    rows: list[Row]
    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]
    codes: NDArray[np.int64]

    @property
    def numerical(self) -> list[bool]:
        """Which QIDs hold numbers."""
        return [pa.types.is_integer(domain.values.type) for domain in self.domains]


@st.composite
def mixed_records(draw: st.DrawFn, least: int = 1, most: int = 40, kinds: str = "nw") -> Records:
    """A table of one to three columns of few distinct values, so that ties are many; ``n`` stands for numbers, ``w`` for words."""
    columns = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    cells: list[st.SearchStrategy[Any]] = [
        st.integers(0, draw(st.integers(0, 9))) if kind == "n" else st.sampled_from(WORDS[: draw(st.integers(1, 6))]) for kind in columns
    ]
    cells = [cell | st.none() if draw(st.booleans()) else cell for cell in cells]
    rows = draw(st.lists(st.tuples(*cells), min_size=least, max_size=most))
    return records_of(rows, columns, draw)


def records_of(rows: list[Row], kinds: list[str], draw: st.DrawFn) -> Records:
    """Make a table of rows; hierarchies are drawn."""
    types = {"n": pa.int64(), "w": pa.string()}
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], types[kind]) for place, kind in enumerate(kinds))
    values = [[*domain.values.to_pylist(), None] for domain in domains]
    codes = np.array([[values[place].index(value) for place, value in enumerate(row)] for row in rows], np.int64)
    return Records(rows, domains, tuple(nested(draw, domain) for domain in domains), codes.reshape(len(rows), len(kinds)))


def gower(records: Records, first: int, second: int, missing: str = "differs") -> Fraction:
    """Gower's distance of two records, times the number of QIDs; numbers lie on a grid of 2^-20 of their range."""
    total = Fraction(0)
    for domain, numerical, mine, other in zip(records.domains, records.numerical, records.rows[first], records.rows[second], strict=True):
        if mine is None or other is None:
            total += int(mine is not other and missing == "differs")
        elif numerical:
            total += abs(on_grid(domain, mine) - on_grid(domain, other))
        else:
            total += int(mine != other)
    return total


def on_grid(domain: Domain, value: Any) -> Fraction:
    """Where a number lies in the range of its domain, to the nearest 2^-20."""
    low, high = domain.values[0].as_py(), domain.values[len(domain.values) - 1].as_py()
    return Fraction(round(Fraction(value - low, high - low) * 2**20), 2**20) if high > low else Fraction(0)


def by_class(classes: NDArray[np.int32]) -> set[frozenset[int]]:
    """The records of each class, whatever its number; what is suppressed is left out."""
    return {frozenset(np.flatnonzero(classes == number).tolist()) for number in set(classes.tolist()) if number >= 0}
