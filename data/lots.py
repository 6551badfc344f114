"""Drawing from a skewed distribution with one table look-up per record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TICKETS = 65_536


def tickets(weights: NDArray[np.float64], count: int = TICKETS) -> NDArray[np.intp]:
    """Distribute ``count`` tickets among weighted items, so that drawing a ticket draws its item.

    An item holds its share of the tickets to within one, and at least one ticket if its share is one or more, so an item
    that is listed is an item that can occur. A draw is one look-up, where cumulative weights would take a search.

    Args:
        weights: shape (m,), not negative and not all zero; need not add up to one.
        count: number of tickets, a power of two so that an unbiased draw is a few random bits.

    Returns:
        Shape (count,): the item of every ticket, in ascending order.

    Raises:
        ValueError: a positive weight is so small that its item might get no ticket.
    """
    shares = weights * (count / weights.sum())
    starved = int(np.count_nonzero((shares > 0) & (shares < 1)))
    if starved:
        raise ValueError(f"{starved} of {weights.size} weights are too small for {count} tickets; draw from more tickets")
    ends = np.floor(np.cumsum(shares) + 0.5).astype(np.int64)
    ends[-1] = count
    return np.repeat(np.arange(weights.size), np.diff(ends, prepend=0))
