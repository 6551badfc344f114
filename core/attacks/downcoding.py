"""Downcoding: a finer label than the published one, guessed from the labels of other classes (Cohen, USENIX Security 2022)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.attacks.advantages import Guesses
from core.attacks.attacked_tables import Codes

BY_OTHERS = "the finer labels of other classes"
MOST_LABELS = 2_000


def finer_halves(low: Codes, high: Codes, records: Codes) -> NDArray[np.bool_]:
    """Returns whether other labels put more records into the upper half of each label, shape (labels,).

    Args:
        low: Shape (labels,), the first position that a label covers.
        high: Shape (labels,), the position after the last one.
        records: Shape (labels,), records with each label.
    """
    middle = (low + high) // 2
    within_low = (low[None, :] >= low[:, None]) & (high[None, :] <= middle[:, None])
    within_high = (low[None, :] >= middle[:, None]) & (high[None, :] <= high[:, None])
    return np.asarray(within_high @ records > within_low @ records, np.bool_)


def downcoded_labels(
    column: str, low: Codes, high: Codes, records: Codes, owners: Codes, positions: Codes, source: Codes, random: np.random.Generator
) -> Guesses:
    """Plays the half of a label in which a person's value lies. Control: anybody of the source whose value the label covers.

    Args:
        column: The quasi-identifier.
        low: Shape (labels,), the first position that a label covers, and ``high`` the one after the last.
        high: See ``low``.
        records: Shape (labels,), records with each label.
        owners: Shape (p,), the label of each person.
        positions: Shape (p,), where the value of each stands.
        source: Where the values of all records of the source stand.
        random: Draws.
    """
    wide = high[owners] - low[owners] > 1
    owners, positions = owners[wide], positions[wide]
    upper, middle = finer_halves(low, high, records), (low + high) // 2
    ordered = np.sort(source)
    first, last = (np.searchsorted(ordered, one[owners]) for one in (low, high))
    held = last > first
    others = ordered[np.minimum(first + (random.random(len(owners)) * (last - first)).astype(np.int64), len(ordered) - 1)][held]
    right = int(np.count_nonzero((positions >= middle[owners]) == upper[owners]))
    wrong = int(np.count_nonzero((others >= middle[owners[held]]) == upper[owners[held]]))
    return Guesses("downcoding", column, BY_OTHERS, len(owners), right, len(others), wrong)
