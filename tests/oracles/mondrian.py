"""Mondrian as a recursion over lists of records, as plain as the paper's Fig. 7, to compare classes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

Record = tuple[int, ...]


@dataclass(frozen=True)
class Column:
    """A QID: its values in the order in which they are cut, None for the null, which comes last."""

    values: Sequence[Any]
    numerical: bool

    def numbers(self, ranks: Sequence[int]) -> list[float]:
        """The numbers among some ranks, nulls left out."""
        return [float(self.values[rank]) for rank in ranks if self.values[rank] is not None]

    def span(self, ranks: Sequence[int]) -> float:
        """Max - min."""
        numbers = self.numbers(ranks)
        return max(numbers) - min(numbers) if numbers else 0.0

    def mixed(self, ranks: Sequence[int]) -> bool:
        """Whether nulls and values are together."""
        return 0 < len(self.numbers(ranks)) < len(ranks)

    @property
    def all(self) -> range:
        """All ranks."""
        return range(len(self.values))


@dataclass(frozen=True)
class Mondrian:
    """What stays the same over the recursion."""

    columns: Sequence[Column]
    k: int
    score: str = "representativity"
    mode: str = "strict"
    accepts: Callable[[list[int]], bool] = lambda node: True
    people: Sequence[Hashable | None] | None = None
    whole: dict[int, Sequence[int]] = field(default_factory=dict)
    told: Callable[[int, list[int]], float] | None = None
    shares: Sequence[float] = ()

    def classes(self, records: Sequence[Record]) -> list[list[int]]:
        """The classes, each as the numbers of its records."""
        return self._cut(records, list(range(len(records))))

    def _cut(self, records: Sequence[Record], node: list[int]) -> list[list[int]]:
        if halves := self.halves(records, node):
            return self._cut(records, halves[0]) + self._cut(records, halves[1])
        return [node]

    def halves(self, records: Sequence[Record], node: list[int]) -> tuple[list[int], list[int]] | None:
        """The cut that is made of a node, if any is allowed."""
        if len(node) < 2 * self.k:
            return None
        return self._cheapest(records, node) if self.score == "ncp" else self._first_allowed(records, node)

    def keeps(self, node: list[int]) -> bool:
        """Whether a class has k records, or people where it is said whose they are, and is accepted."""
        return self.size(node) >= self.k and self.accepts(node)

    def size(self, node: list[int]) -> int:
        """Record, or different people without nobody."""
        return len(node) if self.people is None else len({self.people[number] for number in node} - {None})

    def _first_allowed(self, records: Sequence[Record], node: list[int]) -> tuple[list[int], list[int]] | None:
        ranked = {}
        for qid in range(len(self.columns)):
            ranks = [records[number][qid] for number in node]
            if len(set(ranks)) > 1:
                ranked[qid] = (self._score(qid, ranks), len(set(ranks)), -qid)
        for qid in sorted(ranked, key=lambda qid: ranked[qid], reverse=True):
            for halves in self._halves(records, node, qid):
                if all(self.keeps(half) for half in halves):
                    return halves
        return None

    def _score(self, qid: int, ranks: list[int]) -> float:
        column = self.columns[qid]
        if self.score == "entropy":
            shares = [ranks.count(rank) / len(ranks) for rank in sorted(set(ranks))]
            total = 0.0
            for share in shares:
                total -= share * math.log(share)
            return total
        if self.score == "normalised_span":
            return (max(ranks) - min(ranks)) / (len(self._whole(qid)) - 1)
        if not column.numerical:
            return len(set(ranks)) / (len(self._whole(qid)) if self.score == "representativity" else 1)
        whole = column.span(self._whole(qid))
        span = whole if column.mixed(ranks) else column.span(ranks)
        if self.score == "span":
            return span
        return span / whole if whole else 1.0

    def _whole(self, qid: int) -> Sequence[int]:
        return self.whole.get(qid, self.columns[qid].all)

    def _halves(self, records: Sequence[Record], node: list[int], qid: int) -> list[tuple[list[int], list[int]]]:
        ordered = sorted(node, key=lambda number: (records[number][qid], number))
        if self.mode == "relaxed":
            half = (len(node) + 1) // 2
            return [(ordered[:half], ordered[half:])]
        median = records[ordered[(len(node) - 1) // 2]][qid]
        at, below = self._parted(records, ordered, qid, median), self._parted(records, ordered, qid, median - 1)
        return [halves for halves in ([at] if self.mode == "median" else [at, below]) if all(halves)]

    def _parted(self, records: Sequence[Record], node: list[int], qid: int, rank: int) -> tuple[list[int], list[int]]:
        left = [number for number in node if records[number][qid] <= rank]
        return left, [number for number in node if records[number][qid] > rank]

    def _cheapest(self, records: Sequence[Record], node: list[int]) -> tuple[list[int], list[int]] | None:
        # What has one value in all of them costs the same on both sides of every cut.
        open_ = [qid for qid in range(len(self.columns)) if len({records[number][qid] for number in node}) > 1]
        best, least = None, len(node) * self.penalty(records, node, open_)
        for qid in range(len(self.columns)):
            for rank in sorted({records[number][qid] for number in node})[:-1]:
                left, right = self._parted(records, node, qid, rank)
                cost = len(left) * self.penalty(records, left, open_) + len(right) * self.penalty(records, right, open_)
                if cost < least and self.keeps(left) and self.keeps(right):
                    best, least = (left, right), cost
        return best

    def penalty(self, records: Sequence[Record], node: list[int], qids: Sequence[int]) -> float:
        """NCP of a class per record, summed over some QIDs: of the values held and, for its share, of the label."""
        total = 0.0
        for qid in qids:
            ranks = [records[number][qid] for number in node]
            held = self._held(qid, self.columns[qid], ranks) if len(set(ranks)) > 1 else 0.0
            share = self.shares[qid] if self.told else 0.0
            total += (1.0 - share) * held + (share * self.told(qid, node) if self.told and share else 0.0)
        return total

    def _held(self, qid: int, column: Column, ranks: list[int]) -> float:
        size = len(self._whole(qid))
        if not column.numerical:
            return len(set(ranks)) / size
        whole = column.span(self._whole(qid))
        span = column.span(ranks) / whole if whole else 0.0
        return min(max(span, 1.0 / size) + 1.0 / size, 1.0) if column.mixed(ranks) else span
