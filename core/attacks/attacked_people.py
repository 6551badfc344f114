"""People whom attacks are played against: which labels fit what is known of them, and the control group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.attacked_release import NO_VALUE, AttackedRelease, Codes

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
