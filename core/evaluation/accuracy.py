"""How well a column can be told from the QIDs: the accuracy of a classifier, by scikit-learn, the optional extra ``utility``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FOLDS = 3
SMALLEST_LEAF = 20


def accuracy(features: NDArray[np.float64], target: NDArray[np.int64], seed: int) -> float:
    """Returns the share of records that a decision tree tells rightly, learnt on two thirds of them and asked of the other, three times.

    A tree needs no scaling and takes groups as they are published; a class of k records is no place for finer leaves.

    Args:
        features: Shape (n, QIDs): the mean position of the values that the published label may be.
        target: Shape (n,), codes of the column that is told.
        seed: Of folds and ties.
    """
    # Not at the top: it is an optional extra, and everything else must start without it.
    from sklearn.model_selection import KFold, cross_val_score  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    tree = DecisionTreeClassifier(min_samples_leaf=SMALLEST_LEAF, random_state=seed)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    return float(np.mean(cross_val_score(tree, features, target, cv=folds)))


def majority(target: NDArray[np.int64]) -> float:
    """Returns the share of the most frequent code: what one is right in who knows nothing of a record."""
    return float(np.bincount(target).max() / len(target))
