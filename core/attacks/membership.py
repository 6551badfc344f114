"""Membership: is this person in the source? By labels that fit, and by digests that confirm what is guessed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

import numpy as np

from core.attacks.advantages import Guesses
from core.attacks.attacked_people import AttackedPeople, fitting_classes
from core.attacks.attacked_release import AttackedRelease

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
