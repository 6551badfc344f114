"""Linkage: which record is this person's, for whoever knows all quasi-identifiers, half of them, or one of them wrongly."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from core.attacks.attacked_tables import AttackedPeople, AttackedRelease, Codes, Fits, Guesses, fitting_classes

ALL, HALF, NOISY, PSEUDONYMS, ORDER = (
    "all quasi-identifiers",
    "half of the quasi-identifiers",
    "all quasi-identifiers, one of them wrong",
    "the classes of all records of a pseudonym",
    "the order of the source's records",
)
ORDER_ACCEPTED = 0.1
"""Advantage by which the order of records may differ from that of their content by chance."""


def links(release: AttackedRelease, people: AttackedPeople, fits: Fits, random: np.random.Generator) -> int:
    """Returns how often a record drawn from all that fit is the person's own.

    Args:
        release: The release.
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
    release: AttackedRelease, people: AttackedPeople, control: AttackedPeople, k: int, random: np.random.Generator, *, half: bool
) -> Guesses:
    """Plays the linkage of people by all quasi-identifiers, or by every other one of them."""
    columns = range(0, len(people.fits), 2 if half else 1)
    right, wrong = (links(release, one, fitting_classes(release, one, columns), random) for one in (people, control))
    return Guesses("linkage", None, HALF if half else ALL, len(people), right, len(control), wrong, accepted=1 / k)


def linkage_with_noise(
    release: AttackedRelease, people: AttackedPeople, control: AttackedPeople, k: int, random: np.random.Generator
) -> Guesses:
    """Plays the linkage by an outside file in which one quasi-identifier of each person is another's; the nearest classes are taken."""
    right, wrong = (links(release, one, nearest_classes(release, noisy(one, random)), random) for one in (people, control))
    return Guesses("linkage", None, NOISY, len(people), right, len(control), wrong, accepted=1 / k)


def noisy(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Returns people of whom one quasi-identifier each is known wrongly: it is that of somebody else."""
    wrong, other = random.integers(0, max(len(people.fits), 1), len(people)), random.permutation(len(people))
    fits = tuple(np.where((wrong == place)[:, None], one[other], one) for place, one in enumerate(people.fits))
    return AttackedPeople(fits, people.records, people.values)


def nearest_classes(release: AttackedRelease, people: AttackedPeople) -> Fits:
    """Returns the classes that fit by most quasi-identifiers, shape (p, c); none where none fits by any."""
    agreed = np.zeros((len(people), len(release.sizes)), np.int16)
    for place, one in enumerate(people.fits):
        agreed += one[:, release.labels[:, place]]
    best = agreed.max(axis=1, initial=0)
    nearest: Fits = (agreed == best[:, None]) & (best > 0)[:, None]
    return nearest


def linkage_by_pseudonyms(release: AttackedRelease, column: str, k: int, *, accepted: bool) -> Guesses:
    """Plays the sets of classes that records of one pseudonym are in; right if fewer than k pseudonyms share one.

    Args:
        release: All of its records.
        column: The pseudonyms.
        k: What is promised.
        accepted: Whether the job accepts that sets single people out.
    """
    codes = release.values[column]
    held = codes >= 0
    shared = sets_shared(codes[held], release.owners[held])
    below = int(np.count_nonzero(shared < k))
    return Guesses("linkage", column, PSEUDONYMS, len(shared), below, 0, 0, promised=not accepted)


def sets_shared(people: Codes, classes: Codes) -> Codes:
    """Returns for each person how many people are in the same set of classes, shape (people,)."""
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
    """Returns numbers mixed so that their sums tell sets apart (SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def linkage_by_order(release: AttackedRelease, people: AttackedPeople, rows: Codes) -> Guesses:
    """Plays the order of records: of two people in one class, is the record that stands first that of whom the source has first?

    The control attacker goes by what the two records hold, and not by where they stand: an order of content discloses nothing more.

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
    by_place, by_content = (int(np.count_nonzero(one[first] < one[second])) for one in (release.class_codes, np.arange(release.records)))
    count = len(first)
    # An order that is the other way round says as much.
    right, known = max(by_place, count - by_place), max(by_content, count - by_content)
    return Guesses("linkage", None, ORDER, count, right, count, known, accepted=ORDER_ACCEPTED)


BY_CLASS, BY_DIGEST, BY_FILES = "whether a class fits", "digests without a key", "digests of files without a key"
DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
LEAST_DIGITS = 12
"""Hexadecimal digits that a digest has at least, so that none is met by chance."""


def membership_by_class(release: AttackedRelease, people: AttackedPeople, control: AttackedPeople) -> Guesses:
    """Plays the guess that somebody is in the source if a class fits. k-anonymity does not promise that this is hidden."""
    said, wrong = (int(np.count_nonzero(fitting_classes(release, one).any(axis=1))) for one in (people, control))
    return Guesses("membership", None, BY_CLASS, len(people), said, len(control), wrong)


def membership_by_digests(column: str, texts: Iterable[str], control: Iterable[str], published: Collection[str]) -> Guesses:
    """Plays digests of guessed values: those of whom the source has, and of as many others.

    Args:
        column: The identifier that is guessed.
        texts: Its values as text.
        control: Values of nobody.
        published: Hexadecimal texts that the release holds, in lower case.
    """
    lengths = sorted({len(one) for one in published if len(one) >= LEAST_DIGITS})
    mine, others = list(texts), list(control)
    right, wrong = (sum(_confirms(one, published, lengths) for one in some) for some in (mine, others))
    return Guesses("membership", column, BY_DIGEST, len(mine), right, len(others), wrong, promised=True)


def digests_of_files(digests: Collection[str], published: Collection[str]) -> Guesses:
    """Plays the plain digests of the source's files, which confirm to whoever guesses a file that it is the source."""
    known = sum(one.lower() in published for one in digests)
    return Guesses("membership", None, BY_FILES, len(digests), known, 0, 0, promised=True)


def _confirms(text: str, published: Collection[str], lengths: list[int]) -> bool:
    """Tells whether a plain digest of a text, or the beginning of one, is published."""
    for spelled in {text, text.lower(), text.upper()}:
        content = spelled.encode()
        for name in DIGESTS:
            digest = hashlib.new(name, content, usedforsecurity=False).hexdigest()
            if any(length <= len(digest) and digest[:length] in published for length in lengths):
                return True
    return False
