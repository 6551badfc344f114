"""CANON (Canbay, Sağıroğlu and Vural 2022; papers/rayden.txt, Related work): RAYDEN's tree on numerical QIDs, without an outlier step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import euclidean_points
from core.clustering.vptree import VantageTree
from core.columns.domains import Domain


def canon(
    records: NDArray[np.integer], domains: Sequence[Domain], tree: VantageTree, people: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Partitions records by the Euclidean distance of their numerical QIDs, each divided by its range.

    Args:
        records: Shape (n, QIDs), the code of each value, in the order that decides ties.
        domains: One per QID; categorical ones are generalised with the rest but play no part here.
        tree: How the tree is built.
        people: As for the tree.

    Returns:
        Shape (n,), int32, dense from 0; each class of k to 2k - 1 records, or of k persons or more.
    """
    return tree.partition(euclidean_points(records, domains), people=people)
