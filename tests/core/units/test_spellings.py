"""Persons that differ only in spelling, counted over chunks as a plain count has them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.column_types import MISSING
from core.units.repeats import LOWER, OTHER, UPPER, character_marks, may_be_alike, merge_spellings, spellings_of
from tests.house.replaced import SPELLINGS_MOST_PERSONS

TEXTS = ["a", "A", " a", "b", "B ", "c  d", "c d", "e", "", " ", "N/A", None]
PERSONS = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from([1, 2, None])), max_size=30)


def found(rows: list[tuple[str | None, int | None]]) -> tuple[int, int]:
    """How many persons equal another but for spelling, and how many are unknown, counted one by one."""
    persons = {(text, number) for text, number in rows if text is not None and number is not None}
    folded = [(" ".join(text.split()).lower(), number) for text, number in persons]
    known = [one for one in folded if one[0] not in MISSING]
    return len(known) - len(set(known)), len(folded) - len(known)


@given(st.lists(PERSONS, max_size=4))
def test_chunks_add_up_to_a_plain_count(chunks: list[list[tuple[str | None, int | None]]]) -> None:
    parts = [
        spellings_of([pa.array([row[0] for row in chunk], pa.string()), pa.array([row[1] for row in chunk], pa.int64())], len(chunk))
        for chunk in chunks
    ]
    made = merge_spellings(parts)
    assert (made.bits, made.alike, made.unknown) == (0, *found([row for chunk in chunks for row in chunk]))


WORDS = st.lists(st.sampled_from([*TEXTS, "P1", "p1", "P-2", "NA", "na", "NaN", ".", "é", "x\x7f", "7", "É"]), max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]))
def test_texts_whose_characters_exclude_it_are_not_alike(chunks: list[list[str | None]], kind: pa.DataType) -> None:
    columns = [pa.array(["a B", *chunk, "C d"], pa.string()).slice(1, len(chunk)) for chunk in chunks]
    marks = 0
    for column in columns:
        marks |= character_marks(column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind))
    if not may_be_alike(marks):
        assert found([(text, 1) for chunk in chunks for text in chunk]) == (0, 0)


def test_marks_say_which_characters_occur() -> None:
    cases = {"p-1": LOWER, "P-1": UPPER, "p-1 ": LOWER | OTHER, "12": 0, "Ab": LOWER | UPPER, "NA": UPPER | OTHER, "": OTHER, "é": OTHER}
    assert {text: character_marks(pa.array([text, None])) for text in cases} == cases
    assert [character_marks(pa.array(column)) for column in ([None, None], [1, 2])] == [0, 0]
    assert [may_be_alike(marks) for marks in (0, LOWER, UPPER, LOWER | UPPER, OTHER)] == [False, False, False, True, True]
    assert character_marks(pa.array(["A", "b", "C"]).slice(1, 1)) == LOWER


def test_every_text_that_says_that_nothing_is_known_is_marked_whatever_stands_beside_it() -> None:
    for word in MISSING:
        for text in (word, word.upper()):
            columns = [[text], [text, "longer than any of these"], ["7", text]]
            assert [character_marks(pa.array(column)) & OTHER for column in columns] == [OTHER] * 3
    # Such a text with more around it is none.
    assert [character_marks(pa.array([text])) & OTHER for text in ("nulls", "n/a/", "---", "naa")] == [0] * 4


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_marks_are_those_of_the_first_and_of_the_last_character_of_each_kind(kind: pa.DataType) -> None:
    found = {code: character_marks(pa.array([chr(code) * 5], kind)) for code in range(256)}
    letters = {code: LOWER if chr(code).islower() else UPPER for code in range(128) if chr(code).isalpha()}
    expected = {code: OTHER if code <= 32 or code >= 127 else letters.get(code, 0) for code in range(256)}
    assert found == expected


def test_of_many_persons_a_sample_is_looked_at_in_which_spellings_stay_together() -> None:
    names = pa.array([text for number in range(4000) for text in (f"n{number}", f"N{number}")])
    with patch(SPELLINGS_MOST_PERSONS, 1000):
        made = merge_spellings([spellings_of([part], len(part)) for part in (names.slice(0, 4001), names.slice(4001))])
    assert made.bits and len(made.persons) <= 1000
    assert 2 * len(np.unique(made.folded)) == len(made.persons)
    assert 3000 < made.alike < 5000
