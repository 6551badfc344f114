"""Singling out: predicates made of a release that few people satisfy (Article 29 Working Party, Opinion 05/2014).

What labels say is promised to hold of k people. What columns say that are published as they are is not, and a value that one record has
singles its person out for whoever knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.attacks.attacked_tables import AttackedRelease, Codes, Fits, Guesses, joint_codes

BY_LABELS, BY_VALUE, BY_BOTH, BY_END = "labels", "a rare value", "labels and a rare value", "an end of a range"
PAIRS = 12
"""Pairs of quasi-identifiers of which predicates are made."""


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Pairs of a class and a value, the rarest first.

    Attributes:
        owners: Shape (m,), the class.
        values: Shape (m,), the value.
        counts: Shape (m,), records with both.
    """

    owners: Codes
    values: Codes
    counts: Codes


def singled_out_by_labels(release: AttackedRelease, k: int, sample: int, random: np.random.Generator) -> Guesses:
    """Plays predicates of labels: of one column, of two, of all; right if fewer than k records satisfy one.

    The control group are combinations of two classes that hold of nobody or of a class.
    """
    counts = [release.sizes]
    columns = range(release.labels.shape[1])
    for places in [*((place,) for place in columns), *list(combinations(columns, 2))[:PAIRS]]:
        counts.append(np.bincount(joint_codes(release.labels[:, places]), release.sizes).astype(np.int64))
    rarest = np.sort(np.concatenate(counts), kind="stable")[:sample]
    made = _recombined_sizes(release, min(sample, release.records), random)
    return Guesses("singling_out", None, BY_LABELS, len(rarest), _few(rarest, k), len(made), _few(made, k), promised=True)


def _few(counts: Codes, k: int) -> int:
    return int(np.count_nonzero((counts > 0) & (counts < k)))


def _recombined_sizes(release: AttackedRelease, count: int, random: np.random.Generator) -> Codes:
    """Returns how many records have labels of which half are those of one class and half those of another."""
    classes, columns = release.labels.shape
    first, second = (random.integers(0, classes, count) for _ in range(2))
    made = np.where(np.arange(columns) < (columns + 1) // 2, release.labels[first], release.labels[second])
    joint = joint_codes(np.concatenate([release.labels, made]))
    sizes = np.zeros(int(joint.max(initial=0)) + 1, np.int64)
    sizes[joint[:classes]] = release.sizes
    return sizes[joint[classes:]]


def rare_pairs(release: AttackedRelease, column: str) -> PairCounts:
    """Returns the pairs of a class and a value, the rarest first."""
    values = release.values[column]
    width = int(values.max(initial=0)) + 1
    held = values >= 0
    pairs, counts = np.unique(release.owners[held] * width + values[held], return_counts=True)
    order = np.argsort(counts, kind="stable")
    return PairCounts(pairs[order] // width, pairs[order] % width, counts[order])


def singled_out_by_value(release: AttackedRelease, column: str, k: int, sample: int, *, shared: bool, known: bool) -> Guesses:
    """Plays the rarest values of a column; right if one record has one, or fewer than k where the job promises more.

    Args:
        release: All of its records.
        column: The column.
        k: What is promised.
        sample: Guesses, at most.
        shared: Whether the job promises that k people have each value.
        known: Whether the job publishes the column at all.
    """
    values = release.values[column]
    counts = np.sort(np.bincount(values[values >= 0]))
    rarest = counts[counts > 0][:sample]
    right = _few(rarest, k) if shared else int(np.count_nonzero(rarest == 1))
    return Guesses("singling_out", column, BY_VALUE, len(rarest), right, 0, 0, promised=shared or not known)


def singled_out_by_both(release: AttackedRelease, column: str, sample: int, random: np.random.Generator) -> Guesses:
    """Plays the rarest values within classes; right if one record has labels and value. Control: the same values in other classes."""
    pairs = rare_pairs(release, column)
    count = min(sample, len(pairs.counts))
    others = random.integers(0, len(release.sizes), count)
    width = int(release.values[column].max(initial=0)) + 1
    known = pairs.owners * width + pairs.values
    order = np.argsort(known)
    made = others * width + pairs.values[:count]
    places = np.minimum(np.searchsorted(known[order], made), max(len(known) - 1, 0))
    alone = (known[order][places] == made) & (pairs.counts[order][places] == 1) if count else np.zeros(0, np.bool_)
    right = int(np.count_nonzero(pairs.counts[:count] == 1))
    return Guesses("singling_out", column, BY_BOTH, count, right, count, int(np.count_nonzero(alone)))


def rarest_classes(release: AttackedRelease, count: int, random: np.random.Generator) -> Codes:
    """Returns classes to look at in the source: half of them the smallest, half drawn."""
    small = np.argsort(release.sizes, kind="stable")[: (count + 1) // 2]
    others = np.setdiff1d(np.arange(len(release.sizes)), small)
    return np.concatenate([small, random.permutation(others)[: count - len(small)]])


def persons_within(fits: Fits, persons: Codes | None) -> Codes:
    """Returns how many people of the source satisfy each predicate, shape (m,).

    Args:
        fits: Shape (n, m), which records satisfy which predicate.
        persons: Shape (n,), whose each record is, -1 for nobody's; None where each is a person of its own.
    """
    if persons is None:
        records: Codes = fits.sum(axis=0, dtype=np.int64)
        return records
    rows, predicates = np.nonzero(fits & (persons >= 0)[:, None])
    width = int(persons.max(initial=0)) + 1
    pairs = np.unique(predicates * width + persons[rows])
    counts: Codes = np.bincount(pairs // width, minlength=fits.shape[1])
    return counts


def singled_out_in_source(counts: Codes, control: Codes, k: int) -> Guesses:
    """Plays labels of classes against the source; right if fewer than k people satisfy them, or nobody does: then they are false."""
    few = int(np.count_nonzero(counts < k))
    return Guesses("singling_out", None, BY_LABELS, len(counts), few, len(control), _few(control, k), promised=True)


def singled_out_by_ends(column: str, counts: Codes, control: Codes, *, observed: bool) -> Guesses:
    """Plays ends of ranges against the source; right if one person has the value that a range ends at.

    Args:
        column: The quasi-identifier.
        counts: People who have each end.
        control: People who have each of as many values between the ends.
        observed: Whether the job asks for ends that may be one person's.
    """
    alone, others = (int(np.count_nonzero(one == 1)) for one in (counts, control))
    return Guesses("singling_out", column, BY_END, len(counts), alone, len(control), others, accepted=1.0 if observed else 0.0)
