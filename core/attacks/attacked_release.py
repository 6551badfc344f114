"""A release as attacks read it: the class of each record, the labels of each class, and the other columns, as whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    places: Codes
    is_whole: bool = True

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
        places=order,
        is_whole=is_whole,
    )


def joint_codes(columns: Codes) -> Codes:
    """Returns one number for each different row of whole numbers, shape (n,) of (n, m)."""
    joint = np.zeros(len(columns), np.int64)
    for column in columns.T:
        _, joint = np.unique(joint, return_inverse=True)
        _, mine = np.unique(column, return_inverse=True)
        joint = joint * (int(mine.max(initial=0)) + 1) + mine
    return np.unique(joint, return_inverse=True)[1] if len(joint) else joint
