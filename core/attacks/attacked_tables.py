"""A release as attacks read it: the class of each record, the labels of each class, and the other columns, as whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.recount.labels.label_spans import Spans

Codes = NDArray[np.int64]
NO_VALUE, ELSEWHERE = -1, -2
"""The codes of a null, and of a value that the release does not hold."""


@dataclass(frozen=True, eq=False)
class AttackedRelease:
    """Records of a release, whole classes of them, in an order that follows from what they hold alone.

    Attributes:
        owners: Shape (n,), ascending, the class of each record.
        sizes: Shape (c,), records of each class.
        labels: Shape (c, q), the label of each class in each quasi-identifier.
        values: By other column, shape (n,), the value of each record, -1 for a null.
        places: Shape (n,), where each record stands in the files.
        is_whole: Whether these are all records of the release.
    """

    owners: Codes
    sizes: Codes
    labels: Codes
    values: dict[str, Codes]
    class_codes: Codes
    is_complete: bool = True

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.owners)


def release_of_codes(labels: Codes, values: Mapping[str, Codes], *, is_whole: bool = True) -> AttackedRelease:
    """Returns a release of coded records.

    Args:
        labels: Shape (n, q), the label of each record in each quasi-identifier.
        values: By other column, shape (n,), the value of each record; codes ascend with the values.
        is_whole: Whether these are all records; if not, every class is here whole or not at all.
    """
    # Nulls last, as a release has them.
    columns = [np.where(codes < 0, len(codes), codes) for codes in values.values()]
    keys = [*reversed(columns), *reversed(labels.T)]
    order = np.lexsort(keys) if keys else np.arange(len(labels))
    ordered = labels[order]
    firsts = np.ones(len(ordered), np.bool_)
    firsts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    owners = np.cumsum(firsts) - 1
    return AttackedRelease(
        owners=owners,
        sizes=np.bincount(owners, minlength=int(firsts.sum())),
        labels=ordered[firsts],
        values={name: codes[order] for name, codes in values.items()},
        class_codes=order,
        is_complete=is_whole,
    )


def joint_codes(columns: Codes) -> Codes:
    """Returns one number for each different row of whole numbers, shape (n,) of (n, m)."""
    joint = np.zeros(len(columns), np.int64)
    for column in columns.T:
        _, joint = np.unique(joint, return_inverse=True)
        _, mine = np.unique(column, return_inverse=True)
        joint = joint * (int(mine.max(initial=0)) + 1) + mine
    return np.unique(joint, return_inverse=True)[1] if len(joint) else joint


Fits = NDArray[np.bool_]
NOBODY = -1


@dataclass(frozen=True, eq=False)
class AttackedPeople:
    """People, and what an attacker knows of them.

    Attributes:
        fits: By quasi-identifier, shape (p, labels): which labels fit what is known.
        records: Shape (p,), the record of each person; -1 for whoever is not in the release.
        values: By other column, shape (p,), the true value of each person in the codes of the release.
    """

    fits: tuple[Fits, ...]
    records: Codes
    values: dict[str, Codes]

    def __len__(self) -> int:
        """Returns how many they are."""
        return len(self.records)

    def some_of(self, chosen: NDArray[np.int64]) -> AttackedPeople:
        """Returns some of them, in an order."""
        values = {name: codes[chosen] for name, codes in self.values.items()}
        return AttackedPeople(tuple(one[chosen] for one in self.fits), self.records[chosen], values)


def people_of_labels(release: AttackedRelease, chosen: Codes) -> AttackedPeople:
    """Returns the people of some records, who are known as exactly as their labels are.

    Whatever is guessed of them follows from the data files alone.
    """
    owners = release.owners[chosen]
    fits = []
    for place in range(release.labels.shape[1]):
        labels = release.labels[:, place]
        one = np.zeros((len(chosen), int(labels.max(initial=-1)) + 1), np.bool_)
        one[np.arange(len(chosen)), labels[owners]] = True
        fits.append(one)
    return AttackedPeople(tuple(fits), chosen, {name: codes[chosen] for name, codes in release.values.items()})


def fitting_classes(release: AttackedRelease, people: AttackedPeople, columns: Sequence[int] | None = None) -> Fits:
    """Returns which classes fit what is known of people by some quasi-identifiers, shape (p, c); by all unless it is said."""
    found = np.ones((len(people), len(release.sizes)), np.bool_)
    for place in range(len(people.fits)) if columns is None else columns:
        found &= people.fits[place][:, release.labels[:, place]]
    return found


def recombined_people(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Returns people who are not in the release: half of what is known is of one person, half of another, and values are of a third."""
    count = len(people)
    first, second, third = (random.permutation(count) for _ in range(3))
    half = (len(people.fits) + 1) // 2
    fits = tuple(one[first if place < half else second] for place, one in enumerate(people.fits))
    return AttackedPeople(fits, np.full(count, NOBODY), {name: codes[third] for name, codes in people.values.items()})


def with_values_of_others(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Returns people of whom the same is known, and whose values are those of others: what a release says of them is not of them."""
    order = random.permutation(len(people))
    return AttackedPeople(people.fits, np.full(len(people), NOBODY), {name: codes[order] for name, codes in people.values.items()})


def valued(people: AttackedPeople, column: str) -> AttackedPeople:
    """Returns the people who have a value in a column."""
    return people.some_of(np.flatnonzero(people.values[column] != NO_VALUE))


def label_fits(spans: Spans, positions: NDArray[np.int64], labels: NDArray[np.int64] | None = None) -> Fits:
    """Returns which labels cover which positions, shape (positions, labels).

    Args:
        spans: What labels cover.
        positions: Where values stand; a null stands at ``spans.null``.
        labels: The labels that are asked for, all unless they are said.
    """
    chosen = np.arange(len(spans.low)) if labels is None else labels
    ends = spans.high
    found = (positions[:, None] >= spans.low[chosen][None, :]) & (positions[:, None] < ends[chosen][None, :])
    if len(spans.nulls):
        found |= (positions == spans.null)[:, None] & np.isin(chosen, spans.nulls)[None, :]
    # A set is not all that lies between its ends; there are as many as labels.
    for label in np.flatnonzero(np.isin(chosen, list(spans.sets))).tolist() if spans.sets else ():
        found[:, label] = np.isin(positions, spans.sets[int(chosen[label])])
    return found
