"""Inference attacks: the sensitive value of a person, from the fitting class or from a learner.

The learner is trained on the release. Downcoding attacks, which guess the half of a label that holds a value, are here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attacked_tables import AttackedPeople, AttackedRelease, Codes, Fits, Guesses, fitting_classes, joint_codes

FROM_LEFT_OUT_PERSONS = "the value of somebody who was left out with them"


def inference_from_left_out_persons(
    release: AttackedRelease, column: str, labels: Codes, values: Codes, k: int, most_guesses: int, random: np.random.Generator
) -> Guesses:
    """Simulate guessing a suppressed person's value from another one with equal quasi-identifiers.

    Both persons have the same combination of quasi-identifiers. The combinations are those that k persons share and that were left out. The
    control group are persons of published classes.

    Args:
        column: The sensitive column.
        labels: Shape (n, q), the label of each record of the source in each quasi-identifier, -1 for none.
        values: Shape (n,), its value in the codes of the release.
        k: What is promised.
        most_guesses: Guesses, at most.
        random: Draws.
    """
    joint = joint_codes(np.concatenate([release.labels, labels]))
    classes, groups = joint[: len(release.sizes)], joint[len(release.sizes) :]
    size = int(joint.max(initial=0)) + 1
    published = np.zeros(size, np.bool_)
    published[classes] = True
    counts = np.bincount(groups, minlength=size)
    known = (labels >= 0).all(axis=1)
    left = known & (counts >= max(k, 2))[groups] & ~published[groups]
    mine, others = (_neighbours_right(groups[chosen], values[chosen], most_guesses, random) for chosen in (left, known & published[groups]))
    return Guesses("inference", column, FROM_LEFT_OUT_PERSONS, *mine, *others)


def _neighbours_right(groups: Codes, values: Codes, sample: int, random: np.random.Generator) -> tuple[int, int]:
    """Return the number of people guessed by a neighbour in their group, and of right guesses."""
    held = values != -1
    groups, values = groups[held], values[held]
    order = np.lexsort([random.random(len(groups)), groups])
    first, second = order[:-1], order[1:]
    same = groups[first] == groups[second]
    drawn = random.permutation(np.flatnonzero(same))[:sample]
    right = (values[first[drawn]] == values[second[drawn]]) & (values[first[drawn]] >= 0)
    return len(drawn), int(np.count_nonzero(right))


STEPS = 60
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class ModalValues:
    """Most frequent value of each class, with its counts.

    Attributes:
        values: Shape (c,), the value; -1 where no record has one.
        counts: Shape (c,), records that have it.
        valued: Shape (c,), records that have any.
        sizes: Shape (c,), all records.
        overall: Shape (values,), records of the release by value.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    valued: NDArray[np.int64]
    sizes: NDArray[np.int64]
    overall: NDArray[np.int64]


def allowed_counts(kind: str, spec: Any, modal: ModalValues, missing: float = 0.0) -> NDArray[np.float64] | None:
    """Return how many records of a class may share its modal value, shape (classes,); None if unbounded.

    Args:
        kind: The model of l-diversity or the distance of t-closeness.
        spec: What the job says of it.
        modal: Of the release.
        missing: Share of the source's records that are not in the release: by so much its distribution may differ from the source's.
    """
    with_nulls = getattr(spec, "nulls", "none") == "value"
    held: NDArray[np.float64] = (modal.sizes if with_nulls else modal.valued).astype(np.float64)
    if kind == "distinct":
        others: int = spec.distinct - 1
        return held - others
    if kind == "entropy":
        return held * entropy_share(float(spec.entropy), int(np.count_nonzero(modal.overall)) + with_nulls)
    if kind == "recursive":
        share = float(spec.recursive.c)
        return held * share / (1 + share) if spec.recursive.l > 1 else None
    if kind == "equal":
        whole = max(int(modal.sizes.sum()), 1)
        expected = np.where(modal.values >= 0, modal.overall[np.maximum(modal.values, 0)] if len(modal.overall) else 0, 0) / whole
        near: NDArray[np.float64] = modal.sizes * (expected + missing + float(spec.t))
        return near
    return None


def entropy_share(diversity: float, value_count: int) -> float:
    """Return the greatest share of one value at which the entropy is at least ln(``diversity``).

    The other share is spread evenly over the other values.
    """
    if value_count < 2 or log(value_count) < log(diversity):
        return 1.0 / max(value_count, 1)
    low, high = 1 / value_count, 1.0
    for _ in range(STEPS):
        share = (low + high) / 2
        entropy = -share * log(share) - (1 - share) * log((1 - share) / (value_count - 1)) if share < 1 else 0.0
        low, high = (share, high) if entropy >= log(diversity) else (low, share)
    return high


def classes_exceeding(modal: ModalValues, allowed: NDArray[np.float64]) -> int:
    """Return the number of classes whose most frequent value has more records than allowed."""
    most = np.array([floor(one + SLACK) for one in np.unique(allowed)])
    return int(np.count_nonzero(modal.counts > most[np.searchsorted(np.unique(allowed), allowed)]))


BY_CLASS, BY_LEARNER, BY_BREACH = "the class", "a learner trained on the release", "classes that break what is promised of it"
MOST_VALUES = 48
"""Number of the most frequent values, which a learner predicts."""
COUNTED = 1.0
"""What naive Bayes adds to each count."""


def modal_values(release: AttackedRelease, column: str) -> ModalValues:
    """Return each class's most frequent value, the first of equals, and its count, nulls aside."""
    codes, classes = release.values[column], len(release.sizes)
    held = codes >= 0
    width = int(codes.max(initial=0)) + 1
    pairs, counts = np.unique(release.owners[held] * width + codes[held], return_counts=True)
    owners, values = pairs // width, pairs % width
    order = np.lexsort([values, -counts, owners])
    firsts = order[np.unique(owners[order], return_index=True)[1]]
    modal, most = np.full(classes, -1), np.zeros(classes, np.int64)
    modal[owners[firsts]], most[owners[firsts]] = values[firsts], counts[firsts]
    return ModalValues(modal, most, np.bincount(release.owners[held], minlength=classes), release.sizes, np.bincount(codes[held]))


def inference_by_class(
    release: AttackedRelease,
    column: str,
    people: AttackedPeople,
    control: AttackedPeople,
    promised: Mapping[str, Any],
    missing: float,
) -> list[Guesses]:
    """Simulate guessing the modal value of fitting classes; where l or t bounds it, count breaches too.

    Where no class fits, it is the most frequent value of the release.

    Args:
        column: The sensitive column.
        people: People of the release who have a value.
        control: The control group, likewise.
        promised: What the job promises of the column, by model or distance; empty where it promises nothing, or promises it of persons.
        missing: Share of the source's records that are not in the release.
    """
    modal = modal_values(release, column)
    bounds = [one for kind, spec in promised.items() if (one := allowed_counts(kind, spec, modal, missing)) is not None]
    allowed = np.min(bounds, axis=0) if bounds else None
    chosen, right = _by_class(release, column, people, modal)
    _, wrong = _by_class(release, column, control, modal)
    accepted = 1.0
    if allowed is not None and len(people):
        most = np.minimum(allowed / np.maximum(modal.valued, 1), 1.0)
        accepted = float(np.where(chosen >= 0, most[np.maximum(chosen, 0)], 1.0).mean()) - wrong / max(len(control), 1)
    played = [Guesses("inference", column, BY_CLASS, len(people), right, len(control), wrong, accepted=accepted)]
    if allowed is not None:
        broken = classes_exceeding(modal, allowed)
        played.append(Guesses("inference", column, BY_BREACH, len(modal.sizes), broken, 0, 0, promised=True))
    return played


def _by_class(release: AttackedRelease, column: str, people: AttackedPeople, modal: ModalValues) -> tuple[Codes, int]:
    """Return the class by which each person is guessed, -1 for none, and the number of right guesses."""
    if not len(people):
        return np.empty(0, np.int64), 0
    fits = fitting_classes(release, people)
    votes = np.where(fits, modal.counts + 1, 0)
    chosen = np.where(fits.any(axis=1), votes.argmax(axis=1), -1)
    usual = int(modal.overall.argmax()) if len(modal.overall) else -1
    guessed = np.where(chosen >= 0, modal.values[np.maximum(chosen, 0)], usual)
    return chosen, int(np.count_nonzero((guessed == people.values[column]) & (guessed >= 0)))


def inference_by_learner(release: AttackedRelease, column: str, people: AttackedPeople, control: AttackedPeople) -> Guesses:
    """Simulate guessing a value by naive Bayes, trained on the release's labels and values."""
    logs = _learnt(release, column)
    right, wrong = (_learner_right(logs, column, one) for one in (people, control))
    return Guesses("inference", column, BY_LEARNER, len(people), right, len(control), wrong)


def _learnt(release: AttackedRelease, column: str) -> tuple[Codes, NDArray[np.float32], list[NDArray[np.float32]]]:
    """Train naive Bayes: return the values, their counts, and their counts with each label."""
    codes = release.values[column]
    overall = np.bincount(codes[codes >= 0])
    values = np.argsort(-overall, kind="stable")[:MOST_VALUES]
    values = values[overall[values] > 0]
    places = np.full(len(overall) + 1, -1)
    places[values] = np.arange(len(values))
    held = (codes >= 0) & (places[np.maximum(codes, 0)] >= 0)
    mine, tables = places[codes[held]], []
    for place in range(release.labels.shape[1]):
        labels = release.labels[:, place]
        count = int(labels.max(initial=-1)) + 1
        joint = labels[release.owners[held]] * max(len(values), 1) + mine
        tables.append(np.bincount(joint, minlength=count * len(values)).reshape(count, len(values)).astype(np.float32))
    return values, overall[values].astype(np.float32), tables


def _learner_right(learnt: tuple[Codes, NDArray[np.float32], list[NDArray[np.float32]]], column: str, people: AttackedPeople) -> int:
    """Return the number of people whose value naive Bayes guesses right."""
    values, overall, tables = learnt
    if not len(people) or not len(values):
        return 0
    score = np.broadcast_to(np.log(overall), (len(people), len(values))).copy()
    for one, table in zip(people.fits, tables, strict=True):
        score += np.log((_counts_of(one, table) + COUNTED) / (overall + COUNTED * len(table)))
    return int(np.count_nonzero(values[score.argmax(axis=1)] == people.values[column]))


def _counts_of(fits: Fits, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the count of each value with a fitting label, shape (p, values)."""
    found: NDArray[np.float32] = fits.astype(np.float32) @ table
    return found


BY_OTHERS = "the finer labels of other classes"
MOST_LABELS = 2_000


def finer_halves(low: Codes, high: Codes, records: Codes) -> NDArray[np.bool_]:
    """Return a mask of labels in whose upper half finer labels have more records than in the lower half.

    Args:
        low: Shape (labels,), the first position that a label covers.
        high: Shape (labels,), the position after the last one.
        records: Shape (labels,), records with each label.
    """
    middle = (low + high) // 2
    within_low = (low[None, :] >= low[:, None]) & (high[None, :] <= middle[:, None])
    within_high = (low[None, :] >= middle[:, None]) & (high[None, :] <= high[:, None])
    return np.asarray(within_high @ records > within_low @ records, np.bool_)


def downcoding_by_halves(
    column: str, low: Codes, high: Codes, records: Codes, owners: Codes, positions: Codes, source: Codes, random: np.random.Generator
) -> Guesses:
    """Simulate the downcoding attack: guess the half of a label in which a person's value lies.

    The control group are records of the source whose value the label covers.

    Args:
        column: The quasi-identifier.
        low: Shape (labels,), the first position that a label covers, and ``high`` the one after the last.
        high: See ``low``.
        records: Shape (labels,), records with each label.
        owners: Shape (p,), the label of each person.
        positions: Shape (p,), where the value of each stands.
        source: Where the values of all records of the source stand.
        random: Draws.
    """
    wide = high[owners] - low[owners] > 1
    owners, positions = owners[wide], positions[wide]
    upper, middle = finer_halves(low, high, records), (low + high) // 2
    ordered = np.sort(source)
    first, last = (np.searchsorted(ordered, one[owners]) for one in (low, high))
    held = last > first
    others = ordered[np.minimum(first + (random.random(len(owners)) * (last - first)).astype(np.int64), len(ordered) - 1)][held]
    right = int(np.count_nonzero((positions >= middle[owners]) == upper[owners]))
    wrong = int(np.count_nonzero((others >= middle[owners[held]]) == upper[owners[held]]))
    return Guesses("downcoding", column, BY_OTHERS, len(owners), right, len(others), wrong)
