"""What the score that prices every possible cut goes by: what classes would publish, beside what they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.mondrian.ranks import Axis
from core.mondrian.rows import Told
from core.recoding.price_kernels import KIND, RANGE, SECOND, SET, SIDE
from core.recoding.prices import Labels, label_prices

SHARE = 0.2
"""How much of a price is that of the label; the rest is that of the values that a class holds. By labels alone a cut is worth nothing until
both halves have another label, and the first cuts of all are made blindly; by values alone they are made for what nobody reads."""


def told_of(labels: Sequence[Labels], axes: Sequence[Axis]) -> Told:
    """Returns what labels cost, by the ranks of axes.

    Args:
        labels: One per QID: what classes publish.
        axes: One per QID.
    """
    prices, places, _ = label_prices(labels, published=1, held=0)
    ends = np.cumsum([place.shape[1] for place in places])
    of_ranks, shares = [], []
    for label, axis, place, column in zip(labels, axes, places, ends - 1, strict=True):
        mine = np.empty((axis.size, 2), np.int32)
        mine[axis.ranks] = place[:, [0, -1]]
        of_ranks.append(mine)
        kind, paired = prices.terms[column, KIND], prices.terms[column, SIDE] == SECOND
        # Ranges with the ends of the class, and sets, tell what a class holds.
        same = kind == SET or (kind == RANGE and label.ends is None)
        shares.append(0.0 if same and (kind == SET or paired or not axis.nulls) else SHARE)
    return Told(np.array(shares), np.concatenate(of_ranks), (ends - 1).astype(np.int64), prices.terms, prices.numbers)
