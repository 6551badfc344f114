"""What columns that are published as they are tell together: figures, never a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted
from schemas.release.counts import reported_count, reported_in_words

Kind = Literal["insensitive", "sensitive", "pseudonyms"]
KINDS: Mapping[Kind, str] = {"insensitive": "untreated columns", "sensitive": "sensitive columns", "pseudonyms": "pseudonyms"}
"""The columns that are counted together, with their name in a sentence."""


class Together(BaseModel):
    """Who stands out by the combination of several published columns, in the written files and in the unit of k.

    A count from 1 to k - 1 is told as k.

    Attributes:
        unique_records: Records whose combination no other record has; persons who are alone with one of theirs.
        below_k: Records or persons that share their combination, or one of theirs, with fewer than k.
        with_classes: The same where the labels of the quasi-identifiers are known too.
        unit: What is counted.
        all: How many of these the files have.
    """

    model_config = ConfigDict(frozen=True)

    unique_records: int
    below_k: int
    with_classes: int
    unit: Literal["record", "person"] = "record"
    all: int = 0

    @classmethod
    def told(cls, counts: tuple[int, int, int], k: int, unit: Literal["record", "person"], whole: int) -> Together:
        """Returns counts as a release tells them."""
        unique, below, classes = (reported_count(one, k) for one in counts)
        return cls(unique_records=unique, below_k=below, with_classes=classes, unit=unit, all=whole)

    def sentence(self, kind: Kind, k: int) -> str:
        """Returns what the figures say, without advice."""
        few, alone, labelled = (reported_in_words(one, k) for one in (self.below_k, self.unique_records, self.with_classes))
        return (
            f"By the {KINDS[kind]} together {few} of {self.all:,} {self.unit}s share their values with fewer than k = {k:,}, and {alone} "
            f"with nobody; where the quasi-identifiers are known too, {labelled} with fewer than k."
        )

    def accepted(self, k: int) -> str:
        """Returns what a job that accepts it has accepted."""
        below = reported_in_words(self.below_k, k)
        return f"The job accepts that {below} of {counted(self.all, self.unit)} stand out by its untreated columns"


def unclaimed_together(together: Together | None, k: int, *, accepted: bool, untreated: bool) -> str:
    """Returns why untreated columns together leave no maximum risk to claim; empty where they do not.

    Args:
        together: What they tell; None where that was not counted.
        k: What every class has at least.
        accepted: Whether the job accepts it.
        untreated: Whether there are such columns.
    """
    if together is None:
        return "No maximum risk is claimed: what the untreated columns tell together was not counted." if untreated else ""
    if accepted or not together.below_k:
        return ""
    few = reported_in_words(together.below_k, k)
    return (
        f"No maximum risk is claimed: by the untreated columns together {few} of {together.all:,} {together.unit}s share their values "
        f"with fewer than k = {k:,}."
    )


def together_warning(together: Together | None, k: int, *, accepted: bool) -> str:
    """Returns what is said first of a release whose untreated columns tell fewer than k people apart; empty for others."""
    if together is None or not together.below_k:
        return ""
    said = together.sentence("insensitive", k)
    if accepted:
        return f"{said} The job accepts that (columns.accept_untreated)."
    return (
        f"{said} Whoever knows these values knows whose the record is, whatever k is, and no maximum risk is claimed. Coarsen columns as "
        "quasi-identifiers or list them under withheld; to accept it by name, say columns.accept_untreated: true."
    )
