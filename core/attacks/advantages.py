"""How much more an attacker gets right than of a control group, with its interval, and what that means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from schemas.attacks.figures import AttackFigures, AttackName, AttackVerdict

USUAL = 1.959964
"""Standard deviations of an interval of 95 %."""
SURE = 4.5
"""Those by which a release is called broken: by chance one of some hundred thousand attacks would be."""
DIGITS = 4


def wilson_interval(right: int, guesses: int, deviations: float = USUAL) -> tuple[float, float]:
    """Returns the score interval of a share (Wilson, JASA 1927); 0 and 1 where nothing was guessed."""
    if not guesses:
        return 0.0, 1.0
    share, square = right / guesses, deviations**2
    middle = (share + square / (2 * guesses)) / (1 + square / guesses)
    half = deviations / (1 + square / guesses) * sqrt(share * (1 - share) / guesses + square / (4 * guesses**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def advantage_interval(
    right: int, guesses: int, control_right: int, control_guesses: int, deviations: float = USUAL
) -> tuple[float, float, float]:
    """Returns the difference of two shares and its interval, made of both score intervals (Newcombe, Stat. Med. 1998, method 10).

    Where nothing was guessed of the control group, its share is 0: nobody of it could be guessed.
    """
    share = right / guesses if guesses else 0.0
    other = control_right / control_guesses if control_guesses else 0.0
    low, high = wilson_interval(right, guesses, deviations)
    other_low, other_high = wilson_interval(control_right, control_guesses, deviations) if control_guesses else (0.0, 0.0)
    difference = share - other
    return (
        difference,
        difference - sqrt((share - low) ** 2 + (other_high - other) ** 2),
        difference + sqrt((high - share) ** 2 + (other - other_low) ** 2),
    )


@dataclass(frozen=True)
class Guesses:
    """What an attacker guessed.

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
        """Returns the attack with its advantage and its verdict."""
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
        if self.promised:
            return "broken" if self.right else "safe"
        if advantage_interval(self.right, self.guesses, self.control_right, self.control_guesses, SURE)[1] > self.accepted:
            return "broken"
        return "told" if low > 0 else "safe"


def _rounded(share: float) -> float:
    """Returns a share of four digits; no minus before 0."""
    return round(share, DIGITS) + 0.0


def added_guesses(played: list[Guesses]) -> Guesses:
    """Returns guesses of one attack that were played against people in turn, added up."""
    first, count = played[0], sum(one.guesses for one in played)
    return replace(
        first,
        guesses=count,
        right=sum(one.right for one in played),
        control_guesses=sum(one.control_guesses for one in played),
        control_right=sum(one.control_right for one in played),
        accepted=sum(one.accepted * one.guesses for one in played) / count if count else first.accepted,
    )
