"""Questions of a draft to the user, each on similar columns, with the safest answer as default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.formats import proposals as proposed

WORDING: Mapping[proposed.Question, tuple[str, str]] = {
    "names": ("Do these name or number one person each?", "yes, so they are not published"),
    "outside": ("Could somebody outside know these of a person?", "no value of fewer than k people is published"),
    "text": ("May these texts name people?", "yes, so they are withheld"),
}
"""What is asked of columns, and what the safest answer means."""
KINDS = {"integer": "numbers", "double": "numbers", "boolean": "categories", "text": "categories", "date": "dates", "timestamp": "dates"}


class Question(NamedTuple):
    """A question to the user about some columns.

    Attributes:
        columns: What it is about.
        question: In words.
        safest: The role that the safest answer gives these columns; the draft has it already.
        meaning: What that answer means.
    """

    columns: tuple[str, ...]
    question: str
    safest: str
    meaning: str


def questions_of(proposals: Sequence[proposed.Proposal]) -> tuple[Question, ...]:
    """Return the questions of a draft: one per kind of question, role and kind of values.

    There are eight at most.
    """
    found: dict[tuple[proposed.Question, str, str], list[str]] = {}
    for one in proposals:
        if one.question is not None:
            kind = KINDS.get(one.profile.kind, "others") if one.question == "outside" else ""
            found.setdefault((one.question, one.role, kind), []).append(one.profile.name)
    asked = []
    for (question, role, _), names in found.items():
        words, meaning = WORDING[question]
        asked.append(Question(tuple(names), words, role, meaning))
    return tuple(asked)
