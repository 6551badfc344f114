"""Columns as a learner takes them: of what a label may be, the share of each value or band of values, and the mean of numbers.

A label is a set of values, each as likely as the other; a raw value is a set of one. So what is learnt from a release can be asked about
raw records, and a label that is withheld says what it should: nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import as_numbers
from core.evaluation.utility import Meaning

BANDS = 10
CATEGORIES = 40
"""Values of a column that are told apart; the others are one."""

Floats = NDArray[np.float64]


def bands_of(domain: Domain, most: int) -> NDArray[np.int64]:
    """Puts the codes of a column into bands: numbers by rank into equal shares of the records, others by how frequent they are.

    Args:
        domain: Of the column.
        most: Bands, at most; the null is one more.

    Returns:
        Shape (size,), dense from 0.
    """
    counts = domain.counts
    if as_numbers(domain.values) is None:
        order = np.argsort(-counts, kind="stable")
        found = np.empty(len(counts), np.int64)
        found[order] = np.minimum(np.arange(len(counts)), most - 1)
    else:
        # By the middle of each value's records, so that a frequent one does not push the next ones on.
        middle = np.cumsum(counts) - counts / 2
        found = np.minimum(middle * most // max(int(counts.sum()), 1), most - 1).astype(np.int64)
    found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return np.append(found, found.max(initial=-1) + 1)[: domain.size]


def band_shares(meaning: Meaning, bands: NDArray[np.int64]) -> Floats:
    """Returns the share of each band in what each label may be, shape (labels, bands)."""
    width = int(bands.max(initial=0)) + 1
    places = meaning.labels * width + bands[meaning.codes]
    sums = np.bincount(places, weights=(1 / meaning.members)[meaning.labels], minlength=len(meaning.members) * width)
    shares: Floats = sums.reshape(-1, width).astype(np.float64, copy=False)
    return shares


def features_of(meaning: Meaning, domain: Domain) -> Floats:
    """Returns what a learner gets of each label, shape (labels, features): of numbers the scaled mean of what it may be, then shares."""
    numbers = as_numbers(domain.values)
    shares = band_shares(meaning, bands_of(domain, CATEGORIES if numbers is None else BANDS))
    if numbers is None or len(numbers) < 2:
        return shares
    mean = np.average(numbers, weights=domain.counts)
    spread = float(np.sqrt(np.average((numbers - mean) ** 2, weights=domain.counts))) or 1.0
    # A null is as far from the mean as nothing is.
    scaled = np.append((numbers - mean) / spread, 0.0)[: domain.size]
    return np.column_stack([meaning.share(scaled), shares])
