"""What attacks on a release came to: guesses, how many were right, and how many the same attacker gets right of a control group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

AttackName = Literal["singling_out", "linkage", "inference", "membership", "downcoding", "joins"]
AttackVerdict = Literal["safe", "told", "broken"]


class AttackFigures(BaseModel):
    """One attack on a release.

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

    model_config = ConfigDict(frozen=True)

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


class AttackBasis(BaseModel):
    """What attacks were played with.

    Attributes:
        sample: People that an attack is played against at most; None for all of them.
        seed: What they were drawn by.
        code: Fingerprint of the code of the attacks.
        unplayed: Why attacks were not played, a sentence each.
    """

    model_config = ConfigDict(frozen=True)

    sample: int | None
    seed: int
    code: str
    unplayed: tuple[str, ...] = ()


def broken_attacks(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """Returns the attacks that win more than a job accepts."""
    return [one for one in attacks if one.verdict == "broken"]


def attacks_sentence(one: AttackFigures) -> str:
    """Returns what an attack is called: its name, what it aims at, and what the attacker knows."""
    return f"{one.name.replace('_', ' ')}{f' of {one.target!r}' if one.target else ''} by {one.knows}"
