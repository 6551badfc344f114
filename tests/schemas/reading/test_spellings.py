"""Numbers and dates in the spelling of a file are those that a plain reading finds, and no other text is taken for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.job.source import date_order
from schemas.reading.typed_texts import ISO, Spelling, accepted_words, is_spelling, typed_sql

SPELLINGS = [Spelling(decimal, thousands) for decimal in ".," for thousands in ("", ".", ",", " ", "'") if decimal != thousands]
BLANKS = {" ": " \u00a0\u2009\u202f", "'": "'\u2019"}
ORDERS = ["dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "dd-mm-yyyy", "mm dd yyyy", "yyyy.mm.dd", "yyyymmdd", "ddmmyyyy"]


def read(texts: Sequence[str], dtype: str, spelling: Spelling) -> list[Any]:
    texts_read = pa.table({"place": range(len(texts)), "text": pa.array(texts, pa.string())})
    with duckdb.connect() as connection:
        connection.register("texts", texts_read)
        found = connection.execute(f"SELECT {typed_sql('text', dtype, spelling)} FROM texts ORDER BY place").fetchall()
    return [value for (value,) in found]


def number(text: str, spelling: Spelling) -> Decimal | None:
    """Return the number that a text spells, read from the left to the right."""
    whole, *fraction = text.split(spelling.decimal)
    groups = [whole]
    for mark in BLANKS.get(spelling.thousands, spelling.thousands):
        groups = [part for group in groups for part in group.split(mark)]
    digits = "".join(groups)
    grouped = len(groups) == 1 or (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]))
    if len(fraction) > 1 or not grouped or not all(part == "" or (part.isascii() and part.isdigit()) for part in (digits, *fraction)):
        return None
    # A type's own reading asks for a digit, and of decimals for one before the point or behind it.
    return Decimal(f"{digits or 0}.{fraction[0] if fraction else 0}0") if digits or (fraction and fraction[0]) else None


@given(
    st.sampled_from(SPELLINGS),
    st.lists(st.text("0123456789.,' \u00a0\u2019", min_size=1, max_size=9).map(str.strip).filter(bool), max_size=60),
)
def test_numbers_are_those_that_a_plain_reading_finds(spelling: Spelling, texts: list[str]) -> None:
    assert read(texts, "decimal(30,12)", spelling) == [number(text, spelling) for text in texts]


FORMS = ["{!r}", "{:.2f}", "{:.15f}", "{:.17g}", "{:.16e}", "+{}", "{:015.3f}", "{:.400f}", " {} ", "{}0"]
NUMBERS = st.floats() | st.integers(-(10**18), 10**18).map(float) | st.decimals(-1000, 1000, places=3).map(float)
DOUBLES = st.one_of(
    st.text("0123456789.eE+-", min_size=1, max_size=24),
    st.tuples(st.sampled_from(FORMS), NUMBERS).map(lambda one: one[0].format(one[1])),
)


@given(st.lists(DOUBLES, min_size=1, max_size=60))
@example(
    ["0.1234567890123456", "0.12345678901234567", "123456789012345", "1234567890123456.7", "1e-300", "5e-324", "1e400", "-0", "-0.0", "nan"]
)
def test_a_double_is_read_where_it_has_the_digits_of_its_text(texts: list[str]) -> None:
    expected = [float(text) if is_spelling(text, "double") else None for text in texts]
    assert list(map(repr, read(texts, "double", Spelling()))) == list(map(repr, expected))


@given(st.sampled_from(SPELLINGS), st.lists(st.tuples(st.integers(-(10**9), 10**9), st.booleans()), max_size=60))
def test_a_number_that_is_written_is_read_again(spelling: Spelling, numbers: list[tuple[int, bool]]) -> None:
    def written(cents: int, grouped: bool) -> str:
        text = f"{Decimal(cents) / 100:{',' if grouped and spelling.thousands else ''}.2f}"
        return text.translate({ord(","): spelling.thousands, ord("."): spelling.decimal})

    found = read([written(*one) for one in numbers], "decimal(20,2)", spelling)
    assert found == [Decimal(cents) / 100 for cents, _ in numbers]
    assert read(["NaN", "-Infinity"], "double", spelling)[1] == float("-inf")


@pytest.mark.parametrize("dates", ORDERS)
@given(days=st.lists(st.dates(date(1000, 1, 1)), min_size=1, max_size=20))
def test_a_day_that_is_written_is_read_again(dates: str, days: list[date]) -> None:
    def written(day: date) -> str:
        return dates.replace("dd", f"{day.day:02}").replace("mm", f"{day.month:02}").replace("yyyy", f"{day.year:04}")

    spelling = Spelling(dates=date_order(dates))
    assert read([written(day) for day in days], "date", spelling) == days
    moments = read([f"{written(day)} 23:59" for day in days], "timestamp", spelling)
    assert [(moment.date(), moment.hour, moment.minute) for moment in moments] == [(day, 23, 59) for day in days]


@pytest.mark.parametrize(
    ("dates", "text"),
    [
        ("dd.mm.yyyy", "31/01/2024"),
        ("dd.mm.yyyy", "32.01.2024"),
        ("dd.mm.yyyy", "01.31.2024"),
        ("mm/dd/yyyy", "31/01/2024"),
        ("dd.mm.yyyy", "31.01.24"),
        ("ddmmyyyy", "112024"),
        ("dd.mm.yyyy", "31.01.2024x"),
        ("dd.mm.yyyy", "31.01.2024 12:00"),
    ],
)
def test_a_day_of_another_spelling_is_none(dates: str, text: str) -> None:
    assert read([text], "date", Spelling(dates=dates)) == [None]


def test_one_digit_is_enough_where_something_parts_them() -> None:
    assert read(["1.2.2024", " 1.2.2024 "], "date", Spelling(dates="dd.mm.yyyy")) == [date(2024, 2, 1)] * 2


@pytest.mark.parametrize("dates", ORDERS)
def test_a_day_by_year_month_and_day_is_read_beside_any_order(dates: str) -> None:
    assert read(["2024-01-31", "2024/1/31", "2024-13-01"], "date", Spelling(dates=dates)) == [date(2024, 1, 31)] * 2 + [None]


@pytest.mark.parametrize("dtype", ["integer", "double", "date", "timestamp", "boolean", "text"])
def test_the_standard_spelling_changes_no_statement(dtype: str) -> None:
    assert typed_sql("x", dtype, Spelling()) == typed_sql("x", dtype)
    assert Spelling().dates == ISO


def test_words_for_a_type_have_an_example_of_the_spelling() -> None:
    assert accepted_words("date", Spelling(dates="dd.mm.yyyy")) == "days without a time, such as 31.01.2024"
    assert accepted_words("double", Spelling(",", ".")).endswith("with a decimal ',' and thousands parted by '.'")
    assert accepted_words("timestamp", Spelling(dates="mm/dd/yyyy")).endswith("the day as 01/31/2024")
