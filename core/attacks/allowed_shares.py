"""How much of a class one sensitive value may be, by what a job promises: the most that an attacker may be right by."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 60
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class ModalValues:
    """The most frequent value of each class.

    Attributes:
        values: Shape (c,), the value; -1 where nobody has one.
        counts: Shape (c,), records that have it.
        valued: Shape (c,), records that have any.
        sizes: Shape (c,), all records.
        overall: Shape (values,), records of the release by value.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    valued: NDArray[np.int64]
    sizes: NDArray[np.int64]
    overall: NDArray[np.int64]


def allowed_counts(kind: str, spec: Any, modal: ModalValues, missing: float = 0.0) -> NDArray[np.float64] | None:
    """Returns how many records of each class may have its most frequent value, shape (c,); None where that is not bounded.

    Args:
        kind: The model of l-diversity or the distance of t-closeness.
        spec: What the job says of it.
        modal: Of the release.
        missing: Share of the source's records that are not in the release: by so much its distribution may differ from the source's.
    """
    with_nulls = getattr(spec, "nulls", "none") == "value"
    held: NDArray[np.float64] = (modal.sizes if with_nulls else modal.valued).astype(np.float64)
    if kind == "distinct":
        others: int = spec.distinct - 1
        return held - others
    if kind == "entropy":
        return held * entropy_share(float(spec.entropy), int(np.count_nonzero(modal.overall)) + with_nulls)
    if kind == "recursive":
        share = float(spec.recursive.c)
        return held * share / (1 + share) if spec.recursive.l > 1 else None
    if kind == "equal":
        whole = max(int(modal.sizes.sum()), 1)
        expected = np.where(modal.values >= 0, modal.overall[np.maximum(modal.values, 0)] if len(modal.overall) else 0, 0) / whole
        near: NDArray[np.float64] = modal.sizes * (expected + missing + float(spec.t))
        return near
    return None


def entropy_share(diversity: float, values: int) -> float:
    """Returns the greatest share of one value where the entropy is at least ln l, the rest spread evenly over the other values."""
    if values < 2 or log(values) < log(diversity):
        return 1.0 / max(values, 1)
    low, high = 1 / values, 1.0
    for _ in range(STEPS):
        share = (low + high) / 2
        entropy = -share * log(share) - (1 - share) * log((1 - share) / (values - 1)) if share < 1 else 0.0
        low, high = (share, high) if entropy >= log(diversity) else (low, share)
    return high


def exceeding(modal: ModalValues, allowed: NDArray[np.float64]) -> int:
    """Returns in how many classes more records have the most frequent value than may."""
    most = np.array([floor(one + SLACK) for one in np.unique(allowed)])
    return int(np.count_nonzero(modal.counts > most[np.searchsorted(np.unique(allowed), allowed)]))
