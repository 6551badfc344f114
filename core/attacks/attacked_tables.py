"""Releases and people as attacks read them, coded as integers; guesses and their advantage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from core.composition.pseudonym_sets import ShownTable, digest_table
from core.recount.labels.label_spans import Spans
from schemas.job.privacy import AttackFigures, AttackName, AttackVerdict

Codes = NDArray[np.int64]
NO_VALUE, ELSEWHERE = -1, -2
"""The codes of a null, and of a value that the release does not hold."""


@dataclass(frozen=True, eq=False)
class AttackedRelease:
    """Records of a release as integer codes: each record's class, each class's labels, and values.

    Classes are complete. The order of the records follows from their content alone.

    Attributes:
        owners: Shape (n,), ascending, the class of each record.
        sizes: Shape (c,), records of each class.
        labels: Shape (c, q), the label of each class in each quasi-identifier.
        values: By other column, shape (n,), the value of each record, -1 for a null.
        file_positions: Shape (n,), where each record stands in the files.
        is_complete: Whether these are all records of the release.
    """

    owners: Codes
    sizes: Codes
    labels: Codes
    values: dict[str, Codes]
    file_positions: Codes
    is_complete: bool = True

    @property
    def records(self) -> int:
        """Number of released records, those of all classes."""
        return len(self.owners)


def release_of_codes(labels: Codes, values: Mapping[str, Codes], *, is_whole: bool = True) -> AttackedRelease:
    """Build an attacked release, a class per distinct labels; records are sorted by labels, then values.

    Args:
        labels: Shape (n, q), the label of each record in each quasi-identifier.
        values: By other column, shape (n,), the value of each record; codes ascend with the values.
        is_whole: Whether these are all records; if not, every class is here whole or not at all.
    """
    # Nulls last, as a release has them.
    columns = [np.where(codes < 0, len(codes), codes) for codes in values.values()]
    keys = [*reversed(columns), *reversed(labels.T)]
    order = np.lexsort(keys) if keys else np.arange(len(labels))
    ordered = labels[order]
    firsts = np.ones(len(ordered), np.bool_)
    firsts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    owners = np.cumsum(firsts) - 1
    return AttackedRelease(
        owners=owners,
        sizes=np.bincount(owners, minlength=int(firsts.sum())),
        labels=ordered[firsts],
        values={name: codes[order] for name, codes in values.items()},
        file_positions=order,
        is_complete=is_whole,
    )


def joint_codes(columns: Codes) -> Codes:
    """Return the number, from 0, of each row among the distinct rows of an (n, m) integer array."""
    joint = np.zeros(len(columns), np.int64)
    for column in columns.T:
        _, joint = np.unique(joint, return_inverse=True)
        _, mine = np.unique(column, return_inverse=True)
        joint = joint * (int(mine.max(initial=0)) + 1) + mine
    return np.unique(joint, return_inverse=True)[1] if len(joint) else joint


Fits = NDArray[np.bool_]
NOBODY = -1


@dataclass(frozen=True, eq=False)
class AttackedPeople:
    """People under attack: the labels that fit what is known, and each one's record and true values.

    Attributes:
        fits: By quasi-identifier, shape (p, labels): which labels fit what is known.
        records: Shape (p,), the record of each person; -1 for a person who is not in the release.
        values: By other column, shape (p,), the true value of each person in the codes of the release.
    """

    fits: tuple[Fits, ...]
    records: Codes
    values: dict[str, Codes]

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.records)

    def chosen_people(self, chosen: NDArray[np.int64]) -> AttackedPeople:
        """Return the people at the given positions, in the given order."""
        values = {name: codes[chosen] for name, codes in self.values.items()}
        return AttackedPeople(tuple(one[chosen] for one in self.fits), self.records[chosen], values)


def people_known_by_labels(release: AttackedRelease, chosen: Codes) -> AttackedPeople:
    """Return an attacked person per given record, known only by the labels of the record's class.

    Guesses about them follow from the data files alone.
    """
    owners = release.owners[chosen]
    fits = []
    for place in range(release.labels.shape[1]):
        labels = release.labels[:, place]
        one = np.zeros((len(chosen), int(labels.max(initial=-1)) + 1), np.bool_)
        one[np.arange(len(chosen)), labels[owners]] = True
        fits.append(one)
    return AttackedPeople(tuple(fits), chosen, {name: codes[chosen] for name, codes in release.values.items()})


def fitting_classes(release: AttackedRelease, people: AttackedPeople, columns: Sequence[int] | None = None) -> Fits:
    """Return a mask of classes that fit what is known of ``columns``, all QIDs if None, shape (p, c).

    Only the given quasi-identifiers are used; all if left out.
    """
    found = np.ones((len(people), len(release.sizes)), np.bool_)
    for place in range(len(people.fits)) if columns is None else columns:
        found &= people.fits[place][:, release.labels[:, place]]
    return found


def recombined_people(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Return as many control people, who are not in the release, each recombined from real people.

    Half of what is known is of one person, half of another, and values are of a third.
    """
    count = len(people)
    first, second, third = (random.permutation(count) for _ in range(3))
    half = (len(people.fits) + 1) // 2
    fits = tuple(one[first if place < half else second] for place, one in enumerate(people.fits))
    return AttackedPeople(fits, np.full(count, NOBODY), {name: codes[third] for name, codes in people.values.items()})


def with_values_of_others(people: AttackedPeople, random: np.random.Generator) -> AttackedPeople:
    """Return a control group: the same people with permuted values and without records of their own.

    So the release says nothing about their values.
    """
    order = random.permutation(len(people))
    return AttackedPeople(people.fits, np.full(len(people), NOBODY), {name: codes[order] for name, codes in people.values.items()})


def people_with_value(people: AttackedPeople, column: str) -> AttackedPeople:
    """Return the people who have a value in a column."""
    return people.chosen_people(np.flatnonzero(people.values[column] != NO_VALUE))


def label_fits(spans: Spans, positions: NDArray[np.int64], labels: NDArray[np.int64] | None = None) -> Fits:
    """Return a mask of the labels that cover each position, shape (positions, labels).

    Args:
        positions: Where values stand; a null stands at ``spans.null``.
        labels: The labels that are asked for, all unless they are said.
    """
    chosen = np.arange(len(spans.low)) if labels is None else labels
    ends = spans.high
    found = (positions[:, None] >= spans.low[chosen][None, :]) & (positions[:, None] < ends[chosen][None, :])
    if len(spans.nulls):
        found |= (positions == spans.null)[:, None] & np.isin(chosen, spans.nulls)[None, :]
    # A set is not all that lies between its ends; there are as many as labels.
    for label in np.flatnonzero(np.isin(chosen, list(spans.sets))).tolist() if spans.sets else ():
        found[:, label] = np.isin(positions, spans.sets[int(chosen[label])])
    return found


USUAL = 1.959964
"""Standard deviations of an interval of 95 %."""
SURE = 4.5
"""Those by which a release is called broken: by chance one of some hundred thousand attacks would be."""
DIGITS = 4


def wilson_interval(right: int, guess_count: int, deviations: float = USUAL) -> tuple[float, float]:
    """Return both ends of Wilson's score interval for the share of right guesses; (0, 1) without guesses."""
    if not guess_count:
        return 0.0, 1.0
    share, square = right / guess_count, deviations**2
    middle = (share + square / (2 * guess_count)) / (1 + square / guess_count)
    half = deviations / (1 + square / guess_count) * sqrt(share * (1 - share) / guess_count + square / (4 * guess_count**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def advantage_interval(
    right: int, guess_count: int, control_right: int, control_guess_count: int, deviations: float = USUAL
) -> tuple[float, float, float]:
    """Return the share of right guesses minus the control group's, and both ends of its interval.

    The interval is made of both score intervals (Newcombe, Stat. Med. 1998, method 10). Without guesses about the control group its share
    is 0: no person in it could be guessed.
    """
    share = right / guess_count if guess_count else 0.0
    other = control_right / control_guess_count if control_guess_count else 0.0
    low, high = wilson_interval(right, guess_count, deviations)
    other_low, other_high = wilson_interval(control_right, control_guess_count, deviations) if control_guess_count else (0.0, 0.0)
    difference = share - other
    return (
        difference,
        difference - sqrt((share - low) ** 2 + (other_high - other) ** 2),
        difference + sqrt((high - share) ** 2 + (other - other_low) ** 2),
    )


@dataclass(frozen=True)
class Guesses:
    """Numbers of guesses and of right guesses of one attack, and of its control group.

    Attributes:
        name: The attack.
        target: What it aims at; None for records as such.
        knows: What the attacker knows, in words.
        guesses: Guesses about people of the release.
        right: How many of these were right.
        control_guesses: Guesses about the control group.
        control_right: How many of these were right.
        accepted: Advantage that the job accepts, from 0 to 1.
        promised: Whether the job promises that no guess is right: then a single one breaks the release.
    """

    name: AttackName
    target: str | None
    knows: str
    guesses: int
    right: int
    control_guesses: int
    control_right: int
    accepted: float = 1.0
    promised: bool = False

    def figures(self) -> AttackFigures:
        """Return the figures of the attack, with its advantage and verdict."""
        counts = self.right, self.guesses, self.control_right, self.control_guesses
        advantage, low, high = advantage_interval(*counts)
        return AttackFigures(
            name=self.name,
            target=self.target,
            knows=self.knows,
            guesses=self.guesses,
            right=self.right,
            control_guesses=self.control_guesses,
            control_right=self.control_right,
            advantage=_rounded(advantage),
            low=_rounded(low),
            high=_rounded(high),
            accepted=0.0 if self.promised else _rounded(min(max(self.accepted, 0.0), 1.0)),
            verdict=self._verdict(low),
        )

    def _verdict(self, low: float) -> AttackVerdict:
        """Return the verdict on the attack from the lower bound of its advantage."""
        if self.promised:
            return "broken" if self.right else "safe"
        if advantage_interval(self.right, self.guesses, self.control_right, self.control_guesses, SURE)[1] > self.accepted:
            return "broken"
        return "told" if low > 0 else "safe"


def _rounded(share: float) -> float:
    """Round a share to four digits; no minus before 0."""
    return round(share, DIGITS) + 0.0


def added_guesses(guesses_of_parts: list[Guesses]) -> Guesses:
    """Sum the guesses of the parts of one attack; ``accepted`` is averaged, weighted by guesses."""
    first, count = guesses_of_parts[0], sum(one.guesses for one in guesses_of_parts)
    return replace(
        first,
        guesses=count,
        right=sum(one.right for one in guesses_of_parts),
        control_guesses=sum(one.control_guesses for one in guesses_of_parts),
        control_right=sum(one.control_right for one in guesses_of_parts),
        accepted=sum(one.accepted * one.guesses for one in guesses_of_parts) / count if count else first.accepted,
    )


BY_JOIN = "all rows of the joined tables"
BY_TABLE = "all rows of this table, joined"


def history_sizes_sql(unit: ShownTable) -> str:
    """Return SQL that counts the histories that so many persons share, by this number.

    Reads the digests of labels that ``row_digests_sql`` makes of the unit.
    """
    return f"SELECT persons, count(*) FROM (SELECT count(*) AS persons FROM {digest_table(unit)} GROUP BY labels) GROUP BY persons"


def joined_guesses(table: str | None, person_count: int, persons_below_k: int, *, promised: bool) -> Guesses:
    """Return the guesses of a join attack; a guess is right if fewer than k persons share the rows.

    Args:
        table: The table that is joined to the persons; None for all of them.
        person_count: Persons of the release.
        persons_below_k: Those who share their rows with fewer than k.
        promised: Whether the job promises k against attackers who know all rows.
    """
    return Guesses("joins", table, BY_TABLE if table else BY_JOIN, person_count, persons_below_k, 0, 0, promised=promised)
