"""How well a column can be told from the QIDs: what learners of scikit-learn, the optional extra ``utility``, get right of raw records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FOLDS = 3
SMALLEST_LEAF = 20
MOST_LEARNT = 30_000
"""Records that are learnt from; more make the figures hardly better."""

Floats = NDArray[np.float64]


class Examples(NamedTuple):
    """Records with what is to be told of them.

    Attributes:
        features: Shape (n, features).
        target: Shape (n,), codes of the column that is told.
        folds: Shape (n,), below FOLDS.
    """

    features: Floats
    target: NDArray[np.int64]
    folds: NDArray[np.int64]


def accuracies(learnt: Examples, asked: Examples, seed: int) -> dict[str, float]:
    """Returns the share of records that each learner tells rightly, taught on two folds of some and asked about the third of others.

    A tree and a logistic regression fail in different ways where labels are wide: the one takes steps, the other is linear in shares.

    Args:
        learnt: What is learnt from.
        asked: What is asked.
        seed: Of ties, and of the records that are learnt from where there are many.
    """
    # Not at the top: it is an optional extra, and everything else must start without it.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    learners: dict[str, Any] = {
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=SMALLEST_LEAF, random_state=seed),
        "logistic": lambda: LogisticRegression(max_iter=500),
    }
    right = dict.fromkeys(learners, 0)
    for fold in range(FOLDS):
        mine = np.flatnonzero(learnt.folds != fold)
        mine = np.sort(np.random.default_rng(seed).permutation(mine)[:MOST_LEARNT])
        theirs = asked.folds == fold
        for name, learner in learners.items():
            told = _told(learner(), learnt.features[mine], learnt.target[mine], asked.features[theirs])
            right[name] += int(np.count_nonzero(told == asked.target[theirs]))
    return {name: count / len(asked.target) for name, count in right.items()}


def _told(learner: Any, features: Floats, target: NDArray[np.int64], asked: Floats) -> NDArray[np.int64]:
    # Of one class there is nothing to learn, and learners refuse it.
    if len(np.unique(target)) < 2 or not len(asked):
        return np.full(len(asked), target[0])
    told: NDArray[np.int64] = learner.fit(features, target).predict(asked)
    return told


def folds_of(size: int, seed: int) -> NDArray[np.int64]:
    """Shares records out among folds, shape (size,): the same for records of the same number."""
    return np.random.default_rng(seed).permutation(size) % FOLDS


def majority(target: NDArray[np.int64]) -> float:
    """Returns the share of the most frequent code: what one is right in who knows nothing of a record."""
    return float(np.bincount(target).max() / len(target))
