"""Inference: the sensitive value of a person, from the class that fits, or from a learner that was trained on the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.advantages import Guesses
from core.attacks.allowed_shares import ModalValues, allowed_counts, exceeding
from core.attacks.attacked_people import AttackedPeople, Fits, fitting_classes
from core.attacks.attacked_release import AttackedRelease, Codes

BY_CLASS, BY_LEARNER, BY_BREACH = "the class", "a learner trained on the release", "classes that break what is promised of it"
MOST_VALUES = 48
"""The most frequent values, which a learner tells apart."""
COUNTED = 1.0
"""What naive Bayes adds to each count."""


def modal_values(release: AttackedRelease, column: str) -> ModalValues:
    """Returns the most frequent value of each class; of equally frequent ones the first."""
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
    missing: float = 0.0,
) -> list[Guesses]:
    """Plays the most frequent value of the classes that fit; where none does, that of the release.

    Args:
        release: The release.
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
        broken = exceeding(modal, allowed)
        played.append(Guesses("inference", column, BY_BREACH, len(modal.sizes), broken, 0, 0, promised=True))
    return played


def _by_class(release: AttackedRelease, column: str, people: AttackedPeople, modal: ModalValues) -> tuple[Codes, int]:
    """Returns the class by which each person is guessed, -1 for none, and how many guesses are right."""
    if not len(people):
        return np.empty(0, np.int64), 0
    fits = fitting_classes(release, people)
    votes = np.where(fits, modal.counts + 1, 0)
    chosen = np.where(fits.any(axis=1), votes.argmax(axis=1), -1)
    usual = int(modal.overall.argmax()) if len(modal.overall) else -1
    guessed = np.where(chosen >= 0, modal.values[np.maximum(chosen, 0)], usual)
    return chosen, int(np.count_nonzero((guessed == people.values[column]) & (guessed >= 0)))


def inference_by_learner(release: AttackedRelease, column: str, people: AttackedPeople, control: AttackedPeople) -> Guesses:
    """Plays naive Bayes, trained on the labels and values of all records that were read."""
    logs = _learnt(release, column)
    right, wrong = (_learner_right(logs, column, one) for one in (people, control))
    return Guesses("inference", column, BY_LEARNER, len(people), right, len(control), wrong)


def _learnt(release: AttackedRelease, column: str) -> tuple[Codes, NDArray[np.float32], list[NDArray[np.float32]]]:
    """Returns the values that are told apart, how often each occurs, and how often with each label of each quasi-identifier."""
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
    values, overall, tables = learnt
    if not len(people) or not len(values):
        return 0
    score = np.broadcast_to(np.log(overall), (len(people), len(values))).copy()
    for one, table in zip(people.fits, tables, strict=True):
        score += np.log((_counts_of(one, table) + COUNTED) / (overall + COUNTED * len(table)))
    return int(np.count_nonzero(values[score.argmax(axis=1)] == people.values[column]))


def _counts_of(fits: Fits, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns how often each value occurs with a label that fits, shape (p, values)."""
    found: NDArray[np.float32] = fits.astype(np.float32) @ table
    return found
