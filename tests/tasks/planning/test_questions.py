"""A draft asks few questions, whatever its columns are."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from core.formats.concept_names import concept_names
from core.formats.proposals import ColumnProfile, Kind, propose_role
from tasks.planning.draft import with_guessed_quasi_identifiers
from tasks.planning.draft_text import questions_of

LOOKS: list[tuple[str, ...]] = [(), ("free text",), ("nearly unique",), ("dates of birth",), ("coordinates",), ("telephone numbers",)]


@pytest.mark.ci
def test_of_all_concepts_kinds_and_shapes_together_at_most_eight_questions_are_asked() -> None:
    named = {concept: name for concept, name, _ in concept_names()}.values()
    names = [*named, *(f"{name} of x" for name in named), "patient", "x17"]
    shapes = [(1000, 1), (1000, 3), (1000, 40), (1000, 600), (1000, 1000), (0, 0)]
    asked = [
        propose_role(ColumnProfile(name, kind, values, distinct, value_patterns=looks, longest=50, mean_length=length, top=top))
        for name in names
        for kind, (values, distinct) in product(get_args(Kind), shapes)
        for looks, length, top in [*((looks, 5.0, 0.0) for looks in LOOKS), ((), 45.0, 0.0), ((), 5.0, 0.99)]
    ]
    assert 1 <= len(questions_of(asked)) <= 8


def test_columns_of_one_role_are_asked_about_together_and_the_answer_says_what_becomes_of_them() -> None:
    columns = [ColumnProfile("zip", "text", 500, 1), ColumnProfile("age", "integer", 500, 1), ColumnProfile("tier", "boolean", 500, 1)]
    guessed = with_guessed_quasi_identifiers([propose_role(column) for column in columns], 1)
    [asked] = questions_of(guessed)
    assert (asked.columns, asked.safest, asked.safest_words) == (("zip", "age", "tier"), "quasi_identifier", "quasi-identifier")
    assert "combination" in asked.meaning
    [other] = questions_of([propose_role(ColumnProfile("x17", "text", 500, 9))])
    assert other.safest == "sensitive" and "no value" in other.meaning
