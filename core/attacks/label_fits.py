"""Which labels of a release fit which values of the source, as the recount reads labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.attacks.attacked_people import Fits
from core.recount.labels.label_spans import Spans


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
