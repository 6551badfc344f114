"""Attacks on single records of a release: singling out, linkage and membership.

Singling out is by predicates made from a release that few people satisfy (Article 29 Working Party, Opinion 05/2014).

The promise is that the labels of a record hold for k people. There is no such promise for columns that are published as they are. A value
that one record has singles its person out for a reader who knows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.attacks.attacked_tables import AttackedPeople, AttackedRelease, Codes, Fits, Guesses, fitting_classes, joint_codes

BY_LABELS, BY_VALUE, BY_BOTH, BY_END = "labels", "a rare value", "labels and a rare value", "an end of a range"
PAIRS = 12
"""Pairs of quasi-identifiers of which predicates are made."""


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Pairs of a class and a value with their record counts, the rarest first.

    Attributes:
        owners: Shape (m,), the class.
        values: Shape (m,), the value.
        counts: Shape (m,), records with both.
    """

    owners: Codes
    values: Codes
    counts: Codes


def singled_out_by_labels(release: AttackedRelease, k: int, most_guesses: int, random: np.random.Generator) -> Guesses:
    """Simulate singling out by the rarest labels of one, two and all columns: right below k records.

    Predicates are of one column, of two, and of all. The control group are combinations of two classes, which hold for no record or for a
    class.
    """
    counts = [release.sizes]
    columns = range(release.labels.shape[1])
    for places in [*((place,) for place in columns), *list(combinations(columns, 2))[:PAIRS]]:
        counts.append(np.bincount(joint_codes(release.labels[:, places]), release.sizes).astype(np.int64))
    rarest = np.sort(np.concatenate(counts), kind="stable")[:most_guesses]
    made = _recombined_sizes(release, min(most_guesses, release.records), random)
    return Guesses("singling_out", None, BY_LABELS, len(rarest), _few(rarest, k), len(made), _few(made, k), promised=True)


def _few(counts: Codes, k: int) -> int:
    """Return the number of counts from 1 to k - 1."""
    return int(np.count_nonzero((counts > 0) & (counts < k)))


def _recombined_sizes(release: AttackedRelease, count: int, random: np.random.Generator) -> Codes:
    """Return the number of records with labels recombined from two random classes."""
    classes, columns = release.labels.shape
    first, second = (random.integers(0, classes, count) for _ in range(2))
    made = np.where(np.arange(columns) < (columns + 1) // 2, release.labels[first], release.labels[second])
    joint = joint_codes(np.concatenate([release.labels, made]))
    sizes = np.zeros(int(joint.max(initial=0)) + 1, np.int64)
    sizes[joint[:classes]] = release.sizes
    return sizes[joint[classes:]]


def rare_pairs(release: AttackedRelease, column: str) -> PairCounts:
    """Return the pairs of a class and a column's value, nulls aside, the rarest first."""
    values = release.values[column]
    width = int(values.max(initial=0)) + 1
    held = values >= 0
    pairs, counts = np.unique(release.owners[held] * width + values[held], return_counts=True)
    order = np.argsort(counts, kind="stable")
    return PairCounts(pairs[order] // width, pairs[order] % width, counts[order])


def singled_out_by_value(
    release: AttackedRelease, column: str, k: int, most_guesses: int, *, promises_shared_values: bool, is_published: bool
) -> Guesses:
    """Simulate singling out by a column's rarest values: right if one record, or below k, has the value.

    Where the job promises that k people share values, it is right if fewer than k have it.

    Args:
        k: What is promised.
        most_guesses: Guesses, at most.
        promises_shared_values: Whether the job promises that k people have each value.
        is_published: Whether the job publishes the column at all.
    """
    values = release.values[column]
    counts = np.sort(np.bincount(values[values >= 0]))
    rarest = counts[counts > 0][:most_guesses]
    right = _few(rarest, k) if promises_shared_values else int(np.count_nonzero(rarest == 1))
    return Guesses("singling_out", column, BY_VALUE, len(rarest), right, 0, 0, promised=promises_shared_values or not is_published)


def singled_out_by_both(release: AttackedRelease, column: str, most_guesses: int, random: np.random.Generator) -> Guesses:
    """Simulate singling out by the rarest pairs of class and value: right if one record has both.

    The control group are the same values in other classes.
    """
    pairs = rare_pairs(release, column)
    count = min(most_guesses, len(pairs.counts))
    others = random.integers(0, len(release.sizes), count)
    width = int(release.values[column].max(initial=0)) + 1
    known = pairs.owners * width + pairs.values
    order = np.argsort(known)
    made = others * width + pairs.values[:count]
    places = np.minimum(np.searchsorted(known[order], made), max(len(known) - 1, 0))
    alone = (known[order][places] == made) & (pairs.counts[order][places] == 1) if count else np.zeros(0, np.bool_)
    right = int(np.count_nonzero(pairs.counts[:count] == 1))
    return Guesses("singling_out", column, BY_BOTH, count, right, count, int(np.count_nonzero(alone)))


def small_and_random_classes(release: AttackedRelease, count: int, random: np.random.Generator) -> Codes:
    """Return ``count`` classes to look up in the source: half of them the smallest, half at random."""
    small = np.argsort(release.sizes, kind="stable")[: (count + 1) // 2]
    others = np.setdiff1d(np.arange(len(release.sizes)), small)
    return np.concatenate([small, random.permutation(others)[: count - len(small)]])


def persons_within(fits: Fits, persons: Codes | None) -> Codes:
    """Count the persons, or records if ``persons`` is None, who satisfy each predicate, shape (m,).

    Args:
        fits: Shape (n, m), which records satisfy which predicate.
        persons: Shape (n,), the person of each record, -1 for none; None where each is a person of its own.
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
    """Simulate singling out in the source: right if fewer than k persons satisfy a class's labels.

    Labels that no person satisfies count as right too: then they are false.
    """
    few = int(np.count_nonzero(counts < k))
    return Guesses("singling_out", None, BY_LABELS, len(counts), few, len(control), _few(control, k), promised=True)


def singled_out_by_ends(column: str, counts: Codes, control: Codes, *, allows_observed_ends: bool) -> Guesses:
    """Simulate singling out by ends of ranges: right if one person of the source has the end's value.

    Args:
        column: The quasi-identifier.
        counts: People who have each end.
        control: People who have each of as many values between the ends.
        allows_observed_ends: Whether the job asks for ends that may be one person's.
    """
    alone, others = (int(np.count_nonzero(one == 1)) for one in (counts, control))
    return Guesses("singling_out", column, BY_END, len(counts), alone, len(control), others, accepted=1.0 if allows_observed_ends else 0.0)


ALL, HALF, NOISY, PSEUDONYMS, ORDER = (
    "all quasi-identifiers",
    "half of the quasi-identifiers",
    "all quasi-identifiers, one of them wrong",
    "the classes of all records of a pseudonym",
    "the order of the source's records",
)
ORDER_ACCEPTED = 0.1
"""Advantage by which the order of records may differ from that of their content by chance."""


def right_links(release: AttackedRelease, people: AttackedPeople, fits: Fits, random: np.random.Generator) -> int:
    """Count the people for whom a record drawn at random from the fitting classes is their own.

    Args:
        people: Shape (p,); who is not in it is never found.
        fits: Shape (p, c), the classes that fit.
        random: Draws.
    """
    reach = fits @ release.sizes
    own = people.records >= 0
    own[own] = fits[np.flatnonzero(own), release.owners[people.records[own]]]
    # Which of the records that fit is drawn is even: the own one is the first of them as often as any other.
    return int(np.count_nonzero(own & (random.random(len(people)) * reach < 1)))


def linkage_by_columns(
    release: AttackedRelease, people: AttackedPeople, control: AttackedPeople, k: int, random: np.random.Generator, *, half_of_columns: bool
) -> Guesses:
    """Simulate linkage by all or half of the QIDs: right if a record drawn from fitting classes is theirs."""
    columns = range(0, len(people.fits), 2 if half_of_columns else 1)
    right, wrong = (right_links(release, one, fitting_classes(release, one, columns), random) for one in (people, control))
    return Guesses("linkage", None, HALF if half_of_columns else ALL, len(people), right, len(control), wrong, accepted=1 / k)


def linkage_with_noise(
    release: AttackedRelease, people: AttackedPeople, control: AttackedPeople, k: int, random: np.random.Generator
) -> Guesses:
    """Simulate linkage with one wrong QID per person: right if a record of the nearest classes is theirs.

    The wrong one is that of another person, as in an outside file with errors.
    """
    right, wrong = (
        right_links(release, one, nearest_classes(release, with_one_wrong_qid(one, random)), random) for one in (people, control)
    )
    return Guesses("linkage", None, NOISY, len(people), right, len(control), wrong, accepted=1 / k)


def with_one_wrong_qid(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Return people with one quasi-identifier each replaced by that of another person."""
    wrong, other = random.integers(0, max(len(people.fits), 1), len(people)), random.permutation(len(people))
    fits = tuple(np.where((wrong == place)[:, None], one[other], one) for place, one in enumerate(people.fits))
    return AttackedPeople(fits, people.records, people.values)


def nearest_classes(release: AttackedRelease, people: AttackedPeople) -> Fits:
    """Return a mask of the classes that fit by most quasi-identifiers, at least one, shape (p, c).

    No class is marked for a person whom none fits by any.
    """
    agreed = np.zeros((len(people), len(release.sizes)), np.int16)
    for place, one in enumerate(people.fits):
        agreed += one[:, release.labels[:, place]]
    best = agreed.max(axis=1, initial=0)
    nearest: Fits = (agreed == best[:, None]) & (best > 0)[:, None]
    return nearest


def linkage_by_pseudonyms(release: AttackedRelease, column: str, k: int, *, is_accepted: bool) -> Guesses:
    """Simulate linkage by pseudonyms: right if fewer than k people occur in the same set of classes.

    Args:
        k: What is promised.
        is_accepted: Whether the job accepts that sets single people out.
    """
    codes = release.values[column]
    held = codes >= 0
    shared = people_per_class_set(codes[held], release.owners[held])
    below = int(np.count_nonzero(shared < k))
    return Guesses("linkage", column, PSEUDONYMS, len(shared), below, 0, 0, promised=not is_accepted)


def people_per_class_set(people: Codes, classes: Codes) -> Codes:
    """Return by ascending person how many persons have the same set of classes, that one too, (persons,)."""
    pairs = np.unique(np.stack([people, classes], axis=1), axis=0)
    names = _mixed(pairs[:, 1].astype(np.uint64))
    _, who = np.unique(pairs[:, 0], return_inverse=True)
    sets = np.zeros((int(who.max(initial=-1)) + 1, 2), np.uint64)
    # A commutative sum of mixed numbers stands for a set; 128 bits of it never meet by chance.
    np.add.at(sets[:, 0], who, names)
    np.add.at(sets[:, 1], who, _mixed(names))
    _, owners, counts = np.unique(sets, axis=0, return_inverse=True, return_counts=True)
    return counts[owners.ravel()]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64-bit numbers so that sums of them identify sets.

    SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
    """
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def linkage_by_order(release: AttackedRelease, people: AttackedPeople, rows: Codes) -> Guesses:
    """Simulate guessing by file positions which of two people of a class comes first in the source.

    Both people are in one class. A guess is right if the source has the same person first. The control attacker goes by the content of the
    two records, and not by their positions: an order of content discloses nothing more.

    Args:
        release: Records in the order of their content, with their places in the files.
        people: People whose record is known for certain.
        rows: Shape (p,), their rows in the source.
    """
    certain = people.records >= 0
    records, rows = people.records[certain], rows[certain]
    order = np.lexsort([rows, release.owners[records]])
    records = records[order]
    same = release.owners[records[1:]] == release.owners[records[:-1]]
    first, second = records[:-1][same], records[1:][same]
    by_place, by_content = (int(np.count_nonzero(one[first] < one[second])) for one in (release.file_positions, np.arange(release.records)))
    count = len(first)
    # An order that is the other way round says as much.
    right, known = max(by_place, count - by_place), max(by_content, count - by_content)
    return Guesses("linkage", None, ORDER, count, right, count, known, accepted=ORDER_ACCEPTED)


BY_CLASS, BY_DIGEST, BY_FILES = "whether a class fits", "digests without a key", "digests of files without a key"
DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
LEAST_DIGITS = 12
"""Hexadecimal digits that a digest has at least, so that none is met by chance."""


def membership_by_class(release: AttackedRelease, people: AttackedPeople, control: AttackedPeople) -> Guesses:
    """Simulate the membership attack: guess that a person is in the source if a class fits.

    k-anonymity does not promise to hide this.
    """
    said, wrong = (int(np.count_nonzero(fitting_classes(release, one).any(axis=1))) for one in (people, control))
    return Guesses("membership", None, BY_CLASS, len(people), said, len(control), wrong)


def membership_by_digests(column: str, texts: Iterable[str], control: Iterable[str], published: Collection[str]) -> Guesses:
    """Simulate the membership attack: right if the plain digest of a guessed value is published.

    Guesses are values of people of the source, and as many other values.

    Args:
        column: The identifier that is guessed.
        texts: Its values as text.
        control: Values that no person has.
        published: Hexadecimal texts that the release holds, in lower case.
    """
    lengths = sorted({len(one) for one in published if len(one) >= LEAST_DIGITS})
    mine, others = list(texts), list(control)
    right, wrong = (sum(_confirms(one, published, lengths) for one in some) for some in (mine, others))
    return Guesses("membership", column, BY_DIGEST, len(mine), right, len(others), wrong, promised=True)


def membership_by_file_digests(digests: Collection[str], published: Collection[str]) -> Guesses:
    """Simulate the attack by file digests: right if the plain digest of a source file is published.

    It would confirm a guessed file as the source.
    """
    known = sum(one.lower() in published for one in digests)
    return Guesses("membership", None, BY_FILES, len(digests), known, 0, 0, promised=True)


def _confirms(text: str, published: Collection[str], lengths: list[int]) -> bool:
    """Return whether a plain digest of a text, or the beginning of one, is published."""
    for spelled in {text, text.lower(), text.upper()}:
        content = spelled.encode()
        for name in DIGESTS:
            digest = hashlib.new(name, content, usedforsecurity=False).hexdigest()
            if any(length <= len(digest) and digest[:length] in published for length in lengths):
                return True
    return False
