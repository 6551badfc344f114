"""Results of simulated attacks on a release, and the job's settings for them.

A result has the guesses, the right ones, and the same for a control group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from schemas.reading.model import FrozenModel, LaterJsonSchema, StrictModel, fault

AttackName = Literal["singling_out", "linkage", "inference", "membership", "downcoding", "joins"]
AttackVerdict = Literal["safe", "told", "broken"]


class AttackFigures(FrozenModel):
    """Guesses and right guesses of one attack and of its control group, with the advantage.

    Attributes:
        name: The attack.
        target: What it aims at: a column, a table or another release; None for records as such.
        knows: What the attacker knows, in words.
        guesses: Guesses about people of the release, of which ``right`` were right.
        right: See ``guesses``.
        control_guesses: Guesses about the control group, of which ``control_right`` were right.
        control_right: See ``control_guesses``.
        advantage: Share of right guesses minus that of the control group.
        low, high: Interval of the advantage at 95 %, by the score intervals of Wilson (Newcombe 1998, method 10).
        accepted: The advantage that the job accepts; 0 where it promises that no guess is right.
        verdict: ``safe``: the interval holds the control group. ``told``: more, within what the job accepts. ``broken``: more than that.
    """

    name: AttackName
    target: str | None
    knows: str
    guesses: int
    right: int
    control_guesses: int
    control_right: int
    advantage: float
    low: float
    high: float
    accepted: float
    verdict: AttackVerdict


class AttackBasis(FrozenModel):
    """The sample, seed and code version of the attacks on a release.

    Attributes:
        sample: People that an attack is played against at most; None for all of them.
        seed: What they were drawn by.
        code: Fingerprint of the code of the attacks.
        unplayed: Why attacks were not played, a sentence each.
    """

    sample: int | None
    seed: int
    code: str
    unplayed: tuple[str, ...] = ()


def broken_attacks(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """Return the attacks whose verdict is ``broken``: they succeed more than the job accepts."""
    return [one for one in attacks if one.verdict == "broken"]


def attacks_sentence(attack: AttackFigures) -> str:
    """Return one attack in words: its name, its target and the attacker's knowledge."""
    return f"{attack.name.replace('_', ' ')}{f' of {attack.target!r}' if attack.target else ''} by {attack.knows}"


SAMPLE = 2_000
"""People that an attack is played against at most, unless the job says otherwise."""
MOST_PEOPLE = 1_000_000


def sample_size(value: object) -> object:
    """Return a sample size; raise unless it is a whole number up to a million, or the word all."""
    if value == "all" or (type(value) is int and 1 <= value <= MOST_PEOPLE):
        return value
    raise fault(f"must be a whole number from 1 to {MOST_PEOPLE:,}, or the word all")


class AttackSettings(StrictModel):
    """Settings of the simulated attacks on a release before it is published."""

    sample: Annotated[Annotated[int, Field(ge=1, le=MOST_PEOPLE)] | Literal["all"], BeforeValidator(sample_size)] = SAMPLE
    """People that an attack is played against at most, or the word all. Fewer are drawn where a guess costs much."""
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    """What people and guesses are drawn by."""
    refuse: bool = False
    """Whether a release that an attack breaks is refused (exit code 3); else a run warns of it first."""


def attack_settings(value: object) -> object:
    """Return the attack settings of sample, all or a mapping, and None for off; raise for other values."""
    # YAML takes the bare word off for false.
    if value is False or value == "off":
        return None
    if isinstance(value, AttackSettings):
        return value
    if value in ("sample", "all"):
        return AttackSettings(sample="all") if value == "all" else AttackSettings()
    if isinstance(value, Mapping):
        return AttackSettings.model_validate(dict(value))
    raise fault("must be sample, all or off, or a mapping with the keys sample, seed and refuse")


def attacks_schema() -> dict[str, Any]:
    """Return the JSON Schema of the job's key ``attacks``."""
    return {"anyOf": [{"enum": ["sample", "all", "off"]}, AttackSettings.model_json_schema()]}


Attacks = Annotated[AttackSettings | None, BeforeValidator(attack_settings), LaterJsonSchema(attacks_schema)]
