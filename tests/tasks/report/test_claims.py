"""Attacks that won are warned of first, by the first of them and their number."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.job.privacy import AttackBasis, AttackFigures
from tasks.report.claims import (
    ON_LABELS,
    ON_SOURCE,
    UNPLAYED,
    accepted_below_k,
    attack_meaning,
    attack_sentences,
    attack_warning,
    first_warning,
    maximum_risk,
    reported_attacks,
)
from tests.core.recount.test_classes import manifest
from tests.tasks.report.test_criteria import TERMS


def attack(**changes: Any) -> AttackFigures:
    made: dict[str, Any] = {
        "name": "inference", "target": "disease", "knows": "all of them", "guesses": 100, "right": 40, "control_guesses": 100,
        "control_right": 10, "advantage": 0.3, "low": 0.2, "high": 0.4, "accepted": 0.1, "verdict": "broken",
    }  # fmt: skip
    return AttackFigures.model_validate(made | changes)


def test_no_maximum_risk_is_claimed_where_untreated_columns_single_people_out() -> None:
    measured = {"after": {"min_class": 12}}
    assert "0.09" in maximum_risk(manifest(risk=measured))
    alone = {"unique_records": 7, "below_k": 20, "with_classes": 30, "all": 95}
    assert maximum_risk(manifest(risk=measured, passthrough_together=alone)).startswith("No maximum risk is claimed")


def test_nothing_is_warned_of_where_no_attack_won() -> None:
    assert attack_warning(manifest()) == ""
    assert attack_warning(manifest(attacks=(attack(verdict="safe"), attack(verdict="told")))) == ""


def test_the_first_attack_that_won_is_named_and_the_others_are_counted() -> None:
    one = attack_warning(manifest(attacks=(attack(verdict="safe"), attack())))
    assert one == "1 attack on this release won more than the job accepts: inference of 'disease' by all of them. Do not hand it on unread."
    three = manifest(attacks=(attack(name="linkage", target=None), attack(verdict="told"), attack(), attack()))
    assert attack_warning(three).startswith("3 attacks on this release won more than the job accepts: linkage by all of them and 2 more.")
    assert first_warning(three) == attack_warning(three)


@pytest.mark.parametrize(
    ("sample", "whom"), [(None, "everybody"), (1, "at most 1 person each, fewer"), (2_000, "at most 2,000 persons each, fewer")]
)
def test_whom_attacks_were_played_against_is_said(sample: int | None, whom: str) -> None:
    basis = AttackBasis(sample=sample, seed=1_234, code="0123456789abcdef")
    told = attack_sentences(manifest(attacked=basis))[-1]
    assert told.startswith(f"Attacks were played against {whom}")
    assert told.endswith("they were drawn by seed 1,234. Code of the attacks: 0123456789ab.")


@pytest.mark.parametrize(
    ("attacks", "verdict"),
    [
        ((), "No attack was played."),
        ((attack(verdict="safe"), attack(verdict="told")), "None of 2 attacks won more than the job accepts."),
        ((attack(), attack(verdict="told")), "1 of 2 attacks won more than the job accepts."),
    ],
)
def test_the_verdict_of_attacks_comes_first_and_why_some_were_not_played_before_the_last(
    attacks: tuple[AttackFigures, ...], verdict: str
) -> None:
    basis = AttackBasis(sample=None, seed=0, code="c")
    assert attack_sentences(manifest(attacked=basis, attacks=attacks))[:-1] == (verdict, ON_LABELS, ON_SOURCE)
    some = AttackBasis(sample=None, seed=0, code="c", unplayed=("Not this one.",))
    assert attack_sentences(manifest(attacked=some, attacks=attacks))[:-1] == (verdict, ON_LABELS, "Not this one.")
    assert attack_sentences(manifest(attacks=attacks)) == (UNPLAYED,)


@pytest.mark.parametrize(
    ("changes", "meaning"),
    [
        ({}, "wins more than the job accepts"),
        ({"guesses": 0}, "stand in the run folder alone"),
        ({"accepted": 0, "right": 1}, "1 of its guesses is right, and the job promises that none is"),
        ({"accepted": 0, "right": 2}, "2 of its guesses are right"),
        ({"verdict": "told"}, "within what the job accepts"),
        # Whatever publish says of the column, and of ends of ranges too.
        ({"verdict": "told", "name": "singling_out"}, "accepts: such values are published"),
        ({"verdict": "safe", "accepted": 0, "right": 0}, "No guess is right, as was promised"),
        ({"verdict": "safe", "accepted": 0}, "Wins no more than without the release"),
        ({"verdict": "safe", "right": 0}, "Wins no more than without the release"),
        ({"verdict": "safe"}, "Wins no more than without the release"),
    ],
)
def test_what_an_attack_means_is_said_by_its_verdict(changes: dict[str, Any], meaning: str) -> None:
    assert meaning in attack_meaning(attack(**changes))


def test_attacks_that_break_a_release_are_told_first() -> None:
    told = reported_attacks(manifest(attacks=(attack(verdict="safe"), attack(), attack(verdict="told"))))
    assert [one.figures.verdict for one in told] == ["broken", "safe", "told"]


@pytest.mark.parametrize(("below", "accepts", "given"), [(7, True, True), (7, False, False), (0, True, False), (None, True, False)])
def test_columns_together_below_k_are_accepted_where_there_are_such_records_and_the_job_says_so(
    below: int | None, accepts: bool, given: bool
) -> None:
    together = None if below is None else {"unique_records": 0, "below_k": below, "with_classes": 9, "unit": "record", "all": 95}
    said = manifest(passthrough_together=together, asked=TERMS.model_copy(update={"accept_untreated": accepts}))
    assert accepted_below_k(said) == (said.passthrough_together if given else None)
    assert accepted_below_k(manifest(passthrough_together=together)) is None, "a manifest may not say what was asked for"
