"""Terminal output of attacks on a release."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from flows.terminal.screen import NameTable
from schemas.errors.base import printable
from schemas.job.attacks import AttackBasis, AttackFigures, attacks_sentence, broken_attacks


def attack_summary(attacks: Sequence[AttackFigures], basis: AttackBasis) -> RenderableType:
    """Return a table of attacks, broken ones first, with a sentence about their number."""
    broken = len(broken_attacks(attacks))
    table = NameTable(box=None)
    for title in ("attack", "guesses", "right", "control", "advantage", "accepted", "verdict"):
        table.add_column(title, overflow="fold")
    for one in sorted(attacks, key=lambda one: one.verdict != "broken"):
        control = f"{one.control_right / one.control_guesses:.1%}" if one.control_guesses else "-"
        table.add_row(
            attacks_sentence(one),
            f"{one.guesses:,}",
            f"{one.right / one.guesses:.1%}" if one.guesses else "-",
            control,
            f"{one.advantage:+.1%} ({one.low:+.1%} to {one.high:+.1%})",
            f"{one.accepted:.1%}",
            one.verdict,
        )
    head = f"{len(attacks):,} attacks, {broken:,} of them won more than the job accepts." if attacks else "No attack was played."
    return Group(Text(head), *(Text(printable(one)) for one in basis.unplayed), table)
