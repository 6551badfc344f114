"""Proposals of the column that identifies the person of a record, from names and counts.

It has many values, each in several records. It does not number visits, orders or wards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from core.formats.concept_names import NUMBERED, numbered_by, word_set, words
from core.formats.proposals import FREE_TEXT, Proposal

Determines: TypeAlias = Callable[[Proposal, Proposal], bool]
"""Whether records with the same value in the first column have the same value in the second."""
REPEATS, NAMED_REPEATS, MOST_REPEATS = 2.0, 1.2, 100.0
"""Records of a value on average, at least, for a column to say whose they are; if its name says so too; and at most, for other names."""
FEWEST_PEOPLE, FEWEST_NAMED = 150, 20
"""Different values at least for a column to say whose its records are, as ages and codes are fewer; and if its name says so too."""

NUMBERS = word_set("id ssn uuid guid mrn nhs passport")
"""What numbers people, rather than naming them: names are shared."""
SHARED = frozenset(["a person's name", "a contact", "a street address", "biometrics or a picture", "another person's name or number"])
"""Concepts of identifiers that several people may have in common."""
CODED = NUMBERS | word_set("number no nr num key code hash pseudonym token")
"""What a column of numbers or codes calls them: ``member_no``, beside ``member_count``."""


def person_candidates(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the columns that may identify persons; where names say so, only columns named after persons."""
    able = [one for one in proposals if _may_number(one) and one.profile.kind in {"integer", "text"}]
    named = [one for one in able if _repeats_by_name(one)]
    return named or [one for one in able if _repeats(one)]


class PersonChoice(NamedTuple):
    """Column that seems to identify the person of a record, its rivals, and whether that is unsure.

    Attributes:
        person: The column; None if there is none.
        rivals: Others that may as well be: neither names nor what determines what decides between them.
        unsure: Whether it is proposed by its counts alone, though its name could be that of a record's number.
    """

    person: Proposal | None
    rivals: tuple[Proposal, ...] = ()
    unsure: bool = False


def choose_person(
    proposals: Sequence[Proposal],
    may_be_person: Callable[[Proposal], bool],
    determines: Determines,
    repeats: Callable[[Proposal], bool],
) -> PersonChoice:
    """Choose the column that identifies the person of a record, with rivals that are as likely.

    Args:
        may_be_person: Returns whether a column's values may be people.
        repeats: Returns whether two records have one value of a column. It looks at every record, and is asked of few columns.
    """
    candidates = [one for one in person_candidates(proposals) if may_be_person(one)]
    found = propose_person(candidates, determines)
    if found is None:
        # A person's number that hardly repeats, or a column called no more than a key. To count its values is safe: each has a record
        # or more.
        keys = [one for one in proposals if _may_number(one) and _is_persons_number(one) and repeats(one)]
        keys = keys or [one for one in proposals if _repeats_as_key(one) and may_be_person(one)]
        return PersonChoice(max(keys, key=lambda one: one.profile.distinct, default=None), unsure=True)
    others = (one for one in candidates if one is not found and _rank_of_person(one) == _rank_of_person(found))
    return PersonChoice(found, tuple(one for one in others if not determines(one, found) and not determines(found, one)))


def _rank_of_person(one: Proposal) -> tuple[bool, bool]:
    """Return by what a column is preferred as that of the person, before its counts are."""
    return _is_subject(one), one.role == "identifier"


def propose_person(candidates: Sequence[Proposal], determines: Determines) -> Proposal | None:
    """Return the column that seems to identify the person of a record; None if there is none.

    Units may be nested: a visit belongs to one patient. Of such columns the coarsest is taken, because several visits may belong to one
    person. Of columns of which none determines another, or each the other, names decide, and then the number of values.

    Args:
        candidates: As ``person_candidates`` returns them.
    """
    left = list(candidates)
    found = max(left, key=lambda one: (*_rank_of_person(one), one.profile.distinct), default=None)
    while found is not None:
        # Where each determines the other, they are the same unit under two names.
        left = [one for one in left if one is not found]
        coarser = next((one for one in left if determines(found, one) and not determines(one, found)), None)
        if coarser is None:
            break
        found = coarser
    return found


def _may_number(proposal: Proposal) -> bool:
    """Return whether a column may number persons.

    It may if it is an identifier or has no known concept. Names are shared, and doctors have many patients.
    """
    if proposal.concept in {*SHARED, "a number of a record"}:
        return set(words(proposal.profile.name)) <= CODED
    return proposal.role == "identifier" or not proposal.concept


def _repeats(proposal: Proposal) -> bool:
    """Return whether values repeat as often as persons do, many persons with several records each."""
    profile, named = proposal.profile, _is_subject(proposal)
    if not named and profile.looks_measured:
        return False
    if numbered_by(profile.name) in {"event", "place"} or (profile.kind == "text" and profile.mean_length > FREE_TEXT):
        return False
    # More values than a value has records: people are many, and categories are few.
    most = min(MOST_REPEATS, profile.distinct)
    return profile.distinct >= (0 if named else FEWEST_PEOPLE) and (NAMED_REPEATS if named else REPEATS) <= profile.mean_records <= most


def _repeats_as_key(proposal: Proposal) -> bool:
    """Return whether a column is called a key or number and nothing else, of many values that repeat."""
    profile = proposal.profile
    called = set(words(profile.name))
    named = bool(called) and called <= CODED and profile.kind in {"integer", "text"} and not profile.looks_measured
    return named and profile.distinct >= FEWEST_PEOPLE and NAMED_REPEATS <= profile.mean_records <= MOST_REPEATS


def _repeats_by_name(proposal: Proposal) -> bool:
    """Return whether a column is named after persons' numbers and its values repeat."""
    # Whoever is named so may have hundreds of records, under a number that is a long digest.
    return _is_persons_number(proposal) and proposal.profile.mean_records >= NAMED_REPEATS


def _is_persons_number(proposal: Proposal) -> bool:
    """Return whether a column of many values is named after persons' numbers."""
    profile, named = proposal.profile, set(words(proposal.profile.name))
    numbers = numbered_by(profile.name) == "person" and (bool(named & CODED) or named <= NUMBERED["person"])
    return numbers and profile.kind in {"integer", "text"} and profile.distinct >= FEWEST_NAMED


def _is_subject(proposal: Proposal) -> bool:
    """Return whether a column's name says that it numbers persons."""
    return bool(set(words(proposal.profile.name)) & NUMBERS) or numbered_by(proposal.profile.name) == "person"
