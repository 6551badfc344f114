"""Random counts over two and three QIDs (LeFevre, DeWitt and Ramakrishnan, ICDE 2006, section 5.3), and how columns hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.evaluation.utility import Meaning, Predicate

Codes = Sequence[NDArray[np.int64]]
Floats = NDArray[np.float64]
CountQuery = tuple[Predicate, ...]


def draw_counts(numbers: Sequence[int], weights: Sequence[NDArray[np.int64]], width: int, queries: int, seed: int) -> list[CountQuery]:
    """Draws random counts over several QIDs: ranges of numbers and single values of others, as records drawn at random have them.

    Args:
        numbers: QIDs that get ranges.
        weights: By QID, the records per code, nulls last.
        width: How many QIDs a count is over; all of them if there are fewer.
        queries: How many.
        seed: The same seed draws the same counts, whatever release is asked.
    """
    random = np.random.default_rng([seed, width])
    shares = [weight / weight.sum() for weight in weights]
    drawn = []
    for _ in range(queries):
        parts = []
        for one in np.sort(random.choice(len(shares), min(width, len(shares)), replace=False)).tolist():
            ends = np.sort(random.choice(len(shares[one]), 2 if one in numbers else 1, p=shares[one])).tolist()
            parts.append(Predicate(one, ends[0], ends[-1]))
        drawn.append(tuple(parts))
    return drawn


def counted_in(queries: Sequence[CountQuery], codes: Codes, meanings: Sequence[Meaning]) -> Floats:
    """Returns how many of some records each query counts, shape (queries,): each record by the share of what it may be.

    Args:
        queries: The queries.
        codes: By QID, shape (records,): the label of each record.
        meanings: By QID, of its labels.
    """
    found = np.empty(len(queries))
    for place, query in enumerate(queries):
        inside = np.ones(len(codes[0]))
        for part in query:
            meaning = meanings[part.attribute]
            inside *= meaning.share(part.chosen(meaning.size))[codes[part.attribute]]
        found[place] = inside.sum()
    return found


def associations(codes: Codes, shares: Sequence[Floats]) -> Mapping[tuple[int, int], float]:
    """Returns Cramér's V of every two columns, from 0 (independent) to 1, over bands of values.

    Args:
        codes: By column, shape (records,): the label of each record.
        shares: By column, shape (labels, bands): the share of each band in what a label may be.
    """
    found = {}
    for one, other in combinations(range(len(codes)), 2):
        # Joint labels first, of which there are fewer than records.
        pairs, counts = np.unique(codes[one] * len(shares[other]) + codes[other], return_counts=True)
        first, second = np.divmod(pairs, len(shares[other]))
        found[one, other] = _cramer((shares[one][first] * counts[:, None]).T @ shares[other][second])
    return found


def _cramer(table: Floats) -> float:
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least, total = min(table.shape, default=0), table.sum()
    if least < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(min(((table - expected) ** 2 / expected).sum() / total / (least - 1), 1.0)))
