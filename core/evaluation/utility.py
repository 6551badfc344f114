"""Utility of a release: width of its labels, change of its marginals, and error of its counts.

A release is read as its analyst would read it: a group may be any of its values, each as likely as the other (Xiao and Tao, Anatomy, VLDB
2006). So a record published as ``[20 - 29]`` counts a tenth for each of ten ages. Only the published labels and the domain are used, not
the recoding, so that the releases of all methods are measured alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import as_numbers
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.recoding.labels import NULL_SET_END, as_value, penalties_with_null
from core.units.losses import group_penalties

SUPPRESSED_LABEL = "*"
BOUND = "|"
SANITY = 0.001
"""A count below this share of the records is divided by that share instead, so that tiny counts do not decide the mean error."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Meaning:
    """Values that each published label of a column stands for.

    Attributes:
        labels: Shape (pairs,), ascending: number of the label.
        codes: Shape (pairs,): a code of the domain that it may be.
        size: Codes of the domain.
        costs: Shape (labels,), NCP of each label as it is published: a group or range whole, whatever occurs in it.
    """

    labels: NDArray[np.int64]
    codes: NDArray[np.int64]
    size: int
    costs: Floats

    @cached_property
    def members(self) -> NDArray[np.int64]:
        """Number of codes that each label may be, shape (labels,)."""
        members: NDArray[np.int64] = np.bincount(self.labels)
        return members

    def share(self, numbers: Floats) -> Floats:
        """Return the mean of a number per code over the codes of each label, shape (labels,).

        ``numbers`` has the shape (size,); of zeros and ones the mean is a share.
        """
        return np.bincount(self.labels, weights=numbers[self.codes]) / self.members

    def share_of_range(self, first: int, last: int) -> Floats:
        """Return the share of each label's codes that lie in the range ``first … last``, shape (labels,)."""
        labels, from_codes, to_codes = self._runs
        inside = np.minimum(to_codes, last) - np.maximum(from_codes, first) + 1
        return np.bincount(labels, weights=np.maximum(inside, 0)) / self.members

    @cached_property
    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Label, first and last code of each run of one label's consecutive codes, arrays of shape (runs,)."""
        breaks = np.flatnonzero((np.diff(self.codes) != 1) | (np.diff(self.labels) != 0))
        first, last = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(self.codes) - 1]])
        return self.labels[first], self.codes[first], self.codes[last]

    def spread(self, counts: NDArray[np.int64]) -> Floats:
        """Spread the record counts of labels evenly over their codes, from shape (labels,) to (size,)."""
        return np.bincount(self.codes, weights=(counts / self.members)[self.labels], minlength=self.size).astype(np.float64)


def exact_meaning(size: int) -> Meaning:
    """Return the meaning of values that are published exactly: each label is the code of its number."""
    return Meaning(np.arange(size), np.arange(size), size, np.zeros(size))


def meaning_of(
    texts: Sequence[str | None], exact_codes: NDArray[np.int64], domain: Domain, hierarchy: Hierarchy, level: int | None
) -> Meaning:
    """Parse published labels into the codes that they stand for; raise LookupError if one has none.

    Args:
        texts: The label of each group, the two bounds with a bar between where there are two; None for a null.
        exact_codes: Shape (labels,), the code where a value itself is published, else -1.
        domain: Of the column, in the source.
        hierarchy: Of the column.
        level: Level of a full-domain release, else None: then any level, a range ``[a - b]``, ``>= a`` or ``<= b`` and a set ``{a, b}``.
    """
    known = _known(domain, hierarchy, level)
    places = {} if level is not None else _places(domain)
    numbers = None if level is not None else as_numbers(domain.values)
    found = [
        (np.array([code]), 0.0) if code >= 0 else _codes(text, known, places, numbers, domain)
        for text, code in zip(texts, exact_codes.tolist(), strict=True)
    ]
    if lost := sum(not len(codes) for codes, _ in found):
        raise LookupError(lost)
    labels = np.repeat(np.arange(len(found)), [len(codes) for codes, _ in found])
    codes = np.concatenate([np.zeros(0, np.int64), *(codes for codes, _ in found)]).astype(np.int64)
    return Meaning(labels, codes, domain.size, np.array([cost for _, cost in found], np.float64))


LabelMeanings = dict[str | None, tuple[NDArray[np.int64], float]]
"""By text, which codes it may be and its NCP."""


def _known(domain: Domain, hierarchy: Hierarchy, level: int | None) -> LabelMeanings:
    """Return the codes and NCP of every label of a level, or of all levels.

    Where two levels have a label in common, the finer one counts.
    """
    known: LabelMeanings = {}
    for one in range(hierarchy.levels) if level is None else [level]:
        order = np.argsort(hierarchy.groups[one], kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(hierarchy.groups[one]))[:-1])
        costs = group_penalties(hierarchy, domain, one).tolist()
        for texts in _written(hierarchy, one):
            for text, codes, cost in zip(texts, groups, costs, strict=True):
                known.setdefault(text, (codes, cost))
    withheld = np.arange(domain.size), float(domain.size > 1)
    known.setdefault(SUPPRESSED_LABEL, withheld)
    known.setdefault(None, (np.array([len(domain.values)]), 0.0) if domain.nulls else withheld)
    return known


def _written(hierarchy: Hierarchy, level: int) -> list[list[str | None]]:
    """Return the label texts of a level, as text and as bounds."""
    labels = hierarchy.labels[level]
    texts = [(labels if pa.types.is_string(labels.type) else as_text(labels)).to_pylist()]
    if bounds := hierarchy.bounds[level]:
        low, high = (bound.cast(pa.string()) for bound in bounds)
        texts.append(bound_texts(low, high).to_pylist())
    return texts


def bound_texts(low: pa.Array, high: pa.Array) -> pa.Array:
    """Join two text bounds to one label with a bar between; an open bound is empty, two give null."""
    both = pc.and_(low.is_null(), high.is_null())
    return pc.if_else(both, pa.scalar(None, pa.string()), pc.binary_join_element_wise(pc.fill_null(low, ""), pc.fill_null(high, ""), BOUND))


def _places(domain: Domain) -> dict[str, int]:
    """Return the code of each value by its text."""
    return {text: place for place, text in enumerate(as_text(domain.values).to_pylist())}


def _codes(
    text: str | None, known: LabelMeanings, places: dict[str, int], numbers: Floats | None, domain: Domain
) -> tuple[NDArray[np.int64], float]:
    """Return the codes and NCP of one label; no code where it cannot be read."""
    if text in known:
        return known[text]
    assert text is not None
    if numbers is not None:
        for ends in _ends(text):
            low, high = (_number(end, domain) if end else far for end, far in zip(ends, (numbers[0], numbers[-1]), strict=True))
            first, last = int(np.searchsorted(numbers, low, "left")), int(np.searchsorted(numbers, high, "right"))
            reach = min(high, numbers[-1]) - max(low, numbers[0])
            return np.arange(first, last), float(reach / (numbers[-1] - numbers[0])) if len(numbers) > 1 else 0.0
    if text.startswith("{") and text.endswith("}"):
        return _set_codes(text, known, places, numbers, domain)
    if text.endswith(SUPPRESSED_LABEL) and (stem := text.rstrip(SUPPRESSED_LABEL)):
        codes = np.array([place for value, place in places.items() if value.startswith(stem)], np.int64)
        return codes, len(codes) / domain.size if len(codes) > 1 else 0.0
    return np.zeros(0, np.int64), 0.0


def _set_codes(
    text: str, known: LabelMeanings, places: dict[str, int], numbers: Floats | None, domain: Domain
) -> tuple[NDArray[np.int64], float]:
    """Return the codes and NCP of a set label such as ``{a, b}`` or ``{[20 - 29], null}``.

    A label that is no set has no code.
    """
    beside = text.endswith(NULL_SET_END) and bool(domain.nulls)
    inner = text[1 : -len(NULL_SET_END)] if beside else text[1:-1]
    listed, null = _listed(inner, places), len(domain.values)
    if listed:
        codes = np.array(listed + [null] * beside, np.int64)
        return codes, len(codes) / domain.size if len(codes) > 1 else 0.0
    if not beside:
        return np.zeros(0, np.int64), 0.0
    codes, cost = _codes(as_value(inner), known, places, numbers, domain)
    if not len(codes):
        return codes, cost
    return np.append(codes, null), float(penalties_with_null(np.array([cost]), domain.size)[0])


def _listed(inner: str, places: dict[str, int]) -> list[int]:
    """Return the codes of the values that a set label lists, in ascending order.

    A value may contain commas itself. The result is empty if another text is listed.
    """
    pieces = inner.split(", ")
    most = 1 + max((text.count(", ") for text in places), default=0)
    rests: list[list[int] | None] = [None] * len(pieces) + [[]]
    for first in reversed(range(len(pieces))):
        for last in range(first + 1, min(first + most, len(pieces)) + 1):
            code, rest = places.get(as_value(", ".join(pieces[first:last]))), rests[last]
            if code is not None and rest is not None and (not rest or code < rest[0]):
                rests[first] = [code, *rest]
                break
    return rests[0] or []


def _ends(text: str) -> list[tuple[str, str]]:
    """Return the two ends of a range label, an open end empty; nothing if it is no range."""
    if text.startswith("[") and len(parts := text[1:-1].split(" - ")) == 2:
        return [(parts[0], parts[1])]
    if len(parts := text.split(BOUND)) == 2:
        return [(parts[0], parts[1])]
    return [(text[3:], "")] if text.startswith(">= ") else [("", text[3:])] if text.startswith("<= ") else []


def _number(text: str, domain: Domain) -> float:
    """Return the number of a range's end; NaN if it is not of the domain's type."""
    try:
        found = as_numbers(pa.array([text]).cast(domain.values.type))
    except pa.ArrowInvalid:
        return float("nan")
    return float("nan") if found is None else float(found[0])


def mean_ncp(meaning: Meaning, counts: NDArray[np.int64]) -> float:
    """Return the mean normalised certainty penalty (NCP) of the released records (Xu et al. 2006)."""
    return float(np.dot(meaning.costs, counts) / counts.sum())


def total_variation(before: NDArray[np.int64], after: Floats) -> float:
    """Return the total variation distance of two count distributions: ½ Σ |p − q|.

    It is 0 for equal ones and 1 if they have no value in common. Over the *groups* of a full-domain release it would be 0 but for
    suppression; over the values it measures what uniform spread loses.
    """
    return float(np.abs(before / before.sum() - after / after.sum()).sum() / 2)


class Predicate(NamedTuple):
    """Condition of a count query: the codes ``first … last`` of an attribute, given by its number.

    A single code is a category.
    """

    attribute: int
    first: int
    last: int

    def chosen(self, size: int) -> Floats:
        """Return 1 for the codes that the condition selects and 0 for others, shape (size,)."""
        chosen = np.zeros(size)
        chosen[self.first : self.last + 1] = 1.0
        return chosen


Query = tuple[Predicate, Predicate]


def draw_queries(numbers: Sequence[int], counts: Sequence[NDArray[np.int64]], query_count: int, seed: int) -> list[Query]:
    """Draw random count queries: a range of one attribute and a category of another.

    Both ends of a range, and the category, are values of records drawn at random, so that frequent values are asked for more often.

    Args:
        numbers: Attributes that get ranges; others get a category. Where all are of one kind, two of that kind are asked for, and of a
            single attribute the same one twice.
        counts: Per attribute, the records per code, nulls last.
        query_count: How many.
        seed: The same seed draws the same queries.
    """
    # The same queries for all releases of a comparison, else their errors would be those of different questions.
    random = np.random.default_rng(seed)
    shares = [count / count.sum() for count in counts]
    ranged, others = list(numbers), [one for one in range(len(counts)) if one not in numbers]
    drawn = []
    for _ in range(query_count):
        if ranged and others:
            pair = [int(random.choice(ranged)), int(random.choice(others))]
        else:
            pair = [int(one) for one in random.choice(len(counts), 2, replace=len(counts) == 1)]
        halves = []
        for one in pair:
            ends = sorted(int(code) for code in random.choice(len(shares[one]), 2 if one in numbers else 1, p=shares[one]))
            halves.append(Predicate(one, ends[0], ends[-1]))
        drawn.append((halves[0], halves[1]))
    return drawn


@dataclass(frozen=True, eq=False)
class Contingency:
    """Numbers of records by pairs of labels of two columns, arrays of shape (pairs,).

    ``first`` and ``second`` are the numbers of the two labels.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    counts: NDArray[np.int64]

    def total(self, first: Floats, second: Floats) -> float:
        """Return Σ count · share of the first label · share of the second label."""
        return float(np.dot(self.counts, first[self.first] * second[self.second]))


def relative_errors(true: Floats, estimated: Floats, record_count: int) -> Floats:
    """Return the relative error of each query: |estimate − truth| / max(truth, 0.1 % of the records).

    The lower bound of the divisor is the sanity bound of Xiao and Tao.
    """
    return np.abs(estimated - true) / np.maximum(true, max(SANITY * record_count, 1.0))
