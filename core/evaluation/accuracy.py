"""Prediction of columns from quasi-identifiers by learners of scikit-learn.

It measures how many raw records learners get right that were trained on a release. scikit-learn is the optional extra ``utility``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import as_numbers
from core.evaluation.utility import Meaning, Predicate

FOLDS = 3
SMALLEST_LEAF = 20
MOST_LEARNT = 30_000
"""Records that are learnt from; more make the figures hardly better."""

Floats = NDArray[np.float64]


class Examples(NamedTuple):
    """Records for learners: features, target codes and folds.

    Attributes:
        features: Shape (n, features).
        target: Shape (n,), codes of the column that is predicted.
        folds: Shape (n,), below FOLDS.
    """

    features: Floats
    target: NDArray[np.int64]
    folds: NDArray[np.int64]


def accuracies(trained_on: Examples, tested_on: Examples, seed: int) -> dict[str, float]:
    """Return the share of records that each learner predicts correctly, by cross-validation.

    A learner is trained on two folds of ``trained_on`` and tested on the third fold of ``tested_on``. A tree and a logistic regression
    fail in different ways where labels are wide: the tree takes steps, the regression is linear in shares.

    Args:
        trained_on: The records whose targets are learnt.
        tested_on: The same records, whose targets are predicted.
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
        mine = np.flatnonzero(trained_on.folds != fold)
        mine = np.sort(np.random.default_rng(seed).permutation(mine)[:MOST_LEARNT])
        theirs = tested_on.folds == fold
        for name, learner in learners.items():
            told = _told(learner(), trained_on.features[mine], trained_on.target[mine], tested_on.features[theirs])
            right[name] += int(np.count_nonzero(told == tested_on.target[theirs]))
    return {name: count / len(tested_on.target) for name, count in right.items()}


def _told(learner: Any, features: Floats, target: NDArray[np.int64], asked: Floats) -> NDArray[np.int64]:
    """Train a learner and return its predictions; without two classes, the only one."""
    # Of one class there is nothing to learn, and learners refuse it.
    if len(np.unique(target)) < 2 or not len(asked):
        return np.full(len(asked), target[0])
    told: NDArray[np.int64] = learner.fit(features, target).predict(asked)
    return told


def folds_of(size: int, seed: int) -> NDArray[np.int64]:
    """Return a random fold for each record, shape (size,), the same for the same seed and size."""
    return np.random.default_rng(seed).permutation(size) % FOLDS


def majority_share(target: NDArray[np.int64]) -> float:
    """Return the share of the most frequent code: the accuracy without any knowledge of a record."""
    return float(np.bincount(target).max() / len(target))


BANDS = 10
CATEGORIES = 40
"""Values of a column that stay separate; the others are one."""


def bands_of(domain: Domain, most_bands: int) -> NDArray[np.int64]:
    """Return each code's band: by quantile for numbers, rank of frequency for others, a last one for null.

    Args:
        domain: Of the column.
        most_bands: Bands, at most; the null is one more.

    Returns:
        Shape (size,), dense from 0.
    """
    counts = domain.counts
    if as_numbers(domain.values) is None:
        order = np.argsort(-counts, kind="stable")
        found = np.empty(len(counts), np.int64)
        found[order] = np.minimum(np.arange(len(counts)), most_bands - 1)
    else:
        # By the middle of each value's records, so that a frequent one does not push the next ones on.
        middle = np.cumsum(counts) - counts / 2
        found = np.minimum(middle * most_bands // max(int(counts.sum()), 1), most_bands - 1).astype(np.int64)
    found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return np.append(found, found.max(initial=-1) + 1)[: domain.size]


def band_shares(meaning: Meaning, bands: NDArray[np.int64]) -> Floats:
    """Return the share of each band among the values that each label may be, shape (labels, bands)."""
    width = int(bands.max(initial=0)) + 1
    places = meaning.labels * width + bands[meaning.codes]
    sums = np.bincount(places, weights=(1 / meaning.members)[meaning.labels], minlength=len(meaning.members) * width)
    shares: Floats = sums.reshape(-1, width).astype(np.float64)
    return shares


def features_of(meaning: Meaning, domain: Domain) -> Floats:
    """Return the features of each label for a learner, shape (labels, features).

    For numbers they are the scaled mean of the possible values, then the shares of bands; for others the shares of categories.
    """
    numbers = as_numbers(domain.values)
    shares = band_shares(meaning, bands_of(domain, CATEGORIES if numbers is None else BANDS))
    if numbers is None or len(numbers) < 2:
        return shares
    mean = np.average(numbers, weights=domain.counts)
    spread = float(np.sqrt(np.average((numbers - mean) ** 2, weights=domain.counts))) or 1.0
    # A null is as far from the mean as nothing is.
    scaled = np.append((numbers - mean) / spread, 0.0)[: domain.size]
    return np.column_stack([meaning.share(scaled), shares])


Codes = Sequence[NDArray[np.int64]]
CountQuery = tuple[Predicate, ...]


def draw_counts(numbers: Sequence[int], weights: Sequence[NDArray[np.int64]], width: int, query_count: int, seed: int) -> list[CountQuery]:
    """Draw random count queries over several QIDs: ranges of numbers and single values of others.

    Ends and values are those of records drawn at random.

    Args:
        numbers: QIDs that get ranges.
        weights: By QID, the records per code, nulls last.
        width: How many QIDs a count is over; all of them if there are fewer.
        query_count: How many.
        seed: The same seed draws the same counts, whatever release is asked.
    """
    random = np.random.default_rng([seed, width])
    shares = [weight / weight.sum() for weight in weights]
    drawn = []
    for _ in range(query_count):
        parts = []
        for one in np.sort(random.choice(len(shares), min(width, len(shares)), replace=False)).tolist():
            ends = np.sort(random.choice(len(shares[one]), 2 if one in numbers else 1, p=shares[one])).tolist()
            parts.append(Predicate(one, ends[0], ends[-1]))
        drawn.append(tuple(parts))
    return drawn


def exact_counts(queries: Sequence[CountQuery], codes: Codes) -> Floats:
    """Return the number of records that each query selects, shape (queries,).

    Args:
        codes: By QID, shape (records,): the code of each record's value.
    """
    found = np.empty(len(queries))
    for place, query in enumerate(queries):
        inside = np.ones(len(codes[0]), np.bool_)
        for part in query:
            inside &= (codes[part.attribute] >= part.first) & (codes[part.attribute] <= part.last)
        found[place] = np.count_nonzero(inside)
    return found


def estimated_counts(queries: Sequence[CountQuery], codes: Codes, meanings: Sequence[Meaning]) -> Floats:
    """Return the estimated count of records for each query, shape (queries,).

    Each record counts by the share of its possible values that the query selects.

    Args:
        codes: By QID, shape (records,): the label of each record.
        meanings: By QID, of its labels.
    """
    found = np.empty(len(queries))
    for place, query in enumerate(queries):
        inside = np.ones(len(codes[0]))
        for part in query:
            inside *= meanings[part.attribute].share_of_range(part.first, part.last)[codes[part.attribute]]
        found[place] = inside.sum()
    return found


def cramers_v_of_pairs(codes: Codes, band_shares_of_labels: Sequence[Floats]) -> Mapping[tuple[int, int], float]:
    """Return Cramér's V of each pair of columns; a label counts for every band that it may be in.

    Args:
        codes: By column, shape (records,): the label of each record.
        band_shares_of_labels: By column, shape (labels, bands): the share of each band in what a label may be.
    """
    found = {}
    for one, other in combinations(range(len(codes)), 2):
        # Joint labels first, of which there are fewer than records.
        pairs, counts = np.unique(codes[one] * len(band_shares_of_labels[other]) + codes[other], return_counts=True)
        first, second = np.divmod(pairs, len(band_shares_of_labels[other]))
        found[one, other] = _cramer((band_shares_of_labels[one][first] * counts[:, None]).T @ band_shares_of_labels[other][second])
    return found


def _cramer(table: Floats) -> float:
    """Return Cramér's V of a contingency table."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least, total = min(table.shape, default=0), table.sum()
    if least < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(min(((table - expected) ** 2 / expected).sum() / total / (least - 1), 1.0)))
