"""Normalised columns: both ways of making them agree, on every letter there is."""

from __future__ import annotations

import sys
from itertools import combinations
from unicodedata import category

import duckdb
import pyarrow as pa
import pytest

from core.columns.column_types import ALL, MISSING, normalised, spelling_counts
from core.recount.groups import normalised_sql

SOME = [
    "HIV",
    "hiv",
    "HIV ",
    " HIV",
    "H\u00a0 I V",
    "N/A",
    " na ",
    "",
    " ",
    "\t",
    "Straße",
    "STRASSE",
    None,
    "-",
    "x-y",
    "İ",
    "ΑΣ",
    *MISSING,
]
UNICODE_16 = {"\u1c89", "\u1c8a", *map(chr, range(0xA7CB, 0xA7DD))}
"""Letters that Python 3.14 knows and DuckDB does not."""
STEPS = [steps for size in range(4) for steps in combinations(ALL, size)]


@pytest.mark.parametrize("steps", STEPS)
def test_the_statement_of_the_recount_agrees_on_all_letters(steps: tuple[str, ...]) -> None:
    # Letters that are newer than this Python are left out: libraries do not learn them at the same time.
    old = (chr(number) for number in range(1, sys.maxunicode, 5) if not 0xD800 <= number < 0xE000)
    kinds = {"Lu", "Ll", "Lt", "Zs", "Cc", "Cf", "Nd"}
    letters = [f"A{one}b" for one in old if one < "\U00010400" and category(one) in kinds and one not in UNICODE_16]
    texts = pa.table({"text": pa.array([*SOME, *letters])})
    with duckdb.connect() as connection:
        connection.register("texts", texts)
        found = connection.sql(f"SELECT {normalised_sql('text', steps)} AS made FROM texts").to_arrow_table()["made"]
    assert normalised(texts["text"].combine_chunks(), steps).to_pylist() == found.to_pylist()


def test_spellings_become_one_and_what_says_nothing_becomes_null() -> None:
    assert normalised(pa.array(["HIV", "hiv", " HIV ", "N/A", ""]), ALL).to_pylist() == ["hiv", "hiv", "hiv", None, None]
    assert normalised(pa.array(["HIV", " HIV  b "]), ["space"]).to_pylist() == ["HIV", "HIV b"]
    assert normalised(pa.array([" N/A ", "A "]), ["empty"]).to_pylist() == [None, "A "]


def test_a_dictionary_stays_one_of_different_entries() -> None:
    made = normalised(pa.array(["HIV", "hiv", "N/A", None, "flu"]).dictionary_encode(), ALL)
    assert made.to_pylist() == ["hiv", "hiv", None, None, "flu"]
    assert made.dictionary.to_pylist() == ["hiv", "flu"]


def test_spellings_are_counted() -> None:
    assert spelling_counts(pa.array(["HIV", "hiv", "HIV ", " HIV", "flu", "", "N/A"])) == (3, 2)
    assert spelling_counts(pa.array([1, 2])) == (0, 0)
